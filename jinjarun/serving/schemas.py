"""Which JSON schemas llama-server b11434 can turn into a grammar. It does that to every request with tools or with a
schema for the answer, after rendering, so a schema that it cannot read fails the request (common/json-schema.cpp).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinjarun.errors import quote
from jinjarun.limits import Meter

if TYPE_CHECKING:
    from jinjarun.limits import Limits

PLAIN_TYPES = {"number", "boolean", "null"}
COUNTS = {"array": ("minItems", "maxItems"), "string": ("minLength", "maxLength")}
BOUNDS = (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))
FORMATS = {"date", "time", "date-time", "uuid", "uuid1", "uuid2", "uuid3", "uuid4", "uuid5"}


class SchemaFault(ValueError):
    """The schema cannot be read. The message says where and why."""


def check_schema(schema: Any, limits: Limits) -> None:
    """Raises SchemaFault where the server cannot read the schema."""
    _Reader(schema, Meter(limits)).node(schema, "#")


def check_parameters(parameters: Any, limits: Limits) -> None:
    """The same for a tool's parameters, where nothing and {} mean no arguments."""
    if parameters is not None and parameters != {}:
        check_schema(parameters, limits)


class _Reader:
    """One document. `resolved` are the references that were followed, so that a cycle ends. Every schema visited is a
    step: a list of types visits what is below it once for each.
    """

    def __init__(self, root: Any, meter: Meter) -> None:
        self.root = root
        self.meter = meter
        self.resolved: set[str] = set()

    def node(self, schema: Any, path: str) -> None:
        self.meter.charge(1)
        if not isinstance(schema, dict):
            raise SchemaFault(f"{path}: a schema must be an object")
        if "$ref" in schema:
            self.reference(schema["$ref"], path)
            return
        for key in ("oneOf", "anyOf"):
            if key in schema:
                self.alternatives(schema[key], f"{path}/{key}")
                return
        kind = schema.get("type")
        if isinstance(kind, list):
            if not kind:
                raise SchemaFault(f"{path}: type must not be empty")
            for i, one in enumerate(kind):
                self.node({**schema, "type": one}, f"{path}/type/{i}")
            return
        if "const" in schema:
            return
        if "enum" in schema:
            if not isinstance(schema["enum"], list) or not schema["enum"]:
                raise SchemaFault(f"{path}: enum must be a non-empty array")
            return
        if kind is not None and not isinstance(kind, str):
            raise SchemaFault(f"{path}: type must be a string or an array of strings")
        self.typed(schema, kind or "", path)

    def typed(self, schema: dict[str, Any], kind: str, path: str) -> None:
        has_properties = "properties" in schema or schema.get("additionalProperties", True) is not True
        if kind == "":
            if has_properties:
                self.object(schema, path)
            elif "allOf" in schema:
                self.alternatives(schema["allOf"], f"{path}/allOf")
            elif "items" in schema or "prefixItems" in schema:
                self.array(schema, path)
            elif {"pattern", "minLength", "maxLength"} & schema.keys() or self.format(schema, path) in FORMATS:
                self.string(schema, path)
        elif kind in {"object", "string"} and "allOf" in schema and not (kind == "object" and has_properties):
            self.alternatives(schema["allOf"], f"{path}/allOf")
        elif kind == "object":
            self.object(schema, path)
        elif kind == "string":
            self.string(schema, path)
        elif kind == "array":
            self.array(schema, path)
        elif kind == "integer":
            self.integer(schema, path)
        elif kind not in PLAIN_TYPES:
            raise SchemaFault(f"{path}: unknown type {quote(kind)}")

    def reference(self, ref: Any, path: str) -> None:
        if not isinstance(ref, str):
            raise SchemaFault(f"{path}: $ref must be a string")
        if not ref.startswith("#/"):
            raise SchemaFault(f"{path}: $ref {quote(ref)} leads out of the document")
        if ref in self.resolved:
            return
        self.resolved.add(ref)
        target = self.root
        for step in ref[1:].split("/")[1:]:
            if isinstance(target, dict) and step in target:
                target = target[step]
            elif isinstance(target, list) and step.isascii() and step.isdigit() and int(step[:20]) < len(target):
                target = target[int(step)]
            else:
                raise SchemaFault(f"{path}: $ref {quote(ref)}: {quote(step)} not found")
        self.node(target, ref)

    def alternatives(self, schemas: Any, path: str) -> None:
        if not isinstance(schemas, list) or not schemas:
            raise SchemaFault(f"{path} must be a non-empty array of schemas")
        for i, schema in enumerate(schemas):
            self.node(schema, f"{path}/{i}")

    def object(self, schema: dict[str, Any], path: str) -> None:
        properties = schema.get("properties", {})
        if not isinstance(properties, dict):
            raise SchemaFault(f"{path}: properties must be an object")
        for name, value in properties.items():
            self.node(value, f"{path}/properties/{name}")
        additional = schema.get("additionalProperties", True)
        if isinstance(additional, dict):
            self.node(additional, f"{path}/additionalProperties")
        elif not isinstance(additional, bool):
            raise SchemaFault(f"{path}: additionalProperties must be a boolean or a schema")

    def array(self, schema: dict[str, Any], path: str) -> None:
        key = "items" if "items" in schema else "prefixItems"
        if key in schema:
            items = schema[key]
            if isinstance(items, list):
                for i, item in enumerate(items):
                    self.node(item, f"{path}/{key}/{i}")
                return
            self.node(items, f"{path}/{key}")
        self.counts(schema, "array", path)

    def string(self, schema: dict[str, Any], path: str) -> None:
        if not isinstance(schema.get("pattern", ""), str):
            raise SchemaFault(f"{path}: pattern must be a string")
        self.format(schema, path)
        self.counts(schema, "string", path)

    def integer(self, schema: dict[str, Any], path: str) -> None:
        for keys in BOUNDS:
            key = next((key for key in keys if key in schema), None)
            if key is not None and (isinstance(schema[key], bool) or not isinstance(schema[key], (int, float))):
                raise SchemaFault(f"{path}: {key} must be a number")

    def counts(self, schema: dict[str, Any], kind: str, path: str) -> None:
        for key in COUNTS[kind]:
            value = schema.get(key, 0)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise SchemaFault(f"{path}: {key} must be a non-negative integer")

    def format(self, schema: dict[str, Any], path: str) -> str:
        value = schema.get("format", "")
        if not isinstance(value, str):
            raise SchemaFault(f"{path}: format must be a string")
        return value
