"""Format strings: `%` and `str.format`, their widths and precisions bounded before any text is made."""

from __future__ import annotations

import re
from _string import formatter_field_name_split  # type: ignore[import-not-found]
from collections.abc import Callable, Iterator, Mapping, Sequence
from string import Formatter
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import EscapeFormatter, Markup

from jinjarun.dialects.transformers.measure import check_size, measure, to_text
from jinjarun.dialects.transformers.origins import rebuilt
from jinjarun.dialects.transformers.values import check_public
from jinjarun.errors import RenderError
from jinjarun.limits import utf8_size

if TYPE_CHECKING:
    from jinjarun.runtime.run import Run

_FLOAT_DIGITS = 400
"""Characters that a float takes without a precision, at most about (1e308 written out)."""
_MARKUP_GROWTH = 5
"""`&` becomes `&amp;`."""
_FORMAT_CHARS = 100
"""No format specification that Python understands is longer, but for needless zeros."""
_FIELD_STEPS = 4
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


def percent_format(run: Run, text: Any, args: Any) -> Any:
    """`text % args`."""
    if isinstance(text, bytes):
        raise RenderError("formatting bytes is not offered")
    positional = list(args) if isinstance(args, tuple) else [args]
    positional.reverse()
    sizes: dict[str, int] = {}
    size = utf8_size(text)
    if "%(" in text:
        run.charge(len(text) >> 1)
    for conversion in _conversions(text):
        run.charge(2)
        if conversion.kind == "%":
            continue
        for number in (conversion.width, conversion.precision):
            if number is None:
                number = positional.pop() if positional else 0
            size += abs(number) if isinstance(number, int) else 0
        if conversion.key is None:
            size += measure(run, positional.pop()).size if positional else 0
        elif isinstance(args, dict):
            if conversion.key not in sizes:
                sizes[conversion.key] = measure(run, args.get(conversion.key)).size
            size += sizes[conversion.key]
        check_size(run, size)
    run.string(size * _MARKUP_GROWTH if isinstance(text, Markup) else size)
    result = text % args
    check_size(run, utf8_size(result))
    return rebuilt(result, text)


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
        self.run.charge(_FIELD_STEPS)
        first, rest = formatter_field_name_split(field_name)
        value = self.get_value(first, args, kwargs)
        for is_attribute, name in rest:
            check_public(name, f"a {type(value).__name__}")
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
        elif isinstance(value, (str, int, float, complex)):
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


class _MarkupFormatter(_FieldFormatter, EscapeFormatter):
    """The same for Markup: fields are HTML escaped."""

    def __init__(self, run: Run, lookup: Lookup, escape: Callable[[Any], Markup]) -> None:
        _FieldFormatter.__init__(self, run, lookup)
        self.escape = escape

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, Markup):
            if format_spec:
                raise ValueError("Unsupported format specification for Markup.")
            text = to_text(self.run, value)
            self.size += utf8_size(text)
        else:
            text = str(self.escape(super().format_field(value, format_spec)))
        check_size(self.run, self.size + len(text))
        return text


def str_format(run: Run, text: str, args: Sequence[Any], kwargs: Mapping[str, Any], lookup: Lookup) -> str:
    """`text.format(*args, **kwargs)`."""
    run.string(utf8_size(text))
    run.charge(text.count("{") + text.count("}"))
    if isinstance(text, Markup):
        formatter: Formatter = _MarkupFormatter(run, lookup, text.escape)
        return Markup(formatter.vformat(text, args, kwargs))
    result = _FieldFormatter(run, lookup).vformat(str(text), args, kwargs)
    check_size(run, utf8_size(result))
    return rebuilt(result, text)  # type: ignore[no-any-return]
