"""JUnit XML: a test case a template. An error or an unreadable file fails it; without a template it is skipped."""

from __future__ import annotations

import shutil
import tempfile
from typing import TYPE_CHECKING

from probes.reporters.escaping import attribute, xml_text
from probes.reporters.formats import Format

if TYPE_CHECKING:
    from collections.abc import Iterable

    from probes.reporters.formats import Out
    from probes.results.rows import Brief, Row
    from probes.results.tally import Tally


def write(rows: Iterable[Row], out: Out, tally: Tally) -> None:
    """The cases wait in a temporary file, because their number stands before them."""
    failures = 0
    with tempfile.TemporaryFile() as cases:
        for row in rows:
            failures += row.summary is not None and row.summary.count("error") > 0
            cases.write(_case(row).encode())
        cases.seek(0)
        counts = {
            "tests": tally.rows,
            "failures": failures,
            "errors": tally.statuses["error"],
            "skipped": tally.statuses["no_template"] + tally.statuses["not_evaluated"],
        }
        attributes = "".join(f' {name}="{number}"' for name, number in counts.items())
        out.write(b'<?xml version="1.0" encoding="UTF-8"?>\n')
        out.write(f'<testsuites{attributes}>\n<testsuite name="jinjarun"{attributes}>\n'.encode())
        shutil.copyfileobj(cases, out)
        out.write(b"</testsuite>\n</testsuites>\n")


def _case(row: Row) -> str:
    name = row.id if row.key is None else f"{row.id} {row.key}"
    inside = ""
    findings = row.summary.findings if row.summary is not None else []
    if errors := [found for found in findings if found.severity == "error"]:
        told = f"type={attribute(errors[0].code)} message={attribute(_line(errors[0]))}"
        inside += f"<failure {told}>{xml_text(*map(_line, errors))}</failure>"
    if row.error is not None:
        tag = "error" if row.status == "error" else "skipped"
        kind = f" type={attribute(row.error['type'])}" if tag == "error" else ""
        inside += f"<{tag}{kind} message={attribute(row.error['message'])}/>"
    elif row.status != "probed":
        inside += f"<skipped message={attribute(row.status.replace('_', ' '))}/>"
    if rest := [found for found in findings if found.severity != "error"]:
        lines = (f"{found.severity} {_line(found)}" for found in rest)
        inside += f"<system-out>{xml_text(*lines)}</system-out>"
    return f"<testcase classname={attribute(row.kind)} name={attribute(name)}>{inside}</testcase>\n"


def _line(found: Brief) -> str:
    place = "" if found.line is None else f" (line {found.line})"
    return f"{found.code} {found.name}: {found.message}{place}"


FORMAT = Format("junit", "JUnit XML, for CI", write, (".xml",), findings=True)
