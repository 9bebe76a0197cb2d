"""Loops, and what leaves an iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinjarun.errors import RenderError, TemplateSyntaxError
from jinjarun.runtime.compiler.expressions import Expressions
from jinjarun.runtime.failures import located
from jinjarun.runtime.scope import VARIABLES_A_STEP, target_names
from jinjarun.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinjarun.runtime.compiler.frame import Closure
    from jinjarun.runtime.scope import Env


BREAK, CONTINUE = 1, 2
"""What a statement returns when it leaves an iteration; all others return None."""

_NOTHING = object()


class Loops(Expressions):
    def condition(self, node: nodes.Expr) -> Closure:
        value = self.expr(node)

        def condition(env: Env) -> bool:
            try:
                return bool(value(env))
            except Exception as error:
                raise located(error, node) from None

        return condition

    def for_(self, node: nodes.For) -> Closure:
        dialect = self.dialect
        iterable = self.expr(node.iterable)
        names = tuple(target_names(node.target))
        unpacked = isinstance(node.target, nodes.TupleExpr)
        with self.inside(cost=1) as frame:
            assign = self.target(node.target)
        item_cost = frame.cost

        test = None
        with self.inside(names=set(), jumps=False) as frame:
            with self.inside_scope([], names, cost=item_cost) as asked:
                if node.test is not None:
                    test = self.condition(node.test)
            test_cost = asked.cost
            with self.inside_scope(node.body, names, loops=frame.loops + 1) as inner:
                if inner.loops > dialect.nested_loops:
                    message = f"more than {dialect.nested_loops} loops inside one another, which Jinja2 cannot compile"
                    raise TemplateSyntaxError(message, line=node.line, column=node.column)
                body = self.body(node.body, (node.line, "for"))
                masked = self.masked()
            uses_loop = "loop" in frame.names or node.recursive
        fresh = tuple(name for name in inner.scope.stores if name not in names) if dialect.scoped_blocks else ()
        fresh_cost = len(fresh) // VARIABLES_A_STEP
        item_cost += fresh_cost

        otherwise = None
        if node.otherwise is not None:
            line = node.otherwise[0].line if node.otherwise else node.line
            otherwise = self.inner_body(node.otherwise, (line, "for-else"))
        height = self.frame.deepest - self.frame.depth if node.recursive else 0

        def start(env: Env, value: Any, recurse: Callable[..., Any] | None, depth: int) -> bool:
            """Run the loop over `value` in a scope inside `env`; whether an iteration came to its end."""
            run = env.run
            inner = env.child(masked)
            run.charge(fresh_cost)
            before = {name: inner.get(name, _NOTHING) for name in fresh}
            items = dialect.iterate(run, value, unpacked=unpacked)
            if test is not None:
                items = _filtered(items, env, assign, test, test_cost)
                if not dialect.lazy_loops:
                    items = list(items)
            visited = False
            for item in dialect.loop(run, items, recurse, depth) if uses_loop else items:
                if uses_loop:
                    item, inner["loop"] = item
                run.steps -= item_cost
                for name, old in before.items():
                    if old is _NOTHING:
                        inner.pop(name, None)
                    else:
                        inner[name] = old
                assign(inner, item)
                signal = body(inner)
                if signal is None:
                    visited = True
                elif signal == BREAK:
                    break
            return visited

        if node.recursive:
            finish = self.finish

            def loop_recursive(env: Env) -> None:
                def recurse(value: Any, recurse: Callable[..., Any], depth: int = 0) -> str:
                    run = env.run
                    run.depth += height
                    if run.depth > run.limits.depth:
                        raise run.exceeded("depth")
                    inner = env.child()
                    out = inner.capture()
                    if not start(inner, value, recurse, depth) and otherwise is not None:
                        otherwise(inner)
                    run.depth -= height
                    return finish(inner, out)

                try:
                    env.write(recurse(iterable(env), recurse))
                except Exception as error:
                    raise located(error, node) from None

            return loop_recursive

        def loop(env: Env) -> int | None:
            try:
                visited = start(env, iterable(env), None, 0)
            except Exception as error:
                raise located(error, node) from None
            if not visited and otherwise is not None:
                return otherwise(env)  # type: ignore[no-any-return]
            return None

        return loop

    def break_(self, node: nodes.Break) -> Closure:
        return self.jump(node, "break", BREAK)

    def continue_(self, node: nodes.Continue) -> Closure:
        return self.jump(node, "continue", CONTINUE)

    def jump(self, node: nodes.Break | nodes.Continue, word: str, signal: int) -> Closure:
        if self.frame.loops:
            self.frame.jumps = True
            return lambda _env: signal
        if self.dialect.lexical_macros:
            raise TemplateSyntaxError(f"`{word}` outside of a loop", line=node.line, column=node.column)

        def stray(_env: Env) -> None:
            raise RenderError(f"`{word}` outside of a loop", line=node.line, column=node.column)

        return stray


def _filtered(items: Any, env: Env, assign: Callable[[Env, Any], None], test: Closure, cost: int) -> Any:
    """The items for which `test` holds, one at a time; to ask takes `cost` steps."""
    inner = env.child()
    for item in items:
        env.run.charge(cost)
        assign(inner, item)
        if test(inner):
            yield item
