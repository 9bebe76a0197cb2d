"""What llama.cpp offers on strings, as filters and as methods alike."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jinjarun.dialects.llamacpp.arguments import count, keyword_or_position, position, types
from jinjarun.dialects.llamacpp.searching import charge_search
from jinjarun.dialects.llamacpp.shared import default_value, not_implemented, slice_bounds, take_slice, to_json_filter
from jinjarun.dialects.llamacpp.values import SPACES, Undefined, as_float, as_int, as_string, lower, upper
from jinjarun.errors import RenderError
from jinjarun.runtime.text import COMPUTED, Origin, Text, derived, map_parts, parts_of, strip_parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinjarun.runtime.run import Run

_WORD = re.compile(f"[^{SPACES}]+")


def _capitalize(text: str) -> str:
    return upper(text[:1]) + lower(text[1:])


def _title(text: str) -> str:
    return _WORD.sub(lambda match: _capitalize(match[0]), text)


def _words(text: str) -> int:
    """About twice as many as there are words, counted fast."""
    return 2 * sum(map(text.count, SPACES))


def _by_part(function: Callable[[str], str], cost: Callable[[str], int] = lambda _: 0) -> Callable[..., str]:
    def builtin(run: Run, *args: Any) -> str:
        types(args, str)
        run.string(len(args[0]))
        run.charge(cost(args[0]))
        return map_parts(run, function, args[0])

    return builtin


def _stripping(*, left: bool, right: bool) -> Callable[..., str]:
    def builtin(run: Run, *args: Any) -> str:
        types(args, str)
        chars = keyword_or_position(args, "chars", 1)
        wanted = SPACES if isinstance(chars, Undefined) else as_string(run, chars)
        run.charge((len(args[0]) + len(wanted) >> 4) + (len(args[0]) * len(wanted) >> 8))
        if type(args[0]) is Text:  # each part is stripped by itself
            run.charge(len(args[0].parts) * len(wanted) >> 4)
        return strip_parts(run, args[0], wanted, left=left, right=right)

    return builtin


def _length(_run: Run, *args: Any) -> int:
    types(args, str)
    return len(args[0])


def _startswith(run: Run, *args: Any) -> bool:
    types(args, str, str)
    run.charge(len(args[1]) >> 4)
    return str.startswith(args[0], args[1])


def _endswith(run: Run, *args: Any) -> bool:
    types(args, str, str)
    run.charge(len(args[1]) >> 4)
    return str.endswith(args[0], args[1])


def _splitting(*, from_right: bool) -> Callable[..., list[str]]:
    def builtin(run: Run, *args: Any) -> list[str]:
        count(args, 1, 3)
        types(args, str)
        text = args[0]
        separator = as_string(run, args[1]) if len(args) > 1 else " "
        if not separator:
            raise RenderError("empty separator")
        limit = as_int(args[2]) if len(args) > 2 else -1
        run.string(len(text))
        charge_search(run, text, separator, backwards=from_right)
        run.items(str.count(text, separator) + 1)
        split = str.rsplit if from_right else str.split
        pieces: list[str] = split(text, separator, limit if limit >= 0 else -1)
        # What is left when no separator remains counts as input if the string did; the pieces before do not.
        rest = 0 if from_right else -1
        pieces[rest] = derived(pieces[rest], text)
        return pieces

    return builtin


def _replace(run: Run, *args: Any) -> str:
    types(args, str, str, str)
    text, old, new = args[:3]
    if len(args) > 3 and as_int(args[3]) > 0:
        not_implemented("replace with a count")
    charge_search(run, text, old)
    found = str.count(text, old)
    run.string(len(text) + found * (len(new) - len(old)))
    return derived(str.replace(text, old, new), text)


def _format(run: Run, *args: Any) -> str:
    types(args, str)
    parts: list[tuple[str, Origin]] = []
    text = args[0]
    origin = text.origin if type(text) is Text else COMPUTED
    size, at = 0, 0
    run.charge(str.count(text, "{"))
    for number, literal in enumerate(str.split(text, "{")):
        if number:
            if not literal.startswith("}"):
                not_implemented("format with anything but {}")
            at += 1
            filled = as_string(run, position(args, at))
            run.charge(len(parts_of(filled)))
            parts += parts_of(filled)
            size += len(filled)
            literal = literal[1:]
        size += len(literal)
        run.charge(1)
        if size > run.limits.string_bytes:
            raise run.exceeded("string_bytes")
        if literal:
            parts.append((literal, origin))
    run.string(size)
    traced = any(type(arg) is Text for arg in args)
    return Text.joined(parts) if traced else "".join([piece for piece, _ in parts])


_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_FLOAT = re.compile(
    r"([+-]?)(?:(inf(?:inity)?|nan(?:\(\w*\))?)|0[x]((?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?\d+)?)"
    r"|((?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?))"
)


def _to_int(run: Run, *args: Any) -> int:
    default = keyword_or_position(args, "default", 1)
    base_given = keyword_or_position(args, "base", 2)
    base = 10 if isinstance(base_given, Undefined) else as_int(base_given)
    if base != 0 and not 2 <= base <= 36:
        raise RenderError("int() base must be 0 or between 2 and 36")
    types(args, str)
    run.charge(len(args[0]) >> 4)
    number = parse_int(args[0], base)
    if number is not None and -(1 << 31) <= number < 1 << 31:
        return number
    return 0 if isinstance(default, Undefined) else as_int(default)


def parse_int(text: str, base: int) -> int | None:
    """The number that C's strtol reads at the start of `text`; None if there is none. Far digits are not read on."""
    digits = lower(text.lstrip(SPACES)[:100])
    negative = digits.startswith("-")
    digits = digits[1:] if digits[:1] in ("-", "+") else digits
    has_prefix = digits.startswith("0x") and digits[2:3] != "" and digits[2] in _DIGITS[:16]
    if base == 0:
        base = 16 if has_prefix else 8 if digits.startswith("0") else 10
    if base == 16 and has_prefix:
        digits = digits[2:]
    allowed = _DIGITS[:base]
    end = 0
    while end < len(digits) and end < 80 and digits[end] in allowed:
        end += 1
    if not end:
        return None
    number = int(digits[:end], base)
    return -number if negative else number


