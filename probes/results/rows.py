"""A row for every template of every file, and what a row keeps of a report."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Literal

from jinjarun.dialects import dialect_named
from jinjarun.limits import Limits
from probes.chats.named import CONVERSATION_SET
from probes.report import RULE_SET, SCHEMA_VERSION, Answer, Model, ProbeReport, Severity

if TYPE_CHECKING:
    from collections.abc import Callable

    from probes.report import Finding

Status = Literal["probed", "no_template", "error", "not_evaluated"]
Fact = tuple[str, str]
LIMIT = "LimitExceeded"
NO_FAMILY = "(no known family)"


class Engine(Model):
    """How many of the conversations one path renders."""

    loads: bool
    rendered: int
    of: int


class Brief(Model):
    """A finding without its evidence."""

    code: str
    name: str
    severity: Severity
    message: str
    line: int | None
    column: int | None
    suggestion: str
    fingerprint: str


class Summary(Model):
    """What a row keeps of a report. `tool` names what answered, with its versions and the depth.

    `caps` is null where llama.cpp does not load the template; a law is null where it could not be judged; `ends_with`
    is what ends an assistant turn, null where nobody asked. Chapters that the report does not have are empty.
    """

    tool: str
    report: Literal["complete", "partial", "invalid", "not_evaluated"]
    bytes: int
    lines: int
    family: str | None
    engines: dict[str, Engine]
    caps: dict[str, bool] | None
    observed: dict[str, Answer]
    laws: dict[str, bool | None]
    ends_with: list[str] | None
    branches: int | None
    reached: int | None
    findings: list[Brief]

    @cached_property
    def as_json(self) -> str:
        """Made once: a corpus writes the same summary for thousands of files."""
        return json.dumps(self.model_dump(mode="json"))

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        """What is counted over a corpus, as pairs of what was asked and for what: made once, counted for each row."""
        facts: list[Fact] = [("family", self.family or NO_FAMILY), ("report", self.report)]
        facts += [("loads", path) for path, engine in self.engines.items() if engine.loads]
        for name, value in (self.caps or {}).items():
            facts += [("caps:asked", name)] + [("caps:yes", name)] * value
        for name, answer in self.observed.items():
            facts += [("observed:asked", name)] * (answer != "unknown") + [("observed:yes", name)] * (answer == "yes")
        for law, holds in self.laws.items():
            facts += [("law:judged", law)] * (holds is not None) + [("law:broken", law)] * (holds is False)
        facts += [("rule", code) for code in dict.fromkeys(found.code for found in self.findings)]
        facts += [("severity", worst) for worst in dict.fromkeys(found.severity for found in self.findings)]
        return tuple(facts)

    def count(self, severity: Severity) -> int:
        return sum(found.severity == severity for found in self.findings)


@dataclass(frozen=True, slots=True)
class Row:
    """One template of one file, or one file without any.

    `id`: the path of the file, or the id that a record came with. `kind`: the sort of file, `key` the place in it,
    `name` the template's name there, `form` how the file holds its templates, as `jinjarun.sources.Form`.
    `status`: "probed"; "no_template"; "error", the file could not be read; "not_evaluated", a limit was hit or a worker
    ended, and nothing is known of this template. `error` (`type`, `message`) says why for the last two.
    `first`: no earlier row of this scan has the same template.
    `detail`: what `scanning.worker.evaluate` found, as the compressed JSON of `Detail`: only while the scan
    goes on; None where nothing was kept.
    """

    id: str
    kind: str
    status: Status
    key: str | None = None
    name: str | None = None
    form: str | None = None
    sha256: str | None = None
    first: bool = False
    summary: Summary | None = None
    error: dict[str, str] | None = None
    detail: Callable[[], bytes | None] = field(default=lambda: None, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {**self._own(), "summary": None if self.summary is None else self.summary.model_dump(mode="json")}

    def to_json(self) -> str:
        """The same as one line of ASCII."""
        summary = "null" if self.summary is None else self.summary.as_json
        return f'{json.dumps(self._own())[:-1]}, "summary": {summary}}}'

    def _own(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "kind": self.kind,
            "key": self.key,
            "name": self.name,
            "form": self.form,
            "status": self.status,
            "sha256": self.sha256,
            "first": self.first,
            "error": self.error,
        }


def summarise(report: ProbeReport, depth: str, limits: Limits | None = None) -> Summary:
    """What a row keeps of `report`."""
    family, coverage = report.template.family, report.coverage
    return Summary(
        tool=tool(depth, limits),
        report=report.status,
        bytes=report.template.bytes,
        lines=report.template.lines,
        family=None if family is None else family.name,
        engines={
            f"{engine.id}:{engine.path}": Engine(loads=engine.loads, rendered=engine.rendered, of=engine.of)
            for engine in report.engines
        },
        caps=report.caps.flags,
        observed={name: seen.answer for name, seen in report.observed.items()},
        laws={} if report.prefix is None else {law.law: law.holds for law in report.prefix.laws},
        ends_with=None if report.stop is None else report.stop.written,
        branches=None if coverage is None else coverage.branches,
        reached=None if coverage is None else coverage.reached,
        findings=[brief(found) for found in report.findings],
    )


def brief(found: Finding) -> Brief:
    return Brief(**{key: getattr(found, key) for key in Brief.model_fields})


def limited(report: ProbeReport) -> str | None:
    """Why nothing is known of a template: no engine rendered anything, and each of them because of a limit."""
    if any(engine.rendered for engine in report.engines):
        return None
    errors = [engine.error for engine in report.engines]
    messages = [error.message for error in errors if error is not None and error.type == LIMIT]
    return messages[0] if messages and len(messages) == len(errors) else None


def tool(depth: str, limits: Limits | None = None) -> str:
    """What answers, in words that change whenever an answer might: the key of the cache beside the template's hash."""
    try:
        ours = version("jinjarun")
    except PackageNotFoundError:
        ours = "unknown"
    engines = "+".join(f"{name}-{dialect_named(name).version}" for name in ("transformers", "llama.cpp"))
    sets = f"conversations {CONVERSATION_SET} rules {RULE_SET} schema {SCHEMA_VERSION}"
    given, usual = asdict(limits or Limits()), asdict(Limits())
    others = [f"{name}={value}" for name, value in given.items() if value != usual[name]]
    return " ".join([f"jinjarun {ours} {sets} {engines} {depth}", *others])
