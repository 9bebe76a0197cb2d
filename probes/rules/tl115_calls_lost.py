"""Tools and results are written, and the calls between them are not.

What it does: sends a call and its result, in every form in which clients send calls, to a template that writes the
tools that are offered; then looks for the name and the arguments of the call where the result is written.

Why it is bad: in the next prompt a result answers nothing, and the turn that called is empty. The model forgets what it
had called and why, and calls again, or learns that it need not call at all. No error says so.

Example: `{% if message.content %}{{ message.content }}{% endif %}` for every assistant, and nothing of tool_calls.

Use instead: a loop over `message.tool_calls`; or `raise_exception('calls are not supported')`.

References: `tool_calls` of assistant messages in OpenAI's chat API. Some models expect the call as text in `content`:
their clients must write it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chats import canaries
from probes.rules.base import Rule
from probes.rules.view import Hit, fates

if TYPE_CHECKING:
    from probes.rules.view import Facts


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    silent = {path for path in view.paths if view.calling(path) is None and view.observers[path].tools_chat is not None}
    if not silent:
        return []
    asked = [one for one in view.ask(canaries.one_call, canaries.VALUE) if one.path in silent]
    lost = [
        one
        for one in fates(asked, "lost")
        if canaries.RESULT in one.text and canaries.TOOL not in one.text.rpartition(canaries.USER)[2]
    ]
    if not lost:
        return []
    good = [one for one in view.ask_calls(canaries.one_call, canaries.VALUE) if one.fate == "written"]
    message = "tools and results are written, and the calls leave no trace and no error"
    return [view.hit(message, lost, good, severity="error", cause="calls lost")]


RULE = Rule(
    code="TL115",
    name="calls-lost",
    severity="error",
    summary="Tools and results are written, and the calls between them leave no trace.",
    suggestion="loop over tool_calls of the assistant's messages, or refuse them with raise_exception",
    check=check,
    triggers=(
        "{% if tools %}<|system|>{{ tools | tojson }}<|end|>\n{% endif %}"
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}<|end|>\n{% endfor %}"
    ),
    repaired=(
        "{% if tools %}<|system|>{{ tools | tojson }}<|end|>\n{% endif %}"
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}"
        "{% for c in m.tool_calls or [] %}{{ c.function | tojson }}{% endfor %}<|end|>\n{% endfor %}"
    ),
    healthy="{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}",
    documentation=__doc__,
)
