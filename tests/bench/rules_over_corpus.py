"""Every rule on the 520 templates of ../shared: `python -m tests.bench.rules_over_corpus [--write]`.

Prints a table of rules by hits. `--write` keeps what was found in tests/probes/rules/corpus_findings.json and the table
in docs/rules.md; `--show CODE` prints the findings of one rule, `--errors` the errors on official releases.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jinjarun.errors import JinjarunError
from jinjarun.isolation import IsolatedExecutor
from probes.linter.targets import Options, lint_isolated
from probes.rules import rules
from tests.conformance.golden import NO_SHARED, SHARED, have_shared

ROOT = Path(__file__).resolve().parents[2]
FOUND = ROOT / "tests" / "probes" / "rules" / "corpus_findings.json"
PAGE = ROOT / "docs" / "rules.md"
SEVERITIES = ("error", "warning", "info")

Findings = dict[str, list[str]]
"""Template -> what was found there, each as "CODE severity", or "CODE also" where another finding names it; sorted."""


def manifest() -> dict[str, dict[str, Any]]:
    lines = (SHARED / "corpus" / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["slug"]: row for row in map(json.loads, lines)}


def officials() -> list[str]:
    return [slug for slug, row in manifest().items() if row["official"]]


def lint_slugs(slugs: Iterable[str], workers: int = 2) -> dict[str, list[dict[str, Any]] | str]:
    """Each template's findings, or why it was not evaluated."""
    options = asdict(Options(preview=True))
    answers: dict[str, list[dict[str, Any]] | str] = {}
    with IsolatedExecutor(workers, timeout_seconds=300, cpu_seconds=120, readable=[SHARED]) as executor:
        futures = {slug: executor.submit(lint_isolated, _path(slug), options) for slug in slugs}
        for slug, future in futures.items():
            try:
                answers[slug] = future.result()[0]["findings"]
            except JinjarunError as error:
                answers[slug] = f"{error.name}: {error.message}"
    return answers


def _path(slug: str) -> str:
    return str(SHARED / "corpus" / "templates" / f"{slug}.jinja")


def brief(answers: dict[str, list[dict[str, Any]] | str]) -> Findings:
    return {slug: _brief(found) if isinstance(found, list) else [found] for slug, found in answers.items()}


def _brief(rows: list[dict[str, Any]]) -> list[str]:
    leading = {f"{row['code']} {row['severity']}" for row in rows}
    return sorted(leading | {f"{code} also" for row in rows for code in row["also"]})


def table(found: Findings, official: Iterable[str]) -> str:
    """Rules by the number of templates that they hit: all, the official releases, and all by severity."""
    known = rules()
    names = set(official)
    rows = []
    for code, rule in known.items():
        hit = {slug for slug, codes in found.items() if any(one.startswith(code) for one in codes)}
        counts = [sum(f"{code} {severity}" in codes for codes in found.values()) for severity in SEVERITIES]
        rows.append((len(hit), code, rule, len(hit & names), counts))
    rows.sort(key=lambda row: (-row[0], row[1]))
    lines = [
        f"| rule | name | of {len(found)} templates | of {len(names)} official | error | warning | info |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for hits, code, rule, official_hits, counts in rows:
        mark = " (preview)" if rule.preview else ""
        cells = " | ".join(map(str, counts))
        lines.append(f"| {code} | {rule.name}{mark} | {hits} | {official_hits} | {cells} |")
    return "\n".join(lines)


def rules_table() -> str:
    lines = ["| rule | name | severity | what it says |", "|---|---|---|---|"]
    for rule in rules().values():
        mark = " (preview)" if rule.preview else ""
        lines.append(f"| {rule.code} | {rule.name}{mark} | {rule.severity} | {rule.summary} |")
    return "\n".join(lines)


def filled(page: str, part: str, content: str) -> str:
    """The page with the text between the markers of one part replaced."""
    start, end = f"<!-- {part}: start -->", f"<!-- {part}: end -->"
    return re.sub(f"{start}.*?{end}", lambda _: f"{start}\n{content}\n{end}", page, flags=re.DOTALL)


def page(found: Findings, official: Iterable[str]) -> str:
    """docs/rules.md as it must be for these findings."""
    text = PAGE.read_text(encoding="utf-8")
    return filled(filled(text, "rules", rules_table()), "hits", table(found, official))


def kept() -> Findings:
    """What was found when the page was made."""
    loaded: Findings = json.loads(FOUND.read_text(encoding="utf-8"))
    return loaded


def write(found: Findings, official: list[str]) -> None:
    rows = [f" {json.dumps(slug)}: {json.dumps(codes)}" for slug, codes in sorted(found.items())]
    FOUND.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
    PAGE.write_text(page(found, official), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.rules_over_corpus", description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="keep the findings and the table")
    parser.add_argument("--show", metavar="CODE", help="print the findings of this rule")
    parser.add_argument("--errors", action="store_true", help="print the errors on official releases")
    parser.add_argument("--only", metavar="TEXT", help="only templates whose name holds this text")
    args = parser.parse_args()
    if not have_shared():
        sys.exit(NO_SHARED)
    official = officials()
    answers = lint_slugs([slug for slug in manifest() if args.only is None or args.only in slug])
    for slug, found in answers.items():
        if isinstance(found, str):
            print(f"{slug}: not evaluated: {found}")
            continue
        for row in found:
            wanted = row["code"] == args.show or (args.errors and slug in official and row["severity"] == "error")
            if wanted:
                print(f"{slug}: {row['code']} {row['severity']} on {', '.join(row['engines'])}: {row['message']}")
    print(table(brief(answers), official))
    unknown = [slug for slug, found in answers.items() if isinstance(found, str)]
    if args.write and unknown:
        sys.exit(f"nothing was written: {len(unknown)} templates were not evaluated")
    if args.write:
        write(brief(answers), official)
    return 0


if __name__ == "__main__":
    sys.exit(main())
