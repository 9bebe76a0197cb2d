"""JSON as nlohmann::json writes and reads it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jinjarun.errors import LimitExceeded
from jinjarun.limits import Limits
from jinjarun.serving.server_json import dump, parse, plain


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": [1, None, True], "a": 'é"\n\x01'}, '{"b":[1,null,true],"a":"é\\"\\n\\u0001"}'),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (123456789012345.0, "123456789012345.0"),
        (1234567890123456.0, "1.234567890123456e+15"),
        (1234567890123456.5, "1.2345678901234565e+15"),
        (-1e15, "-1e+15"),
        (1e16, "1e+16"),
        (1.5e300, "1.5e+300"),
    ],
)
def test_dump(value: Any, text: str) -> None:
    assert dump(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_survive(number: float) -> None:
    assert float(dump(number)) == number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1, "b": 2, "a": 3}', {"a": 3, "b": 2}),
        ("\ufeff[]", []),
        ("9223372036854775808", 9223372036854775808),  # as text it stays so; templates have 64 bits with a sign
        ("18446744073709551615", 18446744073709551615),
        ("18446744073709551616", 18446744073709551616.0),
        ("1" * 30, float("1" * 30)),
    ],
)
def test_parse(text: str, value: Any) -> None:
    assert parse(text, Limits()) == value
    assert type(parse(text, Limits())) is type(value)


@pytest.mark.parametrize("text", ["", "{", "NaN", "-Infinity", "1e999", "9" * 400, '"\\ud800"', "[1,]", "{} x", "\x00"])
def test_parse_refuses(text: str) -> None:
    with pytest.raises(ValueError):
        parse(text, Limits())


@pytest.mark.parametrize("depth", [200, 100_000])
def test_parse_is_bounded(depth: int) -> None:
    with pytest.raises(LimitExceeded):
        parse("[" * depth + "]" * depth, Limits())


@given(st.recursive(st.none() | st.booleans() | st.text() | st.integers(-9, 9), st.lists, max_leaves=9))
def test_plain_data_stays_as_it_is(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return
    assert plain(value, "", Limits()) == value
