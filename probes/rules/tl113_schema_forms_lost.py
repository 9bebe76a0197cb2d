"""A tool whose parameters use an ordinary but richer schema fails, or loses what the schema says.

What it does: offers tools with `enum`, `anyOf`, `$ref`, nested objects, arrays of objects, a parameter without a type
and one with a list of types, and looks for the names and values in the prompt.

Why it is bad: such schemas come from every MCP server. A template that fails on them answers no request at all; one
that leaves the allowed values out makes the model guess them.

Example: `{{ parameter.type | upper }}`, where a type may be absent or a list.

Use instead: `{{ tool | tojson }}` for whatever the format's own notation cannot say.

References: JSON Schema as OpenAI's and MCP's tools use it; llama-server makes a grammar of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from probes.chats import canaries
from probes.chats.messages import say
from probes.rules.base import Rule
from probes.rules.view import Hit, fates

if TYPE_CHECKING:
    from probes.chats.canaries import Form
    from probes.chats.messages import Chat, Tool
    from probes.rendering.input_form import PathObserver
    from probes.rules.view import Facts, TemplateView

FORMS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "enum": ({"type": "string", "enum": ["teal_48241", "smew_48242"]}, ("teal_48241", "smew_48242")),
    "a nested object": ({"type": "object", "properties": {"nest_48243": {"type": "string"}}}, ("nest_48243",)),
    "an array of objects": (
        {"type": "array", "items": {"type": "object", "properties": {"egg_48244": {"type": "string"}}}},
        ("egg_48244",),
    ),
    "anyOf": ({"anyOf": [{"type": "string"}, {"type": "integer", "title": "ruff_48245"}]}, ()),
    "$ref": ({"$ref": "#/$defs/Rail"}, ()),
    "no type": ({"description": "dove of 48246"}, ()),
    "a list of types": ({"type": ["string", "null"]}, ()),
}
"""Form of a parameter -> its schema, and the texts that must stand in the prompt."""
REPR = re.compile(r"\['(?:STRING|string)', '(?:NULL|null)'\]")


def offering(form: Form, *schemas: dict[str, Any]) -> Chat:
    """A question with one tool that has a parameter of each of the schemas."""
    names = ["perch_48247", *(f"perch_48247_{number}" for number in range(1, len(schemas)))]
    parameters = {
        "type": "object",
        "properties": {canaries.PARAMETER: {"type": "string"}, **dict(zip(names, schemas, strict=True))},
        "required": [canaries.PARAMETER],
        "$defs": {"Rail": {"type": "string"}},
    }
    function = {"name": canaries.TOOL, "description": canaries.DESCRIPTION, "parameters": parameters}
    tool: Tool = {"type": "function", "function": function}
    return form.chat([say("user", canaries.USER)], [tool])


def asks(on: PathObserver) -> list[Chat]:
    return [offering(on.form, schema) for schema, _ in FORMS.values()]


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    troubled = _together(view)
    if not troubled:
        return []
    plain = view.ask(lambda form: offering(form, {"type": "string"}), "perch_48247")
    known = {one.path for one in plain if one.fate == "written"}
    if not troubled & known:
        return []
    lost: list[Hit] = []
    failed: list[Hit] = []
    for name, (schema, wanted) in FORMS.items():
        hit = _asked(view, name, schema, wanted, known)
        if hit is not None:
            (failed if "fails" in hit.message else lost).append(hit)
    return [*failed[:1], *lost[:1]]


def _together(view: TemplateView) -> set[str]:
    """The paths on which a tool with a parameter of each form fails or loses something. Asked first, to save others."""
    wanted = [text for _, texts in FORMS.values() for text in texts]
    schemas = [schema for schema, _ in FORMS.values()]
    asked = view.ask(lambda form: offering(form, *schemas), *wanted)
    return {one.path for one in asked if one.fate != "written" or REPR.search(one.text)}


def _asked(
    view: TemplateView, name: str, schema: dict[str, Any], wanted: tuple[str, ...], known: set[str]
) -> Hit | None:
    asked = view.ask(lambda form: offering(form, schema), *wanted)
    asked = [one for one in asked if one.path in known]
    good = fates(asked, "written")
    if failed := fates(asked, "raised"):
        message = f"a tool with {name} in its parameters fails: {failed[0].error}"
        return view.hit(message, failed, good, severity="error", cause="schemas that fail")
    if lost := fates(asked, "lost"):
        message = f"of a parameter with {name} some names or values are not written"
        return view.hit(message, lost, good, severity="warning", cause="schemas that are lost")
    if printed := [one for one in good if REPR.search(one.text)]:
        good = [one for one in good if one not in printed]
        message = f"{name} of a parameter is written as Python does"
        return view.hit(message, printed, good, severity="warning", cause="schemas that are lost")
    return None


RULE = Rule(
    code="TL113",
    name="schema-forms-lost",
    severity="warning",
    summary="Parameters with anyOf, $ref, enum, nested or absent type fail or lose information.",
    suggestion="write what the format's own notation cannot say with tojson",
    check=check,
    triggers=(
        "{% for t in tools or [] %}<tool>{{ t.function.name }}"
        "{% for key, p in t.function.parameters.properties.items() %} {{ key }}: {{ p.type + '' }}{% endfor %}</tool>"
        "{% endfor %}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>\n{% endfor %}"
    ),
    repaired=(
        "{% for t in tools or [] %}<tool>{{ t.function.name }}{% if t.function.parameters %}"
        "{% for key, p in t.function.parameters.properties.items() %} {{ key }}: {{ p | tojson }}{% endfor %}"
        "{% endif %}</tool>"
        "{% endfor %}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>\n{% endfor %}"
    ),
    healthy=(
        "{% if tools %}<|im_start|>system\n<tools>{% for t in tools %}\n{{ t | tojson }}{% endfor %}\n</tools>"
        "<|im_end|>\n"
        "{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    ),
    documentation=__doc__,
    asks=asks,
)
