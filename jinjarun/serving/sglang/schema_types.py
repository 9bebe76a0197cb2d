"""What SGLang 0.5.23 does to the JSON schemas of tools: it rewrites types, in the prompt too, and checks the schema.

Facts: function_call/utils.py (normalize_json_schema_types), and entrypoints/openai/serving_chat.py (_validate_request),
which asks jsonschema's Draft202012Validator.check_schema. The check here is of the meta-schema of draft 2020-12.
"""

from __future__ import annotations

import re
from typing import Any

JSON_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")

ALIASES = {
    **dict.fromkeys(
        ("str", "text", "varchar", "char", "enum", "uuid", "date", "datetime", "time", "timestamp"), "string"
    ),
    **dict.fromkeys(("binary", "blob", "bytea", "bytes", "varbinary"), "string"),
    "bool": "boolean",
    **dict.fromkeys(("bigint", "smallint", "tinyint"), "integer"),
    **dict.fromkeys(("double", "decimal", "real", "numeric"), "number"),
    **dict.fromkeys(("arr", "tuple", "set"), "array"),
    "map": "object",
}
"""Types of databases and languages -> the JSON type that they become."""
BEGINNINGS = (
    (re.compile(r"(int|uint|long|short|unsigned)([0-9\[<( \t]|$)"), "integer"),
    (re.compile(r"(num|float)([0-9\[<( \t]|$)"), "number"),
    (re.compile(r"list([0-9\[<( \t]|$)"), "array"),
    (re.compile(r"dict([0-9\[<( \t]|$)"), "object"),
)
"""How a type begins -> the JSON type that it becomes."""

SCHEMA_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
SCHEMA_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
SCHEMAS = (
    *("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"),
    *("unevaluatedItems", "unevaluatedProperties"),
)


def json_type(name: Any) -> Any:
    """The JSON type for a type's name; unchanged what is none or unknown."""
    if not isinstance(name, str) or name in JSON_TYPES:
        return name
    base = name.partition("(")[0].strip().lower()
    if base in JSON_TYPES:
        return base
    if base in ALIASES:
        return ALIASES[base]
    return next((kind for beginning, kind in BEGINNINGS if beginning.match(base)), name)


