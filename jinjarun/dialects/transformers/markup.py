"""Strings that are HTML already, as MarkupSafe 3.0.4 has them: `Markup`, escaping, and the way back.

Markup itself only bears the mark. What keeps it or escapes what it meets is the work of the operators and methods,
which go by `alike` and `escaped`.
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from jinjarun.dialects.transformers.origins import rebuilt
from jinjarun.limits import utf8_size

if TYPE_CHECKING:
    from jinjarun.runtime.run import Run

_ESCAPES = {"&": "&amp;", ">": "&gt;", "<": "&lt;", "'": "&#39;", '"': "&#34;"}
"""In this order: the first must not meet what the others write."""
_REFERENCE_STEPS = 32
"""Steps to resolve a character reference: up to 32 names are tried."""
_TAG_STEPS = 2


class Markup(str):
    __slots__ = ()

    def __html__(self) -> str:
        return self

    def __repr__(self) -> str:
        return f"Markup({str.__repr__(self)})"


def markup_size(text: str) -> int:
    """Bytes of a string once it is Markup: escaped if it is not yet."""
    if isinstance(text, Markup):
        return utf8_size(text)
    return utf8_size(text) + sum((len(new) - 1) * text.count(old) for old, new in _ESCAPES.items())


def escaped(text: str) -> Markup:
    """`text` as Markup; `markup_size` says beforehand how large."""
    if isinstance(text, Markup):
        return text
    text = str(text)
    for old, new in _ESCAPES.items():
        text = text.replace(old, new)
    return Markup(text)


def alike(result: Any, source: Any) -> Any:
    """`result`, a string or strings made from `source`: Markup if that is, with its origin where it is known."""
    if type(source) is not Markup:
        return rebuilt(result, source)
    if isinstance(result, str):
        return Markup(result)
    if type(result) in (list, tuple):
        return type(result)(Markup(item) for item in result)
    return result


def unescaped(run: Run, text: str) -> str:
    """`text` with its character references resolved."""
    run.string(utf8_size(text))
    run.charge(_REFERENCE_STEPS * text.count("&"))
    return html.unescape(str(text))


def stripped_of_tags(run: Run, text: str) -> str:
    """`text` without comments and tags, white space made single spaces, character references resolved."""
    run.string(utf8_size(text))
    run.charge(_TAG_STEPS * text.count("<") + (len(text) >> 2))
    kept: list[str] = []
    place = 0
    while (start := text.find("<", place)) >= 0:
        close, skip = ("-->", 4) if text.startswith("<!--", start) else (">", 1)
        end = text.find(close, start + skip)
        if end < 0:
            break
        kept.append(text[place:start])
        place = end + len(close)
    kept.append(text[place:])
    return unescaped(run, " ".join("".join(kept).split()))
