"""What an example of `fuzz` costs in CPU time: making it up, rendering it, and all that the laws do beside that.

python -m tests.bench.fuzz_cost [--examples 100] [FAMILY...]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.errors import NoSuchExample

from jinjarun.template import Template
from probes.chats import Chat
from probes.fuzzing import HEAVY_EVERY
from probes.laws import LAWS, Case, Subject
from probes.strategies import conversations
from tests.bench.planted import family

FAMILIES = ("chatml", "hermes-tools", "qwen3", "mistral", "harmony")


class Clock:
    """CPU time spent inside a function."""

    def __init__(self) -> None:
        self.spent = 0.0
        self.calls = 0

    def around(self, function: Any) -> Any:
        def timed(*args: Any, **options: Any) -> Any:
            began = time.process_time()
            try:
                return function(*args, **options)
            finally:
                self.spent += time.process_time() - began
                self.calls += 1

        return timed


def measured(name: str, examples: int) -> tuple[float, float, float, float]:
    """Milliseconds for each example: Hypothesis and the strategies, renders, checks; and renders for each."""
    template, tokens = family(name)
    subject = Subject(template, **tokens)
    assert subject.supports is not None
    asked = [law for law in LAWS.values() if law.supported(subject.supports)]
    list(Case(subject, {"messages": [{"role": "user", "content": "Text."}]}).points), subject.frames
    render, judge = Clock(), Clock()
    usual = Template.render
    done = 0

    def laws(chat: Chat) -> None:
        case = Case(subject, chat)
        for law in asked:
            if not law.heavy or done % HEAVY_EVERY == 0:
                list(law.check(case))

    def look(chat: Chat) -> bool:
        nonlocal done
        judge.around(laws)(chat)
        done += 1
        return False

    Template.render = render.around(usual)  # type: ignore[method-assign]
    began = time.process_time()
    try:
        wanted = settings(
            max_examples=examples,
            database=None,
            phases=[Phase.generate],
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        find(conversations(subject.supports), look, settings=wanted)
    except NoSuchExample:
        pass
    finally:
        Template.render = usual  # type: ignore[method-assign]
    whole = time.process_time() - began
    scale = 1000 / max(1, done)
    return (
        (whole - judge.spent) * scale,
        render.spent * scale,
        (judge.spent - render.spent) * scale,
        render.calls / max(1, done),
    )


def main() -> None:
    asked = argparse.ArgumentParser(description="Measure the cost of fuzzing.")
    asked.add_argument("families", nargs="*", default=FAMILIES)
    asked.add_argument("--examples", type=int, default=100)
    args = asked.parse_args()
    print(f"{'family':24}{'generation':>12}{'rendering':>12}{'checks':>12}{'renders':>9}   ms of CPU for each example")
    for name in args.families:
        generation, rendering, checks, renders = measured(name, args.examples)
        print(f"{name:24}{generation:12.2f}{rendering:12.2f}{checks:12.2f}{renders:9.1f}")


if __name__ == "__main__":
    main()
