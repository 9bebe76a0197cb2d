"""The figures of a scan as titled tables: what the terminal and Markdown print."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from probes.results.tally import Tally

FAMILIES = 15


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    heads: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def headline(tally: Tally) -> str:
    """The scan in one sentence."""
    said = [
        _number(tally.files, "file"),
        _number(tally.templates, "distinct template"),
        _number(tally.families, "family", "families"),
    ]
    said += [
        f"{count:,} {words}"
        for status, words in (
            ("no_template", "without a template"),
            ("error", "unreadable"),
            ("not_evaluated", "not evaluated"),
        )
        if (count := tally.statuses[status])  # type: ignore[index]  # the keys are those of Status
    ]
    return ", ".join(said)


def tables(tally: Tally) -> list[Table]:
    """What a corpus can do and where it fails; shares are of distinct templates that could be judged."""
    found = []
    families = tally.of("family")
    rows = [(name, f"{files:,}", f"{templates:,}") for name, files, templates in families[:FAMILIES]]
    if rest := families[FAMILIES:]:
        rows.append((f"{len(rest)} more", f"{sum(one[1] for one in rest):,}", f"{sum(one[2] for one in rest):,}"))
    found.append(Table("families", ("family", "files", "templates"), rows))
    for title, head, part, whole in (
        ("llama.cpp's chat_template_caps", "flag", "caps:yes", "caps:asked"),
        ("what templates can do", "observed", "observed:yes", "observed:asked"),
        ("prefix laws broken", "law", "law:broken", "law:judged"),
    ):
        shares = [(name, share(yes, of), f"{yes:,} of {of:,}") for name, yes, of in tally.shares(part, whole)]
        found.append(Table(title, (head, "share", "templates"), shares))
    rules = [
        (code, tally.rules[code][1], tally.rules[code][0], f"{files:,}", f"{templates:,}")
        for code, files, templates in tally.of("rule")
    ]
    found.append(Table("rules by reach", ("rule", "at worst", "name", "files", "templates"), rules))
    worst = [
        (one.sha256[:12], f"{one.files:,}", " ".join(one.codes) or f"{one.warnings} warnings", one.id)
        for one in tally.worst()
    ]
    found.append(Table("the ten worst by files affected", ("template", "files", "errors", "first found in"), worst))
    return [table for table in found if table.rows]


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"


def _number(count: int, one: str, many: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"
