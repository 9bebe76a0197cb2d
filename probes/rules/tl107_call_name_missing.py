"""A call is written without the name of its function.

What it does: looks for the name in the prompt of a conversation with a call, beyond where the tools are listed.

Why it is bad: the model sees arguments and cannot tell what was called. Where the id is written in place of the name,
the name is there only if the server that made the id put it in.

Example: `<call>{{ call.id }}<args>{{ call.function.arguments | tojson }}</call>`.

Use instead: `{{ call.function.name }}` in the call.

References: Kimi K2's ids have the form `functions.NAME:INDEX`, and its template writes the id alone; ids of
llama-server are random.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chats import canaries
from probes.rules.base import Rule
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.rules.view import Facts


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    asked = view.ask_calls(canaries.one_call, canaries.VALUE)
    missing = [one for one in asked if one.fate == "written" and not view.observers[one.path].writes_name]
    if not missing:
        return []
    good = [one for one in asked if one.fate == "written" and one not in missing]
    if all(canaries.ID in one.text for one in missing):
        message = "the name of the function stands in a call only if its id holds it"
        return [view.hit(message, missing, good, severity="warning", cause="name of calls")]
    message = "the name of the function does not appear in a call"
    return [view.hit(message, missing, good, severity="error", cause="name of calls")]


RULE = Rule(
    code="TL107",
    name="call-name-missing",
    severity="error",
    summary="The function's name does not appear in a rendered call.",
    suggestion="write call.function.name",
    check=check,
    triggers=(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
        "<call>{{ c.function.arguments | tojson }}</call>{% endfor %}<|end|>\n{% endfor %}"
    ),
    repaired=(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
        "<call>{{ c.function.name }} {{ c.function.arguments | tojson }}</call>{% endfor %}<|end|>\n{% endfor %}"
    ),
    healthy=(
        "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}\n"
        "{{ m.content or '' }}{% for c in m.tool_calls or [] %}<function={{ c.function.name }}>"
        "{% for key, value in c.function.arguments | items %}<parameter={{ key }}>{{ value }}</parameter>{% endfor %}"
        "</function>{% endfor %}<|im_end|>\n{% endfor %}"
    ),
    documentation=__doc__,
)
