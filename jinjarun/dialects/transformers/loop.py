"""The variable `loop`, as Jinja2 3.1.6 has it: it looks ahead only where it is asked to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any

from jinjarun.dialects.transformers.undefined import Undefined

_NOTHING = object()


class Loop:
    """An iterator over pairs of an item and itself; `index0`, `depth0` and so on are those of the current item.

    `recurse(items, recurse, depth)` renders the loop's body for other items; None unless the loop is recursive.
    """

    __slots__ = (
        "__weakref__",
        "_after",
        "_before",
        "_current",
        "_items",
        "_length",
        "_recurse",
        "_sized",
        "changed_to",
        "depth0",
        "index0",
    )

    def __init__(self, items: Iterable[Any], recurse: Callable[..., Any] | None, depth0: int) -> None:
        self.index0 = -1
        self.depth0 = depth0
        self.changed_to: Any = _NOTHING
        """What `changed` was last given."""
        self._items = iter(items)
        self._sized = items if isinstance(items, Sized) else None
        self._length: int | None = None
        self._recurse = recurse
        self._before = self._current = self._after = _NOTHING

    def clear(self) -> None:
        self._items, self._sized, self._recurse = iter(()), None, None
        self._before = self._current = self._after = self.changed_to = _NOTHING

    def __iter__(self) -> Iterator[tuple[Any, Loop]]:
        return self

    def __next__(self) -> tuple[Any, Loop]:
        item = next(self._items) if self._after is _NOTHING else self._after
        self._after = _NOTHING
        self.index0 += 1
        self._before, self._current = self._current, item
        return item, self

    def _peek(self) -> Any:
        if self._after is _NOTHING:
            self._after = next(self._items, _NOTHING)
        return self._after

    def __len__(self) -> int:
        return self.length

    @property
    def length(self) -> int:
        """Where the items have no length, all that are left are made."""
        if self._length is None:
            if self._sized is not None:
                self._length = len(self._sized)
            else:
                ahead = list(self._items)
                self._items = iter(ahead)
                self._length = len(ahead) + self.index + (self._after is not _NOTHING)
        return self._length

    @property
    def index(self) -> int:
        return self.index0 + 1

    @property
    def revindex(self) -> int:
        return self.length - self.index0

    @property
    def revindex0(self) -> int:
        return self.length - self.index

    @property
    def first(self) -> bool:
        return self.index0 == 0

    @property
    def last(self) -> bool:
        return self._peek() is _NOTHING

    @property
    def depth(self) -> int:
        return self.depth0 + 1

    @property
    def previtem(self) -> Any:
        return Undefined("there is no previous item") if self.first else self._before

    @property
    def nextitem(self) -> Any:
        item = self._peek()
        return Undefined("there is no next item") if item is _NOTHING else item

    def cycle(self, *values: Any) -> Any:
        if not values:
            raise TypeError("no items for cycling given")
        return values[self.index0 % len(values)]

    def changed(self, *values: Any) -> bool:
        """Whether it was called with other values before, or not at all."""
        if self.changed_to == values:
            return False
        self.changed_to = values
        return True

    def __call__(self, items: Iterable[Any]) -> Any:
        if self._recurse is None:
            raise TypeError("the loop must be marked `recursive` to be called")
        return self._recurse(items, self._recurse, depth=self.depth)

    def __repr__(self) -> str:
        return f"<LoopContext {self.index}/{self.length}>"
