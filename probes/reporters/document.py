"""A text for people, before it is known who reads it: plain at 80 columns, or on a terminal as wide as that is.

A reporter makes a list of lines and paragraphs. As a `Document` they are the plain text already; `screen.painted` makes
of the same lines what a terminal gets.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from probes.reporters.escaping import SPACES, WIDTH, line, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Style = Literal["", "error", "warning", "info", "good", "bad", "head", "faint", "code"]

ELLIPSIS = "..."


@dataclass(frozen=True, slots=True)
class Part:
    """Some words and how they look."""

    text: str
    style: Style = ""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Parts that are wrapped together: the first line behind `first`, the others behind `indent`. Line breaks and tabs
    in it are spaces. With `cut` it is one line, and what does not fit is left out; with `hyphens` a line may end after
    one."""

    parts: tuple[Part, ...]
    first: str = ""
    indent: str = ""
    cut: bool = False
    hyphens: bool = True

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts)


Line = str | Paragraph
"""A line as it is, however long, or a paragraph."""


class Document(str):
    """The plain text of `lines`, which are kept for a terminal."""

    lines: tuple[Line, ...]

    def __new__(cls, lines: Iterable[Line]) -> Document:
        kept = tuple(lines)
        made = super().__new__(cls, "".join(f"{line(shown)}\n" for one in kept for shown in _plain(one)))
        made.lines = kept
        return made


def say(*parts: str | Part, first: str = "", indent: str = "", cut: bool = False, hyphens: bool = True) -> Paragraph:
    """A paragraph of strings, which have no style, and parts."""
    given = tuple(part if isinstance(part, Part) else Part(part) for part in parts)
    return Paragraph(given, first, indent, cut, hyphens)


def table(rows: Iterable[tuple[str, str | Part]], indent: str = "  ") -> Iterator[Paragraph]:
    """Names and what is said of each, in a column."""
    rows = list(rows)
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        start = f"{indent}{visible(name):{width}}  "
        yield say(value, first=start, indent=" " * len(start))


def shortened(text: str, width: int) -> str:
    """As much of a line as fits."""
    return text if len(text) <= width else text[: max(0, width - len(ELLIPSIS))] + ELLIPSIS


def _plain(one: Line) -> list[str]:
    if isinstance(one, str):
        return [one]
    text = visible(one.text, keep=SPACES)
    if one.cut:
        return [one.first + shortened(visible(one.text), WIDTH - len(one.first))]
    lines = textwrap.wrap(
        text,
        WIDTH,
        initial_indent=one.first,
        subsequent_indent=one.indent,
        break_long_words=False,
        break_on_hyphens=one.hyphens,
    )
    return lines or [one.first.rstrip()]
