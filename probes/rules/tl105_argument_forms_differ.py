"""Both forms of a call's arguments render, to different text.

What it does: sends the same call with its arguments as an object and as a JSON string and compares the prompts.

Why it is bad: what the model sees of its own call depends on the client. One of the two is the form it was trained on,
the other looks like a mistake that it made.

Example: `{% if arguments is mapping %}key:value{% else %}{{ arguments }}{% endif %}`, where an object gets the format's
own markup and a string stays JSON.

Use instead: objects in the request, or a server that reads the string into an object first.

References: llama-server and vLLM do so; `supports_object_arguments` of llama-server's `/props`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chats import canaries
from probes.rendering.outcomes import argument_style
from probes.rules.base import Rule
from probes.rules.tl104_double_encoded_arguments import is_quoted
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.rules.view import Asked, Facts


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    strings = {one.path: one for one in view.ask_calls(canaries.one_call, canaries.VALUE, arguments="string")}
    objects = view.ask_calls(canaries.one_call, canaries.VALUE, arguments="object")
    pairs = [(one, strings[one.path]) for one in objects if one.fate == strings[one.path].fate == "written"]
    differing = [
        (one, other) for one, other in pairs if one.text != other.text and not is_quoted(other) and not is_quoted(one)
    ]
    if not differing:
        return []
    native = "an object" if _style(differing[0][0]) != "repr" else "a JSON string"
    message = f"arguments as an object and as a JSON string give different text; {native} gives the native form"
    good = [one for one, other in pairs if one.text == other.text]
    return [view.hit(message, [other for _, other in differing], good, severity="warning", cause="forms of arguments")]


def _style(asked: Asked) -> str:
    at = asked.text.rfind(canaries.VALUE)
    return argument_style(asked.text[max(0, at - 100) : at + 100])


RULE = Rule(
    code="TL105",
    name="argument-forms-differ",
    severity="warning",
    summary="Both forms of arguments render, to different text; names the native one.",
    suggestion="send arguments in the native form, or let the template read both alike",
    check=check,
    triggers=(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
        "call:{{ c.function.name }}{% if c.function.arguments is mapping %}"
        "{% for key, value in c.function.arguments.items() %} {{ key }}={{ value }}{% endfor %}"
        "{% else %}{{ c.function.arguments }}{% endif %}{% endfor %}<|end|>\n{% endfor %}"
    ),
    repaired=(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
        "call:{{ c.function.name }}{% if c.function.arguments is mapping %}"
        "{{ c.function.arguments | tojson }}"
        "{% else %}{{ c.function.arguments }}{% endif %}{% endfor %}<|end|>\n{% endfor %}"
    ),
    healthy=(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
        "<tool_call>{{ c.function.name }} {% if c.function.arguments is string %}{{ c.function.arguments }}{% else %}"
        "{{ c.function.arguments | tojson }}{% endif %}</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    ),
    documentation=__doc__,
)
