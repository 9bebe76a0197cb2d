"""The turns of users are closed, and those of the assistant are not.

What it does: looks at what stands behind a user's text and behind an answer in the history. Where the first is closed
by a marker and the second by nothing, the next turn begins right behind the answer.

Why it is bad: a model that was trained on such text never learned to write the end of its turn, or learned to write one
that the history does not show. It goes on with a turn of the user, or with the marker that opens one.

Example: `<|start|>user<|message|>{{ m.content }}<|end|>`, and `<|start|>assistant<|message|>{{ m.content }}`.

Use instead: the same marker behind the assistant's text. The marker that opens the next turn is no stop: the model
writes it inside of its own turn, too.

References: needs no token data; which token each engine stops at is a matter of rule ST201.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinjarun.errors import quote
from probes.chapters.endings import markers_in
from probes.chats import canaries
from probes.rules.base import Rule
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.rules.view import Facts


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    turns = view.shape.turns
    if "user" not in turns or "assistant" not in turns or view.bare is None:
        return []
    closing = [marker.text for marker in markers_in(turns["user"].close)]
    answer = turns["assistant"]
    if not closing or answer.close.strip() or not list(markers_in(answer.open)):
        return []
    if "eos_token" in facts.source:
        return []
    seen = view.ask_path(view.bare, canaries.three_turns(view.form(view.bare)), canaries.ANSWER)
    between = seen.text.rpartition(canaries.ANSWER)[2].partition(canaries.SECOND_USER)[0].strip()
    opened = turns["user"].open.strip()
    if not between or not between.startswith(opened):
        return []
    end = quote(closing[-1])
    return [
        Hit(
            message=f"a user's turn is closed by {end!r}, an answer by nothing: {quote(opened)!r} follows it",
            engines=list(view.paths),
            evidence=[view.cite(seen)],
            severity="error",
            suggestion=f"write {end} behind an answer, as behind a user's text; {quote(opened)} is no stop",
            cause="answer never closed",
        )
    ]


RULE = Rule(
    code="ST103",
    name="answer-never-closed",
    severity="error",
    summary="Turns of users are closed by a marker, and answers by nothing, so that generation has no end to learn.",
    suggestion="close the assistant's turn as the user's is closed",
    check=check,
    triggers=(
        "{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}"
        "{% if m.role != 'assistant' %}<|end|>{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<|start|>assistant<|message|>{% endif %}"
    ),
    repaired=(
        "{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endfor %}"
        "{% if add_generation_prompt %}<|start|>assistant<|message|>{% endif %}"
    ),
    healthy=(
        "{% for m in messages %}{% if m.role == 'user' %}[INST]{{ m.content }}[/INST]{% else %}"
        "{{ m.content }}{{ eos_token }}{% endif %}{% endfor %}"
    ),
    documentation=__doc__,
)
