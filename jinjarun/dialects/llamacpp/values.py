"""The values of llama.cpp's engine, and how they print, compare and turn into one another (common/jinja/value.h).

Strings are byte strings there. Here such a string is a str whose characters are its bytes (Latin-1), so that length,
index, search and slices work on bytes; `from_text` and `to_bytes` convert at the boundary. Arrays are lists, tuples
tuples, objects dicts in insertion order, none is None; integers are 64 bits wide, floats are doubles.
"""

from __future__ import annotations

import math
import re
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import TYPE_CHECKING, Any

from jinjarun.errors import RenderError
from jinjarun.runtime.macro import Macro

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinjarun.runtime.run import Run

INT_MIN, INT_MAX = -(1 << 63), (1 << 63) - 1
SPACES = " \t\n\v\f\r"


class Undefined:
    """The value of what is not there. `hint` is what was asked for."""

    __slots__ = ("hint",)

    def __init__(self, hint: str = "") -> None:
        self.hint = hint

    def __bool__(self) -> bool:
        return False


UNDEFINED = Undefined()
NO_MEMBER = Undefined("object_property")
"""What a value has where there is nothing under a key."""


class Function:
    """A builtin, bound to `this` where it was reached through a value."""

    __slots__ = ("function", "name", "this")

    def __init__(self, name: str, function: Callable[..., Any], this: tuple[Any, ...] = ()) -> None:
        self.name = name
        self.function = function
        self.this = this

    def __bool__(self) -> bool:
        raise RenderError(f"the function {self.name} is neither true nor false")


class TruthlessMacro(Macro):
    """A macro or a caller: a function, which no condition takes."""

    __slots__ = ()

    def __bool__(self) -> bool:
        raise RenderError(f"the macro {self.name} is neither true nor false")


class Keyword:
    """A keyword argument; it stands among the others."""

    __slots__ = ("name", "value")

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self.value = value


class Loop(dict[str, Any]):
    """The variable `loop`: an object without methods."""


def from_text(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("latin-1")


def to_bytes(text: str) -> bytes:
    return str(text).encode("latin-1")


def upper(text: str) -> str:
    """Upper case of ASCII letters only."""
    return text.upper() if text.isascii() else to_bytes(text).upper().decode("latin-1")


def lower(text: str) -> str:
    """Lower case of ASCII letters only."""
    return text.lower() if text.isascii() else to_bytes(text).lower().decode("latin-1")


def type_name(value: Any) -> str:
    if value is None:
        return "None"
    if isinstance(value, str):
        return "String"
    if isinstance(value, dict):
        return "Object"
    return _TYPE_NAMES.get(type(value), "Function")


_TYPE_NAMES = {bool: "Boolean", int: "Integer", float: "Float", list: "Array", tuple: "Tuple", Undefined: "Undefined"}


# ------------------------------------------------------------------------------------------------------------- numbers


def is_number(value: Any) -> bool:
    """Integer or Float; a Boolean is neither."""
    return type(value) is int or type(value) is float


def wrap(value: int) -> int:
    """An integer as 64 bits hold it."""
    return value if INT_MIN <= value <= INT_MAX else ((value - INT_MIN) % (1 << 64)) + INT_MIN


def truncate(value: float) -> int:
    """A double as an integer; what does not fit becomes the smallest one, as on x86-64."""
    if -9.3e18 < value < 9.3e18:
        result = int(value)
        if INT_MIN <= result <= INT_MAX:
            return result
    return INT_MIN


def as_float(value: Any) -> float:
    """An integer that a double cannot hold becomes an infinity."""
    if type(value) is float:
        return value
    if type(value) is int:
        number = float(value)
        if truncate(number) == value:
            return number
        return -math.inf if value < 0 else math.inf
    raise RenderError(f"{type_name(value)} is not a float value")


def as_int(value: Any) -> int:
    if type(value) is float:
        return truncate(value) if math.isfinite(value) else 0
    if isinstance(value, int):
        return int(value)
    raise RenderError(f"{type_name(value)} is not an int value")


def format_float(value: float) -> str:
    """Six decimals without trailing zeros, one kept."""
    if math.isnan(value):
        return "-nan" if math.copysign(1.0, value) < 0 else "nan"
    text = f"{value:f}".rstrip("0")
    return text + "0" if text.endswith(".") else text


# ----------------------------------------------------------------------------------------------------------- as strings


def as_string(run: Run, value: Any) -> str:
    """Raises RenderError for undefined and for functions, which have no string."""
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple, dict)):
        pieces: list[str] = []
        _write_repr(run, value, pieces, 1)
        return made(run, pieces)
    if value is None or type(value) is bool:
        return str(value)
    if type(value) is int:
        return str(value)
    if type(value) is float:
        run.charge(1 if -_SHORT_FLOAT < value < _SHORT_FLOAT else _LONG_FLOAT_STEPS)
        return format_float(value)
    raise RenderError(f"{type_name(value)} is not a string value")


