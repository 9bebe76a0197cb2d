"""What `lint`, `fuzz` and `snapshot --check` found, as the rows that reporters of findings write."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from jinjarun.errors import quote
from probes.chats.messages import request_body
from probes.report import TemplateSource
from probes.reporters.changes import cut, literal
from probes.reporters.escaping import json_text
from probes.results.rows import Brief, Row, Summary, brief, tool
from probes.rules import rules

if TYPE_CHECKING:
    from jinjarun.errors import JinjarunError
    from probes.comparison.snapshot import Change, Kept
    from probes.fuzzer.fuzz import Counterexample, FuzzReport
    from probes.linter.lint import LintResult
    from probes.report import Severity, TemplateInfo

NAMES_SHOWN = 3
"""Names of one kind that a finding lists; the others are counted."""
KINDS = {"made_with": "what it was made with", "caps": "caps", "observed": "what it can do", "prompt": "prompts"}
"""The kinds of changes since a snapshot, in words."""


def error_row(target: str, error: JinjarunError) -> Row:
    """A target that could not be judged."""
    return Row(target, "file", "error", error={"type": type(error).__name__, "message": quote(error.message)})


def lint_row(result: LintResult) -> Row:
    return _row(result.template, [brief(found) for found in result.findings])


def fuzz_row(template: TemplateInfo, report: FuzzReport, *, strict: bool = False) -> Row:
    """What makes the command fail is an error, what the template is known to do is told."""
    if report.why is not None:
        return _failed(template, "not evaluated", report.why)
    findings = [_law(template, report, example, "error") for example in report.broken]
    findings += [_law(template, report, one, "error" if strict and one.fails else "info") for one in report.known]
    return _row(template, findings)


def snapshot_row(template: TemplateInfo, kept: Kept) -> Row:
    if kept.state == "missing":
        return _failed(template, "no snapshot", f"{kept.file} is missing")
    return _row(template, [_differs(template, kept)] if kept.state == "changed" else [])


def _law(template: TemplateInfo, report: FuzzReport, example: Counterexample, severity: Severity) -> Brief:
    found = example.found
    request = json_text(request_body(found.second or found.chat))
    count = f"in {example.count} of {report.examples} conversations"
    return Brief(
        code=found.code,
        name=example.name,
        severity=severity,
        message=f"{found.message}, {count}; the smallest: {request}; again: {report.repeat(found.law)}",
        line=found.line,
        column=None,
        suggestion=rules()[found.code].suggestion,
        fingerprint=f"{_fingerprint(found.code, template, found.line)}:{found.law}:{found.cause}",
    )


def _differs(template: TemplateInfo, kept: Kept) -> Brief:
    """One finding for all that changed: it has one cause, an edit, and annotations are few."""
    said = [
        f"{KINDS[kind]}: {_names([change.name for change in changes])}"
        for kind, changes in groupby(kept.changes, key=lambda change: change.kind)
    ]
    return Brief(
        code="snapshot",
        name="differs",
        severity="error",
        message=f"differs from {kept.file} in {'; '.join(said)}; {_sides(kept.changes)}",
        line=None,
        column=None,
        suggestion="undo the change, or accept it with `jinjarun snapshot --update`",
        fingerprint=_fingerprint("snapshot", template, None),
    )


def _names(names: list[str]) -> str:
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _sides(changes: list[Change]) -> str:
    """Both sides of the first prompt that changed, or of what else did."""
    change = next((change for change in changes if change.kind == "prompt"), changes[0])
    old, new = (literal(side) if change.kind == "prompt" else cut(side) for side in (change.old, change.new))
    return f"{change.name}: {old} became {new}"


def _fingerprint(code: str, template: TemplateInfo, line: int | None) -> str:
    return f"{code}:{template.sha256[:8]}:{line or 0}"


def _row(template: TemplateInfo, findings: list[Brief]) -> Row:
    """A row with findings alone: the other chapters of a summary are a scan's."""
    summary = Summary(
        tool=tool("full"),
        report="complete",
        bytes=template.bytes,
        lines=template.lines,
        family=None if template.family is None else template.family.name,
        engines={},
        caps=None,
        observed={},
        laws={},
        ends_with=None,
        branches=None,
        reached=None,
        findings=findings,
    )
    return replace(_placed(template), status="probed", sha256=template.sha256, first=True, summary=summary)


def _failed(template: TemplateInfo, what: str, why: str) -> Row:
    return replace(_placed(template), error={"type": what, "message": why})


def _placed(template: TemplateInfo) -> Row:
    """A row that says nothing yet but where the template stands."""
    source = template.source or TemplateSource(kind="text")
    path = source.path or template.name or "template"
    return Row(path, source.kind, "error", source.key, template.variant)