def _to_float(run: Run, *args: Any) -> float:
    types(args, str)
    default = keyword_or_position(args, "default", 1)
    run.charge(4 + (len(args[0]) >> 4))
    number = parse_float(args[0])
    if number is not None:
        return number
    return 0.0 if isinstance(default, Undefined) else as_float(default)


def parse_float(text: str) -> float | None:
    """The number that C++'s std::stod reads at the start of `text`; None where it throws."""
    match = _FLOAT.match(lower(text.lstrip(SPACES)[:5000]))
    if match is None:
        return None
    sign, word, hexadecimal, decimal = match.groups()
    if word:
        number = float(word[:3])
    elif hexadecimal:
        try:
            number = float.fromhex("0x" + hexadecimal)
        except OverflowError:
            return None
    else:
        number = float(decimal)
        if number in (float("inf"), 0.0) and decimal.partition("e")[0].strip("0."):
            return None
        if 0 < number < 2.2250738585072014e-308:
            return None
    return -number if sign == "-" else number


def _string(_run: Run, *args: Any) -> str:
    types(args, str)
    return args[0]  # type: ignore[no-any-return]


def _slice(run: Run, *args: Any) -> str:
    types(args, str, int)
    start, stop, step = slice_bounds(args)
    return derived(str(take_slice(run, args[0], start, stop, step)), args[0])


def _indent(run: Run, *args: Any) -> str:
    count(args, 1, 4)
    types(args, str)
    width = keyword_or_position(args, "width", 1)
    first = bool(keyword_or_position(args, "first", 2))
    blank = bool(keyword_or_position(args, "blank", 3))
    text = str(args[0])
    if type(width) is int:
        if width < 0:
            raise RenderError("indent cannot be negative")
        lines = text.count("\n") + 1
        run.string(len(text) + lines * width)
        margin = " " * width
    else:
        margin = str(width) if isinstance(width, str) else "    "
        run.string(len(text) + (text.count("\n") + 1) * len(margin))
    run.charge(text.count("\n"))
    lines_of_text = text.split("\n")
    ends_in_newline = text.endswith("\n")
    if ends_in_newline or not text:
        lines_of_text.pop()
    pieces: list[str] = []
    starting = True
    for line in lines_of_text:
        if not starting:
            pieces.append("\n")
        if first if starting else (line or blank):
            pieces.append(margin)
        pieces.append(line)
        # The engine tells the first line by nothing being written yet: leading empty lines count as first ones.
        starting = starting and not line and not (first and margin)
    if ends_in_newline:
        pieces.append("\n" + (margin if blank else ""))
    return derived("".join(pieces), args[0])


def _join(_run: Run, *_: Any) -> str:
    return not_implemented("join on a string")


STRING: dict[str, Callable[..., Any]] = {
    "capitalize": _by_part(_capitalize),
    "default": default_value,
    "endswith": _endswith,
    "float": _to_float,
    "format": _format,
    "indent": _indent,
    "int": _to_int,
    "join": _join,
    "length": _length,
    "lower": _by_part(lower),
    "lstrip": _stripping(left=True, right=False),
    "replace": _replace,
    "rsplit": _splitting(from_right=True),
    "rstrip": _stripping(left=False, right=True),
    "safe": _string,
    "slice": _slice,
    "split": _splitting(from_right=False),
    "startswith": _startswith,
    "string": _string,
    "strip": _stripping(left=True, right=True),
    "title": _by_part(_title, _words),
    "tojson": to_json_filter,
    "upper": _by_part(upper),
}