_SHORT_FLOAT, _LONG_FLOAT_STEPS = 1e15, 20
"""Floats from there on have up to 309 digits."""


def made(run: Run, pieces: list[str]) -> str:
    run.string(sum(map(len, pieces)))
    return "".join(pieces)


def _write_repr(run: Run, value: Any, pieces: list[str], depth: int) -> None:
    run.charge(2)
    if depth > run.limits.data_depth:
        raise run.exceeded("data_depth")
    if isinstance(value, str):
        run.charge(len(value) >> 4)
        pieces.append(encode_basestring(value) if "'" in value else f"'{value}'")
    elif isinstance(value, (list, tuple)):
        pieces.append("(" if isinstance(value, tuple) else "[")
        for i, item in enumerate(value):
            if i:
                pieces.append(", ")
            _write_repr(run, item, pieces, depth + 1)
        if isinstance(value, tuple):
            pieces.append(",)" if len(value) == 1 else ")")
        else:
            pieces.append("]")
    elif isinstance(value, dict):
        pieces.append("{")
        for i, (key, item) in enumerate(value.items()):
            if i:
                pieces.append(", ")
            _write_repr(run, key, pieces, depth + 1)
            pieces.append(": ")
            _write_repr(run, item, pieces, depth + 1)
        pieces.append("}")
    elif isinstance(value, Undefined):
        run.charge(len(value.hint) >> 4)
        pieces.append(f"Undefined (hint: '{value.hint}')" if value.hint else "Undefined")
    elif value is None or isinstance(value, (int, float)):
        pieces.append(as_string(run, value))
    else:
        run.charge(len(value.name) >> 4)
        pieces.append(f"Function<{value.name}>(")
        for this in getattr(value, "this", ()):
            _write_repr(run, this, pieces, depth + 1)
        pieces.append(")")


def to_json(run: Run, value: Any, indent: int, item_separator: str, key_separator: str) -> str:
    """As the filter `tojson` writes; an indent below 0 means one line."""
    pieces: list[str] = []
    newline = "\n" if indent >= 0 else ""

    def write(value: Any, level: int) -> None:
        if level > run.limits.data_depth:
            raise run.exceeded("data_depth")
        if isinstance(value, str):
            run.charge(len(value) >> 4)
            pieces.append(encode_basestring(value))
        elif value is True or value is False:
            pieces.append("true" if value else "false")
        elif type(value) is int:
            pieces.append(str(value))
        elif type(value) is float:
            pieces.append(f"{value:g}" if not math.isnan(value) else format_float(value))
        elif isinstance(value, (list, tuple)):
            pieces.append("[")
            between: tuple[str, ...] = (begin_line(len(value), level + 1),)
            for item in value:
                pieces.extend(between)
                write(item, level + 1)
                between = (item_separator, between[-1])
            end("]", len(value), level)
        elif isinstance(value, dict):
            pieces.append("{")
            between = (begin_line(len(value), level + 1),)
            for key, item in value.items():
                name = as_string(run, key)
                run.charge(_JSON_STEPS + (len(name) >> 4))
                pieces.extend((*between, encode_basestring(name), key_separator))
                write(item, level + 1)
                between = (item_separator, between[-1])
            end("}", len(value), level)
        else:
            pieces.append("null")

    def begin_line(members: int, level: int) -> str:
        """What stands before each of so many members, which are charged for."""
        run.charge(_JSON_STEPS * members)
        if not (newline and members):
            return ""
        run.string(indent * level)
        return newline + " " * (indent * level)

    def end(closing: str, members: int, level: int) -> None:
        if newline and members:
            pieces.append(newline + " " * (indent * level))
        pieces.append(closing)

    if indent > run.limits.string_bytes:
        raise run.exceeded("string_bytes")
    run.charge(_JSON_STEPS)
    write(value, 0)
    return made(run, pieces)


