"""The worst cases of the builtins and operators of the transformers dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.bench.calibrate.harness import Case


def _case(
    name: str,
    text: str,
    context: Callable[[int], dict[str, Any]],
    most: int = 1_000_000,
    steps: Callable[[int], float] | None = None,
) -> Case:
    return Case(name, "transformers", lambda size: (text, context(size)), most, steps)


CASES: tuple[Case, ...] = (
    _case("filter upper", "{{ s|upper|length }}", lambda n: {"s": "é" * n}, 2_000_000, lambda n: 2 * n // 16),
)
