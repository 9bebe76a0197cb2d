"""The operators against Python's, over all pairs of values, and what they may cost."""

from __future__ import annotations

import operator

import markupsafe
import pytest
from jinja2.runtime import str_join

from jinjarun.dialects.transformers import operators
from jinjarun.dialects.transformers.markup import Markup
from jinjarun.dialects.transformers.measure import to_text
from jinjarun.errors import LimitExceeded, RenderError
from jinjarun.limits import Limits
from tests.dialects.transformers.engine import Engine, new_run
from tests.dialects.transformers.test_against_jinja2 import CONTEXT, VALUES

PYTHON = {
    operators.add: operator.add,
    operators.sub: operator.sub,
    operators.mul: operator.mul,
    operators.truediv: operator.truediv,
    operators.floordiv: operator.floordiv,
    operators.mod: operator.mod,
    operators.pow_: operator.pow,
    operators.concat: lambda a, b: str_join((a, b)),
    operators.eq: operator.eq,
    operators.ne: operator.ne,
    operators.lt: operator.lt,
    operators.le: operator.le,
    operators.gt: operator.gt,
    operators.ge: operator.ge,
    operators.in_: lambda a, b: a in b,
    operators.not_in: lambda a, b: a not in b,
}
RUN = new_run(Limits(steps=10**12, integer_bits=10**6))
ENGINE = Engine(RUN)
MAKERS = {text: ENGINE.compile_expression(text, undefined_to_none=False) for text in VALUES}


def outcome(function, a, b):
    try:
        return to_text(RUN, function(MAKERS[a](**CONTEXT), MAKERS[b](**CONTEXT)))
    except LimitExceeded:
        raise
    except Exception:
        return None


def theirs(value):
    """MarkupSafe's Markup, whose operators are the law, for ours, which has none of its own."""
    return markupsafe.Markup(value) if type(value) is Markup else value


@pytest.mark.parametrize("ours", PYTHON, ids=lambda function: function.__name__)
def test_as_python(ours):
    for a in VALUES:
        for b in VALUES:
            if not left_out(ours, a, b):
                expected = outcome(lambda x, y: PYTHON[ours](theirs(x), theirs(y)), a, b)
                assert outcome(lambda x, y: ours(RUN, x, y), a, b) == expected, (a, b)


def left_out(ours, a, b):
    """What Python itself must not try, the differences of views (below), and complex numbers."""
    if ours is operators.sub:
        return {a, b} & {"deep.items()", "deep.a.keys()"}
    if ours is operators.pow_ and (a, b) == ("-7", "2.5"):
        return True
    huge = "123456789012345678901234567890"
    return huge in (a, b) and ours in (operators.mul, operators.mod, operators.pow_)


def test_difference_of_views():
    with pytest.raises(RenderError, match="order"):
        operators.sub(new_run(), {"a": 1}.keys(), [])


@pytest.mark.parametrize(
    ("function", "a", "b", "limit"),
    [
        (operators.mul, "a", 10**10, "string_bytes"),
        (operators.mul, 10**10, "é", "string_bytes"),
        (operators.mul, [0], 10**9, "items"),
        (operators.mul, (0,), 10**9, "items"),
        (operators.mul, 1 << 3000, 1 << 3000, "integer_bits"),
        (operators.pow_, 9, 9**9, "integer_bits"),
        (operators.pow_, -3, 10**8, "integer_bits"),
        (operators.add, "x" * 3_000_000, "y" * 3_000_000, "string_bytes"),
        (operators.add, [0] * 60_000, [0] * 60_000, "items"),
        (operators.add, (1 << 4096) - 1, 1, "integer_bits"),
        (operators.concat, "x" * 3_000_000, "y" * 3_000_000, "string_bytes"),
        (operators.mod, "%1000000000d", 1, "string_bytes"),
        (operators.mod, "%.*f", (999999999, 1.0), "string_bytes"),
        (operators.mod, "%*s", (10**30, "a"), "string_bytes"),
        (operators.mod, "%(a)s" * 1000, {"a": "x" * 10_000}, "string_bytes"),
        (operators.mod, "%(a(b)c)999999999s", {"a(b)c": 1}, "string_bytes"),
    ],
)
def test_refused_before_the_work(function, a, b, limit):
    with pytest.raises(LimitExceeded) as caught:
        function(new_run(), a, b)
    assert caught.value.limit == limit


def shared(levels):
    """A list whose printed form doubles with each level."""
    value = ["lol"]
    for _ in range(levels):
        value = [value, value]
    return value


def nested(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("function", [operators.eq, operators.lt, operators.in_, operators.concat, operators.mod])
@pytest.mark.parametrize(("value", "limit"), [(shared, "steps"), (nested, "data_depth")])
def test_nested_data(function, value, limit):
    a, b = value(90 if limit == "steps" else 20_000), value(90 if limit == "steps" else 20_000)
    arguments = {operators.in_: (a, [b]), operators.mod: ("%s", [b])}.get(function, (a, b))
    with pytest.raises(LimitExceeded) as caught:
        function(new_run(), *arguments)
    assert caught.value.limit == limit
