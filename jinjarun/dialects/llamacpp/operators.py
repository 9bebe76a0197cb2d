"""llama.cpp's operators (binary_expression in common/jinja/runtime.cpp).

Arithmetic is done in doubles, integers included; null and undefined join with a string as nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from jinjarun.dialects.llamacpp.searching import charge_search
from jinjarun.dialects.llamacpp.values import (
    Undefined,
    as_float,
    as_string,
    check_key,
    equal,
    is_number,
    truncate,
    type_name,
    wrap,
)
from jinjarun.errors import RenderError
from jinjarun.runtime.text import Text, join, repeat

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinjarun.runtime.run import Run


def is_member(run: Run, needle: Any, haystack: Any) -> bool:
    """The test `in`, which the operator asks too."""
    if isinstance(haystack, Undefined):
        return False
    if isinstance(haystack, (list, tuple)):
        return any(equal(run, needle, item) for item in haystack)
    if isinstance(haystack, str):
        if not isinstance(needle, str):
            raise RenderError(f"'in' needs a string to look for in a string, got {type_name(needle)}")
        charge_search(run, haystack, needle)
        return str.__contains__(haystack, needle)
    if isinstance(haystack, dict):
        return check_key(run, needle, len(haystack)) in haystack
    raise RenderError(f"'in' needs something to look in, got {type_name(haystack)}")


def _unknown(op: str, left: Any, right: Any) -> RenderError:
    return RenderError(f'Unknown operator "{op}" between {type_name(left)} and {type_name(right)}')


def _is_null(value: Any) -> bool:
    return value is None or isinstance(value, Undefined)


def _concat(run: Run, left: str, right: str) -> str:
    size = len(left) + len(right)
    if size >= 16:
        run.string(size)
    if type(left) is Text or type(right) is Text:
        return join(run, (left, right))
    return left + right


def _joining(op: str) -> Callable[[Run, Any, Any], Any]:
    def operate(run: Run, left: Any, right: Any) -> Any:
        if isinstance(left, str) and isinstance(right, str):
            return _concat(run, left, right)
        if _is_null(left) or _is_null(right):
            if isinstance(left, str):
                return left
            if isinstance(right, str):
                return right
            raise RenderError(f"Cannot perform operation {op} on undefined or null values")
        if op == "+" and is_number(left) and is_number(right):
            return _number(left, right, as_float(left) + as_float(right))
        if op == "+" and isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
            run.items(len(left) + len(right))
            return [*left, *right]
        if isinstance(left, str) or isinstance(right, str):
            return _concat(run, as_string(run, left), as_string(run, right))
        raise _unknown(op, left, right)

    return operate


def _number(left: Any, right: Any, result: float) -> Any:
    return truncate(result) if type(left) is int and type(right) is int else result


def _check_null(op: str, left: Any, right: Any) -> None:
    if _is_null(left) or _is_null(right):
        raise RenderError(f"Cannot perform operation {op} on undefined or null values")


def _minus(_run: Run, left: Any, right: Any) -> Any:
    _check_null("-", left, right)
    if is_number(left) and is_number(right):
        return _number(left, right, as_float(left) - as_float(right))
    raise _unknown("-", left, right)


def _times(run: Run, left: Any, right: Any) -> Any:
    _check_null("*", left, right)
    if is_number(left) and is_number(right):
        return _number(left, right, as_float(left) * as_float(right))
    if isinstance(left, str) and type(right) is int:
        return _repeat(run, left, right)
    if type(left) is int and isinstance(right, str):
        return _repeat(run, right, left)
    raise _unknown("*", left, right)


def _repeat(run: Run, text: str, times: int) -> str:
    if times <= 0:
        return ""
    run.string(len(text) * times)
    return repeat(run, text, times)


def _divide(_run: Run, left: Any, right: Any) -> float:
    _check_null("/", left, right)
    if not (is_number(left) and is_number(right)):
        raise _unknown("/", left, right)
    a, b = as_float(left), as_float(right)
    if b:
        return a / b
    if not a or math.isnan(a):
        return -math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _modulo(_run: Run, left: Any, right: Any) -> Any:
    _check_null("%", left, right)
    if not (is_number(left) and is_number(right)):
        raise _unknown("%", left, right)
    a, b = as_float(left), as_float(right)
    result = math.fmod(a, b) if b and math.isfinite(a) else -math.nan
    return _number(left, right, result)


def _comparing(op: str, compare: Callable[[float, float], bool]) -> Callable[[Run, Any, Any], bool]:
    def operate(_run: Run, left: Any, right: Any) -> bool:
        _check_null(op, left, right)
        if is_number(left) and is_number(right):
            return compare(as_float(left), as_float(right))
        raise _unknown(op, left, right)

    return operate


def _membership(op: str, negated: bool) -> Callable[[Run, Any, Any], bool]:
    def operate(run: Run, left: Any, right: Any) -> bool:
        if isinstance(right, Undefined):
            return negated
        if isinstance(left, Undefined) or right is None:
            raise RenderError(f"Cannot perform operation {op} on undefined or null values")
        arrays = isinstance(left, (list, tuple)) and isinstance(right, (list, tuple))
        strings = isinstance(left, str) and isinstance(right, str)
        if left is None or strings or isinstance(right, dict) or (isinstance(right, (list, tuple)) and not arrays):
            return is_member(run, left, right) != negated
        raise _unknown(op, left, right)

    return operate


BINARY: dict[str, Callable[[Run, Any, Any], Any]] = {
    "+": _joining("+"),
    "~": _joining("~"),
    "-": _minus,
    "*": _times,
    "/": _divide,
    "%": _modulo,
    "==": equal,
    "!=": lambda run, left, right: not equal(run, left, right),
    "<": _comparing("<", lambda a, b: a < b),
    ">": _comparing(">", lambda a, b: a > b),
    "<=": _comparing("<=", lambda a, b: a <= b),
    ">=": _comparing(">=", lambda a, b: a >= b),
    "in": _membership("in", negated=False),
    "not in": _membership("not in", negated=True),
}


def _negate(_run: Run, value: Any) -> Any:
    if not is_number(value):
        raise RenderError("Unary - operator requires numeric operand")
    return wrap(-value) if type(value) is int else -value


def _plus(_run: Run, value: Any) -> Any:
    if not is_number(value):
        raise RenderError("Unary + operator requires numeric operand")
    return value


UNARY: dict[str, Callable[[Run, Any], Any]] = {"-": _negate, "+": _plus}
