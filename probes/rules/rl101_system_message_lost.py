"""A system message leaves no trace and no error.

What it does: sends a system message alone, beside tools, a second one, and one in the middle, and looks for their texts
in the prompt. Request paths are asked too: llama-server puts a system text into the user's message where it finds that
the template takes none.

Why it is bad: the instructions of whoever runs the service vanish, and nothing tells them. Agents send a system message
in the middle to remind the model of its rules; it is the one that is lost most.

Example: `{% if messages[0].role == 'system' %}...` and a loop that prints users and assistants only.

Use instead: print every system message where it stands, or refuse it: `raise_exception('only one system message')`.

References: roles of OpenAI's chat API; Qwen3.5's template refuses a system message that is not the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chats import canaries
from probes.rules.base import Rule
from probes.rules.view import Hit, fates

if TYPE_CHECKING:
    from collections.abc import Callable

    from probes.chats.canaries import Form
    from probes.chats.messages import Chat
    from probes.rules.view import Facts

QUESTIONS: tuple[tuple[str, Callable[[Form], Chat], str], ...] = (
    ("a system message", canaries.system_user, canaries.SYSTEM),
    ("a second system message", canaries.second_system, canaries.SECOND_SYSTEM),
    ("a system message after the first answer", canaries.late_system, canaries.LATE_SYSTEM),
)


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    for what, build, canary in QUESTIONS:
        asked = view.ask(build, canary)
        if lost := fates(asked, "lost"):
            message = f"{what} leaves no trace and no error"
            good = fates(asked, "written")
            return [view.hit(message, lost, good, severity="error", cause="system text lost")]
    alone = {one.path for one in fates(view.ask(canaries.system_user, canaries.SYSTEM), "written")}
    beside = [one for one in view.ask(canaries.tools_offered, canaries.SYSTEM) if one.path in alone]
    if lost := [one for one in fates(beside, "lost") if canaries.TOOL in one.text]:
        good = fates(beside, "written")
        message = "a system message is written, but not where tools are offered too"
        return [view.hit(message, lost, good, severity="error", cause="system text lost")]
    return []


RULE = Rule(
    code="RL101",
    name="system-message-lost",
    severity="error",
    summary="A system message (the first, a second, a late one) leaves no trace and no error.",
    suggestion="print every system message where it stands, or refuse it with raise_exception",
    check=check,
    triggers=(
        "{% for m in messages %}{% if m.role == 'user' %}<user>{{ m.content }}\n"
        "{% elif m.role == 'assistant' %}<bot>{{ m.content }}</s>\n{% endif %}{% endfor %}"
    ),
    repaired=(
        "{% for m in messages %}{% if m.role in ['user', 'system'] %}<user>{{ m.content }}\n"
        "{% elif m.role == 'assistant' %}<bot>{{ m.content }}</s>\n{% endif %}{% endfor %}"
    ),
    healthy=(
        "{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
        "{{ raise_exception('a system message must be the first') }}{% endif %}"
        "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    ),
    documentation=__doc__,
)
