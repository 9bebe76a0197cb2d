"""Public commits that mend a template: whether lint, fuzz and compare tell what they mend.

python -m tests.bench.pairs [--tools lint,fuzz,compare] [--examples 100] [--jobs 2] [NAME...]

Lint or fuzz tell a pair where a finding, or a broken law, of the template before is absent or lessened after, and no
error is new after. Compare tells it where the mend is listed as an improvement and nothing as broken, and the other way
round something as broken. A line for each pair, and the totals: of all pairs, of those whose defect shows without
knowing the model, and of their causes (pairs of one `cluster` are one; it counts where all of its pairs do). Needs
../shared.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

from probes.comparison.engines import compare_templates
from probes.fuzzer.fuzz import fuzz
from probes.linter.lint import lint
from tests.conformance.golden import NO_SHARED, SHARED, have_shared

PAIRS = SHARED / "pairs" / "pairs.jsonl"
TOOLS = ("lint", "fuzz", "compare")
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
RANKS = {"info": 1, "warning": 2, "error": 3}
SHOWN = 3
"""Reasons that are printed of each tool."""

Weights = dict[str, list[int]]
"""What a tool says of one template: name of what is wrong -> the ranks of its severities, the gravest first."""


def pairs() -> list[dict[str, Any]]:
    return [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]


def lint_weights(template: str) -> Weights:
    """By the code of the rule."""
    return _weights((found.code, RANKS[found.severity]) for found in lint(template).findings)


def fuzz_weights(template: str, examples: int) -> Weights:
    """By law, rule and cause, the numbers of lines left out; what is known of the template weighs nothing."""
    report = fuzz(template, max_examples=examples, shrink=False, **TOKENS)
    if report.status == "not_evaluated":
        return {"renders nothing": [RANKS["error"]]}
    named = ((f"{one.law} {one.found.code} {re.sub(r'[0-9]+', '', one.found.cause)}", one) for one in report.broken)
    return _weights((name, RANKS[one.severity]) for name, one in named)


def _weights(found: Iterable[tuple[str, int]]) -> Weights:
    weights: defaultdict[str, list[int]] = defaultdict(list)
    for name, rank in found:
        weights[name].append(rank)
    return {name: sorted(ranks, reverse=True) for name, ranks in sorted(weights.items())}


def mended(before: Weights, after: Weights) -> tuple[list[str], list[str]]:
    """What is absent or lessened after, and the errors that are new after."""
    less = [name for name, ranks in before.items() if ranks > after.get(name, [])]
    new = [name for name, ranks in after.items() if 3 in ranks and 3 not in before.get(name, [])]
    return less, new


def compared(before: str, after: str, examples: int) -> tuple[list[str], list[str]]:
    """The improvements, and what stands against them: something broken, or nothing broken the other way round."""
    there, back = (
        compare_templates(old, new, max_examples=examples).changes for old, new in ((before, after), (after, before))
    )
    better = [f"{change.chapter} {change.name}" for change in there if change.impact == "improved"]
    worse = [f"breaks {change.chapter} {change.name}" for change in there if change.impact == "broken"]
    if not any(change.impact == "broken" for change in back):
        worse.append("not broken the other way round")
    return better, worse


def ask(pair: dict[str, Any], tools: tuple[str, ...], examples: int) -> dict[str, tuple[list[str], list[str]]]:
    """By tool, what tells the mend, and what stands against it."""
    before, after = pair["before"], pair["after"]
    found = {}
    if "lint" in tools:
        found["lint"] = mended(lint_weights(before), lint_weights(after))
    if "fuzz" in tools:
        found["fuzz"] = mended(fuzz_weights(before, examples), fuzz_weights(after, examples))
    if "compare" in tools:
        found["compare"] = compared(before, after, min(examples, 30))
    return found


def tells(answer: tuple[list[str], list[str]]) -> bool:
    told, against = answer
    return bool(told) and not against


def causes(rows: Iterable[dict[str, Any]]) -> dict[str, list[str]]:
    """The ids of pairs by their cause."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for row in rows:
        found[row["cluster"] or row["id"]].append(row["id"])
    return found


def totals(rows: list[dict[str, Any]], told: Mapping[str, set[str]]) -> list[str]:
    """`told`: the ids that each way of asking tells."""
    visible = [row for row in rows if row["visible_without_reference"]]
    by_cause = causes(visible)
    lines = [f"{'':16}{'all':>10}{'visible':>10}{'causes':>10}"]
    for way, ids in told.items():
        cells = [
            (len(ids & {row["id"] for row in rows}), len(rows)),
            (len(ids & {row["id"] for row in visible}), len(visible)),
            (sum(ids >= set(members) for members in by_cause.values()), len(by_cause)),
        ]
        lines.append(f"{way:16}" + "".join(f"{some:>4} of {of:<3}" for some, of in cells))
    return lines


def main() -> int:
    asked = argparse.ArgumentParser(description="Ask what commits mended.")
    asked.add_argument("names", nargs="*")
    asked.add_argument("--tools", default=",".join(TOOLS))
    asked.add_argument("--examples", type=int, default=100)
    asked.add_argument("--jobs", type=int, default=2)
    args = asked.parse_args()
    if not have_shared():
        print(NO_SHARED)
        return 2
    tools = tuple(args.tools.split(","))
    rows = [row for row in pairs() if not args.names or row["id"] in args.names]
    told: dict[str, set[str]] = {tool: set() for tool in tools}
    with ProcessPoolExecutor(args.jobs) as workers:
        answers = workers.map(partial(ask, tools=tools, examples=args.examples), rows)
        for row, found in zip(rows, answers, strict=True):
            words = [f"{tool} {'yes' if tells(answer) else 'no'}" for tool, answer in found.items()]
            print(f"{row['id']}  {', '.join(words)}: {row['defect']}", flush=True)
            for tool, answer in found.items():
                if tells(answer):
                    told[tool].add(row["id"])
                for what, names in zip(("mended", "against"), answer, strict=True):
                    if names:
                        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
                        print(f"      {tool} {what}: {'; '.join(names[:SHOWN])}{more}", flush=True)
    told["lint or fuzz"] = told.get("lint", set()) | told.get("fuzz", set())
    told["any"] = told["lint or fuzz"] | told.get("compare", set())
    print("\n".join(totals(rows, told)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
