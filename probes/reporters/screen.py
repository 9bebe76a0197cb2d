"""What a terminal gets: colours, and lines as wide as it is. The only module that loads rich; nothing else needs it.

`FORCE_COLOR` makes a terminal of whatever is written to, `NO_COLOR` leaves the colours out, `COLUMNS` is the width.
"""

from __future__ import annotations

import io
import os
import re
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.text import Text

from probes.reporters.document import Line, Paragraph, shortened
from probes.reporters.escaping import SPACES, line, visible

if TYPE_CHECKING:
    from collections.abc import Iterable

NARROWEST, WIDEST = 40, 200
USUAL = 80

STYLES = {
    "": "",
    "error": "bold red",
    "warning": "bold yellow",
    "info": "bold blue",
    "good": "green",
    "bad": "red",
    "head": "bold",
    "faint": "dim",
    "code": "cyan",
}

_JSON = re.compile(
    r'(?P<key>"(?:[^"\\]|\\.)*")(?=\s*:)|(?P<text>"(?:[^"\\]|\\.)*")|(?P<word>true|false|null)|(?P<number>-?\d[\d.eE+-]*)'
)
_JSON_STYLES = {"key": "bold blue", "text": "green", "word": "magenta", "number": "cyan"}


def width_of(stream: TextIO) -> int:
    """Columns of a terminal: `COLUMNS`, else its own, from 40 to 200."""
    given = os.environ.get("COLUMNS", "")
    try:
        width = int(given) if given.isdecimal() and int(given) else os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        width = USUAL
    return min(max(width or USUAL, NARROWEST), WIDEST)


def painted(lines: Iterable[Line], width: int) -> str:
    """Lines and paragraphs with colours."""
    console = _console(width)
    for one in lines:
        if isinstance(one, str):
            _print(console, Text(line(one)))
            continue
        for shown in _wrapped(one, width, console):
            plain = shown.plain
            _print(console, shown if line(plain) == plain else Text(line(plain)))
    return _written(console)


def painted_json(text: str, width: int) -> str:
    """JSON with colours; `text` prints already."""
    console, shown = _console(width), Text(text.removesuffix("\n"))
    for found in _JSON.finditer(text):
        kind = found.lastgroup or ""
        shown.stylize(_JSON_STYLES[kind], *found.span(kind))
    _print(console, shown)
    return _written(console)


def _console(width: int) -> Console:
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return Console(
        file=io.StringIO(),
        width=width,
        force_terminal=True,
        color_system=None if plain else "standard",
        no_color=plain,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )


def _print(console: Console, text: Text) -> None:
    console.print(text, soft_wrap=True)


def _written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def _wrapped(one: Paragraph, width: int, console: Console) -> list[Text]:
    if one.cut:
        text = _styled(one, "")
        short = shortened(text.plain, width - len(one.first))
        if short != text.plain:
            text.truncate(max(0, len(short) - 3))
            text.append("...")
        return [Text(one.first).append_text(text)]
    # In 40 columns a deep indent would leave no room for words.
    first, indent = (
        " " * 4 if len(start) > width // 2 and not start.strip() else start for start in (one.first, one.indent)
    )
    text = _styled(one, SPACES)
    if len(first) > width // 2:
        lines = text.wrap(console, width - 4)
        return [Text(first.rstrip()), *(Text("    ").append_text(part) for part in lines)]
    room = width - max(len(first), len(indent))
    lines = text.wrap(console, room)
    for part in lines:
        part.rstrip()
    if not lines:
        return [Text(first.rstrip())]
    return [Text(first if not number else indent).append_text(part) for number, part in enumerate(lines)]


def _styled(one: Paragraph, keep: str) -> Text:
    made = Text()
    for part in one.parts:
        shown = visible(part.text, keep=keep)
        made.append(re.sub(r"\s", " ", shown) if keep else shown, STYLES[part.style])
    return made
