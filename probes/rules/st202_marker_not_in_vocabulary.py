"""A marker that the template writes is no token of the model.

What it does: collects the markers that begin and end in the template's own text and looks each of them up in the whole
vocabulary. Only shapes that nobody writes as ordinary text count (`<|im_start|>`, `<turn|>`), and what ends a turn;
tags such as `<tools>` are ordinary text in many formats and stand in the report as a fact.

Why it is bad: the model reads the marker as a handful of ordinary characters that it never saw in training, a user can
type it, and where it ends a turn no engine can stop at it.

Example: a ChatML template on a base model whose tokenizer never got `<|im_start|>` and `<|im_end|>`; a marker with a
letter too many.

Use instead: the markers that the model was trained on, or add the tokens to the tokenizer and train them.

References: `added_tokens` of tokenizer.json; a finding is info where no marker of that shape is a token, because some
formats (Zephyr's `<|user|>`) are ordinary text by design.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinjarun.errors import quote
from probes.chapters.tokens import UnknownMarker, unknown_markers
from probes.rendering.renders import APPLY, LLAMA_SERVER
from probes.rules.base import Rule
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.report import Severity
    from probes.rules.view import Facts


def check(facts: Facts) -> list[Hit]:
    return [_hit(facts, found) for found in unknown_markers(facts.renders, facts.tokens) if found.control]


def _hit(facts: Facts, found: UnknownMarker) -> Hit:
    text = facts.renders.render(found.path, found.chat).text or ""
    start, end = found.span
    excerpt = text[max(0, start - 20) : end + 20]
    reason = (
        "it ends a turn, so no engine can stop at it"
        if found.ends_turn
        else "others of its shape are tokens"
        if found.siblings
        else "none of its shape is a token, so the format may be ordinary text by design"
    )
    severity: Severity = "error" if found.ends_turn or found.siblings else "info"
    return Hit(
        message=f"{quote(found.text)} is no token of the vocabulary: {reason}",
        engines=[APPLY, LLAMA_SERVER],
        evidence=[facts.book.cite(found.chat, found.path, "not_a_token", excerpt=excerpt, span=found.span)],
        severity=severity,
        cause=f"marker {found.text}",
    )


RULE = Rule(
    code="ST202",
    name="marker-not-in-vocabulary",
    severity="error",
    summary="A marker that the template writes is no single token, so the model reads ordinary characters.",
    suggestion="write the marker as the vocabulary spells it, or add it to the tokenizer's special tokens",
    check=check,
    triggers="{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_ending|>\n{% endfor %}",
    repaired="{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}",
    healthy="{% for m in messages %}<tools>{{ m.role }}: {{ m.content }}</tools>{{ eos_token }}{% endfor %}",
    documentation=__doc__,
)
