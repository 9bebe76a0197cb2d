"""Macros and callers: functions whose body is template text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinjarun.runtime.scope import Env


CALL_STEPS = 8
"""Steps of a call besides the nodes of its body: a scope is made, and its output gathered."""


@dataclass(slots=True, eq=False, repr=False)
class Macro:
    """`name(parameters)`: renders `body` in a scope of its own and gives its text.

    `name` is None for a caller of Jinja2. `defaults` has a closure for each parameter that has one, by name. `height`
    is the depth of the body's tree, which counts against the depth limit while the macro is active; `cost` is the steps
    that parameters and defaults take in each call. `special` holds those of "caller", "kwargs" and "varargs" that the
    body reads. `env` are the variables that the body sees; None: those where it is called.
    """

    name: str | None
    parameters: tuple[str, ...]
    defaults: dict[str, Callable[[Env], Any]]
    body: Callable[[Env], Any]
    finish: Callable[[Env, list[str]], str]
    height: int
    cost: int
    special: frozenset[str]
    masked: tuple[str, ...]
    env: Env | None = None

    def defined_in(self, env: Env | None) -> Macro:
        """This macro as a value that sees the variables `env`."""
        return type(self)(
            self.name,
            self.parameters,
            self.defaults,
            self.body,
            self.finish,
            self.height,
            self.cost,
            self.special,
            self.masked,
            env,
        )

    def __repr__(self) -> str:
        return "<Macro anonymous>" if self.name is None else f"<Macro {self.name!r}>"
