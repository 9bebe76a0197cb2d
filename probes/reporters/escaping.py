"""What strangers wrote, as each format takes it: one function for each kind of place, and no other way to a reader.

A name, an id, a message or a prompt may hold anything that a string can: control characters that a terminal obeys,
marks that turn the reading direction around, line breaks that begin a line of their own, markup, formulas, commands
for a CI. Whoever prints text for people makes a list of lines and passes it to `terminal`; a format takes its strings
from here.

Characters that do not print (`str.isprintable`: control characters, format characters such as bidi controls and zero
width spaces, line separators, lone surrogates, private use, unassigned ones) are shown as Python's escapes, or in JSON
as JSON's, where they mean the same as before.
"""

from __future__ import annotations

import html
import json
import re
import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

WIDTH = 79

SPACES = "\t\n\x0b\x0c\r"
"""What `textwrap` makes spaces of."""

_LOG_COMMAND = re.compile(r"##(?=\w*\[)")
"""GitHub's runner obeys `##[name]` anywhere in a line of a log (ActionCommand.TryParse), Azure `##vso[name]`. GitHub's
`::name::` it obeys at the beginning of a line, after spaces (TryParseV2)."""

_PLAIN = re.compile(r"(?:\(?[A-Za-z0-9%,]+\)?(?: |$))*")
"""Words that Markdown has no other reading of."""

_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What begins a formula in a spreadsheet; the full-width signs do in some locales. Tabs and carriage returns, which do
too, never get that far."""

_LINK = re.compile(r"\[(?=[^\[\]]*\]\()")
"""What begins an embedded link in a message of SARIF (2.1.0, 3.11.6), where a backslash escapes it."""


def visible(text: str, keep: str = "") -> str:
    """Text without characters that do not print, but for those to `keep`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


def line(text: str) -> str:
    """One line for a terminal or the log of a CI, and nothing that either obeys."""
    shown = _LOG_COMMAND.sub(r"#\\x23", visible(text))
    return shown.replace("::", r"\x3a:", 1) if shown.lstrip().startswith("::") else shown


def terminal(lines: Iterable[str]) -> str:
    """Lines for a terminal or the log of a CI, each ended. A line break inside of one is shown, never made."""
    return "".join(f"{line(one)}\n" for one in lines)


def wrapped(text: str, indent: str, first: str | None = None, *, hyphens: bool = True) -> list[str]:
    """A text as lines for a terminal of 80 columns, the first one behind `first` (default: `indent`). Its own line
    breaks and tabs are spaces; with `hyphens` a line may end after one."""
    return textwrap.wrap(
        visible(text, keep=SPACES),
        WIDTH,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=hyphens,
    )


def markdown(text: str) -> str:
    """Plain words as they are, all else as a code span: the one place in which Markdown has no markup, no links, and no
    mentions. Empty for nothing; without spaces around it."""
    shown = line(text).strip(" ")
    if _PLAIN.fullmatch(shown):
        return shown
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    pad = " " if "`" in shown else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def markdown_cell(text: str) -> str:
    """The same in a table."""
    return markdown(text).replace("|", r"\|")


def workflow_command(name: str, properties: Mapping[str, str], message: str) -> str:
    """A command of GitHub Actions, as `@actions/core` escapes it."""
    told = ",".join(
        f"{key}={_workflow_data(value).replace(':', '%3A').replace(',', '%2C')}" for key, value in properties.items()
    )
    return f"::{name} {told}::{_workflow_data(message)}"


def _workflow_data(text: str) -> str:
    return line(text).replace("%", "%25")


def cell(text: str) -> str:
    """A cell of CSV: one line, and text in every spreadsheet."""
    shown = line(text)
    return f"'{shown}" if shown.lstrip().startswith(_FORMULA) else shown


def xml_text(*lines: str) -> str:
    """Text of an element of XML, a line each."""
    return html.escape("\n".join(map(line, lines)))


def attribute(text: str) -> str:
    """The value of an attribute with its quotes, in HTML and XML."""
    return f'"{html.escape(line(text))}"'


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON for people and programs: the value is as it was, and nothing in the text acts on who shows it."""
    return json_shown(json.dumps(value, ensure_ascii=False, indent=indent))


def json_shown(text: str) -> str:
    """The same of a text that is JSON already."""
    shown = _LOG_COMMAND.sub(r"#\\u0023", text)
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() or c == "\n" else _json_escape(c) for c in shown)


def _json_escape(c: str) -> str:
    return f"\\u{ord(c):04x}" if c < "\U00010000" else json.dumps(c)[1:-1]


def script_json(value: Any) -> str:
    """JSON for a script element of HTML, which no text in it ends."""
    return json_shown(json.dumps(value, separators=(",", ":"))).replace("<", r"\u003c")


def sarif_text(text: str) -> str:
    """A message of SARIF without links."""
    return _LINK.sub(r"\\[", line(text))


def uri(path: str) -> str:
    """A path as a reference."""
    from urllib.parse import quote  # noqa: PLC0415  (every command imports this module, one needs that)

    return quote(path, errors="surrogatepass")


def utf8(text: str) -> str:
    """The same text for what holds UTF-8 alone, as Parquet does: lone surrogates as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()
