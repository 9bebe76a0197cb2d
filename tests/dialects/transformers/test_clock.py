"""`strftime_now` against Python's own in the C locale."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jinjarun.errors import LimitExceeded, RenderError
from jinjarun.runtime.clock import resolve_now, strftime
from tests.dialects.transformers.engine import new_run

DIRECTIVES = [f"%{letter}" for letter in "aAbBcdfGHIjmMpSuUVwWxXyYzZ%"] + [f"%-{letter}" for letter in "dHIjmMSUVWy"]
ZONES = st.none() | st.just(UTC) | st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(min_value=datetime(1000, 1, 1), timezones=ZONES), st.lists(st.sampled_from([*DIRECTIVES, " é-"])))
def test_as_python(moment, pieces):
    text = "".join(pieces)[:60].rstrip("%-")
    assert strftime(new_run(now=moment), text) == moment.strftime(text)


@pytest.mark.parametrize("text", ["%", "x%", "%-", "%Q", "%10d", "%0100000000Y", "%999999999d", "%_d", "%-Y", "%\n"])
def test_unknown_directives(text):
    with pytest.raises(RenderError):
        strftime(new_run(), text)


def test_the_length_is_bounded():
    with pytest.raises(LimitExceeded) as caught:
        strftime(new_run(), "x" * 65)
    assert caught.value.limit == "strftime_chars"


def test_only_strings():
    with pytest.raises(TypeError):
        strftime(new_run(), 5)


def test_resolve_now():
    aware = datetime(2026, 1, 1, tzinfo=UTC)
    assert resolve_now(aware) is aware
    assert resolve_now(datetime(2026, 1, 1)) == datetime(2026, 1, 1)
    assert resolve_now(0) == resolve_now(0.0) == datetime(1970, 1, 1, tzinfo=UTC)
    assert abs(resolve_now(None) - datetime.now(UTC)) < timedelta(seconds=5)
