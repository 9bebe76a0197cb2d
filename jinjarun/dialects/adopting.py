"""The caller's data on its way in: plain JSON only, copied, bounded."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from jinjarun.errors import QUOTE_LIMIT, InputError, quote
from jinjarun.limits import utf8_size
from jinjarun.runtime.text import Origin, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jinjarun.runtime.run import Run


VALUE_BYTES = 64
"""What a value counts as input besides its text: about the memory that it takes."""
_PATH_CHARS = 200
"""Of a path into the data; what lies deeper shows where it begins and its last step."""


def below(path: str, key: str | int) -> str:
    """The path of what stands under `key` in what stands at `path`, made safe to print."""
    if len(path) > _PATH_CHARS:
        path = path[:_PATH_CHARS] + "..."
    if isinstance(key, int):
        return f"{path}[{key}]"
    shown = key if len(key) <= QUOTE_LIMIT and key.isprintable() else quote(key)
    return f"{path}.{shown}" if path else shown


class EngineFloat(float):
    """NaN or an infinity that an engine's own reader of JSON made; the caller's data may not hold them."""


class Adopter:
    """Copies a context, and tells the run how much text its objects hold. With `spans` every string becomes a Text that
    knows its path, an object of its own."""

    def __init__(self, run: Run, *, string: Callable[[str], str], integer: Callable[[int], Any], spans: bool) -> None:
        self.limits = run.limits
        self.run = run
        self.string = string
        self.integer = integer
        self.spans = spans
        self.size = 0
        self.texts = 0
        self.text_bytes = 0

    def context(self, context: Mapping[str, Any]) -> dict[str, Any]:
        result = {}
        for name, value in context.items():
            if type(name) is not str:
                raise InputError("a variable's name must be a string", path=f"[{type(name).__name__}]")
            path = below("", name)
            self.spend(VALUE_BYTES + utf8_size(name), path)
            result[self.string(name)] = self.value(value, path, 1)
        self.run.measured(self.texts, self.text_bytes)
        return result

    def value(self, value: Any, path: str, depth: int) -> Any:
        kind = type(value)
        if kind is str:
            self.spend(len(value) if value.isascii() else utf8_size(value), path)
            text = self.string(value)
            return Text.of(text, Origin(is_input=True, place=path)) if self.spans else text
        if value is None or kind is bool:
            return value
        if kind is int:
            if value.bit_length() > self.limits.integer_bits:
                raise InputError(f"an integer of more than {self.limits.integer_bits} bits at {path}", path=path)
            return self.integer(value)
        if kind is EngineFloat:
            return float(value)
        if kind is float:
            if not math.isfinite(value):
                raise InputError(f"{value} is no JSON at {path}: use null or a string", path=path)
            return value
        if depth > self.limits.data_depth:
            raise InputError(
                f"data nested deeper than {self.limits.data_depth} levels (or containing itself) at {path}", path=path
            )
        if kind is list or kind is tuple:
            self.spend(VALUE_BYTES * len(value), path)
            if len(value) > self.limits.items:
                raise InputError(f"more than {self.limits.items:,} items at {path}", path=path)
            if len(path) > _PATH_CHARS:
                return [self.value(item, below(path, i), depth + 1) for i, item in enumerate(value)]
            return [self.value(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)]
        if kind is dict:
            return self.object(value, path, depth)
        raise InputError(f"{kind.__name__} is no plain JSON at {path}: convert it first", path=path)

    def object(self, value: dict[Any, Any], path: str, depth: int) -> dict[str, Any]:
        """Most of a context is objects of short texts: these are adopted here, without a call."""
        self.spend(VALUE_BYTES * len(value), path)
        if len(value) > self.limits.items:
            raise InputError(f"more than {self.limits.items:,} keys at {path}", path=path)
        result = {}
        short = len(path) <= _PATH_CHARS
        string, spans, allowed = self.string, self.spans, self.limits.input_bytes
        for key, item in value.items():
            if type(key) is not str:
                raise InputError(f"a key of type {type(key).__name__} at {path}: JSON has strings only", path=path)
            if type(item) is str and not spans:
                if key.isascii() and item.isascii():  # which is the same string in every dialect
                    size = len(key) + len(item)
                    result[key] = item
                else:
                    size = utf8_size(key) + utf8_size(item)
                    result[string(key)] = string(item)
                self.size += size
                self.texts += 1
                self.text_bytes += size
                if self.size > allowed:
                    self.spend(0, below(path, key))
            else:
                plain = short and len(key) <= QUOTE_LIMIT and key.isprintable()
                inside = f"{path}.{key}" if plain else below(path, key)
                before = self.size
                self.spend(utf8_size(key), inside)
                result[string(key)] = self.value(item, inside, depth + 1)
                if type(item) is str:
                    self.texts += 1
                    self.text_bytes += self.size - before
        return result

    def spend(self, size: int, path: str) -> None:
        self.size += size
        if self.size > self.limits.input_bytes:
            raise InputError(f"more than {self.limits.input_bytes:,} bytes of input, at {path}", path=path)
