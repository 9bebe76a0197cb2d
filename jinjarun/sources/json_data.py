"""JSON files of strangers as data: bounded, strict, and every value asked for by its type and named in errors."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, NoReturn

from jinjarun.sources.files import decode, failure, read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinjarun.errors import SourceError

NOTED = 100
"""The most keys that stand twice of which notes are kept."""


@dataclass(frozen=True, slots=True)
class JsonBounds:
    """What is read of one target. `[],` is 3 bytes and makes 64: the values are counted, not only the bytes."""

    bytes: int
    containers: int
    values: int

    def less(self, spent: JsonBounds) -> JsonBounds:
        """What is left for the files beside one that had `spent`."""
        return JsonBounds(self.bytes - spent.bytes, self.containers - spent.containers, self.values - spent.values)


CONFIG = JsonBounds(8_000_000, 100_000, 300_000)
"""For all configuration files of one model together, so that they cost at most 120 MB. The largest known to us, with
28,000 added tokens for speech, have 6 MB, 30,000 containers and 230,000 values."""

TOKENIZER = JsonBounds(51_000_000, 1_000_000, 3_000_000)
"""For tokenizer.json, which is read in parts. Gemma 3's has 33.4 MB, 520,000 containers and 1.8 million values."""

DEPTH = 500
"""How deep lists and objects may be nested. Python's parser ends in an error at 990 or 10,000, by its version, and in a
crash where the stack of its thread is small."""

_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")
_CONSTANT = re.compile(r'"(?:[^"\\]|\\.)*+"|(NaN|-?Infinity)', re.DOTALL)


@dataclass(frozen=True)
class JsonFile:
    """A JSON object and the file it came from.

    `duplicates`: keys that stand twice in one object of it, the first hundred. `spent`: what it took of its bounds.
    """

    path: str
    value: dict[str, Any]
    had_bom: bool
    duplicates: tuple[str, ...]
    spent: JsonBounds = JsonBounds(0, 0, 0)

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


def read_json(
    path: str, bounds: JsonBounds = CONFIG, *, constants: bool = False, inside: str | None = None
) -> JsonFile:
    """A file whose root is a JSON object; `inside` as in `open_regular`.

    NaN and Infinity are no JSON and are refused without `constants`. Keys that stand twice are recorded; the last one
    counts, as in Python's `json` and so in transformers.
    """
    return parse_json(path, read_bytes(path, bounds.bytes, inside), bounds, constants=constants)


def parse_json(path: str, data: bytes, bounds: JsonBounds = CONFIG, *, constants: bool = False) -> JsonFile:
    """`read_json` of bytes that were read already."""
    text, had_bom = decode(path, data)
    duplicates: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(items)
        if len(value) != len(items) and len(duplicates) < NOTED:
            times = Counter(key for key, _ in items)
            duplicates.extend([key for key, count in times.items() if count > 1][:NOTED])
        return value

    value, spent = load_json(path, text, bounds, constants=constants, pairs=pairs)
    if not isinstance(value, dict):
        raise failure(path, f"should hold a JSON object, holds {type_name(value)}")
    return JsonFile(path, value, had_bom, tuple(dict.fromkeys(duplicates)), replace(spent, bytes=len(data)))


def load_json(
    path: str,
    text: str,
    bounds: JsonBounds = CONFIG,
    *,
    constants: bool = False,
    pairs: Callable[[list[tuple[str, Any]]], Any] | None = None,
) -> tuple[Any, JsonBounds]:
    """Any JSON value, and what it took of `bounds`. Everything that costs memory is counted before it is parsed.

    `constants`: let NaN and Infinity pass. `pairs`: makes the objects, as `object_pairs_hook` of Python's `json` does.
    """
    spent = _counted(path, text, bounds)
    try:
        return json.loads(text, object_pairs_hook=pairs, parse_constant=float if constants else _refuse_constant), spent
    except json.JSONDecodeError as error:
        what = "is empty" if not text.strip() else f"is not JSON ({error.msg})"
        raise failure(path, what, place=f"line {error.lineno}, column {error.colno}") from None
    except RecursionError:  # the caller is deep in its own stack
        raise failure(path, "is nested too deeply") from None
    except _ConstantError as error:
        raise _constant_failure(path, text, str(error)) from None
    except ValueError:  # more digits than Python converts (4,300)
        raise failure(path, "holds a number of too many digits") from None


def _counted(path: str, text: str, bounds: JsonBounds) -> JsonBounds:
    """Containers and values of a text: first as if strings held none of the marks, which is quick and too much."""
    opened, commas = text.count("[") + text.count("{"), text.count(",")
    if opened > min(DEPTH, bounds.containers) or commas > bounds.values:
        bare = _STRING.sub("", text)
        opened, commas = bare.count("[") + bare.count("{"), bare.count(",")
        brackets = islice(_BRACKET.finditer(bare), 2 * bounds.containers + DEPTH)
        if any(depth > DEPTH for depth in accumulate(1 if found[0] in "[{" else -1 for found in brackets)):
            raise failure(path, f"is nested too deeply: more than {DEPTH} lists and objects in one another")
        if opened > bounds.containers or commas > bounds.values:
            limits = f"{bounds.containers:,} lists and objects and {bounds.values:,} values"
            raise failure(path, f"holds too much: {limits} are read at most, with the files beside it")
    return JsonBounds(len(text), opened, commas)


class _ConstantError(ValueError):
    pass


def _refuse_constant(name: str) -> NoReturn:
    raise _ConstantError(name)


def _constant_failure(path: str, text: str, name: str) -> SourceError:
    start = next((match.start(1) for match in _CONSTANT.finditer(text) if match[1]), 0)
    line = text.count("\n", 0, start) + 1
    column = start - text.rfind("\n", 0, start)
    return failure(path, f"{name} is not JSON", place=f"line {line}, column {column}")
