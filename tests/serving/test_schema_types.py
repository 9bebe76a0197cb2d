"""What SGLang does to schemas: types by the table, validity by jsonschema."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, SchemaError

from jinjarun.serving.sglang.schema_types import _CHECKS, json_type, schema_fault, with_json_types


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("string", "string"),
        ("String", "string"),
        ("varchar(255)", "string"),
        (" Text ", "string"),
        ("int", "integer"),
        ("int32", "integer"),
        ("unsigned int", "integer"),
        ("internal", "internal"),
        ("float64", "number"),
        ("numeric", "number"),
        ("number_x", "number_x"),
        ("list[str]", "array"),
        ("list_price", "list_price"),
        ("dict[str, int]", "object"),
        ("dict", "object"),
        ("datetime", "string"),
        ("money", "money"),
        (3, 3),
    ],
)
def test_types(name: Any, expected: Any) -> None:
    assert json_type(name) == expected


def test_types_are_rewritten_where_schemas_are() -> None:
    given_schema = {
        "type": ["int", "integer", "null"],
        "properties": {"type": {"type": "str"}},
        "items": [{"type": "bool"}],
        "anyOf": [{"type": "map"}],
        "default": {"type": "str"},
        "enum": [{"type": "str"}],
    }
    before = copy.deepcopy(given_schema)
    assert with_json_types(given_schema) == {
        "type": ["integer", "null"],
        "properties": {"type": {"type": "string"}},
        "items": [{"type": "boolean"}],
        "anyOf": [{"type": "object"}],
        "default": {"type": "str"},
        "enum": [{"type": "str"}],
    }
    assert given_schema == before


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from([0, 1, -1, 2.0, 2.5, "string", "integer", "", "a#b", "#", "[", "^a", "1a", "(?P<"])
    | st.lists(st.sampled_from(["string", "null", "x", 1]), max_size=2),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["a", "["]), inner, max_size=2)
        | st.dictionaries(st.sampled_from([*_CHECKS, "const", "default", "x-more"]), inner, max_size=2)
    ),
    max_leaves=5,
)


@settings(max_examples=400, deadline=None)
@given(schema=st.dictionaries(st.sampled_from([*_CHECKS, "const", "x-more"]), VALUES, max_size=2) | VALUES)
def test_validity_is_that_of_jsonschema(schema: Any) -> None:
    try:
        Draft202012Validator.check_schema(schema)
        valid = True
    except SchemaError:
        valid = False
    assert (schema_fault(schema) is None) == valid
