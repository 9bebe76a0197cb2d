"""JSON schemas that llama-server can and cannot turn into a grammar."""

from __future__ import annotations

from typing import Any

import pytest

from jinjarun.errors import LimitExceeded
from jinjarun.limits import Limits
from jinjarun.serving.schemas import SchemaFault, check_parameters, check_schema


def prop(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"p": schema}}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": None},
        {"type": ""},
        prop({"type": ["string", "null"], "minLength": 1}),
        prop({"$ref": "#/$defs/t"}) | {"$defs": {"t": {"anyOf": [{"$ref": "#/$defs/t"}, {"type": "null"}]}}},
        prop({"enum": [1], "type": "string"}),
        prop({"const": None, "type": 7}),
        {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1.5}},
        {"type": "object", "additionalProperties": False},
        {"type": "object", "allOf": [{"type": "object"}]},
        {"type": "array", "items": [{"type": "string"}], "minItems": "ignored"},
        {"type": "string", "format": "email", "pattern": "("},
        {"format": "uuid4"},
        {"minimum": "ignored"},
    ],
)
def test_readable(schema: Any) -> None:
    check_schema(schema, Limits())


@pytest.mark.parametrize(
    "schema",
    [
        [],
        "object",
        None,
        {"type": "any"},
        {"type": 7},
        {"type": []},
        {"type": ["string", "thing"]},
        {"enum": []},
        {"enum": "a"},
        {"anyOf": []},
        {"oneOf": {}},
        {"allOf": [1]},
        {"$ref": 1},
        {"$ref": "other.json"},
        {"$ref": "#/missing"},
        {"$ref": "#/anyOf/1", "anyOf": [{}]},
        {"type": "object", "properties": []},
        prop(True),
        {"type": "object", "additionalProperties": None},
        {"type": "array", "items": True},
        {"type": "array", "minItems": -1},
        {"type": "string", "maxLength": 1.5},
        {"type": "string", "pattern": 1},
        {"format": 1},
        {"type": "integer", "exclusiveMaximum": "3"},
    ],
)
def test_unreadable(schema: Any) -> None:
    with pytest.raises(SchemaFault):
        check_schema(schema, Limits())


@pytest.mark.parametrize("parameters", [None, {}])
def test_no_parameters_are_fine(parameters: Any) -> None:
    check_parameters(parameters, Limits())


def test_lists_of_types_inside_each_other_are_bounded() -> None:
    schema: Any = {"type": "string"}
    for _ in range(30):
        schema = {"type": ["object"] * 9, "properties": {"p": schema}}
    with pytest.raises(LimitExceeded):
        check_schema(schema, Limits())
