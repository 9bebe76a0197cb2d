"""What an example of `fuzz` costs in CPU time: making it up, rendering it, and all that the laws do beside that.

python -m tests.bench.fuzz_cost [--examples 100] [--rounds 3] [FAMILY...]

Of several rounds with the same conversations the least counts, part by part. `ratio` is rendering and checks to what
Hypothesis and the strategies take: fuzzing is as cheap as it can be while it stays below 1.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from jinjarun.template import Template
from probes.fuzzer.fuzz import _Hunt
from probes.laws import LAWS, Subject
from tests.bench.planted import family

FAMILIES = ("chatml", "hermes-tools", "qwen3", "mistral", "harmony")


class Clock:
    """CPU time spent inside a method of a class, as long as it is measured."""

    def __init__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name
        self.usual = getattr(owner, name)
        self.spent = 0.0
        self.calls = 0

    def __enter__(self) -> Clock:
        def timed(*args: Any, **options: Any) -> Any:
            began = time.process_time()
            try:
                return self.usual(*args, **options)
            finally:
                self.spent += time.process_time() - began
                self.calls += 1

        setattr(self.owner, self.name, timed)
        return self

    def __exit__(self, *error: object) -> None:
        setattr(self.owner, self.name, self.usual)


def measured(subject: Subject, examples: int) -> tuple[float, float, float, float]:
    """Milliseconds for each example: Hypothesis and the strategies, renders, checks; and renders for each."""
    supports = subject.supports
    assert supports is not None
    asked = [law for law in LAWS.values() if law.supported(supports)]
    hunt = _Hunt(subject, supports, asked, seed=0, max_examples=examples, budget=None, progress=None)
    with Clock(Template, "render") as render, Clock(_Hunt, "judge") as judge, Clock(_Hunt, "gather") as whole:
        hunt.gather()
    scale = 1000 / hunt.done
    return (
        (whole.spent - judge.spent) * scale,
        render.spent * scale,
        (judge.spent - render.spent) * scale,
        render.calls / hunt.done,
    )


def main() -> None:
    asked = argparse.ArgumentParser(description="Measure the cost of fuzzing.")
    asked.add_argument("families", nargs="*", default=FAMILIES)
    asked.add_argument("--examples", type=int, default=100)
    asked.add_argument("--rounds", type=int, default=3)
    args = asked.parse_args()
    print("ms of CPU for each example")
    print(f"{'family':20}{'generation':>12}{'rendering':>12}{'checks':>9}{'ratio':>8}{'renders':>10}")
    for name in args.families:
        template, tokens = family(name)
        subject = Subject(template, bos_token=tokens["bos_token"], eos_token=tokens["eos_token"])
        measured(subject, 1)  # what is found out once a template
        rounds = zip(*(measured(subject, args.examples) for _ in range(args.rounds)), strict=True)
        generation, rendering, checks, renders = map(min, rounds)
        ratio = (rendering + checks) / generation
        print(f"{name:20}{generation:12.2f}{rendering:12.2f}{checks:9.2f}{ratio:8.2f}{renders:10.1f}")


if __name__ == "__main__":
    main()
