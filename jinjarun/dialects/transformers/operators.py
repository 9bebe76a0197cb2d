"""The operators of expressions as `(run, a, b)`: Python's own, paid for before they work."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from jinja2 import Undefined
from markupsafe import Markup

from jinjarun.dialects.transformers.formatting import percent_format
from jinjarun.dialects.transformers.iteration import check_key
from jinjarun.dialects.transformers.measure import SCALARS, VIEWS, ItemsView, KeysView, measure, to_text
from jinjarun.errors import RenderError
from jinjarun.limits import utf8_size
from jinjarun.runtime.text import Text, join, repeat

if TYPE_CHECKING:
    from jinjarun.runtime.run import Run

_SEQUENCES: tuple[type[Collection[Any]], ...] = (list, tuple, range, *VIEWS)
_TEXTS = frozenset({str, Text})
_NUMBERS = frozenset({int, float, bool, complex})


def add(run: Run, a: Any, b: Any, /) -> Any:
    """`a + b`."""
    if type(a) is str and type(b) is str:
        run.string(utf8_size(a) + utf8_size(b))
        return a + b
    if type(a) in _TEXTS and type(b) in _TEXTS:
        run.string(utf8_size(a) + utf8_size(b))
        return join(run, (a, b))
    if type(a) in _NUMBERS and type(b) in _NUMBERS:
        return _bounded(run, a + b)
    if isinstance(a, str) and isinstance(b, str):  # one is Markup
        run.string(markup_size(a) + markup_size(b))
        return a + b
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        run.items(len(a) + len(b))
    elif isinstance(a, bytes) and isinstance(b, bytes):
        run.string(len(a) + len(b))
    return a + b


def sub(run: Run, a: Any, b: Any, /) -> Any:
    """`a - b`."""
    if isinstance(a, (KeysView, ItemsView)) or isinstance(b, (KeysView, ItemsView)):
        raise RenderError("the difference of dict views is a set, whose order no engine promises")
    return _bounded(run, a - b)


def mul(run: Run, a: Any, b: Any, /) -> Any:
    """`a * b`; repeats strings and lists."""
    if isinstance(a, int) and isinstance(b, int):
        if a.bit_length() + b.bit_length() > run.limits.integer_bits + 1:
            raise run.exceeded("integer_bits")
        return run.integer(a * b)
    if isinstance(b, int):
        repeated, count = a, b
    elif isinstance(a, int):
        repeated, count = b, a
    else:
        return a * b
    count = max(count, 0)
    if isinstance(repeated, str):
        run.string(utf8_size(repeated) * count)
        if type(repeated) is Text:
            return repeat(run, repeated, count)
    elif isinstance(repeated, bytes):
        run.string(len(repeated) * count)
    elif isinstance(repeated, (list, tuple)):
        run.items(len(repeated) * count)
    return a * b


def truediv(run: Run, a: Any, b: Any, /) -> Any:
    """`a / b`."""
    return a / b


def floordiv(run: Run, a: Any, b: Any, /) -> Any:
    """`a // b`."""
    return _bounded(run, a // b)


def mod(run: Run, a: Any, b: Any, /) -> Any:
    """`a % b`; formats strings."""
    if isinstance(a, (str, bytes)):
        return percent_format(run, a, b)
    return a % b


def pow_(run: Run, a: Any, b: Any, /) -> Any:
    """`a ** b`."""
    if isinstance(a, int) and isinstance(b, int) and b > 0 and (a.bit_length() - 1) * b > run.limits.integer_bits:
        raise run.exceeded("integer_bits")
    return _bounded(run, a**b)


def concat(run: Run, *values: Any) -> str:
    """`a ~ b ~ ...`: the values as they print, joined."""
    texts = [value if type(value) is str else to_text(run, value) for value in values]
    run.string(sum(map(utf8_size, texts)))
    return join(run, texts) if any(type(text) is Text for text in texts) else "".join(texts)


def neg(run: Run, a: Any, /) -> Any:
    """`-a`."""
    return -a


def pos(run: Run, a: Any, /) -> Any:
    """`+a`."""
    return +a


def eq(run: Run, a: Any, b: Any, /) -> bool:
    """`a == b`."""
    _compare_cost(run, a, b)
    return bool(a == b)


def ne(run: Run, a: Any, b: Any, /) -> bool:
    """`a != b`."""
    _compare_cost(run, a, b)
    return bool(a != b)


def _ordering(compare: Callable[[Any, Any], Any], name: str) -> Callable[[Run, Any, Any], Any]:
    def ordered(run: Run, a: Any, b: Any, /) -> Any:
        _compare_cost(run, a, b)
        return compare(a, b)

    ordered.__name__ = name
    return ordered


lt = _ordering(operator.lt, "lt")
le = _ordering(operator.le, "le")
gt = _ordering(operator.gt, "gt")
ge = _ordering(operator.ge, "ge")


def in_(run: Run, a: Any, b: Any, /) -> bool:
    """`a in b`."""
    if isinstance(b, (str, bytes)):
        run.charge(len(b) >> 4)
        return a in b
    if isinstance(b, dict) or type(b) is KeysView:
        check_key(run, a, len(b))
        return a in b
    if type(b) is ItemsView:
        measure(run, a)
        return a in b
    if isinstance(b, Undefined):
        return False
    if isinstance(b, _SEQUENCES):
        run.items(len(b))
        if type(a) in SCALARS and (type(a) is not str or len(a) < 64):
            return a in b
    for item in b:
        run.charge(1)
        if item is a or eq(run, item, a):
            return True
    return False


def not_in(run: Run, a: Any, b: Any, /) -> bool:
    """`a not in b`."""
    return not in_(run, a, b)


def markup_size(text: str) -> int:
    """Bytes of a string once it is Markup: HTML escaped if it is not yet."""
    if isinstance(text, Markup):
        return utf8_size(text)
    return utf8_size(text) + 4 * sum(map(text.count, "&<>'\""))


def _compare_cost(run: Run, a: Any, b: Any, /) -> None:
    """Pay for the comparison of two values."""
    if isinstance(a, str):
        if isinstance(b, str):
            run.charge(min(len(a), len(b)) >> 4)
    elif type(a) not in SCALARS and type(b) not in SCALARS:
        measure(run, a)


def _bounded(run: Run, value: Any) -> Any:
    return run.integer(value) if isinstance(value, int) else value


BINARY: dict[str, Callable[[Run, Any, Any], Any]] = {
    "+": add,
    "-": sub,
    "*": mul,
    "/": truediv,
    "//": floordiv,
    "%": mod,
    "**": pow_,
    "~": concat,
    "==": eq,
    "!=": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
    "in": in_,
    "not in": not_in,
}
UNARY: dict[str, Callable[[Run, Any], Any]] = {"-": neg, "+": pos}
