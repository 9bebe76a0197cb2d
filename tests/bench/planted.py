"""Templates with a planted defect: how many are found, and whether their healthy twins stay without failure.

python -m tests.bench.planted [--examples 300] [--jobs 2] [NAME...]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from probes.chats.corpus import corpus_folder
from probes.fuzzer.fuzz import FuzzReport, fuzz
from probes.linter.lint import lint

ROWS: list[dict[str, str]] = json.loads(
    (Path(__file__).parents[1] / "probes" / "planted.json").read_text(encoding="utf-8")
)
"""`base`: a family; `old`, `new`: what is replaced in its template; `law`, `code`: what must be found."""


def family(name: str) -> tuple[str, dict[str, str]]:
    """The template of a family and its special tokens."""
    config: dict[str, Any] = json.loads((corpus_folder() / name / "tokenizer_config.json").read_text(encoding="utf-8"))
    return config["chat_template"], {f"{which}_token": config.get(f"{which}_token") or "" for which in ("bos", "eos")}


def planted(row: dict[str, str]) -> tuple[str, dict[str, str]]:
    template, tokens = family(row["base"])
    assert row["old"] in template, row["name"]
    return template.replace(row["old"], row["new"]), tokens


def found(row: dict[str, str], report: FuzzReport) -> bool:
    """Whether the report tells of the defect by the law that is meant, as a failure or as known."""
    return any(example.law == row["law"] and example.found.code == row["code"] for example in _told(report))


def _told(report: FuzzReport) -> list[Any]:
    return [*report.broken, *report.known]


def ask_planted(row: dict[str, str], examples: int) -> tuple[bool, list[tuple[str, str, str]]]:
    template, tokens = planted(row)
    report = fuzz(template, name=row["name"], max_examples=examples, shrink=False, **tokens)
    return found(row, report), [(one.law, one.found.code, one.found.cause) for one in _told(report)]


def ask_healthy(name: str, examples: int) -> list[tuple[str, str, str]]:
    template, tokens = family(name)
    """What breaks there, but for what a rule says of the family, too: a fault of the format is no false alarm."""
    report = fuzz(template, name=name, max_examples=examples, shrink=False, **tokens)
    faults = {finding.code for finding in lint(template).findings if finding.severity == "error"}
    return [(one.law, one.found.code, one.found.cause) for one in report.broken if one.found.code not in faults]


def main() -> int:
    asked = argparse.ArgumentParser(description="Ask for planted defects.")
    asked.add_argument("names", nargs="*")
    asked.add_argument("--examples", type=int, default=300)
    asked.add_argument("--jobs", type=int, default=2)
    args = asked.parse_args()
    rows = [row for row in ROWS if not args.names or row["name"] in args.names]
    twins = sorted({row["base"] for row in rows})
    began = time.monotonic()
    hits = alarms = 0
    with ProcessPoolExecutor(args.jobs) as workers:
        for row, (hit, told) in zip(rows, workers.map(partial(ask_planted, examples=args.examples), rows), strict=True):
            hits += hit
            if not hit:
                print(f"missed {row['name']}: {row['law']} {row['code']}; told: {told}")
        for name, broken in zip(twins, workers.map(partial(ask_healthy, examples=args.examples), twins), strict=True):
            alarms += bool(broken)
            if broken:
                print(f"alarm on {name}: {broken}")
    seconds = time.monotonic() - began
    print(f"{hits} of {len(rows)} found within {args.examples} examples, {alarms} alarms on {len(twins)} healthy twins")
    print(f"{seconds:.0f} s")
    return 0 if hits >= len(rows) - 3 and not alarms else 1


if __name__ == "__main__":
    sys.exit(main())
