"""Values of arguments: JSON, what is nearly JSON, and types by the schema of a tool."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

DEPTH = 100
"""How deep a value may be nested, as data that templates are given."""
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
WORD = re.compile(r"[^\W\d][\w.$-]*")
SPACE = re.compile(r"\s*")
WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
QUOTED = {'"': re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"', re.DOTALL)}
QUOTED["'"] = re.compile(QUOTED['"'].pattern.replace('"', "'"), re.DOTALL)
ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def json_value(text: str) -> Any:
    """A JSON value that is bounded in depth; ValueError for anything else."""
    if _depth(text) > DEPTH:
        raise ValueError("nested too deep")
    return json.loads(text, parse_constant=_no_number)


def _depth(text: str) -> int:
    """An upper bound of how deep `text` is nested."""
    return min(text.count("[") + text.count("{"), _walk(text)) if text.count("[") + text.count("{") > DEPTH else 0


def _walk(text: str) -> int:
    most = now = 0
    for bracket in re.findall(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', text, re.DOTALL):
        if bracket in "[{":
            now += 1
            most = max(most, now)
        elif bracket in "]}":
            now -= 1
    return most


def relaxed_value(text: str, string_mark: str = "") -> Any:
    """A value as JSON, Python or a like syntax writes it: either kind of quotes, `string_mark` around strings, keys
    without quotes, nothing for null. ValueError for anything else."""
    value, end = _Relaxed(text, string_mark).value(0, 0)
    if SPACE.fullmatch(text, end) is None:
        raise ValueError("text after the value")
    return value


class _Relaxed:
    def __init__(self, text: str, mark: str) -> None:
        self.text = text
        self.mark = mark

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        if depth > DEPTH:
            raise ValueError("nested too deep")
        text = self.text
        at = self.space(at)
        char = text[at : at + 1]
        if (found := self.string(at)) is not None:
            return found
        if char == "{":
            return self.object(at + 1, depth + 1)
        if char == "[":
            return self.list(at + 1, depth + 1)
        if (number := NUMBER.match(text, at)) is not None:
            digits = number.group()
            return (int(digits) if digits.lstrip("+-").isdigit() else float(digits)), number.end()
        if (word := WORD.match(text, at)) is not None and word.group() in WORDS:
            return WORDS[word.group()], word.end()
        if char in ("", ",", "}", "]"):
            return None, at
        raise ValueError(f"no value at {at}")

    def space(self, at: int) -> int:
        found = SPACE.match(self.text, at)
        return at if found is None else found.end()

    def string(self, at: int) -> tuple[str, int] | None:
        text, mark = self.text, self.mark
        if mark and text.startswith(mark, at):
            end = text.find(mark, at + len(mark))
            if end < 0:
                raise ValueError("a string that never ends")
            return text[at + len(mark) : end], end + len(mark)
        pattern = QUOTED.get(text[at : at + 1])
        if pattern is None:
            return None
        found = pattern.match(text, at)
        if found is None:
            raise ValueError("a string that never ends")
        return unescaped(found.group(1)), found.end()

    def object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        at = self.space(at)
        while not self.text.startswith("}", at):
            key = self.string(at)
            if key is None:
                word = WORD.match(self.text, at)
                if word is None:
                    raise ValueError(f"no key at {at}")
                key = word.group(), word.end()
            at = self.space(key[1])
            if not self.text.startswith(":", at):
                raise ValueError(f"no colon at {at}")
            found[key[0]], at = self.value(at + 1, depth)
            at = self.after_item(at, "}")
        return found, at + 1

    def list(self, at: int, depth: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        at = self.space(at)
        while not self.text.startswith("]", at):
            item, at = self.value(at, depth)
            found.append(item)
            at = self.after_item(at, "]")
        return found, at + 1

    def after_item(self, at: int, close: str) -> int:
        at = self.space(at)
        if self.text.startswith(",", at):
            return self.space(at + 1)
        if not self.text.startswith(close, at):
            raise ValueError(f"no {close} at {at}")
        return at


def unescaped(text: str) -> str:
    """What a quoted text means."""
    if "\\" not in text:
        return text
    plain = ESCAPE.sub(_meant, text)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if "\\u" in text else plain


def _meant(found: re.Match[str]) -> str:
    code = found.group(1) or found.group(2)
    return chr(int(code, 16)) if code else ESCAPES.get(found.group(3), found.group(3))


# Types


def schemas_of(tools: Sequence[Mapping[str, Any]] | None) -> dict[str, dict[str, Any]]:
    """The properties of each tool's parameters, by the tool's name."""
    found: dict[str, dict[str, Any]] = {}
    for tool in tools or ():
        function = tool.get("function", tool) if isinstance(tool, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            continue
        parameters = function.get("parameters")
        properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
        found[function["name"]] = dict(properties) if isinstance(properties, Mapping) else {}
    return found


def types_of(schema: Any, depth: int = 0) -> frozenset[str]:
    """The JSON types that a schema allows; empty where it does not say."""
    if not isinstance(schema, Mapping) or depth > 8:
        return frozenset()
    named = schema.get("type")
    if isinstance(named, str):
        return frozenset({"number" if named == "integer" else named})
    if isinstance(named, list):
        return frozenset("number" if name == "integer" else name for name in named if isinstance(name, str))
    for key in ("anyOf", "oneOf", "allOf"):
        if isinstance(schema.get(key), list):
            return frozenset().union(*(types_of(one, depth + 1) for one in schema[key][:50]))
    if isinstance(schema.get("enum"), list):
        return frozenset(type_of(value) for value in schema["enum"])
    return frozenset({type_of(schema["const"])} if "const" in schema else ())


def type_of(value: Any) -> str:
    if value is None:
        return "null"
    names: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (bool, "boolean"),
        ((int, float), "number"),
        (str, "string"),
        (list, "array"),
    )
    return next((name for kind, name in names if isinstance(value, kind)), "object")


def typed(text: str, types: frozenset[str]) -> Any:
    """The value that a text without quotes stands for: of one of `types`, or where they are empty, the value that it
    is as JSON, else the text itself."""
    if types == {"string"}:
        return text
    try:
        value = json_value(text)
    except (ValueError, RecursionError):
        try:
            value = relaxed_value(text)
        except ValueError:
            return text
        if value is None and text.strip() not in WORDS:
            return text
    if types:
        return value if type_of(value) in types else text
    return value if not isinstance(value, str) else text
