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

_DIRECTIVE = re.compile("%([-_0^#]*)([0-9]*)([EO]?)(.?)", re.DOTALL)
"""Flags, a width, a modifier and a letter, as glibc reads them."""
_DIRECTIVE_STEPS = 4
_MODIFIED = {"E": "%cCnpPrRtTuxXyYzZ", "O": "%bBCdegGhHIjklmMnpPrRStTuUVwWyzZ"}
"""The letters that a modifier may stand before; in the C locale it changes nothing."""


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


_NUMBERS: dict[str, tuple[Callable[[datetime], int], int, str]] = {
    "C": (lambda m: m.year // 100, 2, "0"),
    "d": (lambda m: m.day, 2, "0"),
    "e": (lambda m: m.day, 2, " "),
    "g": (lambda m: m.isocalendar().year % 100, 2, "0"),
    "H": (lambda m: m.hour, 2, "0"),
    "I": (_clock12, 2, "0"),
    "j": (lambda m: m.timetuple().tm_yday, 3, "0"),
    "k": (lambda m: m.hour, 2, " "),
    "l": (_clock12, 2, " "),
    "m": (lambda m: m.month, 2, "0"),
    "M": (lambda m: m.minute, 2, "0"),
    "S": (lambda m: m.second, 2, "0"),
    "U": (lambda m: _week(m, 6), 2, "0"),
    "V": (lambda m: m.isocalendar().week, 2, "0"),
    "W": (lambda m: _week(m, 0), 2, "0"),
    "y": (lambda m: m.year % 100, 2, "0"),
}
"""Directives that write a number, its digits, and what fills them; the flags `-`, `_` and `0` fill otherwise."""

_TEXTS: dict[str, Callable[[datetime], str]] = {
    "%": lambda _: "%",
    "a": lambda m: DAYS[m.weekday()][:3],
    "A": lambda m: DAYS[m.weekday()],
    "b": lambda m: MONTHS[m.month - 1][:3],
    "B": lambda m: MONTHS[m.month - 1],
    "c": lambda m: f"{_TEXTS['a'](m)} {_TEXTS['b'](m)} {m.day:2} {_TEXTS['X'](m)} {m.year}",
    "F": lambda m: f"{m.year}-{m.month:02}-{m.day:02}",
    "G": lambda m: str(m.isocalendar().year),
    "n": lambda _: "\n",
    "p": lambda m: "AM" if m.hour < 12 else "PM",
    "P": lambda m: _TEXTS["p"](m).lower(),
    "r": lambda m: f"{_clock12(m):02}:{m.minute:02}:{m.second:02} {_TEXTS['p'](m)}",
    "R": lambda m: f"{m.hour:02}:{m.minute:02}",
    "t": lambda _: "\t",
    "u": lambda m: str(m.isoweekday()),
    "w": lambda m: str(m.isoweekday() % 7),
    "x": lambda m: f"{m.month:02}/{m.day:02}/{m.year % 100:02}",
    "X": lambda m: f"{m.hour:02}:{m.minute:02}:{m.second:02}",
    "Y": lambda m: str(m.year),
    "z": _offset,
    "Z": lambda m: m.tzname() or "",
}
_TEXTS |= {"D": _TEXTS["x"], "h": _TEXTS["b"], "T": _TEXTS["X"]}

_OTHER_CASE: dict[str, Callable[[str], str]] = {
    **dict.fromkeys("aAbBh", str.upper),
    **dict.fromkeys("pZ", str.lower),
}
"""What the flag `#` does, where it does anything."""


def strftime(run: Run, format: Any, moment: datetime | None = None, *, microseconds: bool = False) -> str:
    """`moment` (the clock of `run` unless given) by the directives of glibc, in the C locale.

    What is no directive stands as it is written. `microseconds`: `%f`, which is Python's. Raises RenderError for a
    width and for `%s`, LimitExceeded for a long format.
    """
    if not isinstance(format, str):
        raise TypeError(f"strftime takes a string, not {type(format).__name__}")
    if len(format) > run.limits.strftime_chars:
        raise run.exceeded("strftime_chars")
    run.charge(_DIRECTIVE_STEPS * format.count("%"))
    moment = run.now if moment is None else moment

    def written(found: re.Match[str]) -> str:
        if microseconds and found.group() == "%f":
            return f"{moment.microsecond:06}"
        return _written(found, moment)

    return _DIRECTIVE.sub(written, format)


def _written(found: re.Match[str], moment: datetime) -> str:
    flags, width, modifier, directive = found.groups()
    if width or directive == "s":
        raise RenderError(f"strftime does not take {quote(found.group())!r} here")
    known = not modifier or directive in _MODIFIED[modifier]
    if known and directive in _NUMBERS:
        number, digits, filling = _NUMBERS[directive]
        for flag in flags:
            filling = {"-": "", "_": " ", "0": "0"}.get(flag, filling)
        text = str(number(moment))
        return text.rjust(digits, filling) if filling else text
    text = _TEXTS[directive](moment) if known and directive in _TEXTS else found.group()
    if "#" in flags and directive in _OTHER_CASE:
        return _OTHER_CASE[directive](text)
    return text.upper() if "^" in flags and directive != "P" else text
