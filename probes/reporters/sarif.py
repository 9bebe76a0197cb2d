"""SARIF 2.1.0 (OASIS): a result for each finding in each file, for code scanning.

Only a .jinja file has the lines that a finding names; in other files the place is the key that holds the template.
The run is of the category `jinjarun COMMAND`: what GitHub keeps apart when several commands are uploaded for a commit.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from probes.reporters.escaping import json_text, line, sarif_text, uri
from probes.reporters.formats import Format
from probes.rules import rules

if TYPE_CHECKING:
    from collections.abc import Iterable

    from probes.reporters.formats import Out
    from probes.results.rows import Brief, Row
    from probes.results.tally import Tally

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def write(rows: Iterable[Row], out: Out, tally: Tally) -> None:
    out.write(f'{{"$schema": "{SCHEMA}", "version": "2.1.0", "runs": [{{"results": ['.encode())
    notifications: list[dict[str, Any]] = []
    results = 0
    for row in rows:
        for found in row.summary.findings if row.summary is not None else []:
            out.write(f"{',' if results else ''}\n{json_text(_result(row, found))}".encode())
            results += 1
        if row.error is not None:
            notifications.append(_notification(row, row.error))
    invocation = {"executionSuccessful": True, "toolExecutionNotifications": notifications}
    driver = {
        "name": "jinjarun",
        "version": _version(),
        "rules": [_rule(code, *tally.rules[code]) for code in sorted(tally.rules)],
    }
    rest = {
        "automationDetails": {"id": f"jinjarun {tally.command}/"},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "tool": {"driver": driver},
    }
    out.write(f"\n], {json_text(rest)[1:]}]}}\n".encode())


def _result(row: Row, found: Brief) -> dict[str, Any]:
    return {
        "ruleId": found.code,
        "level": LEVELS[found.severity],
        "message": {"text": sarif_text(f"{found.message}. To repair: {found.suggestion}.")},
        "locations": [_location(row, found)],
        "partialFingerprints": {"jinjarun/v1": found.fingerprint},
    }


def _location(row: Row, found: Brief | None = None) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": reference(row.id)}}
    if found is not None and row.kind == "jinja_file" and found.line is not None:
        column = {} if found.column is None else {"startColumn": found.column}
        physical["region"] = {"startLine": found.line, **column}
    location: dict[str, Any] = {"physicalLocation": physical}
    if row.key is not None:
        location["logicalLocations"] = [{"fullyQualifiedName": line(row.key), "kind": "member"}]
    return location


def _notification(row: Row, error: dict[str, str]) -> dict[str, Any]:
    return {
        "level": "error" if row.status == "error" else "warning",
        "message": {"text": sarif_text(error["message"])},
        "locations": [_location(row)],
        "descriptor": {"id": error["type"]},
    }


def _rule(code: str, name: str, severity: str) -> dict[str, Any]:
    rule = rules().get(code)
    described = {"id": code, "name": name, "defaultConfiguration": {"level": LEVELS[severity]}}
    if rule is not None:
        described["defaultConfiguration"] = {"level": LEVELS[rule.severity]}
        described["shortDescription"] = {"text": rule.summary}
        described["fullDescription"] = {"text": rule.documentation.strip()}
        described["help"] = {"text": rule.suggestion}
    return described


def _version() -> str:
    from probes.prober import tool_info  # noqa: PLC0415

    return tool_info().version


def reference(path: str) -> str:
    """Where a file is: relative paths stay relative to where the scan was started."""
    if os.path.isabs(path):
        return "file://" + uri(path)
    return uri(path).replace(":", "%3A")


FORMAT = Format("sarif", "SARIF 2.1.0, for code scanning", write, (".sarif", ".sarif.json"), findings=True)
