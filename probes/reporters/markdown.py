"""Markdown: the figures, each template with findings, and the files that could not be judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.reporters.figures import headline, tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from probes.reporters import Out
    from probes.results.rows import Row
    from probes.results.tally import Tally


def write(rows: Iterable[Row], out: Out, tally: Tally) -> None:
    """Memory grows with the distinct templates that have findings, not with the rows."""
    findings: list[tuple[str, ...]] = []
    troubles: list[tuple[str, ...]] = []
    for row in rows:
        if row.error is not None:
            troubles.append((_code(row.id), row.status.replace("_", " "), _text(row.error["message"])))
        if row.first and row.summary is not None:
            findings += [
                (_code(row.id), str(found.line or ""), f"{found.severity} {found.code}", _text(found.message))
                for found in row.summary.findings
                if found.severity != "info"
            ]
    lines = ["# Chat templates", "", f"{_text(headline(tally))}.", ""]
    for table in tables(tally):
        rows_of_text = [[_text(cell) for cell in cells] for cells in table.rows]
        lines += [f"## {table.title[0].upper()}{table.title[1:]}", "", *_table(table.heads, rows_of_text)]
    if findings:
        lines += ["## Findings, at the first file of each template", ""]
        lines += _table(("file", "line", "rule", "what"), findings)
    if troubles:
        lines += ["## Not judged", "", *_table(("file", "status", "why"), troubles)]
    out.write("\n".join(lines).encode("utf-8", "backslashreplace"))


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [_line(heads), _line(["---"] * len(heads))]
    return [*lines, *map(_line, rows), ""]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _text(text: str) -> str:
    """Strangers' text that Markdown and HTML leave alone."""
    escaped = "".join(f"\\{mark}" if mark in "\\`*_[]|#~" else mark for mark in " ".join(text.split()))
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _code(text: str) -> str:
    fence = "``" if "`" in text else "`"
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{' '.join(text.split())}{pad}{fence}".replace("|", "\\|")
