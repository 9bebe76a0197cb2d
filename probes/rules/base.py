"""What a rule is, and how a hit becomes a finding."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from probes.report import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from probes.chats.messages import Chat
    from probes.rendering.input_form import PathObserver
    from probes.rules.view import Facts, Hit

CODE = re.compile(r"(SY|RL|CT|TL|RS|PK|PS|ST|TR|PT|SC)([0-3])(\d\d)")
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")

Needs = Literal["source", "renders", "tokens", "files"]
NEEDS: dict[str, Needs] = {"0": "source", "1": "renders", "2": "tokens", "3": "files"}
"""What the first digit of a code says: what a rule must have before it can run."""


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


HARM = (
    # nothing works, or somebody else's text runs
    *("SY001", "SY002", "SY003", "PT102", "SC101", "SC105", "PK303"),
    # generation never stops, or begins outside of a turn
    *("ST103", "ST201", "ST204", "TL108", "TR101", "RL109"),
    # an ordinary request fails
    *("TL102", "CT102", "CT104", "TL111", "TL117"),
    # text is lost
    *(
        "RL101",
        "TL115",
        "CT107",
        "CT108",
        "TL116",
        "TL106",
        "TL107",
        "RS102",
        "TL114",
        "RS103",
        "TL101",
        "TL113",
        "RL103",
        "RS101",
    ),
    # text is another
    *("CT101", "CT106", "TL104", "TL105", "TL112", "SY004", "SY005", "RS105", "SC102", "SC103", "SY006", "SY008"),
    # tokens are others
    *("ST101", "ST202", "ST203", "ST102", "TR102", "TR103", "TR104"),
    # time is lost
    *("PS102", "PS101", "RL107", "PS103", "PS104", "PS105"),
    # places or engines do not agree
    *("PT101", "PK301", "PK302"),
    # facts
    *("TL109", "RL108", "SY007", "RL106", "RS104", "SC104"),
)
"""Every rule by the harm of what it finds, the worst first: so findings of one severity are sorted."""


def severity_of(rule: Rule, hit: Hit) -> Severity:
    """The hit's own, else the rule's."""
    return hit.severity or rule.severity


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
