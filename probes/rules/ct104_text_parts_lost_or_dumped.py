"""Content that is a list of text parts fails, vanishes or is printed raw.

What it does: sends a user's message as one text part and as two, and looks for the texts; inside a printed object they
do not count as written.

Why it is bad: `[{"type": "text", "text": "..."}]` is an ordinary form of content, and many clients send no other.
Joined to a string it fails; printed, the model reads Python's list.

Example: `{{ message.content }}` for whatever content is.

Use instead: `{% if message.content is string %}` and a loop over the parts of type `text` otherwise.

References: llama-server joins text parts to one string for templates that do not take lists; vLLM does so by
`--chat-template-content-format`; `apply_chat_template` of transformers passes them on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chats import canaries
from probes.rules.base import Rule
from probes.rules.view import Hit, fates

if TYPE_CHECKING:
    from probes.rules.view import Asked, Facts

FATES = {"lost": "vanish", "dumped": "are printed raw, as the object of the request"}


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    one = view.ask(canaries.one_text_part, canaries.PART, parts=canaries.USUAL.parts)
    bad = fates(one, "raised", "lost", "dumped")
    if bad:
        message = f"text parts {_what(bad[0])}"
        return [view.hit(message, bad, fates(one, "written"), severity="error", cause="text parts")]
    two = view.ask(canaries.text_parts, canaries.PART, canaries.SECOND_PART, parts=canaries.USUAL.parts)
    bad = fates(two, "raised", "lost", "dumped")
    if bad:
        message = f"of several text parts some {_what(bad[0])}"
        return [view.hit(message, bad, fates(two, "written"), severity="error", cause="text parts")]
    return []


def _what(asked: Asked) -> str:
    return FATES.get(asked.fate) or f"fail: {asked.error}"


RULE = Rule(
    code="CT104",
    name="text-parts-lost-or-dumped",
    severity="error",
    summary="Content as a list of text parts fails, vanishes or is printed raw.",
    suggestion="loop over the parts where content is no string",
    check=check,
    triggers="{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>\n{% endfor %}",
    repaired=(
        "{% for m in messages %}<|{{ m.role }}|>{% if m.content is string %}{{ m.content }}{% else %}"
        "{% for part in m.content %}{{ part.text }}{% endfor %}{% endif %}<|end|>\n{% endfor %}"
    ),
    healthy=(
        "{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n"
        "{% if m.content is string %}{{ m.content }}{% else %}{% for part in m.content %}"
        "{% if part.type == 'image' %}<|image|>{% elif part.type == 'text' %}{{ part.text }}{% endif %}{% endfor %}"
        "{% endif %}<|eot_id|>{% endfor %}"
    ),
    documentation=__doc__,
)
