"""The state of one render, handed to every builtin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol
from weakref import ReferenceType, ref

from jinjarun.limits import Allowance, Limits, Meter

if TYPE_CHECKING:
    from datetime import datetime

    from jinjarun.runtime.generations import Generations
    from jinjarun.runtime.trace import Trace


class Holder(Protocol):
    """Variables, an iterator, or a value that a template can change: a list, an object, a namespace."""

    def clear(self) -> object: ...


class Run(Meter):
    """A Meter that also knows the clock of this render and, where asked for, its trace.

    `now` is the wall clock that `strftime_now` reads. `trace` is None unless inputs are being traced. `reached` has a
    byte for each branch of the template, 1 where this render went. `undefined(name)` makes the dialect's undefined
    value; `root` is the outermost Env. `generations` is None unless generation blocks are to be found; only traced
    programs fill it. `holders` and `iterators` are what `release` empties.
    """

    __slots__ = ("generations", "holders", "iterators", "now", "reached", "root", "trace", "undefined")

    def __init__(
        self,
        limits: Limits,
        now: datetime,
        undefined: Any = None,
        branches: int = 0,
        *,
        trace: Trace | None = None,
        allowance: Allowance | None = None,
    ) -> None:
        super().__init__(limits, allowance)
        self.now = now
        self.undefined = undefined
        self.trace = trace
        self.reached = bytearray(branches)
        self.root: Any = None
        self.generations: Generations | None = None
        self.holders: list[Holder] = []
        self.iterators: list[ReferenceType[Holder]] = []

    def hold(self, holder: Holder) -> None:
        """`holder` was changed after it was made, or its variables are kept by what they hold: only by such a one, or
        by an iterator, can a value come to hold itself."""
        if not self.holders or self.holders[-1] is not holder:
            self.holders.append(holder)

    def watch(self, iterator: Holder) -> None:
        """`iterator` was made, which holds the item that it stands at. There may be many that hold much: it is not
        kept."""
        self.iterators.append(ref(iterator))

    def release(self) -> None:
        """The render is over, its answer is text: empty what may hold itself, for else only the collector frees it."""
        for holder in self.holders:
            holder.clear()
        self.holders.clear()
        for reference in self.iterators:
            iterator = reference()
            if iterator is not None:
                iterator.clear()
        self.iterators.clear()
        self.root = None
