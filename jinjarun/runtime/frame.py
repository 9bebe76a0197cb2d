"""What the compiler knows of the place that it is at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from jinjarun.runtime.scope import union

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jinjarun.runtime.scope import Env, Scope


class HasFrame(Protocol):
    frame: Frame


class Frame:
    """A place in the tree, entered by `with compiler.inside(...)`: like the one around it, but for what is given there.

    Known: the `scope`; `loops` that are open in this function; `soft`, below a condition, where an unknown filter fails
    only if it is reached; the condition under which outputs are `escaping`, and its cost. Found so far: the `cost` in
    steps of the straight-line code; the `names` that are read; whether something `jumps` out of an iteration; the
    `deepest` level of the tree, of which `depth` is the present one.

    What was found goes to the frame around this one when it is left: names and depth always, cost and jumps unless they
    began anew here.
    """

    __slots__ = (
        "_anew",
        "_compiler",
        "_outer",
        "cost",
        "deepest",
        "depth",
        "escaping",
        "escaping_cost",
        "jumps",
        "loops",
        "names",
        "scope",
        "soft",
        "start",
    )

    _compiler: HasFrame
    _outer: Frame
    _anew: Mapping[str, Any]

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.loops = 0
        self.soft = False
        self.escaping: Callable[[Env], Any] | None = None
        self.escaping_cost = 0
        self.cost = 1
        self.names: set[str] = set()
        self.jumps = False
        self.start = self.depth = self.deepest = 0

    @property
    def height(self) -> int:
        """Levels of the tree in this frame."""
        return self.deepest - self.start

    def inside(self, compiler: HasFrame, anew: Mapping[str, Any]) -> Frame:
        """A frame in this one, the same but for what is `anew`."""
        frame = Frame(self.scope)
        frame.loops, frame.soft = self.loops, self.soft
        frame.escaping, frame.escaping_cost = self.escaping, self.escaping_cost
        frame.cost, frame.names, frame.jumps = self.cost, self.names, self.jumps
        frame.start = frame.depth = frame.deepest = self.depth
        for name, value in anew.items():
            setattr(frame, name, value)
        frame._compiler, frame._outer, frame._anew = compiler, self, anew
        return frame

    def __enter__(self) -> Frame:
        self._compiler.frame = self
        return self

    def __exit__(self, *_: object) -> None:
        outer = self._compiler.frame = self._outer
        outer.deepest = max(outer.deepest, self.deepest)
        if "cost" not in self._anew:
            outer.cost = self.cost
        if "jumps" not in self._anew:
            outer.jumps = self.jumps
        if self.names is not outer.names:
            outer.names = union([self.names, outer.names])
        if self.scope is not outer.scope:
            self.scope.close()
