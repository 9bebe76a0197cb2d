"""One allowance of steps over all renders of a template, in a probe, a snapshot and a fuzz run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from jinjarun import LimitExceeded, Limits
from probes import fuzz, probe, snapshot
from probes.rendering.renders import RAW, RENDERS_IN_ALL, Renders

DEAR = "{% for i in range(90000) %}{% endfor %}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
"""Each render takes nearly all steps that a render may take, and ends well."""
TASKS: dict[str, Callable[[str], Any]] = {
    "probe": probe,
    "snapshot": snapshot,
    "fuzz": lambda template: fuzz(template, max_examples=5),
}


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> list[Renders]:
    """Every `Renders` that is made."""
    made: list[Renders] = []
    plain = Renders.__init__

    def remembering(self: Renders, *arguments: Any, **options: Any) -> None:
        plain(self, *arguments, **options)
        made.append(self)

    monkeypatch.setattr(Renders, "__init__", remembering)
    return made


@pytest.mark.parametrize("task", TASKS)
def test_a_dear_template_takes_no_more_than_its_allowance(task: str, spent: list[Renders]) -> None:
    TASKS[task](DEAR)
    steps = sum(renders.allowance.steps - renders.allowance.left for renders in spent)
    examples = 5 if task == "fuzz" else 0
    assert 0 < steps <= (RENDERS_IN_ALL + examples + 1) * Limits().steps
    assert len(spent) == 1


def test_what_the_allowance_ends_is_a_limit_that_names_it() -> None:
    renders = Renders(DEAR, limits=replace(Limits(), steps=400_000))
    errors = [renders.render(RAW, {"messages": [{"role": "user", "content": str(i)}]}).error for i in range(99)]
    last = errors[-1]
    assert errors[0] is None
    assert isinstance(last, LimitExceeded)
    assert last.limit == "steps_in_all"
    assert last.allowed == RENDERS_IN_ALL * 400_000
