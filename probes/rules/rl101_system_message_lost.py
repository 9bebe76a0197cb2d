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
    from probes.rules.view import Asked, Facts, TemplateView

FIRST, SECOND, LATE = canaries.SYSTEM, canaries.SECOND_SYSTEM, canaries.LATE_SYSTEM
NAMES = {FIRST: "the first system message", SECOND: "a second system message", LATE: "a system message in the middle"}
BUILDS: tuple[tuple[Callable[[Form], Chat], tuple[str, ...]], ...] = (
    (canaries.system_user, (FIRST,)),
    (canaries.second_system, (FIRST, SECOND)),
    (canaries.late_system, (LATE,)),
    (canaries.two_systems, (FIRST, LATE)),
)
"""Conversations, and the texts of the system that must stand in their prompts."""
CAUSE = "system text lost"


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    for build, texts in () if _all_written(view) else BUILDS:
        asked = view.ask(build, *texts)
        if lost := fates(asked, "lost"):
            names = [NAMES[text] for text in texts if text not in lost[0].text]
            message = f"{' and '.join(names)} leave{'s' if len(names) == 1 else ''} no trace and no error"
            good = fates(asked, "written")
            return [view.hit(message, lost, good, severity="error", cause=CAUSE)]
    alone = {one.path for one in fates(view.ask(canaries.system_user, FIRST), "written")}
    beside = [one for one in view.ask(canaries.tools_offered, FIRST) if one.path in alone]
    if lost := [one for one in fates(beside, "lost") if canaries.TOOL in one.text]:
        good = fates(beside, "written")
        message = "a system message is written, but not where tools are offered too"
        return [view.hit(message, lost, good, severity="error", cause=CAUSE)]
    if lost := [one for one in lost_in_loop(view) if one.path in alone]:
        message = "a system message is written, but no longer once a tool was called in its turn"
        return [view.hit(message, lost, severity="error", cause=CAUSE)]
    return []


def _all_written(view: TemplateView) -> bool:
    """Whether every text comes through on every path when all are sent together: asked first, to save the rest."""
    return all(one.fate == "written" for one in view.asking(canaries.roles, FIRST, SECOND, LATE))


def lost_in_loop(view: TemplateView) -> list[Asked]:
    """Where the text of a system message is gone as soon as a call and its result follow."""
    return [one for one in fates(view.ask_calls(canaries.system_in_loop, FIRST), "lost") if canaries.RESULT in one.text]


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
