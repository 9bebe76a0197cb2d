"""What a probe costs beside Jinja2, over the official templates: `python -m tests.bench.probe_cost [--rounds N]`.

CPU time of `probe` at both depths and of Jinja2's `from_string`, in one process, by turns, template by template; of N
rounds the best one counts. Each probe starts from the text: nothing that an earlier one compiled is kept. Prints the
ratios and the renders that the reports name. Needs ../shared.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from jinjarun.serving.cache import cached_caps, cached_template
from probes.prober import Depth, probe
from probes.report import ProbeReport
from tests.bench.compile_and_render import JINJA, best_of
from tests.conformance import golden

DEPTHS: tuple[Depth, ...] = ("quick", "full")
GOALS = {"quick": 3, "full": 8}
"""Times the cost of `from_string` that a probe of all six paths may have, as the median over the templates."""


@dataclass
class Row:
    """Seconds of one template's `from_string` and of its probe at each depth, and the probe's renders."""

    slug: str
    jinja: float
    ours: dict[str, float]
    renders: dict[str, int]

    def ratio(self, depth: str) -> float:
        return self.ours[depth] / self.jinja


def cold_probe(source: str, depth: Depth) -> ProbeReport:
    cached_template.cache_clear()
    cached_caps.cache_clear()
    return probe(source, depth=depth)


def measured(slug: str, rounds: int) -> Row:
    source = golden.template_source(slug)
    works: dict[str, Callable[[], object]] = {"from_string": partial(JINJA.from_string, source)}
    for depth in DEPTHS:
        works[depth] = partial(cold_probe, source, depth)
    renders = {depth: cold_probe(source, depth).cost.renders for depth in DEPTHS}
    best = best_of(rounds, works)
    return Row(slug, best.pop("from_string"), best, renders)


def table(rows: list[Row]) -> str:
    jinja = statistics.median(row.jinja for row in rows)
    lines = [f"{'':12} {'median':>10} {'median ratio':>13} {'goal':>6} {'worst ratio':>12} {'renders':>8}"]
    lines.append(f"{'from_string':12} {jinja * 1e3:7.1f} ms")
    for depth in DEPTHS:
        median = statistics.median(row.ours[depth] for row in rows)
        ratios = [row.ratio(depth) for row in rows]
        renders = statistics.median(row.renders[depth] for row in rows)
        lines.append(
            f"{depth:12} {median * 1e3:7.1f} ms {statistics.median(ratios):11.2f} x {GOALS[depth]:4} x "
            f"{max(ratios):10.2f} x {renders:8.0f}"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.probe_cost", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="of so many the best counts (default 3)")
    parser.add_argument("--each", action="store_true", help="print each template's ratios and renders too")
    args = parser.parse_args()
    if not golden.have_shared():
        sys.exit(golden.NO_SHARED)

    manifest = (golden.SHARED / "corpus" / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    official = [row["slug"] for row in map(json.loads, manifest) if row["official"]]
    gc.disable()
    rows = []
    for slug in official:
        row = measured(slug, args.rounds)
        rows.append(row)
        gc.collect()
        if args.each:
            figures = ", ".join(f"{depth} {row.ratio(depth):.2f} x, {row.renders[depth]} renders" for depth in DEPTHS)
            print(f"{slug}: {figures}")
    print(f"{len(rows)} official templates, CPU time, best of {args.rounds}\n")
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
