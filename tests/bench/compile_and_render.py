"""CPU time beside Jinja2's, over the official templates: `python -m tests.bench.compile_and_render [--rounds N]`.

Both sides run in one process, by turns, template by template; of N rounds the best one counts. Compiling is from the
text to something that renders, each time anew; Jinja2's side is the environment of transformers, without its cache.
Renders are those of the recorded conversations that neither side refuses, limits on. Needs ../shared.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from jinjarun import reference
from jinjarun.errors import JinjarunError
from jinjarun.serving.caps import chat_template_caps
from jinjarun.template import Template
from tests.conformance import golden

Renderer = Callable[[dict[str, Any]], object]

JINJA = reference.environment()
JINJA.globals["strftime_now"] = lambda form: datetime.fromtimestamp(golden.suite()["now"], UTC).strftime(form)


@dataclass
class Row:
    """Seconds of ours and of Jinja2's for one template; `ours` of each measurement by its name."""

    jinja: float
    ours: dict[str, float] = field(default_factory=dict)


def once(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def best_of(rounds: int, works: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The best time of each piece of work, taken by turns, so that a slow moment of the machine hits all alike."""
    best = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            best[name] = min(best[name], once(work))
    return best


def quietly(work: Callable[[], object]) -> Callable[[], object]:
    """The same work where it may end in one of our errors: llama.cpp refuses some templates, and so do we."""

    def attempt() -> object:
        try:
            return work()
        except JinjarunError:
            return None

    return attempt


def compiling(source: str, rounds: int) -> Row:
    works: dict[str, Callable[[], object]] = {
        "from_string": lambda: JINJA.from_string(source),
        "compile transformers": quietly(lambda: Template(source, dialect="transformers")),
        "compile llama.cpp": quietly(lambda: Template(source, dialect="llama.cpp")),
        "caps": quietly(lambda: chat_template_caps(source)),
    }
    best = best_of(rounds, works)
    return Row(best.pop("from_string"), best)


def sides(source: str) -> dict[str, tuple[Renderer, str]]:
    """By name, what renders a context and the dialect whose contexts it takes."""
    compiled = JINJA.from_string(source)
    found: dict[str, tuple[Renderer, str]] = {"jinja": (lambda context: compiled.render(**context), "transformers")}
    for dialect in golden.ENGINES:
        template = Template(source, dialect=dialect)
        found[f"render {dialect}"] = (partial(template.render_context, now=golden.suite()["now"]), dialect)
    return found


def rendering(source: str, rounds: int) -> Row | None:
    """All conversations that every side renders, as one piece of work; None where there are none."""
    try:
        found = sides(source)
    except JinjarunError:
        return None
    good = [
        name
        for name in golden.suite()["conversations"]
        if all(renders(render, golden.suite_context(name, dialect)) for render, dialect in found.values())
    ]
    works: dict[str, Callable[[], object]] = {}
    for side, (render, dialect) in found.items():
        works[side] = partial(render_all, render, [golden.suite_context(name, dialect) for name in good])
    best = best_of(rounds, works)
    return Row(best.pop("jinja"), best) if good else None


def render_all(render: Renderer, contexts: list[dict[str, Any]]) -> None:
    for context in contexts:
        render(context)


def renders(render: Renderer, context: dict[str, Any]) -> bool:
    try:
        render(context)
    except Exception:
        return False
    return True


def table(rows: Iterable[Row], unit: float, jinja: str) -> str:
    rows = list(rows)
    total = sum(row.jinja for row in rows)
    lines = [f"{'':22} {'median':>10} {'total':>10} {'of ' + jinja:>16} {'median ratio':>13}"]
    median = statistics.median(row.jinja for row in rows)
    lines.append(f"{'Jinja2 ' + jinja:22} {median * unit:7.2f} ms {total * 1e3:7.0f} ms")
    for name in rows[0].ours:
        ours = [row.ours[name] for row in rows]
        ratios = statistics.median(row.ours[name] / row.jinja for row in rows)
        lines.append(
            f"{name:22} {statistics.median(ours) * unit:7.2f} ms {sum(ours) * 1e3:7.0f} ms "
            f"{sum(ours) / total:14.2f} x {ratios:11.2f} x"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.compile_and_render", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="of so many the best counts (default 5)")
    args = parser.parse_args()
    if not golden.have_shared():
        sys.exit(golden.NO_SHARED)

    manifest = (golden.SHARED / "corpus" / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    official = [row["slug"] for row in map(json.loads, manifest) if row["official"]]
    sources = [golden.template_source(name) for name in official]
    gc.disable()
    print(f"{len(sources)} official templates, CPU time, best of {args.rounds}\n")
    print(table([compiling(source, args.rounds) for source in sources], 1e3, "from_string"))
    print("\nall conversations that render, each template's as one:\n")
    rows = [rendering(source, args.rounds) for source in sources]
    print(table([row for row in rows if row is not None], 1e3, "render"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
