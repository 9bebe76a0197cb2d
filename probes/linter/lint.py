"""`lint`: the rules alone, and what a repository writes down to live with their findings.

A file of exemptions has a line for each finding that somebody looked at, and why it stays:

    TL104:87a2728c:34   the model was trained on quoted arguments
    CT104 models/*.jinja   text only, the server joins the parts

A fingerprint names one finding of one version of a template; a code with a path (a pattern of `fnmatch`) names all that
the rule finds there. A baseline holds the findings of today by template, code and message: only new ones count.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from jinjarun.errors import InputError
from probes.prober import probe
from probes.rendering.renders import PATHS
from probes.report import Evidence, Finding, NotEvaluated, TemplateInfo
from probes.rules import selected
from probes.rules.base import CODE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime

    from jinjarun.limits import Limits
    from jinjarun.sources import Source, TokenData
    from probes.report import TemplateSource

FINGERPRINT = re.compile(rf"{CODE.pattern}:[0-9a-f]{{8}}:\d+")
BASELINE_VERSION = 1


@dataclass(frozen=True, slots=True)
class Exempt:
    """A finding that stays, and the reason that was given."""

    finding: Finding
    reason: str


@dataclass(frozen=True, slots=True)
class LintResult:
    """The findings on one template, worst first; those that are exempt; the rules that could not be judged. `template`
    tells which text was judged, and where it stands; `text` is that text."""

    name: str
    template: TemplateInfo
    findings: list[Finding]
    not_evaluated: list[NotEvaluated] = field(default_factory=list)
    evidence: dict[str, Evidence] = field(default_factory=dict)
    exempt: list[Exempt] = field(default_factory=list)
    text: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "template": self.name,
            "info": self.template.model_dump(mode="json"),
            "findings": [found.model_dump(mode="json") for found in self.findings],
            "exempt": [{"reason": one.reason, **one.finding.model_dump(mode="json")} for one in self.exempt],
            "not_evaluated": [missing.model_dump(mode="json") for missing in self.not_evaluated],
            "evidence": {key: piece.model_dump(mode="json") for key, piece in self.evidence.items()},
        }


def lint(
    template: str,
    *,
    name: str | None = None,
    select: Collection[str] = (),
    ignore: Collection[str] = (),
    preview: bool = False,
    tokens: TokenData | None = None,
    files: Source | None = None,
    upstream: str | None = None,
    limits: Limits | None = None,
    now: datetime | float | None = None,
    source: TemplateSource | None = None,
    variant: str = "default",
    paths: Collection[str] = PATHS,
) -> LintResult:
    """What the rules find in `template`, which is always template text.

    `select` and `ignore` are codes, beginnings of codes (`TL`, `CT1`) or names of rules; without `select` all rules run
    that are not in preview, with `preview` those too. What is not evaluated is never clean: `not_evaluated` lists it.
    Raises InputError for a word that fits no rule. See `probe` for the rest.
    """
    chosen, unknown = selected(select, ignore, preview=preview)
    if unknown:
        raise InputError(f"no rule is called {', '.join(unknown)}; see: jinjarun rules", path="select")
    report = probe(
        template,
        name=name,
        tokens=tokens,
        limits=limits,
        now=now,
        source=source,
        variant=variant,
        rules=chosen,
        files=files,
        upstream=upstream,
        paths=paths,
    )
    cited = {key for found in report.findings for key in found.evidence}
    return LintResult(
        name=name or "template",
        template=report.template,
        findings=report.findings,
        not_evaluated=[missing for missing in report.not_evaluated if _concerns(missing, chosen)],
        evidence={key: piece for key, piece in report.evidence.items() if key in cited},
        text=template,
    )


def _concerns(missing: NotEvaluated, rules: Collection[str]) -> bool:
    """Whether it is one of these rules that could not be judged, or a conversation that all rules rest on."""
    kind, _, which = missing.what.partition(" ")
    return which in rules if kind == "rule" else kind == "conversation"


@dataclass(frozen=True, slots=True)
class Exemption:
    """One line of a file of exemptions: a fingerprint, or a code and a pattern of template names."""

    what: str
    path: str | None
    reason: str

    def covers(self, name: str, finding: Finding) -> bool:
        if self.path is None:
            return finding.fingerprint == self.what
        return finding.code == self.what and fnmatchcase(name, self.path)


def read_exemptions(text: str, where: str = "ignore file") -> list[Exemption]:
    """The lines of a file of exemptions. InputError, with the line's number, where one has no reason or no rule."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        what, _, rest = line.strip().partition(" ")
        path: str | None = None
        if CODE.fullmatch(what):
            path, _, rest = rest.strip().partition(" ")
        elif not FINGERPRINT.fullmatch(what):
            raise _bad(where, number, f"{what!r} is neither a fingerprint nor the code of a rule")
        if path == "" or not rest.strip():
            raise _bad(where, number, "each line needs a reason: FINGERPRINT REASON, or CODE PATH REASON")
        found.append(Exemption(what, path, rest.strip()))
    return found


def _bad(where: str, number: int, what: str) -> InputError:
    return InputError(f"{where}: line {number}: {what}", path=where, place=f"line {number}")


def without_exemptions(result: LintResult, exemptions: Iterable[Exemption]) -> LintResult:
    """The same with the findings that an exemption covers moved to `exempt`."""
    rows = list(exemptions)
    kept, exempt = [], list(result.exempt)
    for finding in result.findings:
        row = next((row for row in rows if row.covers(result.name, finding)), None)
        if row is None:
            kept.append(finding)
        else:
            exempt.append(Exempt(finding, row.reason))
    return _with(result, kept, exempt)


def baseline(results: Sequence[LintResult]) -> str:
    """Today's findings as the text of a baseline file, sorted, so that it can be read in a diff."""
    rows = [
        {"template": result.name, "code": found.code, "message": found.message}
        for result in results
        for found in result.findings
    ]
    rows.sort(key=lambda row: (row["template"], row["code"], row["message"]))
    return json.dumps({"version": BASELINE_VERSION, "findings": rows}, ensure_ascii=False, indent=1) + "\n"


def without_baseline(result: LintResult, text: str, where: str = "baseline") -> LintResult:
    """The same with the findings that the baseline holds moved to `exempt`. InputError where it is no baseline."""
    try:
        data = json.loads(text)
        rows = {(row["template"], row["code"], row["message"]) for row in data["findings"]}
    except (ValueError, TypeError, KeyError, RecursionError):
        raise InputError(f"{where}: is no baseline of jinjarun lint", path=where) from None
    kept, exempt = [], list(result.exempt)
    for finding in result.findings:
        if (result.name, finding.code, finding.message) in rows:
            exempt.append(Exempt(finding, "in the baseline"))
        else:
            kept.append(finding)
    return _with(result, kept, exempt)


def _with(result: LintResult, findings: list[Finding], exempt: list[Exempt]) -> LintResult:
    return replace(result, findings=findings, exempt=exempt)
