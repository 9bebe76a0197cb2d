"""What the compiler knows of the place that it is at, and how it enters another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from jinjarun.limits import STEP_BYTES, limit_exceeded, utf8_size
from jinjarun.runtime.macro import Macro
from jinjarun.runtime.scope import Scope, union
from jinjarun.runtime.text import Origin, Text, join
from jinjarun.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jinjarun.errors import LimitExceeded
    from jinjarun.limits import Limits
    from jinjarun.runtime.dialect import Dialect
    from jinjarun.runtime.run import Run
    from jinjarun.runtime.scope import Env

    Closure = Callable[[Env], Any]
    Table = Mapping[type, Callable[[Any, Any], Closure]]
    """By type of node, what compiles it."""


_NAME_A_STEP = 64
"""Characters of a name or a constant that take a step when it is found or compared; shorter ones are free."""


class HasFrame(Protocol):
    frame: Frame


class Frame:
    """A place in the tree, entered by `with compiler.inside(...)`: like the one around it, but for what is given there.

    Known: the `scope`; `loops` that are open in this function; `soft`, below a condition, where an unknown filter fails
    only if it is reached; whether the place is in an output that is `constant` to Jinja2, which then works it out while
    compiling; the condition under which outputs are `escaping`, and its cost. Found so far: the `cost` in steps of the
    straight-line code; the `names` that are read; whether something `jumps` out of an iteration; the `deepest` level of
    the tree, of which `depth` is the present one.

    What was found goes to the frame around this one when it is left: names and depth always, cost and jumps unless they
    began anew here.
    """

    __slots__ = (
        "_anew",
        "_compiler",
        "_outer",
        "constant",
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
        self.constant = False
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
        frame.loops, frame.soft, frame.constant = self.loops, self.soft, self.constant
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


class Walker:
    """A walk over the tree: what holds for all of it, and the frame that it is in."""

    expressions: ClassVar[Table]
    statements: ClassVar[Table]

    def __init__(self, template: nodes.Template, dialect: Dialect, limits: Limits, *, traced: bool) -> None:
        self.dialect = dialect
        self.limits = limits
        self.traced = traced
        self.branches: list[tuple[int, str]] = []
        self.frame = Frame(Scope(template.body, None))
        self.finish = _finish_traced if traced else _finish
        self.blocks: dict[str, Macro] = {}
        self.block_names: set[str] = set()

    def inside(self, **anew: Any) -> Frame:
        """The frame of a place inside the present one, to be entered; `anew` is what it does not take from there."""
        return self.frame.inside(self, anew)

    def inside_scope(
        self, stmts: list[nodes.Stmt], parameters: tuple[str, ...] = (), *, alone: bool = False, **anew: Any
    ) -> Frame:
        """The frame of a scope; `alone`: nothing that surrounds it in the source is known in it."""
        return self.inside(scope=Scope(stmts, self.frame.scope, parameters, alone=alone), soft=False, **anew)

    def masked(self) -> tuple[str, ...]:
        """The names that are masked in the present scope, all of which was compiled."""
        return self.frame.scope.masked() if self.dialect.lexical_macros else ()

    def expr(self, node: nodes.Expr) -> Closure:
        self.descend(node)
        closure = self.expressions[type(node)](self, node)
        self.frame.depth -= 1
        return closure

    def stmt(self, node: nodes.Stmt) -> Closure:
        self.descend(node)
        closure = self.statements[type(node)](self, node)
        self.frame.depth -= 1
        return closure

    def descend(self, node: nodes.Node) -> None:
        """Enter a node of the tree: it costs a step and is a level below what holds it."""
        frame = self.frame
        frame.cost += 1
        frame.depth += 1
        if frame.depth > frame.deepest:
            frame.deepest = frame.depth
            if frame.depth > self.limits.depth:
                raise self._too_deep(node)

    def look_up(self, name: str) -> None:
        """Pay for finding a long name again, which is compared with the one that was stored."""
        self.frame.cost += len(name) // _NAME_A_STEP

    def _too_deep(self, node: nodes.Node) -> LimitExceeded:
        return limit_exceeded("depth", self.limits.depth, line=node.line, column=node.column)

    def body(self, stmts: list[nodes.Stmt], branch: tuple[int, str] | None = None) -> Closure:
        """A closure that charges for the straight-line code of `stmts` and runs it; it marks `branch` as reached."""
        index = len(self.branches)
        if branch is not None:
            self.branches.append(branch)
        with self.inside(cost=1, jumps=False) as frame:
            closures = tuple([self.stmt(stmt) for stmt in stmts])
        cost, jumps = frame.cost, frame.jumps
        self.frame.jumps |= jumps

        if jumps:

            def run_with_jumps(env: Env) -> int | None:
                run = env.run
                run.steps -= cost
                if run.steps < 0:
                    raise run.exceeded("steps")
                if branch is not None:
                    run.reached[index] = 1
                for closure in closures:
                    signal = closure(env)
                    if signal is not None:
                        return signal  # type: ignore[no-any-return]
                return None

            return run_with_jumps

        if branch is not None:

            def run_branch(env: Env) -> None:
                run = env.run
                run.steps -= cost
                if run.steps < 0:
                    raise run.exceeded("steps")
                run.reached[index] = 1
                for closure in closures:
                    closure(env)

            return run_branch

        def run_body(env: Env) -> None:
            run = env.run
            run.steps -= cost
            if run.steps < 0:
                raise run.exceeded("steps")
            for closure in closures:
                closure(env)

        return run_body

    def function_body(
        self, stmts: list[nodes.Stmt], parameters: tuple[str, ...], *, alone: bool = False
    ) -> tuple[Closure, int, tuple[str, ...]]:
        """The body of a macro, a caller, a recursive loop or a block: closure, height of its tree, names masked in it.
        `alone`: nothing that surrounds it in the source is known in it."""
        with self.inside_scope(stmts, parameters, alone=alone, loops=0) as frame:
            closure = self.body(stmts)
            return closure, frame.height, self.masked()

    def inner_body(self, stmts: list[nodes.Stmt], branch: tuple[int, str] | None = None) -> Closure:
        """A body that is a scope of its own where the dialect says so."""
        if not self.dialect.scoped_blocks:
            return self.body(stmts, branch)
        with self.inside_scope(stmts) as frame:
            body = self.body(stmts, branch)
            masked = self.masked()
        if not frame.scope.stores:
            return body

        def scoped(env: Env) -> Any:
            inner = env.child(masked)
            return body(inner)

        return scoped

    def string(self, node: nodes.Node, text: str) -> str:
        text = self.dialect.literal(text)
        return Text.of(text, Origin(is_input=False, place=f"line {node.line}")) if self.traced else text


def _finish(env: Env, out: list[str]) -> str:
    """The captured output as one string, charged."""
    size = _charge_text(env.run, out)
    text = "".join(out)
    if not text.isascii():
        allowed = env.run.limits.string_bytes
        if 4 * size > allowed and utf8_size(text) > allowed:
            raise env.run.exceeded("string_bytes")
    return text


def _finish_traced(env: Env, out: list[str]) -> str:
    _charge_text(env.run, out)
    return join(env.run, out)


def _charge_text(run: Run, out: list[str]) -> int:
    size = sum(map(len, out))
    if size >= STEP_BYTES:
        run.string(size)
    return size
