"""Methods of str. Those of Markup are the same: they give Markup, and escape what is put into it.

`format` is a matter of `lookup`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from jinjarun.dialects.transformers.iteration import collect
from jinjarun.dialects.transformers.markup import Markup, alike, escaped, markup_size, stripped_of_tags, unescaped
from jinjarun.dialects.transformers.measure import check_size, measure, pay_for_key, soft_text
from jinjarun.dialects.transformers.searching import pay_for_search
from jinjarun.errors import RenderError
from jinjarun.limits import utf8_size
from jinjarun.runtime.text import Text, join, map_parts

if TYPE_CHECKING:
    from jinjarun.runtime.run import Run

Method = Callable[..., Any]

_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_LONGEST_CASE = 3
"""Characters that one may become in another case."""
_MATCH_STEPS = 2
"""Steps for each place where a replaced string is found."""
_CHAR_STEPS = 4
"""Steps to translate a character."""
_PART_STEPS = 2
"""Steps for a part that is Markup or knows its origin: an object and two tuples."""


def reading(name: str) -> Method:
    """A method that reads its receiver once and answers with a truth."""
    function = getattr(str, name)

    def method(run: Run, receiver: str, /) -> Any:
        run.charge(len(receiver) >> 4)
        return function(receiver)

    return method


def ending(name: str) -> Method:
    """`startswith` or `endswith`, with a string or a tuple of them."""
    function = getattr(str, name)

    def method(run: Run, receiver: str, sought: Any, /, *bounds: Any) -> Any:
        run.charge(len(receiver) >> 8)
        measure(run, sought)
        return function(receiver, sought, *bounds)

    return method


def searching(name: str, *, backwards: bool = False) -> Method:
    """A method that looks for a string and answers with a number."""
    function = getattr(str, name)

    def method(run: Run, receiver: str, sought: Any, /, *bounds: Any) -> Any:
        pay_for_search(run, receiver, sought, backwards=backwards)
        return function(receiver, sought, *bounds)

    return method


def parting(name: str, *, backwards: bool = False) -> Method:
    """`partition` or `rpartition`."""
    function = getattr(str, name)

    def method(run: Run, receiver: str, sep: Any, /) -> Any:
        pay_for_search(run, receiver, sep, backwards=backwards)
        run.string(utf8_size(receiver))
        return alike(function(receiver, sep), receiver)

    return method


def without(name: str) -> Method:
    """`removeprefix` or `removesuffix`."""
    function = getattr(str, name)

    def method(run: Run, receiver: str, end: Any, /) -> Any:
        run.string(utf8_size(receiver))
        return alike(function(receiver, end), receiver)

    return method


def changing_case(name: str) -> Method:
    """A method that changes the case of each part by itself."""
    function = getattr(str, name)

    def method(run: Run, receiver: str, /) -> Any:
        size = utf8_size(receiver)
        run.string(size)
        if size != len(receiver):  # beyond ASCII, case is looked up
            run.charge(len(receiver) >> 3)
            if size * _LONGEST_CASE > run.limits.string_bytes:
                run.charge(size >> 3)
        result = map_parts(run, function, receiver)
        check_size(run, utf8_size(result))
        return Markup(result) if type(receiver) is Markup else result

    return method


def stripping(name: str) -> Method:
    """`strip`, `lstrip` or `rstrip`."""
    function = getattr(str, name)

    def method(run: Run, receiver: str, chars: Any = None, /) -> Any:
        run.string(utf8_size(receiver))
        if isinstance(chars, str):
            run.charge(len(receiver) * len(chars) >> 8)
        if type(receiver) is Text:
            run.charge(len(receiver.parts))
            return stripped(receiver, chars, left=name != "rstrip", right=name != "lstrip")
        return alike(function(receiver, chars), receiver)

    return method


def stripped(text: Text, chars: str | None, *, left: bool, right: bool) -> str:
    """`text` without leading and trailing `chars` (None: whitespace), its other parts kept."""
    kept = text.lstrip(chars) if left else str(text)
    start = len(text) - len(kept)
    end = start + len(kept.rstrip(chars) if right else kept)
    parts, place = [], 0
    for piece, origin in text.parts:
        cut = piece[max(start - place, 0) : max(end - place, 0)]
        if cut:
            parts.append((cut, origin))
        place += len(piece)
    return Text.joined(parts)


def splitting(name: str, *, backwards: bool = False) -> Method:
    """`split` or `rsplit`."""
    function = getattr(str, name)

    def method(run: Run, receiver: str, /, sep: Any = None, maxsplit: Any = -1) -> Any:
        pay_for_search(run, receiver, sep, backwards=backwards)
        run.string(utf8_size(receiver))
        if isinstance(maxsplit, int) and not 0 <= maxsplit < run.limits.items:
            maxsplit = run.limits.items
        return made_of(run, function(receiver, sep, maxsplit), receiver)

    return method


def made_of(run: Run, parts: list[str], source: str) -> list[str]:
    """`parts`, of which `source` was made, paid for, with its origin."""
    run.items(len(parts))
    if type(source) is not str:
        run.charge(_PART_STEPS * len(parts))
    return alike(parts, source)  # type: ignore[no-any-return]


def splitlines(run: Run, receiver: str, /, keepends: Any = False) -> Any:
    run.string(utf8_size(receiver))
    run.items(1 + sum(map(receiver.count, _LINE_ENDS)))
    return made_of(run, str.splitlines(receiver, keepends), receiver)


def replace(run: Run, receiver: str, old: Any, new: Any, count: Any = -1, /) -> Any:
    """`receiver.replace(old, new, count)`; the result's size is known before it is made."""
    if not isinstance(old, str) or not isinstance(new, str):
        wrong = new if isinstance(old, str) else old
        raise TypeError(f"replace() takes strings, not {type(wrong).__name__}")
    if type(receiver) is Markup:
        run.string(markup_size(new))
        new = escaped(new)
    size = utf8_size(receiver)
    pay_for_search(run, receiver, old)
    times = receiver.count(old)
    if isinstance(count, int) and 0 <= count < times:
        times = count
    before, after = utf8_size(old), utf8_size(new)
    run.string(size + max(after - before, 0) * times)
    pay_for_search(run, receiver, old)
    run.charge(_MATCH_STEPS * times)
    return alike(str.replace(receiver, old, new, count), receiver)


