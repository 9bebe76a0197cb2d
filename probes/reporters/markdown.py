"""Markdown: the figures, each template with findings, and the files that could not be judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.reporters.escaping import markdown, markdown_cell
from probes.reporters.figures import headline, tables
from probes.reporters.formats import Format

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from probes.reporters.formats import Out
    from probes.results.rows import Row
    from probes.results.tally import Tally


def write(rows: Iterable[Row], out: Out, tally: Tally) -> None:
    """Memory grows with the distinct templates that have findings, not with the rows."""
    findings: list[tuple[str, ...]] = []
    troubles: list[tuple[str, ...]] = []
    for row in rows:
        if row.error is not None:
            troubles.append((row.id, row.status.replace("_", " "), row.error["message"]))
        if row.first and row.summary is not None:
            findings += [
                (row.id, str(found.line or ""), f"{found.severity} {found.code}", found.message)
                for found in row.summary.findings
                if found.severity != "info"
            ]
    lines = ["# Chat templates", "", f"{markdown(headline(tally))}.", ""]
    for table in tables(tally):
        lines += [f"## {table.title[0].upper()}{table.title[1:]}", "", *_table(table.heads, table.rows)]
    if findings:
        lines += ["## Findings, at the first file of each template", ""]
        lines += _table(("file", "line", "rule", "what"), findings)
    if troubles:
        lines += ["## Not judged", "", *_table(("file", "status", "why"), troubles)]
    out.write("\n".join(lines).encode())


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [_line(heads), _line(["---"] * len(heads))]
    return [*lines, *(_line(map(markdown_cell, cells)) for cells in rows), ""]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


FORMAT = Format("markdown", "figures and tables", write, (".md", ".markdown"))
