"""A row as a flat record, for tables of values: csv and parquet."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Literal

from jinjarun.serving.caps import Caps
from probes.chapters.observed.questions import QUESTIONS
from probes.chapters.prefix import LAWS
from probes.rendering.renders import PATHS

if TYPE_CHECKING:
    from probes.results.rows import Row

Value = str | int | bool | None
Type = Literal["text", "integer", "boolean"]

COLUMNS: dict[str, Type] = {
    "id": "text",
    "kind": "text",
    "key": "text",
    "name": "text",
    "form": "text",
    "status": "text",
    "sha256": "text",
    "first": "boolean",
    "error_type": "text",
    "error": "text",
    "report": "text",
    "family": "text",
    "bytes": "integer",
    "lines": "integer",
    "errors": "integer",
    "warnings": "integer",
    "infos": "integer",
    "rules": "text",
    **{f"rendered:{path}": "integer" for path in PATHS},
    **{field.name: "boolean" for field in fields(Caps)},
    **{f"observed:{question}": "text" for question in QUESTIONS},
    **{f"law:{law}": "boolean" for law in LAWS},
}
"""`rendered:` is of how many conversations, null where the path does not load the template; `rules` are codes with
spaces between them, the gravest first."""


def flat(row: Row) -> dict[str, Value]:
    """Every column; null where the row has nothing there."""
    found: dict[str, Value] = dict.fromkeys(COLUMNS)
    for name in ("id", "kind", "key", "name", "form", "status", "sha256", "first"):
        found[name] = getattr(row, name)
    if row.error is not None:
        found["error_type"], found["error"] = row.error["type"], row.error["message"]
    summary = row.summary
    if summary is None:
        return found
    found |= {"report": summary.report, "family": summary.family, "bytes": summary.bytes, "lines": summary.lines}
    found |= {"errors": summary.count("error"), "warnings": summary.count("warning"), "infos": summary.count("info")}
    found["rules"] = " ".join(dict.fromkeys(finding.code for finding in summary.findings))
    for path, engine in summary.engines.items():
        found[f"rendered:{path}"] = engine.rendered if engine.loads else None
    found |= summary.caps or {}
    found |= {f"observed:{question}": answer for question, answer in summary.observed.items()}
    found |= {f"law:{law}": holds for law, holds in summary.laws.items()}
    return {name: found[name] for name in COLUMNS}
