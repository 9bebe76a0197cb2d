"""The line break at the end of the generation prompt is lost, because it is the end of the file.

What it does: looks whether the source ends in plain text and a line break, which the engines take away, and whether
that text is the end of the prompt.

Why it is bad: in the history the model's turn begins with `<bot>` and a line break, in the prompt with `<bot>` alone.
The model writes the line break itself, as a token of its own, or begins in another way.

Example: a file that ends with the line `<|assistant|>`.

Use instead: `{{ '<|assistant|>\\n' }}`, or a tag behind the text.

References: `keep_trailing_newline` of Jinja2, which is off in transformers; llama.cpp takes one line break away too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinjarun.errors import quote
from jinjarun.syntax.nodes import Data, Template
from probes.chats import canaries
from probes.rules.base import Rule
from probes.rules.tree import tree_of
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.rules.view import Facts


def check(facts: Facts) -> list[Hit]:
    root = tree_of(facts.source)
    if not facts.source.endswith("\n") or not isinstance(root, Template) or not root.body:
        return []
    last = root.body[-1]
    if not isinstance(last, Data) or not last.text.strip() or last.text.endswith("\n"):
        return []
    ending = last.text.rpartition("\n")[2]
    asked = facts.view.ask(canaries.user_only, canaries.USER)
    bad = [one for one in asked if ending.strip() and one.text.endswith(ending)]
    line = facts.source.count("\n")
    message = f"the prompt ends with {quote(ending)!r}; the line break behind it is the end of the file, and lost"
    return [facts.view.hit(message, bad, severity="warning", line=line)] if bad else []


RULE = Rule(
    code="SY005",
    name="lost-final-newline",
    severity="warning",
    summary="The source ends in a line break that engines remove, so the generation prompt loses its line end.",
    suggestion="write the last line break inside of a string: {{ '\\n' }}",
    check=check,
    triggers="{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}\n{% endfor %}<|assistant|>\n",
    repaired="{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}\n{% endfor %}{{ '<|assistant|>\\n' }}",
    healthy=(
        "{%- for m in messages %}\n    {{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}\n"
        "{%- endfor %}\n{%- if add_generation_prompt %}\n    {{- '<|im_start|>assistant\\n' }}\n{%- endif %}\n"
    ),
    documentation=__doc__,
)