def with_json_types(schema: Any) -> Any:
    """A copy of a schema with its types rewritten, and those of the schemas in it."""
    if isinstance(schema, list):
        return [with_json_types(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    read = {}
    for key, value in schema.items():
        if key == "type":
            value = _types(value) if isinstance(value, list) else json_type(value)
        elif key in SCHEMA_MAPS and isinstance(value, dict):
            value = {name: with_json_types(one) for name, one in value.items()}
        elif (key in SCHEMA_LISTS and isinstance(value, list)) or key in SCHEMAS:
            value = with_json_types(value)
        read[key] = value
    return read


def _types(names: list[Any]) -> list[Any]:
    found: list[Any] = []
    for name in map(json_type, names):
        if name not in found:
            found.append(name)
    return found


def schema_fault(schema: Any) -> str | None:
    """Why JSON Schema 2020-12 rejects a schema, in the first line of jsonschema's words; None where it is valid."""
    if isinstance(schema, bool):
        return None
    if not isinstance(schema, dict):
        return f"{schema!r} is not of type 'object', 'boolean'"
    for key, value in schema.items():
        check = _CHECKS.get(key)
        fault: str | None = check(value) if check is not None else None
        if fault is not None:
            return fault
    return None


def _of_type(kind: type | tuple[type, ...], name: str) -> Any:
    def fault(value: Any) -> str | None:
        if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
            return None
        return f"{value!r} is not of type {name!r}"

    return fault


_object, _array = _of_type(dict, "object"), _of_type(list, "array")
_string, _boolean, _number = _of_type(str, "string"), _of_type(bool, "boolean"), _of_type((int, float), "number")


def _pattern(value: Any, pattern: str) -> str | None:
    fault: str | None = _string(value)
    if fault is None and not re.search(pattern, value):
        return f"{value!r} does not match {pattern!r}"
    return fault


def _regex(value: Any) -> str | None:
    fault: str | None = _string(value)
    if fault is None:
        try:
            re.compile(value)
        except (re.error, RecursionError, OverflowError):
            return f"{value!r} is not a 'regex'"
    return fault


def _count(value: Any) -> str | None:
    if isinstance(value, bool) or not (isinstance(value, int) or (isinstance(value, float) and value.is_integer())):
        return f"{value!r} is not of type 'integer'"
    return f"{value!r} is less than the minimum of 0" if value < 0 else None


def _positive(value: Any) -> str | None:
    fault: str | None = _number(value)
    if fault is None and value <= 0:
        return f"{value!r} is less than or equal to the minimum of 0"
    return fault


def _schema_list(value: Any) -> str | None:
    fault: str | None = _array(value)
    if fault is None and not value:
        return "[] should be non-empty"
    return fault or next((found for one in value if (found := schema_fault(one))), None)


def _schema_map(value: Any) -> str | None:
    fault: str | None = _object(value)
    return fault or next((found for one in value.values() if (found := schema_fault(one))), None)


def _pattern_map(value: Any) -> str | None:
    fault: str | None = _schema_map(value)
    return fault or next((found for name in value if (found := _regex(name))), None)


def _strings(value: Any) -> str | None:
    fault: str | None = _array(value) or next((found for one in value if (found := _string(one))), None)
    return fault or (f"{value!r} has non-unique elements" if len(set(value)) < len(value) else None)


def _string_map(value: Any) -> str | None:
    fault: str | None = _object(value)
    return fault or next((found for one in value.values() if (found := _strings(one))), None)


def _type(value: Any) -> str | None:
    names = value if isinstance(value, list) else [value]
    known = all(isinstance(name, str) and name in JSON_TYPES for name in names)
    if names and known and len(set(names)) == len(names):
        return None
    return f"{value!r} is not valid under any of the given schemas"


def _booleans(value: Any) -> str | None:
    fault: str | None = _object(value)
    return fault or next((found for one in value.values() if (found := _boolean(one))), None)


def _dependencies(value: Any) -> str | None:
    fault: str | None = _object(value)
    wrong = () if fault else (one for one in value.values() if schema_fault(one) and _strings(one))
    return fault or next((f"{one!r} is not valid under any of the given schemas" for one in wrong), None)


_CHECKS: dict[str, Any] = {
    **dict.fromkeys((*SCHEMAS, "contentSchema"), schema_fault),
    **dict.fromkeys(SCHEMA_LISTS, _schema_list),
    **dict.fromkeys(SCHEMA_MAPS, _schema_map),
    "patternProperties": _pattern_map,
    "type": _type,
    "enum": _array,
    **dict.fromkeys(("title", "description", "$comment", "format", "contentEncoding", "contentMediaType"), _string),
    **dict.fromkeys(("$ref", "$dynamicRef", "$recursiveRef", "$schema"), _string),
    "pattern": _regex,
    "$id": lambda value: _pattern(value, "^[^#]*#?$"),
    **dict.fromkeys(
        ("$anchor", "$dynamicAnchor", "$recursiveAnchor"), lambda value: _pattern(value, r"^[A-Za-z_][-A-Za-z0-9._]*$")
    ),
    "$vocabulary": _booleans,
    **dict.fromkeys(("deprecated", "readOnly", "writeOnly", "uniqueItems"), _boolean),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _number),
    "multipleOf": _positive,
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minContains", "maxContains"), _count),
    **dict.fromkeys(("minProperties", "maxProperties"), _count),
    "examples": _array,
    "required": _strings,
    "dependentRequired": _string_map,
    "dependencies": _dependencies,
}
"""Keyword -> what is wrong with its value, None for nothing. Other keywords may hold anything."""
