"""`strftime_now` against Python's own in the C locale."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jinjarun.errors import LimitExceeded, RenderError
from jinjarun.runtime.clock import resolve_now, strftime
from tests.dialects.transformers.engine import new_run

LETTERS = "aAbBcCdDeFgGhHIjklmMnpPrRStTuUVwWxXyY%iKLNqQvé+"
FLAGS = ("", "-", "_", "0", "^", "#", "-_", "_-", "E", "O")
DIRECTIVES = ["%f", "%z", "%Z", *(f"%{flags}{letter}" for letter in LETTERS for flags in FLAGS)]
"""Those of the C library, three that Python writes, and some that neither knows."""
ZONES = st.none() | st.just(UTC) | st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(
    st.datetimes(min_value=datetime(1000, 1, 1), timezones=ZONES),
    st.lists(st.sampled_from([*DIRECTIVES, " é-"])),
)
def test_as_python(moment, pieces):
    text = ""
    for piece in pieces:
        if len(text) + len(piece) <= 60:
            text += piece
    assert strftime(new_run(now=moment), text, microseconds=True) == moment.strftime(text)


@pytest.mark.parametrize("text", ["%", "x%", "%-", "%E", "%-Q", "%\n", "%Ed", "%f"])
def test_what_is_no_directive_stays(text):
    assert strftime(new_run(), text) == text


@pytest.mark.parametrize("text", ["%10d", "%0100000000Y", "%999999999d", "%_5d", "%s"])
def test_refused_directives(text):
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
