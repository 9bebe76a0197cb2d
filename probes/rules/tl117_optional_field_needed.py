"""A request without a field that may be left out fails, or prints None in its place.

What it does: leaves out one field at a time (the description of a tool, its parameters, their required list; the type
and the description of a parameter; the name of a result), sets a default to null, and compares with the whole request.

Why it is bad: the OpenAI API and MCP need none of these. A client whose tool takes no parameters gets an error for its
every request, or the model reads `None` as a value.

Example: `{{ tool.function.description + '\\n' }}`.

Use instead: `{{ tool.function.description or '' }}`, and `is defined` before what may be absent is walked.

References: `FunctionDefinition` of the OpenAI API, of which only `name` is required; `Tool` of the Model Context
Protocol, where `description` is optional.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chats import canaries
from probes.laws.optional import optional_fields
from probes.rules.base import Rule
from probes.rules.by_law import broken_on, hit_of
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.chats.messages import Chat
    from probes.rendering.input_form import PathObserver
    from probes.rules.view import Facts


def asks(on: PathObserver) -> list[Chat]:
    chats = [] if on.tools_chat is None else [on.tools_chat]
    if on.call_form is not None:
        chats.append(canaries.one_call(on.call_form))
    return chats


def check(facts: Facts) -> list[Hit]:
    found = broken_on(facts.view, optional_fields, asks, "TL117")
    if not found:
        return []
    failing = [cause for cause in found if cause.endswith("fails")]
    cause = max(failing or found, key=lambda one: len(found[one]))
    others = [other for other in found if other != cause]
    message = next(iter(found[cause].values())).message
    more = f"; also {', '.join(others)}" if others else ""
    return [hit_of(facts.view, found[cause], severity="warning", message=message + more)]


RULE = Rule(
    code="TL117",
    name="optional-field-needed",
    severity="warning",
    summary="A tool without a description or parameters, or the like, fails or prints None.",
    suggestion="ask whether an optional field is defined before using it",
    check=check,
    triggers=(
        "{% for t in tools or [] %}{{ t.function.name + ': ' + t.function.description }}\n{% endfo"
        "r %}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor "
        "%}"
    ),
    repaired=(
        "{% for t in tools or [] %}{{ t.function.name + ': ' + (t.function.description or '') }}\n"
        "{% endfor %}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{%"
        " endfor %}"
    ),
    healthy=(
        "{% if tools %}{% for t in tools %}{{ t | tojson }}\n{% endfor %}{% endif %}{% for m in me"
        "ssages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    ),
    documentation=__doc__,
    asks=asks,
)
