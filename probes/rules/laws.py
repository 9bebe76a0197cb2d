"""What a broken law of prefix stability is as a finding."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from probes.rendering.counting import SHOWN
from probes.rendering.input_form import judged_path
from probes.rules.rl101_system_message_lost import CAUSE as SYSTEM_LOST
from probes.rules.rl101_system_message_lost import lost_in_loop
from probes.rules.view import Hit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from probes.report import Law, Severity
    from probes.rules.view import Facts

SMALL: dict[str, Severity] = {
    "end_differs": "info",
    "last_turn_differs": "warning",
    "generation_prompt_differs": "warning",
}
"""Causes that cost little more each time, however long the conversation is: never graver than this."""
CAUSES = {
    "clock": "the clock is read",
    "keys_sorted": "keys are sorted",
    "generation_prompt_differs": "the generation prompt begins otherwise than the turn in the history",
    "reasoning_dropped": "reasoning is dropped",
    "inline_reasoning": "reasoning inside an answer is dropped",
    "system_text_moves": "the system text moves",
    "tools_move": "the tools move",
    "history_trimmed": "history is left out",
    "last_turn_differs": "a message is written otherwise while it is the last",
    "end_differs": "what stands behind the last message changes",
}


def broken(facts: Facts, law: str) -> Law | None:
    """The law of this name where it was asked and is broken."""
    laws = facts.prefix.laws if facts.prefix is not None else []
    return next((found for found in laws if found.law == law and found.holds is False), None)


def cause_of(law: Law) -> str:
    """The `cause` of hits: what breaks several laws is one defect."""
    return f"prefix: {law.cause}"


def said(variables: Mapping[str, Any]) -> str:
    """Variables as a request has them."""
    return f"chat_template_kwargs {json.dumps(dict(variables))}"


def why(law: Law) -> str:
    return CAUSES.get(law.cause or "", law.cause or "for an unknown reason")


BY_DESIGN = frozenset({"reasoning_dropped", "inline_reasoning"})
THOUGHTS = re.compile(r"think|thought|reason|analysis", re.IGNORECASE)


def graded(facts: Facts, law: Law, severity: Severity) -> Severity:
    """What is left of the severity: an answer that is not replayed because earlier reasoning is left out, or because
    the generation prompt opens or closes reasoning, only states how models that reason are meant to work."""
    if law.law == "as-generated":
        prompt = facts.view.shape.generation_prompt
        opens = law.cause == "generation_prompt_differs" and prompt is not None and THOUGHTS.search(prompt.text)
        if law.cause in BY_DESIGN or opens:
            return "info"
    return SMALL.get(law.cause or "", severity)


def broken_laws(facts: Facts, laws: Mapping[str, str], severity: Severity) -> list[Hit]:
    """A hit for each of `laws` that is broken; the value says what is added to the conversation."""
    hits: list[Hit] = []
    path = judged_path(facts.renders)
    for name, added in laws.items():
        law = broken(facts, name)
        if law is None or any(hit.cause == cause_of(law) for hit in hits):
            continue
        measure = f"{law.shared} of {law.of} {SHOWN[law.unit]} are kept"
        lost = name == "within-tool-loop" and bool(lost_in_loop(facts.view))
        cause = "the system text is lost" if lost else why(law)
        hits.append(
            Hit(
                message=f"{added} changes the prompt before it: {cause}; {measure}",
                engines=[path],
                line=law.line,
                evidence=law.evidence,
                severity=graded(facts, law, severity),
                suggestion=None if law.remedy is None else f"set {said(law.remedy)}, which keeps it",
                cause=SYSTEM_LOST if lost else cause_of(law),
            )
        )
    return hits
