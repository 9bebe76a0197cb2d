"""A tool's result that is an object leaves no trace.

What it does: sends a result whose content is an object, where a result that is a string is written, and looks for what
is in it.

Why it is bad: programs hand on what a function returned. The model reads an empty result and makes one up, and no error
says so. Servers refuse such a request, or make a string of it; with transformers it reaches the template.

Example: `{% if message.content is string %}{{ message.content }}{% endif %}`.

Use instead: send results as strings, with `json.dumps`; or print what is no string with tojson.

References: `content` of a message with role tool in OpenAI's chat API is a string or a list of text parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chats import canaries
from probes.rendering.renders import APPLY
from probes.rules.base import Rule
from probes.rules.view import Hit, fates

if TYPE_CHECKING:
    from probes.chats.canaries import Form
    from probes.chats.messages import Chat
    from probes.rules.view import Facts

KEY = "depth_48261"


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    lost = fates(view.ask_calls(_with_object, KEY), "lost")
    if not lost:
        return []
    written = {one.path for one in fates(view.ask_calls(canaries.one_call, canaries.RESULT), "written")}
    lost = [one for one in lost if one.path in written]
    if all(one.path != APPLY for one in lost):  # the only path on which programs hand objects to a template
        return []
    message = "a tool's result that is an object leaves no trace and no error: results must be strings"
    return [view.hit(message, lost, severity="error", cause="object results")] if lost else []


def _with_object(form: Form) -> Chat:
    chat = canaries.one_call(form)
    chat["messages"][-1]["content"] = {KEY: 20}
    return chat


RULE = Rule(
    code="CT108",
    name="object-result-lost",
    severity="error",
    summary="A tool's result that is an object leaves no trace; results must be strings.",
    suggestion="send results as strings, or print what is no string with tojson",
    check=check,
    triggers=(
        "{% for m in messages %}<|{{ m.role }}|>{% if m.content is string %}{{ m.content }}{% endif %}"
        "{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}<|end|>\n{% endfor %}"
    ),
    repaired=(
        "{% for m in messages %}<|{{ m.role }}|>{% if m.content is string %}{{ m.content }}"
        "{% elif m.role == 'tool' %}{{ m.content | tojson }}{% endif %}"
        "{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}<|end|>\n{% endfor %}"
    ),
    healthy="{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}",
    documentation=__doc__,
)
