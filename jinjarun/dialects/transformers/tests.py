"""The tests of Jinja2 3.1.6 by name: `(run, value, ...)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jinja2 import tests as jinja
from jinja2.filters import FILTERS as JINJA_FILTERS

from jinjarun.dialects.transformers.markup import Markup
from jinjarun.dialects.transformers.measure import measure, to_text
from jinjarun.dialects.transformers.operators import eq, ge, gt, in_, le, lt, mod, ne
from jinjarun.dialects.transformers.undefined import Undefined
from jinjarun.dialects.transformers.values import Invocable
from jinjarun.runtime.macro import Macro

if TYPE_CHECKING:
    from jinjarun.runtime.run import Run

Test = Callable[..., Any]


def _free(test: Callable[[Any], bool]) -> Test:
    """A test of Jinja2 that only looks at the value's type or identity."""

    def free(_run: Run, value: Any, /) -> bool:
        return test(value)

    return free


def odd(run: Run, value: Any, /) -> Any:
    return eq(run, mod(run, value, 2), 1)


def even(run: Run, value: Any, /) -> Any:
    return eq(run, mod(run, value, 2), 0)


def divisibleby(run: Run, value: Any, /, num: Any) -> Any:
    return eq(run, mod(run, value, num), 0)


def is_filter(run: Run, value: Any, /) -> bool:
    measure(run, value)
    return value in JINJA_FILTERS


def is_test(run: Run, value: Any, /) -> bool:
    measure(run, value)
    return value in jinja.TESTS


def lower(run: Run, value: Any, /) -> bool:
    text = to_text(run, value)
    run.charge(len(text) >> 4)
    return text.islower()


def upper(run: Run, value: Any, /) -> bool:
    text = to_text(run, value)
    run.charge(len(text) >> 4)
    return text.isupper()


def defined(_run: Run, value: Any, /) -> bool:
    return not isinstance(value, Undefined)


def undefined(_run: Run, value: Any, /) -> bool:
    return isinstance(value, Undefined)


def sameas(_run: Run, value: Any, /, other: Any) -> bool:
    return value is other


def escaped(_run: Run, value: Any, /) -> bool:
    return isinstance(value, Markup)


def callable_(_run: Run, value: Any, /) -> bool:
    return isinstance(value, (Invocable, Macro)) or callable(value)


def contained(run: Run, value: Any, /, seq: Any) -> bool:
    return in_(run, value, seq)


TESTS: dict[str, Test] = {
    "!=": ne,
    "<": lt,
    "<=": le,
    "==": eq,
    ">": gt,
    ">=": ge,
    "boolean": _free(jinja.test_boolean),
    "callable": callable_,
    "defined": defined,
    "divisibleby": divisibleby,
    "eq": eq,
    "equalto": eq,
    "escaped": escaped,
    "even": even,
    "false": _free(jinja.test_false),
    "filter": is_filter,
    "float": _free(jinja.test_float),
    "ge": ge,
    "greaterthan": gt,
    "gt": gt,
    "in": contained,
    "integer": _free(jinja.test_integer),
    "iterable": _free(jinja.test_iterable),
    "le": le,
    "lessthan": lt,
    "lower": lower,
    "lt": lt,
    "mapping": _free(jinja.test_mapping),
    "ne": ne,
    "none": _free(jinja.test_none),
    "number": _free(jinja.test_number),
    "odd": odd,
    "sameas": sameas,
    "sequence": _free(jinja.test_sequence),
    "string": _free(jinja.test_string),
    "test": is_test,
    "true": _free(jinja.test_true),
    "undefined": undefined,
    "upper": upper,
}
