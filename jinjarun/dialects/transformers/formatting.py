"""Format strings: `%` and `str.format`, their widths and precisions bounded before any text is made."""

from __future__ import annotations

import re
from _string import formatter_field_name_split  # type: ignore[import-not-found]
from collections.abc import Callable, Iterator, Mapping, Sequence
from string import Formatter
from typing import TYPE_CHECKING, Any, NamedTuple

from jinjarun.dialects.transformers.markup import Markup, alike, escaped, markup_size
from jinjarun.dialects.transformers.measure import Extent, check_size, measure, to_text
from jinjarun.limits import utf8_size

if TYPE_CHECKING:
    from jinjarun.runtime.run import Run

_FLOAT_DIGITS = 400
"""Characters that a float takes without a precision, at most about (1e308 written out)."""
_MARKUP_GROWTH = 5
"""`&` becomes `&amp;`."""
_FORMAT_CHARS = 100
"""No format specification that Python understands is longer, but for needless zeros."""
_CONVERSION_STEPS, _FIELD_STEPS, _PART_STEPS = 8, 8, 4
"""Steps of a conversion of a `%` format, of a field of `str.format`, and of a part of its path."""
_DIGITS = re.compile(r"\d+")


class _Conversion(NamedTuple):
    """One conversion of a `%` format. A width or precision of None was `*`: the next argument."""

    key: str | None
    width: int | None
    precision: int | None
    kind: str


def _conversions(text: str) -> Iterator[_Conversion]:
    """The conversions of a `%` format; stops where Python will find it malformed."""
    place = text.find("%")
    while place >= 0:
        place += 1
        key = None
        if text[place : place + 1] == "(":
            start, nesting = place + 1, 1
            while nesting:
                place += 1
                if place >= len(text):
                    return
                nesting += {"(": 1, ")": -1}.get(text[place], 0)
            key = text[start:place]
            place += 1
        while text[place : place + 1] in ("#", "0", "-", " ", "+"):
            place += 1
        width, place = _number(text, place)
        precision: int | None = 0
        if text[place : place + 1] == ".":
            precision, place = _number(text, place + 1)
        while text[place : place + 1] in ("h", "l", "L"):
            place += 1
        yield _Conversion(key, width, precision, text[place : place + 1])
        place = text.find("%", place + 1)


def _number(text: str, place: int) -> tuple[int | None, int]:
    """The digits at `place` (0 where there are none; None for `*`) and the place after them."""
    if text[place : place + 1] == "*":
        return None, place + 1
    end = place
    while "0" <= text[end : end + 1] <= "9":
        end += 1
    return (int(text[place:end][:10]) if end - place <= 10 else 10**10) if end > place else 0, end


class _Escaping:
    """An argument of a `%` format that is Markup: its text is escaped as it is written."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __getitem__(self, key: Any) -> _Escaping:
        return _Escaping(self.value[key])

    def __str__(self) -> str:
        value = self.value
        return str(escaped(value if isinstance(value, str) else str(value)))

    def __repr__(self) -> str:
        return str(escaped(repr(self.value)))

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)


def _escaping(args: Any) -> Any:
    """The arguments of a `%` format that is Markup: several, an object that is read by key, or one."""
    if isinstance(args, tuple):
        return tuple(_Escaping(arg) for arg in args)
    by_key = hasattr(type(args), "__getitem__") and not isinstance(args, str)
    return _Escaping(args) if by_key else (_Escaping(args),)


def percent_format(run: Run, text: str, args: Any) -> Any:
    """`text % args`."""
    positional = list(args) if isinstance(args, tuple) else [args]
    positional.reverse()
    extents: dict[str, Extent] = {}
    size = utf8_size(text)
    if "%(" in text:
        run.charge(len(text) >> 1)
    for conversion in _conversions(text):
        run.charge(_CONVERSION_STEPS * (2 if isinstance(text, Markup) else 1))
        if conversion.kind == "%":
            continue
        for number in (conversion.width, conversion.precision):
            if number is None:
                number = positional.pop() if positional else 0
            size += abs(number) if isinstance(number, int) else 0
        if conversion.key is None:
            size += measure(run, positional.pop()).size if positional else 0
        elif isinstance(args, dict):
            known = extents.get(conversion.key)
            if known is None:
                run.charge(len(conversion.key) >> 4)
                known = extents[conversion.key] = measure(run, args.get(conversion.key))
            else:
                run.charge(known.items)
            size += known.size
        check_size(run, size)
    run.string(size * _MARKUP_GROWTH if isinstance(text, Markup) else size)
    result = str(text) % (_escaping(args) if isinstance(text, Markup) else args)
    check_size(run, utf8_size(result))
    return alike(result, text)


class Lookup(NamedTuple):
    """How fields find attributes and items: as the language does."""

    getattr: Callable[[Run, Any, str], Any]
    getitem: Callable[[Run, Any, Any], Any]


class _FieldFormatter(Formatter):
    """`str.format` whose fields are looked up by the language and whose text is paid for piece by piece."""

    def __init__(self, run: Run, lookup: Lookup) -> None:
        self.run = run
        self.lookup = lookup
        self.size = 0

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, str]:
        self.run.charge(_FIELD_STEPS + (len(field_name) >> 2))
        first, rest = formatter_field_name_split(field_name)
        value = self.get_value(first, args, kwargs)
        for is_attribute, name in rest:
            self.run.charge(_PART_STEPS)
            find = self.lookup.getattr if is_attribute else self.lookup.getitem
            value = find(self.run, value, name)
        return value, str(first)

    def convert_field(self, value: Any, conversion: str | None) -> Any:
        if conversion is not None:
            check_size(self.run, measure(self.run, value).size)
        return super().convert_field(value, conversion)

    def format_field(self, value: Any, format_spec: str) -> str:
        run = self.run
        if not format_spec:
            text = to_text(run, value)
            run.string(utf8_size(text))
        elif len(format_spec) > _FORMAT_CHARS:
            raise ValueError("Invalid format specifier")
        elif isinstance(value, (str, int, float)):
            width = sum(int(digits[:10]) for digits in _DIGITS.findall(format_spec))
            size = measure(run, value).size + width
            run.string(size if isinstance(value, str) else size + _FLOAT_DIGITS)
            if format_spec.endswith("n"):  # the host's locale
                format_spec = format_spec[:-1] + ("d" if isinstance(value, int) else "g")
            text = format(value, format_spec)
        else:
            raise TypeError(f"unsupported format string passed to {type(value).__name__}.__format__")
        self.size += utf8_size(text)
        check_size(run, self.size)
        return text


class _MarkupFormatter(_FieldFormatter):
    """The same for Markup: fields are HTML escaped."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, Markup):
            if format_spec:
                raise ValueError("Unsupported format specification for Markup.")
            text = to_text(self.run, value)
            self.size += utf8_size(text)
        else:
            plain = super().format_field(value, format_spec)
            check_size(self.run, self.size + markup_size(plain))
            text = str(escaped(plain))
        self.run.string(utf8_size(text))
        check_size(self.run, self.size + len(text))
        return text


def str_format(run: Run, text: str, args: Sequence[Any], kwargs: Mapping[str, Any], lookup: Lookup) -> Any:
    """`text.format(*args, **kwargs)`."""
    run.string(utf8_size(text))
    run.charge(text.count("{") + text.count("}"))
    formatter = (_MarkupFormatter if isinstance(text, Markup) else _FieldFormatter)(run, lookup)
    result = formatter.vformat(str(text), args, kwargs)
    check_size(run, utf8_size(result))
    return alike(result, text)
