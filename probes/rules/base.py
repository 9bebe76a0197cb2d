"""What a rule is, and what it may look at."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from probes.report import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from jinjarun.sources import Source, TokenData
    from probes.chats.messages import Chat
    from probes.rendering.input_form import PathObserver
    from probes.rendering.renders import EvidenceBook, Renders
    from probes.report import Contract, EngineStatus, Observation, Prefix, Shape, Stop, TokensChapter
    from probes.rules.view import Look

CODE = re.compile(r"(SY|RL|CT|TL|RS|PK|PS|ST|TR|PT|SC)([0-3])(\d\d)")
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")

Needs = Literal["source", "renders", "tokens", "files"]
NEEDS: dict[str, Needs] = {"0": "source", "1": "renders", "2": "tokens", "3": "files"}
"""What the first digit of a code says: what a rule must have before it can run."""


@dataclass(frozen=True)
class Facts:
    """The chapters so far. A chapter is None where the template does not load or the probe did not get that far.

    `files` is what the template was taken from, `upstream` the template of the model that it should equal.
    """

    source: str
    renders: Renders
    book: EvidenceBook
    engines: list[EngineStatus]
    observed: dict[str, Observation]
    contract: Contract | None
    shape: Shape | None
    stop: Stop | None
    tokens_chapter: TokensChapter | None
    prefix: Prefix | None
    tokens: TokenData | None = None
    files: Source | None = None
    upstream: str | None = None

    @cached_property
    def look(self) -> Look:
        """The template as rules ask it, path by path."""
        from probes.rules.view import Look  # noqa: PLC0415

        return Look(self)


@dataclass(frozen=True, slots=True)
class Hit:
    """One place where a rule found its defect.

    `engines` are the paths on which it was seen, `not_on` those on which a request path repairs it; then the severity
    drops by one step. `severity` overrides the rule's own. `cause` names what the defect stems from: hits of several
    rules with one cause become one finding, the others stand under its `also`.
    """

    message: str
    engines: list[str]
    not_on: list[str] = field(default_factory=list)
    line: int | None = None
    column: int | None = None
    evidence: list[str] = field(default_factory=list)
    severity: Severity | None = None
    suggestion: str | None = None
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """`triggers` is a template of a few lines that the rule hits, `repaired` its smallest repair, `healthy` a real form
    that it must not hit. `documentation` is the module's docstring: what it does, why it is bad, example, use instead,
    references. A rule in `preview` runs only with `--preview`. `asks`: conversations of the rule's own, in the form
    that a path takes; the fuzzer asks them of the laws, too, so that a rule and a law that names it say the same.
    `beside`: of a rule that needs files, which: any place of templates, the folder of a model, or the template of
    another model.
    """

    code: str
    name: str
    severity: Severity
    summary: str
    suggestion: str
    check: Callable[[Facts], list[Hit]]
    triggers: str
    repaired: str
    healthy: str
    documentation: str
    preview: bool = False
    asks: Callable[[PathObserver], Iterable[Chat]] = lambda on: ()
    beside: Literal["place", "folder", "upstream"] = "place"

    @property
    def needs(self) -> Needs:
        return NEEDS[self.code[2]]


_WEAKER: dict[Severity, Severity] = {"error": "warning", "warning": "info", "info": "info"}


def severity_of(rule: Rule, hit: Hit) -> Severity:
    """The rule's or the hit's own, a step lower where a request path repairs it."""
    severity = hit.severity or rule.severity
    return _WEAKER[severity] if hit.not_on else severity


def finding(rule: Rule, hit: Hit, sha256: str, group: str, also: list[str]) -> Finding:
    repaired = f"; repaired on {', '.join(hit.not_on)}" if hit.not_on else ""
    return Finding(
        code=rule.code,
        name=rule.name,
        severity=severity_of(rule, hit),
        engines=hit.engines,
        not_on=hit.not_on,
        message=hit.message + repaired,
        line=hit.line,
        column=hit.column,
        group=group,
        also=also,
        evidence=hit.evidence,
        suggestion=hit.suggestion or rule.suggestion,
        fingerprint=f"{rule.code}:{sha256[:8]}:{hit.line or 0}",
    )
