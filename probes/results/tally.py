"""What is said of a whole corpus."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from probes.results.rows import NO_FAMILY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from probes.report import Severity
    from probes.results.rows import Fact, Row, Status, Summary

WORST = 10


@dataclass(slots=True)
class Reach:
    """A template with findings: in how many files it is, and the first of them."""

    sha256: str
    id: str
    family: str | None
    errors: int
    warnings: int
    codes: tuple[str, ...]
    files: int = 0


class Tally:
    """Figures over the rows that went by: `rows`, `files`, `templates` (distinct), `statuses`; `in_files` and
    `in_templates` count `Summary.facts`; `rules` names each rule with a finding and its gravest severity. `command` is
    what gave the rows."""

    def __init__(self, command: str = "scan") -> None:
        self.command = command
        self.rows = 0
        self.files = 0
        self.templates = 0
        self.statuses: Counter[Status] = Counter()
        self.in_files: Counter[Fact] = Counter()
        self.in_templates: Counter[Fact] = Counter()
        self.rules: dict[str, tuple[str, Severity]] = {}
        self._reaches: dict[str, Reach] = {}
        self._last_id: str | None = None

    def watching(self, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            self.add(row)
            yield row

    def add(self, row: Row) -> None:
        self.rows += 1
        self.files += row.id != self._last_id
        self._last_id = row.id
        self.statuses[row.status] += 1
        self.templates += row.first
        if row.summary is None or row.sha256 is None:
            return
        self.in_files.update(row.summary.facts)
        if row.first:
            self.in_templates.update(row.summary.facts)
            self._learn(row.sha256, row.id, row.summary)
        reach = self._reaches.get(row.sha256)
        if reach is not None:
            reach.files += 1

    def _learn(self, sha256: str, id: str, summary: Summary) -> None:
        for found in summary.findings:
            known = self.rules.get(found.code)
            if known is None or _GRAVITY[found.severity] < _GRAVITY[known[1]]:
                self.rules[found.code] = (found.name, found.severity)
        errors, warnings = summary.count("error"), summary.count("warning")
        if errors or warnings:
            codes = tuple(dict.fromkeys(found.code for found in summary.findings if found.severity == "error"))
            self._reaches[sha256] = Reach(sha256, id, summary.family, errors, warnings, codes)

    @property
    def families(self) -> int:
        """Those known to us; templates of no known family are none."""
        return len({name for asked, name in self.in_files if asked == "family"} - {NO_FAMILY})

    def worst(self) -> list[Reach]:
        """Those that do most harm: with errors, in the most files."""
        ranked = sorted(
            self._reaches.values(), key=lambda one: (-bool(one.errors), -one.files, -one.errors, -one.warnings, one.id)
        )
        return ranked[:WORST]

    def of(self, kind: str) -> list[tuple[str, int, int]]:
        """(name, files, templates) of each fact of this kind, the most files first."""
        names = {name: files for (asked, name), files in self.in_files.items() if asked == kind}
        return [
            (name, files, self.in_templates[kind, name])
            for name, files in sorted(names.items(), key=lambda pair: (-pair[1], pair[0]))
        ]

    def shares(self, part: str, whole: str) -> list[tuple[str, int, int]]:
        """(name, templates in `part`, templates in `whole`) in the order in which reports have the names."""
        names = [name for asked, name in self.in_templates if asked == whole]
        return [(name, self.in_templates[part, name], self.in_templates[whole, name]) for name in names]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON. Counts are of distinct templates unless the key says files."""
        return {
            "rows": self.rows,
            "files": self.files,
            "templates": self.templates,
            "families": self.families,
            "statuses": dict(sorted(self.statuses.items())),
            "by_family": {name: {"files": files, "templates": found} for name, files, found in self.of("family")},
            "loads": {name: found for name, _, found in self.of("loads")},
            "caps": {name: {"yes": yes, "of": of} for name, yes, of in self.shares("caps:yes", "caps:asked")},
            "observed": {
                name: {"yes": yes, "of": of} for name, yes, of in self.shares("observed:yes", "observed:asked")
            },
            "laws": {name: {"broken": no, "of": of} for name, no, of in self.shares("law:broken", "law:judged")},
            "rules": {
                code: {
                    "name": self.rules[code][0],
                    "severity": self.rules[code][1],
                    "files": files,
                    "templates": found,
                }
                for code, files, found in self.of("rule")
            },
            "worst": [
                {
                    "sha256": one.sha256,
                    "first": one.id,
                    "files": one.files,
                    "errors": one.errors,
                    "warnings": one.warnings,
                    "codes": list(one.codes),
                }
                for one in self.worst()
            ],
        }


_GRAVITY = {"error": 0, "warning": 1, "info": 2}
