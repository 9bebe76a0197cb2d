"""Our builtins inside Jinja2's own compiler, so that each can be compared with the original before anything else.

Filters, tests, globals, attribute lookups, calls, `+ - * / // % **` and printing are ours; the rest is Jinja2's.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from jinja2.ext import loopcontrols
from jinja2.sandbox import SandboxedEnvironment

from jinjarun.dialects.transformers import operators
from jinjarun.dialects.transformers.filters import FILTERS
from jinjarun.dialects.transformers.globals import GLOBALS
from jinjarun.dialects.transformers.lookup import getattr_, getitem
from jinjarun.dialects.transformers.measure import to_text
from jinjarun.dialects.transformers.tests import TESTS
from jinjarun.dialects.transformers.undefined import Undefined
from jinjarun.dialects.transformers.values import Invocable
from jinjarun.limits import Limits
from jinjarun.runtime.run import Run

BINARY = {
    "+": operators.add,
    "-": operators.sub,
    "*": operators.mul,
    "/": operators.truediv,
    "//": operators.floordiv,
    "%": operators.mod,
    "**": operators.pow_,
}


def new_run(limits: Limits | None = None, now: datetime | None = None) -> Run:
    return Run(limits or Limits(), now or datetime(2026, 10, 3, 12, 30, 5))


def _undefined(reason: str = "", obj: Any = None, name: str = "", exc: Any = None) -> Undefined:
    """As Jinja2's own code makes one."""
    return Undefined(reason, name)


class Engine(SandboxedEnvironment):
    """One render's worth: the run is part of it."""

    intercepted_binops = frozenset(BINARY)

    def __init__(self, run: Run) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,
            extensions=[loopcontrols],
            finalize=lambda value: to_text(run, value),
        )
        self.undefined = _undefined  # type: ignore[assignment]
        self.run = run
        self.filters = {name: self._bound(function) for name, function in FILTERS.items()}
        self.tests = {name: self._bound(function) for name, function in TESTS.items()}
        self.globals = dict(GLOBALS)

    def _bound(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: function(self.run, *args, **kwargs)

    def getattr(self, obj: Any, attribute: str) -> Any:
        return getattr_(self.run, obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        return getitem(self.run, obj, argument)

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(__obj, Invocable):
            kwargs.pop("_loop_vars", None)
            kwargs.pop("_block_vars", None)
            return __obj.invoke(__self.run, *args, **kwargs)
        if isinstance(__obj, Undefined):
            return __obj(*args, **kwargs)
        return super().call(__context, __obj, *args, **kwargs)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        return BINARY[operator](self.run, left, right)


def render(source: str, context: dict[str, Any], *, limits: Limits | None = None, now: datetime | None = None) -> str:
    """`source` with our builtins; whatever they raise flies."""
    return Engine(new_run(limits, now)).from_string(source).render(context)
