"""Workflow commands of GitHub Actions: each finding becomes an annotation of the file that it is in.

Only a .jinja file has the lines that a finding names; elsewhere the annotation is of the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.reporters.escaping import workflow_command
from probes.reporters.formats import Format

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from probes.reporters.formats import Out
    from probes.results.rows import Row
    from probes.results.tally import Tally

COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def write(rows: Iterable[Row], out: Out, tally: Tally) -> None:
    for row in rows:
        for line in _annotations(row):
            out.write(f"{line}\n".encode())


def _annotations(row: Row) -> Iterator[str]:
    if row.error is not None:
        command = "error" if row.status == "error" else "warning"
        yield workflow_command(command, {"file": row.id, "title": row.error["type"]}, row.error["message"])
    for found in row.summary.findings if row.summary is not None else []:
        place = {"file": row.id, "title": f"{found.code} {found.name}"}
        if row.kind == "jinja_file" and found.line is not None:
            place |= {"line": str(found.line)} | ({"col": str(found.column)} if found.column is not None else {})
        where = "" if row.key is None else f"{row.key}: "
        yield workflow_command(COMMANDS[found.severity], place, where + found.message)


FORMAT = Format("github", "annotations of GitHub Actions", write, lines=True, findings=True)
