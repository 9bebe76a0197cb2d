"""Text of a message that also calls tools is dropped.

What it does: sends a message that says something and calls a tool, and looks for its text.

Why it is bad: models say what they are about to do, and a client sends that back. Without it the next prompt is not
what the model had written, and a reader of the chat sees text that the model does not.

Example: `{% if message.tool_calls %}...{% else %}{{ message.content }}{% endif %}`.

Use instead: the content first, then the calls; or `raise_exception('no text beside calls')`.

References: `content` and `tool_calls` may stand side by side in OpenAI's chat API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chats import canaries
from probes.rules.base import Rule
from probes.rules.view import Hit, fates

if TYPE_CHECKING:
    from probes.chats.messages import Chat
    from probes.rendering.input_form import PathObserver
    from probes.rules.view import Facts


def asks(on: PathObserver) -> list[Chat]:
    return [] if on.call_form is None else [canaries.one_call(on.call_form.but(beside="text"))]


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    asked = view.ask_calls(canaries.one_call, canaries.TEXT, canaries.VALUE, beside="text")
    lost = [one for one in fates(asked, "lost") if canaries.VALUE in one.text]
    message = "text beside a call leaves no trace and no error"
    good = fates(asked, "written")
    return [view.hit(message, lost, good, severity="warning", cause="text beside calls")] if lost else []


RULE = Rule(
    code="TL114",
    name="text-beside-calls-lost",
    severity="warning",
    summary="Text of a message that also calls tools is dropped.",
    suggestion="print the content before the calls",
    check=check,
    triggers=(
        "{% for m in messages %}<|{{ m.role }}|>{% if m.tool_calls %}{% for c in m.tool_calls %}"
        "<call>{{ c.function | tojson }}</call>{% endfor %}{% else %}{{ m.content }}{% endif %}<|end|>\n{% endfor %}"
    ),
    repaired=(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}{% if m.tool_calls %}{% for c in m.tool_calls %}"
        "<call>{{ c.function | tojson }}</call>{% endfor %}{% endif %}<|end|>\n{% endfor %}"
    ),
    healthy=(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.content %}{{ m.content }}\n{% endif %}"
        "{% for c in m.tool_calls or [] %}<tool_call>\n{{ c.function | tojson }}\n</tool_call>{% endfor %}<|im_end|>\n"
        "{% endfor %}"
    ),
    documentation=__doc__,
    asks=asks,
)
