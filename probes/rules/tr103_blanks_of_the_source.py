"""Blanks of the template's source stand in the prompt: before its first text, or before markers.

What it does: renders plain conversations and looks for blanks before all that the template writes, and for markers that
stand behind blanks on a line of their own.

Why it is bad: the indentation and line breaks of the source are text to the model. It was trained on none of them, BOS
is no longer the first token, and each turn costs more tokens.

Example: `{% set stop = ["###"] %}` on a line of its own at the top, whose line break is printed.

Use instead: `{%- set stop = ["###"] -%}`: a minus takes the blanks beside a tag away, and a marker is printed from
a string, `{{- '<|user|>' }}`.

References: Jinja's section on whitespace control; transformers trims the line break after a block tag (`trim_blocks`)
and the blanks before one (`lstrip_blocks`), but not those around `{{ }}` and comments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.laws.layout import layout, plain_chats
from probes.rules.base import Rule
from probes.rules.by_law import first_hit
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.chats.messages import Chat
    from probes.rendering.input_form import PathObserver
    from probes.rules.view import Facts


def asks(on: PathObserver) -> list[Chat]:
    return plain_chats(on)


def check(facts: Facts) -> list[Hit]:
    return first_hit(facts.view, layout, asks, "TR103", severity="warning")


RULE = Rule(
    code="TR103",
    name="blanks-of-the-source",
    severity="warning",
    summary="Blanks of the source stand before the prompt or before markers.",
    suggestion="take the blanks away with a minus in the tags beside them",
    check=check,
    triggers=("{{ '' }}\n{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"),
    repaired=("{{- '' -}}\n{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"),
    healthy=(
        "{{ bos_token }}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>"
        "\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    ),
    documentation=__doc__,
    asks=asks,
)
