"""The operators of expressions as `(run, a, b)`: Python's own, paid for before they work."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from jinjarun.dialects.transformers.formatting import percent_format
from jinjarun.dialects.transformers.markup import Markup, escaped, markup_size
from jinjarun.dialects.transformers.measure import (
    SCALARS,
    VIEWS,
    ItemsView,
    KeysView,
    measure,
    pay_for_key,
    pay_for_product,
    to_text,
)
from jinjarun.dialects.transformers.searching import pay_for_search
from jinjarun.dialects.transformers.undefined import Undefined
from jinjarun.errors import RenderError
from jinjarun.limits import utf8_size
from jinjarun.runtime.text import Text, join, repeat

if TYPE_CHECKING:
    from jinjarun.runtime.run import Run

_SEQUENCES: tuple[type[Collection[Any]], ...] = (list, tuple, range, *VIEWS)
_SETS = frozenset({KeysView, ItemsView})
"""Views that compare as sets."""
_TEXTS = frozenset({str, Text})
_NUMBERS = frozenset({int, float, bool})
_ITEM_STEPS = 2
"""Steps to compare an item by a call of our own."""


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
        return Markup(str(escaped(a)) + str(escaped(b)))
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        run.items(len(a) + len(b))
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
        pay_for_product(run, a, b)
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
        return Markup(str(repeated) * count) if type(repeated) is Markup else repeated * count
    if isinstance(repeated, (list, tuple)):
        run.items(len(repeated) * count)
    return a * b


def truediv(run: Run, a: Any, b: Any, /) -> Any:
    """`a / b`."""
    _pay_for_quotient(run, a, b)
    return a / b


def floordiv(run: Run, a: Any, b: Any, /) -> Any:
    """`a // b`."""
    _pay_for_quotient(run, a, b)
    return _bounded(run, a // b)


def mod(run: Run, a: Any, b: Any, /) -> Any:
    """`a % b`; formats strings."""
    if isinstance(a, str):
        return percent_format(run, a, b)
    _pay_for_quotient(run, a, b)
    return a % b


def _pay_for_quotient(run: Run, a: Any, b: Any) -> None:
    if isinstance(a, int) and isinstance(b, int):
        pay_for_product(run, a, b)


def pow_(run: Run, a: Any, b: Any, /) -> Any:
    """`a ** b`."""
    if isinstance(a, int) and isinstance(b, int) and b > 0:
        bits = max(a.bit_length() - 1, 0) * b
        if bits > run.limits.integer_bits:
            raise run.exceeded("integer_bits")
        pay_for_product(run, 1 << bits, 1 << bits)
    elif isinstance(a, (int, float)) and isinstance(b, float) and a < 0 and math.isfinite(b) and not b.is_integer():
        raise RenderError("complex numbers are not offered")
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
    if isinstance(b, str):
        pay_for_search(run, b, a)
        return a in b
    if isinstance(b, dict) or type(b) is KeysView:
        pay_for_key(run, a, len(b))
        return a in b
    if type(b) is ItemsView:
        if isinstance(a, tuple) and len(a) == 2:
            measure(run, a, keys=True)
            pay_for_key(run, a[0], len(b))
        return a in b
    if isinstance(b, Undefined):
        return False
    if isinstance(b, _SEQUENCES):
        run.items(len(b))
        if type(a) in SCALARS and (type(a) is not str or len(a) < 64):
            return a in b
    for item in b:
        run.charge(_ITEM_STEPS)
        if item is a or eq(run, item, a):
            return True
    return False


def not_in(run: Run, a: Any, b: Any, /) -> bool:
    """`a not in b`."""
    return not in_(run, a, b)


def _compare_cost(run: Run, a: Any, b: Any, /) -> None:
    """Pay for the comparison of two values."""
    if isinstance(a, str):
        if isinstance(b, str):
            run.charge(min(len(a), len(b)) >> 4)
    elif type(a) in _SETS and type(b) in _SETS:
        measure(run, a, keys=True)
        measure(run, b, keys=True)
        # Each of the fewer is looked up among the others; two of one kind meet strings only where all keys are.
        if type(a) is not type(b) or not all(type(key) is str for view in (a, b) for key in view.mapping):
            run.charge(len(a) * len(b))
    elif type(a) not in SCALARS and type(b) not in SCALARS:
        measure(run, a, keys=True)


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