def str_join(run: Run, receiver: str, iterable: Any, /) -> Any:
    """`receiver.join(iterable)`."""
    items = collect(run, iterable)
    if type(receiver) is Markup:
        texts = [soft_text(run, item) for item in items]
        run.string(utf8_size(receiver) * max(len(items) - 1, 0) + sum(map(markup_size, texts)))
        return Markup(str.join(receiver, map(escaped, texts)))
    if not all(isinstance(item, str) for item in items):
        raise TypeError("sequence item: expected str instance")
    run.string(utf8_size(receiver) * max(len(items) - 1, 0) + sum(map(utf8_size, items)))
    if any(type(item) is Text for item in items):
        return join(run, [text for item in items for text in (receiver, item)][1:] if receiver else items)
    return str.join(receiver, items)


def padding(name: str) -> Method:
    """`center`, `ljust`, `rjust` or `zfill`."""
    function = getattr(str, name)

    def method(run: Run, receiver: str, width: Any, /, *fill: Any) -> Any:
        missing = max(width - len(receiver), 0) if isinstance(width, int) else 0
        filler = utf8_size(fill[0]) if fill and isinstance(fill[0], str) and len(fill[0]) == 1 else 1
        run.string(utf8_size(receiver) + missing * filler)
        if type(receiver) is Markup:
            fill = tuple(escaped(text) if isinstance(text, str) and len(text) == 1 else text for text in fill)
        return alike(function(receiver, width, *fill), receiver)

    return method


def expandtabs(run: Run, receiver: str, /, tabsize: Any = 8) -> Any:
    tabs = receiver.count("\t")
    run.string(utf8_size(receiver) + (tabs * max(tabsize, 0) if isinstance(tabsize, int) else 0))
    run.charge(len(receiver) >> 4)
    return alike(str.expandtabs(receiver, tabsize), receiver)


def translate(run: Run, receiver: str, table: Any, /) -> Any:
    """`receiver.translate(table)`: each character is looked up once, however often it stands there."""
    if not isinstance(table, dict):
        raise RenderError("translate takes a dict here")
    run.charge(len(receiver) >> 1)
    made: dict[str, str] = {}
    for char in set(receiver):
        pay_for_key(run, ord(char), len(table))
        run.charge(_CHAR_STEPS)
        made[char] = _translated(char, table.get(ord(char), char))
    longest = max(map(len, made.values()), default=0)
    if len(receiver) * longest > run.limits.string_bytes:
        check_size(run, sum(len(made[char]) for char in receiver))
    result = "".join([made[char] for char in receiver])
    run.string(utf8_size(result))
    return alike(result, receiver)


def _translated(char: str, to: Any) -> str:
    if to is None:
        return ""
    if isinstance(to, str):
        return str(to)
    if isinstance(to, int):
        return chr(to)
    raise TypeError("character mapping must return integer, None or str")


def maketrans(run: Run, _receiver: str, /, *args: Any) -> dict[int, Any]:
    run.items(sum(len(arg) for arg in args if isinstance(arg, (str, dict))))
    made: dict[int, Any] = str.maketrans(*args)
    for count, key in enumerate(made):
        pay_for_key(run, key, count)
    return made


def encode(_run: Run, _receiver: str, /, *_: Any, **__: Any) -> NoReturn:
    raise RenderError("bytes are not offered: no chat template needs them")


def striptags(run: Run, receiver: Markup, /) -> str:
    """The text without tags, its entities resolved."""
    return stripped_of_tags(run, receiver)


_READING = "alnum alpha ascii decimal digit identifier lower numeric printable space title upper"
_CASE = "capitalize casefold lower swapcase title upper"

STR: dict[str, Method] = {
    **{f"is{name}": reading(f"is{name}") for name in _READING.split()},
    **{name: changing_case(name) for name in _CASE.split()},
    **{name: searching(name) for name in ("count", "find", "index")},
    **{name: searching(name, backwards=True) for name in ("rfind", "rindex")},
    **{name: ending(name) for name in ("endswith", "startswith")},
    **{name: without(name) for name in ("removeprefix", "removesuffix")},
    **{name: stripping(name) for name in ("lstrip", "rstrip", "strip")},
    **{name: padding(name) for name in ("center", "ljust", "rjust", "zfill")},
    "encode": encode,
    "expandtabs": expandtabs,
    "join": str_join,
    "maketrans": maketrans,
    "partition": parting("partition"),
    "replace": replace,
    "rpartition": parting("rpartition", backwards=True),
    "rsplit": splitting("rsplit", backwards=True),
    "split": splitting("split"),
    "splitlines": splitlines,
    "translate": translate,
}

MARKUP: dict[str, Method] = {"striptags": striptags, "unescape": unescaped}
