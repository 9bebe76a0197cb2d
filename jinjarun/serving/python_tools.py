"""A Python function as a tool: its JSON schema from its type hints and its Google docstring.

What transformers 5.24 does with functions among the tools (chat_template_utils, get_json_schema): every parameter needs
a type hint and a description, a default makes it optional, `(choices: ["a", "b"])` at the end of a description becomes
an enum, and the first parameter of a method (`self` or `cls` without a hint) is left out.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from jinjarun.errors import quote

Schema = dict[str, Any]

SCALARS: dict[type, str] = {int: "integer", float: "number", str: "string", bool: "boolean", NoneType: "null"}
"""What an enum may hold, and JSON Schema's names for it."""

BARE: dict[Any, Schema] = {
    **{kind: {"type": name} for kind, name in SCALARS.items()},
    list: {"type": "array"},
    tuple: {"type": "array"},
    dict: {"type": "object"},
    Any: {},
}
"""Hints that stand for themselves."""

SECTIONS = ("Args:", "Returns:", "Raises:")
_PARAMETER = re.compile(r"(?P<indent>[ \t]*)(?P<name>\w+)(?:[ \t]*\([^()]*\))?:")
"""The first line of a parameter's description: `name:` or `name (type):`."""


class FunctionFault(ValueError):
    """The function cannot become a tool. The message says why."""


def function_tool(function: Callable[..., Any]) -> Schema:
    """`{"type": "function", "function": {...}}`. Raises FunctionFault where hints or docstring do not do."""
    name = getattr(function, "__name__", "operation")
    doc = (inspect.getdoc(function) or "").strip()
    if not doc:
        raise FunctionFault(f"{name} has no docstring")
    parameters, returns = _signature(function)
    described = _descriptions(_section(doc, "Args:", ends=("Returns:", "Raises:")) or "")
    for parameter, schema in parameters["properties"].items():
        if parameter not in described:
            raise FunctionFault(f"the docstring of {name} does not describe its argument {parameter!r}")
        description, choices = _choices(described[parameter], parameter)
        if choices is not None:
            schema["enum"] = choices
        schema["description"] = description
    tool = {"name": name, "description": _before(doc, SECTIONS).strip(), "parameters": parameters}
    if returns is not None:
        about = _section(doc, "Returns:", ends=("Raises:",))
        tool["return"] = returns if about is None else {**returns, "description": about.strip()}
    return {"type": "function", "function": tool}


def _signature(function: Callable[..., Any]) -> tuple[Schema, Schema | None]:
    """Schemas of the parameters and of what is returned, None where that has no hint or none that we can read."""
    try:
        hints = get_type_hints(function)
        signature = inspect.signature(function).parameters
    except Exception as error:  # evaluating a hint runs the caller's own code
        raise FunctionFault(f"its type hints cannot be read: {type(error).__name__}: {quote(str(error))}") from None
    receiver = next(iter(signature), None)
    if receiver not in {"self", "cls"} or signature[receiver].annotation is not inspect.Parameter.empty:
        receiver = None
    required = []
    for name, parameter in signature.items():
        if name == receiver:
            continue
        if parameter.annotation is inspect.Parameter.empty:
            raise FunctionFault(f"its argument {name!r} has no type hint")
        if parameter.default is inspect.Parameter.empty:
            required.append(name)
    properties = {name: _schema(hint) for name, hint in hints.items() if name not in {receiver, "return"}}
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if "return" not in hints:
        return schema, None
    try:
        return schema, _schema(hints["return"])
    except FunctionFault:
        return schema, None


