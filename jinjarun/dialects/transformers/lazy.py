"""Iterators of the language: the answers of filters that Jinja2 writes as generators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinjarun.runtime.run import Run


_STEPS = 8
"""What making one costs: with its generators it takes hundreds of bytes."""
_LEVELS = 2
"""What one iterator counts against the depth limit: it takes up to seven frames of the host's stack."""


class Lazy(Iterator[Any]):
    """Items made when asked for, once. Always true, without a length; `shown` is how it prints.

    `depth` sums up the lazies that this one is built over. While one makes an item it also counts against the depth
    limit, so nested ones end in LimitExceeded before the host's stack does. The generators behind it charge for their
    items.
    """

    __slots__ = ("__weakref__", "depth", "items", "run", "shown")

    def __init__(self, run: Run, shown: str, items: Iterator[Any], source: Any = None) -> None:
        self.depth: int = source.depth + _LEVELS if isinstance(source, Lazy) else _LEVELS
        if self.depth > run.limits.depth:
            raise run.exceeded("depth")
        run.charge(_STEPS)
        self.run = run
        self.shown = shown
        self.items = items
        run.watch(self)

    def clear(self) -> None:
        self.items = iter(())

    def __next__(self) -> Any:
        run = self.run
        if run.depth + _LEVELS > run.limits.depth:
            raise run.exceeded("depth")
        run.depth += _LEVELS
        try:
            return next(self.items)
        finally:
            run.depth -= _LEVELS

    def __repr__(self) -> str:
        return self.shown


def metered(run: Run, items: Iterator[Any]) -> Iterator[Any]:
    """`items`, one step each."""
    for item in items:
        run.charge(1)
        yield item
