"""Methods of str (and of Markup, whose own versions escape). `format` is a matter of `lookup`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from jinjarun.dialects.transformers.iteration import collect
from jinjarun.dialects.transformers.measure import check_size, measure, soft_text
from jinjarun.dialects.transformers.operators import markup_size
from jinjarun.dialects.transformers.origins import rebuilt
from jinjarun.errors import RenderError
from jinjarun.limits import utf8_size
from jinjarun.runtime.text import Text, join, map_parts

if TYPE_CHECKING:
    from jinjarun.runtime.run import Run

Method = Callable[..., Any]

_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_CODECS = frozenset({"utf8", "u8", "ascii", "latin1", "iso88591", "utf16", "utf16le", "utf16be", "utf32"})
"""Codecs that work in linear time, their names without `-`, `_` and case."""
_ERROR_HANDLERS = frozenset({"strict", "ignore", "replace", "xmlcharrefreplace", "backslashreplace"})
_ENCODED_GROWTH = 10
"""Bytes that the widest handler writes for a character (`&#1114111;`, `\\\\U0010ffff`)."""


def size_of(text: Any) -> int:
    """Bytes of a str or bytes."""
    return len(text) if isinstance(text, bytes) else utf8_size(text)


def scanning(name: str) -> Method:
    """A method that reads its receiver and answers with a number or a truth."""

    def method(run: Run, receiver: Any, /, *args: Any, **kwargs: Any) -> Any:
        run.charge(len(receiver) >> 4)
        if args and isinstance(args[0], tuple):
            measure(run, args[0])
        return getattr(receiver, name)(*args, **kwargs)

    return method


def rewriting(name: str) -> Method:
    """A method whose answer is about as long as its receiver, or parts of it."""

    def method(run: Run, receiver: Any, /, *args: Any, **kwargs: Any) -> Any:
        run.string(size_of(receiver))
        result = getattr(receiver, name)(*args, **kwargs)
        if isinstance(result, str):
            check_size(run, utf8_size(result))
        return rebuilt(result, receiver)

    return method


def backwards(method: Method) -> Method:
    """A method that searches from the right, which Python does in as many steps as both lengths multiplied."""

    def searching(run: Run, receiver: Any, /, *args: Any, **kwargs: Any) -> Any:
        texts = (len(arg) for arg in (*args, *kwargs.values()) if isinstance(arg, (str, bytes)))
        run.charge(len(receiver) * max(texts, default=0) >> 10)
        return method(run, receiver, *args, **kwargs)

    return searching


def changing_case(name: str) -> Method:
    """A method that changes the case of each part by itself."""

    def method(run: Run, receiver: Any, /, *args: Any, **kwargs: Any) -> Any:
        run.string(size_of(receiver))
        result = map_parts(run, lambda text: getattr(text, name)(*args, **kwargs), receiver)
        check_size(run, size_of(result))
        return result

    return method


def stripping(name: str) -> Method:
    """`strip`, `lstrip` or `rstrip`."""

    def method(run: Run, receiver: Any, chars: Any = None, /) -> Any:
        run.string(size_of(receiver))
        if isinstance(chars, (str, bytes)):
            run.charge(len(receiver) * len(chars) >> 8)
        if type(receiver) is Text:
            run.charge(len(receiver.parts))
            return stripped(receiver, chars, left=name != "rstrip", right=name != "lstrip")
        return getattr(receiver, name)(chars)

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


def _split(name: str) -> Method:
    def method(run: Run, receiver: Any, /, sep: Any = None, maxsplit: Any = -1) -> Any:
        run.string(size_of(receiver))
        if not isinstance(maxsplit, int) or 0 <= maxsplit < run.limits.items:
            parts = getattr(receiver, name)(sep, maxsplit)
        else:
            parts = getattr(receiver, name)(sep, run.limits.items)
        run.items(len(parts))
        return rebuilt(parts, receiver)

    return method


def splitlines(run: Run, receiver: Any, /, keepends: Any = False) -> Any:
    run.string(size_of(receiver))
    ends = _LINE_ENDS.encode("latin-1", "ignore") if isinstance(receiver, bytes) else _LINE_ENDS
    run.items(1 + sum(receiver.count(ends[i : i + 1]) for i in range(len(ends))))
    return rebuilt(receiver.splitlines(keepends), receiver)


def replace(run: Run, receiver: Any, old: Any, new: Any, count: Any = -1, /) -> Any:
    """`receiver.replace(old, new, count)`; the result's size is known before it is made."""
    size = size_of(receiver)
    run.charge(size >> 4)
    kind = bytes if isinstance(receiver, bytes) else str
    if not isinstance(new, kind):  # Markup would write anything out
        raise TypeError(f"replace() argument 2 must be {kind.__name__}, not {type(new).__name__}")
    if isinstance(old, kind):
        times = receiver.count(old)
        if isinstance(count, int) and 0 <= count < times:
            times = count
        grown = markup_size(new) if isinstance(receiver, Markup) and isinstance(new, str) else size_of(new)
        size += times * (grown - size_of(old)) if grown > size_of(old) else 0
    run.string(size)
    return rebuilt(receiver.replace(old, new, count), receiver)


