"""Variables: at run time an `Env`, while compiling a `Scope`.

An Env is a dict of all the variables in sight, copied where a scope begins. That is literally what llama.cpp does;
for Jinja2, which resolves names while compiling, a `Scope` finds the two cases in which a copy would show too much:
a name that a scope assigns is hidden before its first assignment (`masked`), and starts anew in each iteration of a
loop (`stores`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinjarun.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jinjarun.runtime.run import Run


VARIABLES_A_STEP = 4
"""Variables that are copied, hidden or set back for one step: a scope may be kept by what is defined in it, so this
bounds memory too."""


class Env(dict[str, Any]):
    """The variables in sight, the render they belong to, and where output goes. A name not there is undefined."""

    __slots__ = ("out", "run", "write")
    run: Run
    out: list[str]
    write: Callable[[str], None]

    def __missing__(self, name: str) -> Any:
        return self.run.undefined(name)

    def child(self, masked: Sequence[str] = ()) -> Env:
        """A scope inside this one, in which the names `masked` are undefined."""
        run = self.run
        run.steps -= (len(self) + len(masked)) // VARIABLES_A_STEP
        if run.steps < 0:
            raise run.exceeded("steps")
        env = Env(self)
        env.run = run
        env.out = self.out
        env.write = self.write
        for name in masked:
            env.pop(name, None)
        return env

    def capture(self) -> list[str]:
        """Send output to a new list, which is returned."""
        out: list[str] = []
        self.out = out
        self.write = out.append
        return out


class Scope:
    """What one scope of a template assigns. `stores` maps each name to whether every way through assigns it. `alone`:
    of the scopes around it, none is known in it, as in a block."""

    def __init__(
        self, body: list[nodes.Stmt], outer: Scope | None, parameters: Sequence[str] = (), *, alone: bool = False
    ) -> None:
        self.stores: dict[str, bool] = {}
        self._parameters = frozenset(parameters)
        self._stored: set[str] = set()
        self._loaded: set[str] = set()
        self._in_sight: dict[str, int] = {} if outer is None or alone else outer._in_sight
        """How many of the scopes that are open here know a name."""
        _collect(body, self.stores)
        self._known = {*self.stores, *self._parameters}
        for name in self._known:
            self._in_sight[name] = self._in_sight.get(name, 0) + 1

    def load(self, name: str) -> None:
        """A name is read here, in the order of the source."""
        if name not in self._stored and name not in self._loaded:
            self._loaded.add(name)
            if name not in self._known:
                self._known.add(name)
                self._in_sight[name] = self._in_sight.get(name, 0) + 1

    def store(self, name: str) -> None:
        self._stored.add(name)

    def masked(self) -> tuple[str, ...]:
        """Names that are undefined here until assigned, though a variable of the caller may have that name."""
        return tuple(
            [
                name
                for name, always in self.stores.items()
                if always and name not in self._loaded and name not in self._parameters and self._in_sight[name] == 1
            ]
        )

    def close(self) -> None:
        """All of the scope was compiled: those that come after do not see it."""
        for name in self._known:
            self._in_sight[name] -= 1


def _collect(body: list[nodes.Stmt], stores: dict[str, bool]) -> None:
    for stmt in body:
        if isinstance(stmt, nodes.If):
            _collect_branches(stmt, stores)
        else:
            for name in _assigned(stmt):
                stores[name] = True


def _collect_branches(stmt: nodes.If, stores: dict[str, bool]) -> None:
    # Jinja2 counts three ways through an `if`: its body, all of its elifs together, and its else.
    first, *others = [_names(branch.body) for branch in stmt.branches]
    ways = [first, union(others), _names(stmt.otherwise or [])]
    everywhere = [name for name in min(ways, key=len) if all(name in way for way in ways)]
    for name in union(ways):
        stores.setdefault(name, False)
    stores.update(dict.fromkeys(everywhere, True))


def _names(body: list[nodes.Stmt]) -> set[str]:
    """What `body` may assign, whichever way it goes."""
    here: set[str] = set()
    parts = [here]
    for stmt in body:
        if isinstance(stmt, nodes.If):
            parts += [_names(branch.body) for branch in stmt.branches]
            parts.append(_names(stmt.otherwise or []))
        else:
            here.update(_assigned(stmt))
    return union(parts)


def union(parts: list[set[str]]) -> set[str]:
    """All in one. The largest takes in the others, so that names move up from deep inside for next to nothing."""
    largest = max(parts, key=len, default=set())
    for part in parts:
        if part is not largest:
            largest |= part
    return largest


def _assigned(stmt: nodes.Stmt) -> list[str]:
    if isinstance(stmt, (nodes.Set, nodes.SetBlock)):
        return target_names(stmt.target)
    return [stmt.name] if isinstance(stmt, nodes.Macro) else []


def target_names(target: nodes.Expr) -> list[str]:
    """The variables that an assignment to `target` sets; assigning to an attribute sets none."""
    if isinstance(target, nodes.Name):
        return [target.name]
    if isinstance(target, nodes.TupleExpr):
        return [name for item in target.items for name in target_names(item)]
    return []
