"""How rows are written: one module a format, found here by name or by the ending of a file.

A reporter is a module with `write(rows, out, tally)`: it reads the rows as they come, writes UTF-8 bytes to `out`, and
finds the figures over all of them in `tally` once the rows have ended. A scan gives rows; so does anything that makes
`probes.results.rows.Row` of what it found.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from jinjarun.errors import InputError
from probes.results.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Iterable

    from probes.results.rows import Row


class Out(Protocol):
    """Where a report goes: a binary file, or standard output."""

    def write(self, data: bytes, /) -> object: ...


@dataclass(frozen=True, slots=True)
class Format:
    """`endings` of files that choose it. `lines`: each row stands for itself, so that half a file is of use.
    `findings`: it tells of findings and errors alone, which other commands than a scan have as well."""

    name: str
    what: str
    endings: tuple[str, ...] = ()
    lines: bool = False
    findings: bool = False

    def write(self, rows: Iterable[Row], out: Out, command: str = "scan") -> Tally:
        """Writes all rows, which `command` gave, and returns the figures over them."""
        tally = Tally(command)
        importlib.import_module(f"{__name__}.{self.name}").write(tally.watching(rows), out, tally)
        return tally


FORMATS = {
    made.name: made
    for made in (
        Format("text", "a line a template, then the figures", (".txt",), lines=True),
        Format("json", "one object: rows and figures", (".json",)),
        Format("jsonl", "a row a line", (".jsonl", ".ndjson"), lines=True),
        Format("csv", "a row a line, a flag a column", (".csv",), lines=True),
        Format("parquet", "the columns of csv, typed", (".parquet",)),
        Format("markdown", "figures and tables", (".md", ".markdown")),
        Format("html", "one page to look through, that needs nothing else", (".html", ".htm")),
        Format("sarif", "SARIF 2.1.0, for code scanning", (".sarif", ".sarif.json"), findings=True),
        Format("junit", "JUnit XML, for CI", (".xml",), findings=True),
        Format("github", "annotations of GitHub Actions", lines=True, findings=True),
    )
}

FINDING_FORMATS = ["text", "json", *(name for name, made in FORMATS.items() if made.findings)]
"""What a command that finds something in templates can write: its own text and JSON, and the formats of findings."""


def chosen_format(name: str | None, file: str | None, among: Iterable[str] = FORMATS) -> Format:
    """The format of this name, else the one that the ending of `file` chooses, else text."""
    made = FORMATS[name] if name is not None else FORMATS["text"] if file is None else format_of(file)
    if made.name not in among:
        raise InputError(f"{file}: {made.name} is for scans; choose one of: {', '.join(among)}", path=file)
    return made


def format_of(file: str) -> Format:
    """The format that the ending of a file's name chooses; the longest ending that fits."""
    fitting = [(len(ending), made) for made in FORMATS.values() for ending in made.endings if file.endswith(ending)]
    if not fitting:
        raise InputError(
            f"{file}: the ending names no format; choose one with --format: {', '.join(FORMATS)}", path=file
        )
    return max(fitting, key=lambda pair: pair[0])[1]
