"""Filters that make a string of a string."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Any

from jinja2.exceptions import FilterArgumentError

from jinjarun.dialects.transformers.formatting import percent_format
from jinjarun.dialects.transformers.iteration import collect, refuse
from jinjarun.dialects.transformers.lookup import getter, subscript
from jinjarun.dialects.transformers.markup import alike
from jinjarun.dialects.transformers.measure import check_size, soft_text, to_text
from jinjarun.dialects.transformers.methods import strings
from jinjarun.dialects.transformers.operators import add
from jinjarun.dialects.transformers.origins import rebuilt
from jinjarun.limits import utf8_size
from jinjarun.runtime.text import Text, join, map_parts

if TYPE_CHECKING:
    from jinjarun.runtime.run import Run

_WORD = re.compile(r"\w+")
_SEPARATORS = re.compile(r"([-\s({\[<]+)")
"""What stands before a word that `title` begins with a capital."""
_CHUNK = re.compile(r"\s+|\S+")
_WRAP_STEPS = 32
"""Steps to wrap any line, besides those of its characters."""
_LINE_STEPS = _CHAR_STEPS = 2
_TRUNCATE_LEEWAY = 5
"""Jinja2's policy `truncate.leeway`."""


def capitalize(run: Run, value: Any, /) -> str:
    return strings.STR["capitalize"](run, soft_text(run, value))  # type: ignore[no-any-return]


def lower(run: Run, value: Any, /) -> str:
    return strings.STR["lower"](run, soft_text(run, value))  # type: ignore[no-any-return]


def upper(run: Run, value: Any, /) -> str:
    return strings.STR["upper"](run, soft_text(run, value))  # type: ignore[no-any-return]


def title(run: Run, value: Any, /) -> str:
    text = soft_text(run, value)
    run.charge(_CHAR_STEPS * len(text))  # of which each may begin a word
    result = map_parts(run, _titled, text)
    check_size(run, utf8_size(result))
    return result


def _titled(text: str) -> str:
    return "".join([word[:1].upper() + word[1:].lower() for word in _SEPARATORS.split(text)])


def trim(run: Run, value: Any, /, chars: Any = None) -> str:
    return strings.STR["strip"](run, soft_text(run, value), chars)  # type: ignore[no-any-return]


def replace(run: Run, value: Any, /, old: Any, new: Any, count: Any = None) -> str:
    text = to_text(run, value)
    times = -1 if count is None else count
    return strings.replace(run, text, to_text(run, old), to_text(run, new), times)  # type: ignore[no-any-return]


def string(run: Run, value: Any, /) -> str:
    return soft_text(run, value)


def format_(run: Run, value: Any, /, *args: Any, **kwargs: Any) -> str:
    if args and kwargs:
        raise FilterArgumentError("can't handle positional and keyword arguments at the same time")
    return percent_format(run, soft_text(run, value), kwargs or args)  # type: ignore[no-any-return]


def center(run: Run, value: Any, /, width: Any = 80) -> str:
    return strings.STR["center"](run, soft_text(run, value), width)  # type: ignore[no-any-return]


def indent(run: Run, value: Any, /, width: Any = 4, first: Any = False, blank: Any = False) -> str:
    """Every line but the first (unless `first`) and blank ones (unless `blank`) moved right; ends lines with a \\n."""
    if not isinstance(value, str):
        refuse(value, "a string")
    if not isinstance(width, (int, str)):
        raise TypeError(f"an indent is a number or a string, not {type(width).__name__}")
    margin_size = utf8_size(width) if isinstance(width, str) else max(width, 0)
    lines = strings.splitlines(run, str(value) + "\n")
    run.charge(2 + _LINE_STEPS * len(lines))
    run.string(utf8_size(value) + margin_size * len(lines))
    margin = str(width) if isinstance(width, str) else " " * width
    moved = [margin + line if number and (line or blank) else line for number, line in enumerate(lines)]
    if first:
        moved[0] = margin + moved[0]
    return alike("\n".join(moved), value)  # type: ignore[no-any-return]


def truncate(  # noqa: PLR0917 - its parameters are Jinja2's own
    run: Run, value: Any, /, length: Any = 255, killwords: Any = False, end: Any = "...", leeway: Any = None
) -> Any:
    """At most `length` items of `value`, of which the last are `end`; up to `leeway` more stay as they are."""
    if leeway is None:
        leeway = _TRUNCATE_LEEWAY
    if length < len(end) or leeway < 0:
        raise FilterArgumentError("truncate expects a length of at least its end's, and no negative leeway")
    if len(value) <= length + leeway:
        return value
    kept = subscript(run, value, slice(None, length - len(end)))
    if not killwords:
        if not isinstance(kept, str):
            refuse(kept, "a string")
        kept = strings.STR["rsplit"](run, kept, " ", 1)[0]
    made = add(run, kept, end)
    return rebuilt(str(made), value) if type(value) is Text else made


def wordcount(run: Run, value: Any, /) -> int:
    text = soft_text(run, value)
    run.charge(len(text) >> 4)
    count = 0
    for _ in _WORD.finditer(text):
        run.charge(1)
        count += 1
    return count


def wordwrap(  # noqa: PLR0917 - its parameters are Jinja2's own
    run: Run,
    value: Any,
    /,
    width: Any = 79,
    break_long_words: Any = True,
    wrapstring: Any = None,
    break_on_hyphens: Any = True,
) -> str:
    """Lines of at most `width` characters, each line of `value` wrapped by itself."""
    if wrapstring is None:
        wrapstring = "\n"
    if not isinstance(value, str) or not isinstance(wrapstring, str):
        refuse(value, "a string")
    wrapped: list[str] = []
    for line in strings.splitlines(run, value):
        if not isinstance(width, int):
            raise TypeError(f"a width is an integer, not {type(width).__name__}")  # by a NaN Python never ends
        run.charge(_WRAP_STEPS + 2 * len(line))
        longest = max((len(chunk[0]) for chunk in _CHUNK.finditer(line)), default=0)
        # A long word, or space, is cut piece by piece, and each cut copies what is left.
        run.charge(longest * longest // max(width, 1) >> 6)
        pieces = textwrap.wrap(
            line,
            width=width,
            expand_tabs=False,
            replace_whitespace=False,
            break_long_words=break_long_words,
            break_on_hyphens=break_on_hyphens,
        )
        wrapped.append(strings.str_join(run, wrapstring, pieces))
    return rebuilt(str(strings.str_join(run, wrapstring, wrapped)), value)  # type: ignore[no-any-return]


def join_(run: Run, value: Any, /, d: Any = "", attribute: Any = None) -> str:
    """The items as they print, `d` between them."""
    get = None if attribute is None else getter(run, attribute)
    items = collect(run, value)
    texts = [to_text(run, item if get is None else get(item)) for item in items]
    separator = to_text(run, d)
    run.string(sum(map(utf8_size, texts)) + utf8_size(separator) * max(len(texts) - 1, 0))
    if any(type(text) is Text for text in texts):
        return join(run, [part for text in texts for part in (separator, text)][1:] if separator else texts)
    return separator.join(texts)