def str_join(run: Run, receiver: Any, iterable: Any, /) -> Any:
    """`receiver.join(iterable)`."""
    items = collect(run, iterable)
    measured: Callable[[Any], int] = markup_size if isinstance(receiver, Markup) else size_of
    if isinstance(receiver, Markup):
        items = [soft_text(run, item) for item in items]
    size = size_of(receiver) * max(len(items) - 1, 0)
    run.string(size + sum(measured(item) for item in items if isinstance(item, (str, bytes))))
    if type(receiver) in (str, Text) and any(type(item) is Text for item in items):
        if not all(isinstance(item, str) for item in items):
            raise TypeError("sequence item: expected str instance")
        return join(run, [text for item in items for text in (receiver, item)][1:] if receiver else items)
    return receiver.join(items)


def padding(name: str) -> Method:
    """`center`, `ljust`, `rjust` or `zfill`."""

    def method(run: Run, receiver: Any, width: Any, /, *fill: Any) -> Any:
        measure(run, fill)
        missing = max(width - len(receiver), 0) if isinstance(width, int) else 0
        filler = size_of(fill[0]) if fill and isinstance(fill[0], (str, bytes)) else 1
        run.string(size_of(receiver) + missing * filler)
        return rebuilt(getattr(receiver, name)(width, *fill), receiver)

    return method


def expandtabs(run: Run, receiver: Any, /, tabsize: Any = 8) -> Any:
    tabs = receiver.count("\t" if isinstance(receiver, str) else b"\t")
    run.string(size_of(receiver) + (tabs * max(tabsize, 0) if isinstance(tabsize, int) else 0))
    return rebuilt(receiver.expandtabs(tabsize), receiver)


def encode(run: Run, receiver: str, /, encoding: Any = "utf-8", errors: Any = "strict") -> bytes:
    _check_codec(encoding, errors)
    run.string(utf8_size(receiver) if errors == "strict" else len(receiver) * _ENCODED_GROWTH)
    return receiver.encode(encoding, errors)


def decode(run: Run, receiver: bytes, /, encoding: Any = "utf-8", errors: Any = "strict") -> str:
    _check_codec(encoding, errors)
    run.string(4 * len(receiver))
    return receiver.decode(encoding, errors)


def _check_codec(encoding: Any, errors: Any) -> None:
    if isinstance(encoding, str) and encoding.lower().replace("-", "").replace("_", "") not in _CODECS:
        raise RenderError("this codec is not offered")
    if isinstance(errors, str) and errors not in _ERROR_HANDLERS:
        raise RenderError("this way to handle encoding errors is not offered")


def translate(run: Run, receiver: str, table: Any, /) -> str:
    """`receiver.translate(table)`."""
    run.charge(len(receiver))
    if not isinstance(table, dict):
        raise RenderError("translate takes a dict here")
    widest = max((utf8_size(value) for value in table.values() if isinstance(value, str)), default=4)
    run.items(len(table))
    run.string(len(receiver) * max(widest, 4))
    return receiver.translate(table)


def maketrans(run: Run, _receiver: str, /, *args: Any) -> dict[int, Any]:
    run.items(sum(len(arg) for arg in args if isinstance(arg, (str, dict))))
    return str.maketrans(*args)


def unescape(run: Run, receiver: Markup, /) -> str:
    run.string(utf8_size(receiver))
    run.charge(2 * receiver.count("&"))
    return receiver.unescape()


def striptags(run: Run, receiver: Markup, /) -> str:
    """The text without tags, its entities resolved."""
    run.string(utf8_size(receiver))
    run.charge(2 * (receiver.count("<") + receiver.count("&")))
    return receiver.striptags()


def hexadecimal(run: Run, receiver: bytes, /, *args: Any) -> str:
    run.string(3 * len(receiver))
    return receiver.hex(*args)


_SCANNING = "count endswith find index isalnum isalpha isascii isdigit islower isspace istitle isupper startswith"
_REWRITING = "partition removeprefix removesuffix"
_CASE = "capitalize lower swapcase title upper"

SHARED: dict[str, Method] = {
    **{name: scanning(name) for name in _SCANNING.split()},
    **{name: rewriting(name) for name in _REWRITING.split()},
    **{name: stripping(name) for name in ("lstrip", "rstrip", "strip")},
    **{name: padding(name) for name in ("center", "ljust", "rjust", "zfill")},
    "expandtabs": expandtabs,
    "join": str_join,
    "replace": replace,
    "rfind": backwards(scanning("rfind")),
    "rindex": backwards(scanning("rindex")),
    "rpartition": backwards(rewriting("rpartition")),
    "rsplit": backwards(_split("rsplit")),
    "split": _split("split"),
    "splitlines": splitlines,
}
"""Methods that str and bytes have in common."""

STR: dict[str, Method] = {
    **SHARED,
    **{name: changing_case(name) for name in (*_CASE.split(), "casefold")},
    **{name: scanning(name) for name in ("isdecimal", "isidentifier", "isnumeric", "isprintable")},
    "encode": encode,
    "maketrans": maketrans,
    "translate": translate,
}

BYTES: dict[str, Method] = {
    **SHARED,
    **{name: rewriting(name) for name in _CASE.split()},
    "decode": decode,
    "hex": hexadecimal,
}

MARKUP: dict[str, Method] = {
    "striptags": striptags,
    "unescape": unescape,
}
