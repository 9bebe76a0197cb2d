"""The system text stands in the last turn of the user, so it wanders as the chat grows.

What it does: looks where the text of a system message stands in a conversation of two questions: behind the first
answer it has wandered.

Why it is bad: with every new question the text is taken out of an earlier turn and put into the new one. All that stood
behind it is computed again, and the earlier turn is not what the model had seen when it answered.

Example: `{% if loop.last and system_message %}[INST]{{ system_message }}\\n\\n{{ m.content }}[/INST]{% endif %}`.

Use instead: the system text before the first question, where every later prompt has it too.

References: the templates of Mistral's tokenizers v3; v7 gives the system text a turn of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chats import canaries
from probes.chats.messages import say
from probes.rules.base import Rule
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.chats.canaries import Form
    from probes.chats.messages import Chat
    from probes.rules.view import Asked, Facts


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    asked = [one for one in view.ask(_two_questions, canaries.SYSTEM, canaries.ANSWER) if one.fate == "written"]
    moved = [one for one in asked if _has_moved(one)]
    good = [one for one in asked if one not in moved]
    message = "the text of a first system message stands in the last turn of the user"
    return [view.hit(message, moved, good, severity="warning", cause="prefix: system_text_moves")] if moved else []


def _two_questions(form: Form) -> Chat:
    start = [say("system", canaries.SYSTEM), say("user", canaries.USER)]
    return form.chat([*start, say("assistant", canaries.ANSWER), say("user", canaries.SECOND_USER)])


def _has_moved(asked: Asked) -> bool:
    return asked.text.find(canaries.SYSTEM) > asked.text.find(canaries.ANSWER) >= 0


RULE = Rule(
    code="RL107",
    name="system-text-moves",
    severity="warning",
    summary="The system text stands in the last user turn, so it wanders as the chat grows.",
    suggestion="write the system text before the first question",
    check=check,
    triggers=(
        "{% for m in messages %}{% if m.role == 'user' %}[INST] {% if loop.last and messages[0].role == 'system' %}"
        "{{ messages[0].content }}\n\n{% endif %}{{ m.content }} [/INST]{% elif m.role == 'assistant' %}"
        "{{ m.content }}</s>{% endif %}{% endfor %}"
    ),
    repaired=(
        "{% for m in messages %}{% if m.role == 'user' %}[INST] "
        "{% if loop.index == 2 and messages[0].role == 'system' %}{{ messages[0].content }}\n\n{% endif %}"
        "{{ m.content }} [/INST]{% elif m.role == 'assistant' %}"
        "{{ m.content }}</s>{% endif %}{% endfor %}"
    ),
    healthy=(
        "{% for m in messages %}{% if m.role == 'system' %}[SYSTEM_PROMPT]{{ m.content }}[/SYSTEM_PROMPT]"
        "{% elif m.role == 'user' %}[INST]{{ m.content }}[/INST]{% else %}{{ m.content }}</s>{% endif %}{% endfor %}"
    ),
    documentation=__doc__,
)