_JSON_STEPS = 4
"""Of a value written as JSON, beside the characters of strings: what it costs beside an opcode."""


def ascii_json(run: Run, text: str) -> str:
    """JSON text with every character beyond ASCII escaped; bytes that are not UTF-8 become U+FFFD."""
    run.string(len(text) * 6)
    decoded = to_bytes(text).decode("utf-8", "replace")
    return _BEYOND_ASCII.sub(lambda found: str(encode_basestring_ascii(found[0]))[1:-1], decoded)


_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")


# ----------------------------------------------------------------------------------------------------------- comparing


def is_hashable(run: Run, value: Any, depth: int = 0) -> bool:
    if depth > run.limits.data_depth:
        raise run.exceeded("data_depth")
    if isinstance(value, (list, tuple, dict)):
        run.charge(1 + 2 * len(value))
        items = value.values() if isinstance(value, dict) else value
        return all(is_constant(run, item, depth + 1) for item in items)
    return value is None or isinstance(value, (str, int, float))


def is_constant(run: Run, value: Any, depth: int = 0) -> bool:
    """Immutable and hashable: what may be a key, or stand in a container that can be compared."""
    return not isinstance(value, (list, dict)) and is_hashable(run, value, depth)


def check_key(run: Run, key: Any, population: int) -> Any:
    """`key`, about to be looked up among `population` keys: a long string is compared with one; what is no string can
    be made to collide with all, for its hash is known beforehand."""
    if isinstance(key, str):
        run.charge(len(key) >> 6)
        return key
    before = run.steps
    if not is_constant(run, key):
        raise RenderError(f"Object key of unhashable type: {type_name(key)}")
    run.charge(population * (1 + before - run.steps))
    return key


def equal(run: Run, left: Any, right: Any) -> bool:
    """`==`. Numbers and booleans compare as numbers; containers are equal only if all inside can be hashed."""
    run.charge(1)
    if isinstance(left, str):
        run.charge(len(left) >> 6)
        return isinstance(right, str) and str.__eq__(left, right)
    if isinstance(left, (int, float)):
        return isinstance(right, (int, float)) and _numbers_equal(left, right)
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and is_hashable(run, left)
            and is_hashable(run, right)
            and len(left) == len(right)
            and all(
                equal(run, a, b) and equal(run, x, y)
                for (a, x), (b, y) in zip(left.items(), right.items(), strict=True)
            )
        )
    if isinstance(left, (list, tuple)):
        return (
            type(left) is type(right)
            and is_hashable(run, left)
            and is_hashable(run, right)
            and len(left) == len(right)
            and all(equal(run, a, b) for a, b in zip(left, right, strict=True))
        )
    if left is None:
        return right is None
    if isinstance(left, Undefined):
        return isinstance(right, Undefined)
    return type_name(right) == "Function"


def _numbers_equal(left: float, right: float) -> bool:
    def both(value: float) -> tuple[int, float]:
        return as_int(value), float(value) if type(value) is not int else as_float(value)

    if type(left) is int and type(right) is int:
        return left == right
    return both(left) == both(right)


def ordered(run: Run, left: Any, right: Any, op: str) -> bool:
    """The comparison behind tests and sorting: `eq ge gt lt ne`. Numbers by value, a number and a string as strings."""
    run.charge(2)
    a: Any
    b: Any
    if is_number(left) and is_number(right):
        a, b = as_float(left), as_float(right)
    elif (isinstance(left, str) and (isinstance(right, str) or is_number(right))) or (
        isinstance(right, str) and is_number(left)
    ):
        a, b = as_string(run, left), as_string(run, right)
        run.charge(min(len(a), len(b)) >> 4)
    elif type(left) is bool and type(right) is bool:
        if op not in ("eq", "ne"):
            raise RenderError("Unsupported comparison operator for bool type")
        return (left == right) == (op == "eq")
    else:
        return False
    if op == "eq":
        return bool(a == b)
    if op == "ne":
        return bool(a != b)
    if op == "lt":
        return bool(a < b)
    return bool(a > b) if op == "gt" else bool(a >= b)
