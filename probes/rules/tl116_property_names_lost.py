"""A parameter that is called like a word of JSON Schema is lost from the tool.

What it does: offers a tool whose parameters are called type, description, properties, items and name, and compares
with what is written of the same parameters under other names.

Why it is bad: `type` and `name` are among the commonest names of parameters. The model is offered the tool without
them and cannot fill them in, though they may be required.

Example: `{% for key, value in properties.items() if key not in ['type', 'description'] %}`.

Use instead: filter such words where a schema is walked, never where the names of its properties are.

References: the first template of Gemma 4, which was mended so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.laws.optional import property_names
from probes.rules.base import Rule
from probes.rules.by_law import first_hit
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.chats.messages import Chat
    from probes.rendering.input_form import PathObserver
    from probes.rules.view import Facts


def asks(on: PathObserver) -> list[Chat]:
    return [] if on.tools_chat is None else [on.tools_chat]


def check(facts: Facts) -> list[Hit]:
    return first_hit(facts.view, property_names, asks, "TL116", severity="error")


RULE = Rule(
    code="TL116",
    name="property-names-lost",
    severity="error",
    summary="A parameter that is called type, name or description is lost or fails.",
    suggestion="write every property of a schema, whatever its name is",
    check=check,
    triggers=(
        "{% for t in tools or [] %}{{ t.function.name }}:{% for key, p in t.function.parameters.p"
        "roperties.items() if key not in ['type', 'description'] %} {{ key }} ({{ p.description }"
        "}){% endfor %}\n{% endfor %}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content "
        "}}<|im_end|>\n{% endfor %}"
    ),
    repaired=(
        "{% for t in tools or [] %}{{ t.function.name }}:{% for key, p in t.function.parameters.p"
        "roperties.items() %} {{ key }} ({{ p.description }}){% endfor %}\n{% endfor %}{% for m in"
        " messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    ),
    healthy=(
        "{% if tools %}{{ tools | tojson }}\n{% endif %}{% for m in messages %}<|im_start|>{{ m.ro"
        "le }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    ),
    documentation=__doc__,
    asks=asks,
)
