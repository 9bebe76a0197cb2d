"""JSON files of strangers as data: bounded, strict, and every value asked for by its type and named in errors."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any, NoReturn

from jinjarun.errors import SourceError
from jinjarun.sources.files import decode, failure, read_bytes


@dataclass(frozen=True, slots=True)
class JsonBounds:
    """What one file may hold. `[],` is 3 bytes and makes 64: the values are counted, not only the bytes."""

    bytes: int
    containers: int
    values: int


CONFIG = JsonBounds(8_000_000, 200_000, 1_000_000)
"""For configuration files. The largest known to us, with thousands of reserved tokens, has 1.2 MB."""

TOKENIZER = JsonBounds(64_000_000, 2_000_000, 6_000_000)
"""For tokenizer.json. Gemma 3's has 33 MB, 520,000 containers and 1.8 million values."""

_CONSTANT = re.compile(r'"(?:[^"\\]|\\.)*+"|(NaN|-?Infinity)', re.DOTALL)


@dataclass(frozen=True)
class JsonFile:
    """A JSON object and the file it came from. `duplicates`: keys that stand twice in one object of it."""

    path: str
    value: dict[str, Any]
    had_bom: bool
    duplicates: tuple[str, ...]

    def get(self, key: str, types: tuple[type, ...], expected: str, inside: Any = None, place: str = "") -> Any:
        """The value under `key` of the root, or of `inside` which stands at `place`; None if it is absent or null.

        `SourceError` if it has another type. A boolean is no number here, though it is one in Python.
        """
        value = (self.value if inside is None else inside).get(key)
        good = value is None or (isinstance(value, types) and (bool in types or not isinstance(value, bool)))
        if not good:
            self.fail(f"{place}.{key}" if place else key, f"should be {expected}, is {type_name(value)}")
        return value

    def fail(self, place: str, reason: str, hint: str | None = None) -> NoReturn:
        raise failure(self.path, reason, place=place, hint=hint)


def type_name(value: Any) -> str:
    """The JSON name of a value's type, with its article."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")


def read_json(path: str, bounds: JsonBounds = CONFIG, *, constants: bool = False) -> JsonFile:
    """A file whose root is a JSON object.

    NaN and Infinity are no JSON and are refused without `constants`. Keys that stand twice are recorded; the last one
    counts, as in Python's `json` and so in transformers.
    """
    return parse_json(path, read_bytes(path, bounds.bytes), bounds, constants=constants)


def parse_json(path: str, data: bytes, bounds: JsonBounds = CONFIG, *, constants: bool = False) -> JsonFile:
    """`read_json` of bytes that were read already."""
    text, had_bom = decode(path, data)
    if data.count(b"[") + data.count(b"{") > bounds.containers or data.count(b",") > bounds.values:
        reason = f"holds too much: at most {bounds.containers:,} lists and objects and {bounds.values:,} values"
        raise failure(path, reason)
    duplicates: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(items)
        if len(value) != len(items) and len(duplicates) < 100:
            duplicates.extend(key for key, times in Counter(key for key, _ in items).items() if times > 1)
        return value

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=float if constants else _refuse_constant)
    except json.JSONDecodeError as error:
        what = "is empty" if not text.strip() else f"is not JSON ({error.msg})"
        raise failure(path, what, place=f"line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise failure(path, "is nested too deeply") from None
    except _ConstantError as error:
        raise _constant_failure(path, text, str(error)) from None
    except ValueError:  # more digits than Python converts (4,300)
        raise failure(path, "holds a number of too many digits") from None
    if not isinstance(value, dict):
        raise failure(path, f"should hold a JSON object, holds {type_name(value)}")
    return JsonFile(path, value, had_bom, tuple(dict.fromkeys(duplicates)))


class _ConstantError(ValueError):
    pass


def _refuse_constant(name: str) -> NoReturn:
    raise _ConstantError(name)


def _constant_failure(path: str, text: str, name: str) -> SourceError:
    start = next((match.start(1) for match in _CONSTANT.finditer(text) if match[1]), 0)
    line = text.count("\n", 0, start) + 1
    column = start - text.rfind("\n", 0, start)
    return failure(path, f"{name} is not JSON", place=f"line {line}, column {column}")
