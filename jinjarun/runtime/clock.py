"""The clock that templates read: one moment a render, written in English whatever the host's locale."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from jinjarun.errors import InputError, RenderError, quote

if TYPE_CHECKING:
    from jinjarun.runtime.run import Run

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)

_DIRECTIVE = re.compile("%(-?)(.?)", re.DOTALL)
_DIRECTIVE_STEPS = 4


def resolve_now(now: datetime | float | None) -> datetime:
    """The moment a caller names: a datetime as it is (a naive one is the wall clock), a Unix timestamp read as UTC, or
    None, the local time of this call. Raises InputError for what is none of these."""
    if now is None:
        return datetime.now().astimezone()
    if isinstance(now, datetime):
        return now
    try:
        return datetime.fromtimestamp(now, UTC)
    except Exception:  # whatever an object of the caller's does when it is read as a number
        message = "now must be a datetime or a Unix timestamp between the years 1 and 9999"
        raise InputError(f"{message}; this {type(now).__name__} is neither", path="now") from None


def _offset(moment: datetime) -> str:
    offset = moment.utcoffset()
    if offset is None:
        return ""
    seconds = int(offset.total_seconds())
    sign = "-" if seconds < 0 else "+"
    minutes, seconds = divmod(abs(seconds), 60)
    text = f"{sign}{minutes // 60:02}{minutes % 60:02}"
    return f"{text}{seconds:02}" if seconds else text


def _week(moment: datetime, first_day: int) -> int:
    """Week of the year; days before the first `first_day` (0 is Monday) are in week 0."""
    return (moment.timetuple().tm_yday + 6 - (moment.weekday() - first_day) % 7) // 7


def _clock12(moment: datetime) -> int:
    return moment.hour % 12 or 12


_NUMBERS: dict[str, tuple[Callable[[datetime], int], int]] = {
    "d": (lambda m: m.day, 2),
    "H": (lambda m: m.hour, 2),
    "I": (_clock12, 2),
    "j": (lambda m: m.timetuple().tm_yday, 3),
    "m": (lambda m: m.month, 2),
    "M": (lambda m: m.minute, 2),
    "S": (lambda m: m.second, 2),
    "U": (lambda m: _week(m, 6), 2),
    "V": (lambda m: m.isocalendar().week, 2),
    "W": (lambda m: _week(m, 0), 2),
    "y": (lambda m: m.year % 100, 2),
}
"""Directives that write a number, and its digits; with `-` after the `%` it has no leading zeros."""

_TEXTS: dict[str, Callable[[datetime], str]] = {
    "%": lambda _: "%",
    "a": lambda m: DAYS[m.weekday()][:3],
    "A": lambda m: DAYS[m.weekday()],
    "b": lambda m: MONTHS[m.month - 1][:3],
    "B": lambda m: MONTHS[m.month - 1],
    "c": lambda m: f"{_TEXTS['a'](m)} {_TEXTS['b'](m)} {m.day:2} {_TEXTS['X'](m)} {m.year}",
    "f": lambda m: f"{m.microsecond:06}",
    "G": lambda m: str(m.isocalendar().year),
    "p": lambda m: "AM" if m.hour < 12 else "PM",
    "u": lambda m: str(m.isoweekday()),
    "w": lambda m: str(m.isoweekday() % 7),
    "x": lambda m: f"{m.month:02}/{m.day:02}/{m.year % 100:02}",
    "X": lambda m: f"{m.hour:02}:{m.minute:02}:{m.second:02}",
    "Y": lambda m: str(m.year),
    "z": _offset,
    "Z": lambda m: m.tzname() or "",
}


def strftime(run: Run, format: Any, moment: datetime | None = None) -> str:
    """`moment` (the clock of `run` unless given) by Python's directives, in the C locale."""
    if not isinstance(format, str):
        raise TypeError(f"strftime takes a string, not {type(format).__name__}")
    if len(format) > run.limits.strftime_chars:
        raise run.exceeded("strftime_chars")
    run.charge(_DIRECTIVE_STEPS * format.count("%"))
    moment = run.now if moment is None else moment
    return _DIRECTIVE.sub(lambda found: _written(found, moment), format)


def _written(found: re.Match[str], moment: datetime) -> str:
    unpadded, directive = found.groups()
    if directive in _NUMBERS:
        number, digits = _NUMBERS[directive]
        return str(number(moment)).zfill(1 if unpadded else digits)
    if directive in _TEXTS and not unpadded:
        return _TEXTS[directive](moment)
    raise RenderError(f"strftime does not know the directive {quote(found.group())!r}")
