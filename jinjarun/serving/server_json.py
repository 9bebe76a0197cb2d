"""JSON as llama-server b11434 reads and writes it (nlohmann::json, ordered objects)."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

from jinjarun.dialects.adopting import VALUE_BYTES, below
from jinjarun.errors import InputError, quote
from jinjarun.limits import Limits, limit_exceeded, utf8_size

if TYPE_CHECKING:
    from collections.abc import Callable

_NUMBER_PARTS = re.compile(r"(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?")
_INT64 = 1 << 63
_PLAIN_DIGITS = 15
"""A double is written without an exponent as long as its decimal point lies within that many digits."""


def plain(value: Any, path: str, limits: Limits, *, integer: Callable[[int, _Place], int | float] | None = None) -> Any:
    """A copy of the caller's data, as the server would have it after parsing the request's text.

    Raises InputError with the path for what no JSON text can hold (other types, NaN, lone surrogates) and for more
    than `input_bytes`, LimitExceeded for data nested too deep. Integers beyond 64 bits become doubles, those of the
    upper unsigned half wrap around, unless `integer` says what becomes of them.
    """
    return _Reader(limits, integer or _integer).read(value, path, 0)


def python_integer(number: int, _place: _Place) -> int:
    """What servers written in Python make of an integer: itself."""
    return int(number)


class _Reader:
    """Copies data. A place is a path, or (the place of an object or list, a key in it): paths are made for errors."""

    def __init__(self, limits: Limits, integer: Callable[[int, _Place], int | float]) -> None:
        self.limits = limits
        self.integer = integer
        self.size = 0

    def read(self, value: Any, place: _Place, depth: int) -> Any:
        self.spend(VALUE_BYTES, place)
        if isinstance(value, str):
            return self.text(value, place)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return self.integer(value, place)
        if isinstance(value, float):
            if not math.isfinite(value):
                path = _path(place)
                raise InputError(f"{path}: {value} is not a JSON number", path=path)
            return value
        if depth > self.limits.data_depth:
            raise limit_exceeded("data_depth", self.limits.data_depth)
        if isinstance(value, dict):
            copy = {}
            for key, item in value.items():
                if not isinstance(key, str):
                    path = _path(place)
                    raise InputError(f"{path}: a key is {type(key).__name__}, not a string", path=path)
                copy[self.text(key, place)] = self.read(item, (place, key), depth + 1)
            return copy
        if isinstance(value, (list, tuple)):
            return [self.read(item, (place, i), depth + 1) for i, item in enumerate(value)]
        path = _path(place)
        raise InputError(f"{path or 'the body'}: {type(value).__name__} is not JSON", path=path)

    def text(self, text: str, place: _Place) -> str:
        if text.isascii():
            self.spend(len(text), place)
            return str(text)
        self.spend(utf8_size(text), place)
        try:
            text.encode()
        except UnicodeEncodeError:
            path = _path(place)
            raise InputError(f"{path}: a lone surrogate is not valid Unicode", path=path) from None
        return str(text)

    def spend(self, size: int, place: _Place) -> None:
        self.size += size
        if self.size > self.limits.input_bytes:
            path = _path(place)
            raise InputError(f"more than {self.limits.input_bytes:,} bytes of input, at {path}", path=path)


_Place = str | tuple[Any, str | int]


def _path(place: _Place) -> str:
    if isinstance(place, str):
        return place
    outer, key = place
    return below(_path(outer), key)


def _integer(number: int, place: _Place) -> int | float:
    if -_INT64 <= number < 2 * _INT64:
        return int(number)  # beyond 63 bits without a sign, which templates do not know
    try:
        return float(number)
    except OverflowError:
        path = _path(place)
        raise InputError(f"{path}: the number is out of range", path=path) from None


def parse(text: str, limits: Limits) -> Any:
    """The value of a JSON text, ValueError where the server's parser fails, LimitExceeded if nested too deep."""
    try:
        value = json.loads(
            text.removeprefix("\ufeff"), parse_int=_parse_integer, parse_float=_parse_float, parse_constant=_refuse
        )
    except RecursionError:
        raise limit_exceeded("data_depth", limits.data_depth) from None
    try:
        return plain(value, "", limits)
    except InputError as error:
        raise ValueError(error.message) from None


def _parse_integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= 20 else _parse_float(digits)


def _parse_float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"number out of range: {quote(digits)}")
    return number


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def dump(value: Any) -> str:
    """Compact JSON: no spaces, keys in their order, characters beyond ASCII as they are."""
    if isinstance(value, float):
        return _double(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_string(key)}:{dump(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(dump(item) for item in value) + "]"
    return _string(value)


def _string(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _double(number: float) -> str:
    """The shortest digits, as Python has them, but with an exponent from 1e+15 on."""
    written = repr(number)
    found = _NUMBER_PARTS.fullmatch(written)
    if found is None or "e" in written:
        return written
    sign, whole, fraction = found[1], found[2], found[3] or ""
    digits = (whole + fraction).rstrip("0") if fraction in {"", "0"} else whole + fraction
    if len(whole) <= _PLAIN_DIGITS:
        return written
    mantissa = f"{digits[0]}.{digits[1:]}" if len(digits) > 1 else digits
    return f"{sign}{mantissa}e+{len(whole) - 1}"
