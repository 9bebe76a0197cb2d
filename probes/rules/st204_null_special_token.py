"""The template prints a special token that the model does not have.

What it does: finds the variables `*_token` that the template reads and the tokenizer leaves null, and renders with a
stand-in, with nothing and with null to see whether the template prints them without asking.

Why it is bad: transformers leaves a null token undefined. In a concatenation the render fails; alone it prints nothing,
and where it should end a turn, the history has no end of turn. llama.cpp passes an empty text for BOS and EOS.

Example: `{{ bos_token + '[INST]' }}` beside `"bos_token": null`.

Use instead: `{% if bos_token %}{{ bos_token }}{% endif %}`, or the marker itself as text.

References: `special_tokens_map` of transformers, which leaves null tokens out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinjarun.errors import quote
from probes.chapters.tokens import NullToken, null_tokens
from probes.rendering.renders import APPLY, LLAMA_RAW, RAW
from probes.rules.base import Rule
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.report import Severity
    from probes.rules.view import Facts


def check(facts: Facts) -> list[Hit]:
    return [_hit(facts, found) for found in null_tokens(facts.renders, facts.tokens)]


def _hit(facts: Facts, found: NullToken) -> Hit:
    severity: Severity
    if found.effect == "raises":
        message, severity = f"fails in transformers: {quote(found.message or '')}", "error"
    elif found.ends_turn:
        message, severity = "writes nothing where an assistant's turn should end", "error"
    else:
        message, severity = "writes nothing", "info"
    return Hit(
        message=f"{found.name} is null in the tokenizer, and the template that prints it {message}",
        engines=[RAW, APPLY] if found.effect == "raises" else [RAW, APPLY, LLAMA_RAW],
        evidence=[facts.book.cite(found.chat, RAW, found.effect, excerpt=found.message or "")],
        severity=severity,
        cause=f"null {found.name}",
    )


RULE = Rule(
    code="ST204",
    name="null-special-token",
    severity="error",
    summary="The template prints a special token that is null or undefined.",
    suggestion="ask before printing it: {% if bos_token %}{{ bos_token }}{% endif %}",
    check=check,
    triggers="{{ bos_token + '' }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}",
    repaired=(
        "{% if bos_token %}{{ bos_token + '' }}{% endif %}"
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    ),
    healthy="{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}",
    documentation=__doc__,
)
