"""A marker is written with a blank inside of its brackets, so it is no token.

What it does: looks in plain conversations for text like `<|im_start |>`, which none of the messages holds.

Why it is bad: a tokenizer knows `<|im_start|>` only letter by letter. With a blank it is ordinary text of six tokens:
no turn begins there, and none ends.

Example: `{{ '<|im_start |>' + message.role }}`, as a formatter of source code leaves it.

Use instead: `{{ '<|im_start|>' + message.role }}`, and a check of the rendered tokens before a template is published.

References: special tokens of tokenizers are matched as whole strings; axolotl's templates had such markers once.
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
    return first_hit(facts.view, layout, asks, "ST102", severity="error")


RULE = Rule(
    code="ST102",
    name="marker-cut-by-a-blank",
    severity="error",
    summary="A marker holds a blank inside of its brackets and is no token.",
    suggestion="write the marker as the vocabulary has it",
    check=check,
    triggers=("{% for m in messages %}<|im_start |>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"),
    repaired=("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"),
    healthy=("{% for m in messages %}<|im_start|>{{ m.role }} | {{ m.content }}<|im_end|> | {% endfor %}"),
    documentation=__doc__,
    asks=asks,
)
