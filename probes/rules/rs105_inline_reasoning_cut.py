"""Reasoning that an answer brings along between tags loses some of its letters, or gets an empty block before it.

What it does: sends answers with their reasoning inside the text, with and without line breaks at the tags, and looks
whether it is written whole or taken out whole; and where the prompt itself opens the block, sends a completion back as
it was generated.

Why it is bad: clients that do not know of reasoning send back what they got. A thought without its first letters, or a
second block around nothing, is text that no model ever wrote.

Example: `{% set thought = content.split('</think>')[0][9:] %}`, where the tag has seven characters.

Use instead: split at both tags, as in `content.split('</think>')[0].split('<think>')[-1].strip()`.

References: a template for EXAONE 4 in axolotl, which cut two letters too many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chats import canaries
from probes.chats.messages import say
from probes.laws.blocks import reasoning_whole
from probes.rules.base import Rule
from probes.rules.by_law import first_hit
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.chats.messages import Chat
    from probes.rendering.input_form import PathObserver
    from probes.rules.view import Facts


def asks(on: PathObserver) -> list[Chat]:
    turns = [say("user", canaries.USER), say("assistant", canaries.ANSWER), say("user", canaries.SECOND_USER)]
    last = on.form.chat(turns[:2], add_generation_prompt=False)
    return [on.form.chat(turns), last]


def check(facts: Facts) -> list[Hit]:
    return first_hit(facts.view, reasoning_whole, asks, "RS105", severity="warning")


RULE = Rule(
    code="RS105",
    name="inline-reasoning-cut",
    severity="warning",
    summary="Reasoning between tags in an answer loses letters, or gets an empty block before it.",
    suggestion="take the tags off by splitting at them",
    check=check,
    triggers=(
        "{% for m in messages %}<|{{ m.role }}|>{% if m.role == 'assistant' and '</think>' in m.c"
        "ontent %}<think>{{ m.content.split('</think>')[0][9:] }}</think>{{ m.content.split('</th"
        "ink>')[-1] }}{% else %}{{ m.content }}{% endif %}<|end|>\n{% endfor %}"
    ),
    repaired=(
        "{% for m in messages %}<|{{ m.role }}|>{% if m.role == 'assistant' and '</think>' in m.c"
        "ontent %}<think>{{ m.content.split('</think>')[0][7:] }}</think>{{ m.content.split('</th"
        "ink>')[-1] }}{% else %}{{ m.content }}{% endif %}<|end|>\n{% endfor %}"
    ),
    healthy=(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content.split('</think>')[-1] }}<|im_end|>\n{% endfor %}"
    ),
    documentation=__doc__,
    asks=asks,
)