def _schema(hint: Any) -> Schema:
    origin, args = get_origin(hint), get_args(hint)
    if origin is None:
        if isinstance(hint, type) and issubclass(hint, Enum):
            return _enum([member.value for member in hint], hint.__name__)
        for bare, schema in BARE.items():
            if hint is bare:
                return dict(schema)
    elif origin in (Union, UnionType):
        return _union(args)
    elif origin is Literal:
        return _enum(list(args), "Literal")
    elif origin is list:
        return {"type": "array", "items": _schema(args[0])} if args else {"type": "array"}
    elif origin is dict:
        return {"type": "object", "additionalProperties": _schema(args[1])} if args else {"type": "object"}
    elif origin is tuple:
        return _tuple(args)
    raise FunctionFault(f"the type hint {quote(str(hint))} has no JSON schema")


def _union(args: tuple[Any, ...]) -> Schema:
    """One schema, a list of plain types in alphabetical order, or `anyOf`; None among them makes it nullable."""
    schemas = [_schema(arg) for arg in args if arg is not NoneType]
    if len(schemas) == 1:
        union = schemas[0]
    elif all(schema.keys() == {"type"} and isinstance(schema["type"], str) for schema in schemas):
        union = {"type": _one_or_all(sorted({schema["type"] for schema in schemas}))}
    else:
        union = {"anyOf": schemas}
    if NoneType in args:
        union["nullable"] = True
    return union


def _tuple(args: tuple[Any, ...]) -> Schema:
    if not args:
        return {"type": "array"}
    if len(args) == 1:
        raise FunctionFault("a tuple of one element has no JSON schema here: use a list, or the element itself")
    if ... in args:
        raise FunctionFault("a tuple of any length has no JSON schema here: use a list")
    return {"type": "array", "prefixItems": [_schema(arg) for arg in args]}


def _enum(values: list[Any], name: str) -> Schema:
    if not values:
        raise FunctionFault(f"{name} has no members")
    if any(type(value) not in SCALARS for value in values):
        raise FunctionFault(f"{name} has values that are not plain JSON")
    return {"type": _one_or_all(list(dict.fromkeys(SCALARS[type(value)] for value in values))), "enum": values}


def _one_or_all(names: Sequence[str]) -> str | Sequence[str]:
    return names[0] if len(names) == 1 else names


def _before(text: str, words: tuple[str, ...]) -> str:
    """What stands before the first of `words`, which may stand anywhere, even inside a sentence."""
    return text[: min((at for at in map(text.find, words) if at >= 0), default=len(text))]


def _section(doc: str, heading: str, *, ends: tuple[str, ...]) -> str | None:
    """What stands below a line of its own that says `heading`; the first line of a docstring is none."""
    lines = doc.split("\n")
    for i, line in enumerate(lines[1:-1], 1):
        if line.lstrip() == heading:
            return _before("\n".join(lines[i + 1 :]), ends).rstrip()
    return None


def _descriptions(section: str) -> dict[str, str]:
    """By parameter its description, on one line. A description goes on until the next parameter that is not indented
    deeper. A parameter with nothing after its colon is described by the next line, whatever that is.
    """
    lines = [line for line in section.split("\n") if line.strip()]
    found: dict[str, str] = {}
    i = 0
    while i < len(lines):
        head = _PARAMETER.match(lines[i])
        parts = [] if head is None else [lines[i][head.end() :].strip()]
        i += 1
        if head is None:
            continue
        deeper = (head["indent"] + " ", head["indent"] + "\t")
        while i < len(lines) and (parts == [""] or lines[i].startswith(deeper) or _PARAMETER.match(lines[i]) is None):
            parts.append(lines[i].strip())
            i += 1
        found[head["name"]] = " ".join(parts).strip()
    return found


def _choices(description: str, parameter: str) -> tuple[str, list[Any] | None]:
    """A description without its `(choices: JSON)`, and what that lists."""
    at = re.search(r"\(choices:", description, re.IGNORECASE)
    if at is None or not description.endswith(")"):
        return description, None
    try:
        choices = list(json.loads(description[at.end() : -1]))
    except (ValueError, TypeError, RecursionError):
        raise FunctionFault(f"the choices of its argument {parameter!r} are no JSON list") from None
    return description[: at.start()].strip(), [c.strip() if isinstance(c, str) else c for c in choices]
