"""Between two answers in a row more turns are closed than opened, or fewer.

What it does: sends two messages of the assistant one after the other and counts, between their texts, the markers that
end a turn and those that open one.

Why it is bad: agents send such rows: a text and then a call, or an answer that went on. What stands behind the end of a
turn and before the next header belongs to no turn; the model was trained on none of it.

Example: a header that is left out where the message before was the assistant's, while each message writes its end.

Use instead: leave out both the end of the first and the header of the second, or neither.

References: Gemma 4's template joins such messages in one turn and closed it twice at first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chats import canaries
from probes.chats.messages import say
from probes.laws.rows import answers_in_a_row
from probes.rules.base import Rule
from probes.rules.by_law import first_hit
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.chats.messages import Chat
    from probes.rendering.input_form import PathObserver
    from probes.rules.view import Facts


def asks(on: PathObserver) -> list[Chat]:
    turns = [say("user", canaries.USER), say("assistant", canaries.ANSWER), say("user", canaries.SECOND_USER)]
    return [on.form.chat(turns)]


def check(facts: Facts) -> list[Hit]:
    return first_hit(facts.view, answers_in_a_row, asks, "RL109", severity="warning")


RULE = Rule(
    code="RL109",
    name="answers-in-a-row",
    severity="warning",
    summary="Two assistant messages in a row close more turns than they open, or fewer.",
    suggestion="join two answers in one turn, or write two whole turns",
    check=check,
    triggers=(
        "{% for m in messages %}{% if loop.first or messages[loop.index0 - 1].role != m.role %}<|"
        "im_start|>{{ m.role }}\n{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}{% if add_genera"
        "tion_prompt %}<|im_start|>assistant\n{% endif %}"
    ),
    repaired=(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{%"
        " if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    ),
    healthy=(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{%"
        " if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    ),
    documentation=__doc__,
    asks=asks,
)
