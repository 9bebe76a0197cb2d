"""Methods of the values that the language itself makes: `loop` and cyclers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jinjarun.dialects.transformers.measure import measure

if TYPE_CHECKING:
    from jinjarun.dialects.transformers.loop import Loop
    from jinjarun.dialects.transformers.values import Cycler
    from jinjarun.runtime.run import Run

Method = Callable[..., Any]


def loop_cycle(_run: Run, loop: Loop, /, *values: Any) -> Any:
    return loop.cycle(*values)


def loop_changed(run: Run, loop: Loop, /, *values: Any) -> bool:
    measure(run, values, keys=True)
    return loop.changed(*values)


def cycler_next(_run: Run, cycler: Cycler, /) -> Any:
    item = cycler.current
    cycler.pos = (cycler.pos + 1) % len(cycler.items)
    return item


def cycler_reset(_run: Run, cycler: Cycler, /) -> None:
    cycler.pos = 0


LOOP: dict[str, Method] = {"changed": loop_changed, "cycle": loop_cycle}
CYCLER: dict[str, Method] = {"next": cycler_next, "reset": cycler_reset}
