"""The state of one render, handed to every builtin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinjarun.limits import Limits, Meter

if TYPE_CHECKING:
    from datetime import datetime

    from jinjarun.runtime.generations import Generations
    from jinjarun.runtime.trace import Trace


class Run(Meter):
    """A Meter that also knows the clock of this render and, where asked for, its trace.

    `now` is the wall clock that `strftime_now` reads. `trace` is None unless inputs are being watched. `reached` has a
    byte for each branch of the template, 1 where this render went. `undefined(name)` makes the dialect's undefined
    value; `root` is the outermost Env. `generations` is None unless generation blocks are to be found; only watched
    programs fill it.
    """

    __slots__ = ("generations", "now", "reached", "root", "trace", "undefined")

    def __init__(
        self, limits: Limits, now: datetime, undefined: Any = None, branches: int = 0, trace: Trace | None = None
    ) -> None:
        super().__init__(limits)
        self.now = now
        self.undefined = undefined
        self.trace = trace
        self.reached = bytearray(branches)
        self.root: Any = None
        self.generations: Generations | None = None
