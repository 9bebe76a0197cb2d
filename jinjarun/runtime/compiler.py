"""From a template's tree to closures, each called with the variables in sight (`Env`).

Nothing is folded and no Python is generated. Steps are charged by block: on entry to a body the number of its nodes
that run in a straight line, before any of them does. `Program.height` is the depth of the whole tree; macros and
recursive loops add the height of their bodies while they are active, so that the depth limit bounds the host's stack.

A compiler makes plain closures, or with `watched` ones that also keep the origin of strings and the trace of inputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jinjarun.errors import LimitExceeded, RenderError, SandboxViolation, TemplateSyntaxError, quote
from jinjarun.limits import STEP_BYTES, utf8_size
from jinjarun.runtime.failures import located
from jinjarun.runtime.generation_prompt import ADD_GENERATION_PROMPT, FLAT, changes_nothing
from jinjarun.runtime.macro import Macro
from jinjarun.runtime.scope import VARIABLES_A_STEP, Scope, target_names, union
from jinjarun.runtime.text import COMPUTED, Origin, Text, join
from jinjarun.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinjarun.dialects.base import Dialect
    from jinjarun.limits import Limits
    from jinjarun.runtime.run import Run
    from jinjarun.runtime.scope import Env

    Closure = Callable[[Env], Any]

BREAK, CONTINUE = 1, 2
"""What a statement returns when it leaves an iteration; all others return None."""

SPECIAL = frozenset({"caller", "kwargs", "varargs"})

_NAME_A_STEP = 64
"""Characters of a name or a constant that take a step when it is found or compared; shorter ones are free."""


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled template: `cost` is that of the straight-line code of its `statements`. `branches` has for each branch
    its line and what it is ("if", "else", "for", ...); `blocks` are its blocks by name, as functions of nothing.
    `prompt_reads` are the other variables that the last statement reads, where that statement alone reads
    `add_generation_prompt` and changes nothing; else None."""

    statements: tuple[Closure, ...]
    cost: int
    prompt_reads: frozenset[str] | None
    height: int
    branches: list[tuple[int, str]]
    masked: tuple[str, ...]
    names: frozenset[str]
    blocks: dict[str, Macro]


def compile_template(template: nodes.Template, dialect: Dialect, limits: Limits, *, watched: bool = False) -> Program:
    """Raises TemplateSyntaxError for what Jinja2 refuses while compiling, LimitExceeded for a tree too deep."""
    return _Compiler(dialect, limits, watched=watched).program(template)


class _Compiler:
    def __init__(self, dialect: Dialect, limits: Limits, *, watched: bool) -> None:
        self.dialect = dialect
        self.limits = limits
        self.watched = watched
        self.branches: list[tuple[int, str]] = []
        self.scope = Scope([], None)
        self.names: set[str] = set()
        self.cost = 0
        self.depth = 0
        self.deepest = 0
        self.jumps = False
        self.loops = 0
        self.escaping: Closure | None = None
        self.escaping_cost = 0
        self.finish = _finish_watched if watched else _finish
        self.blocks: dict[str, Macro] = {}
        self.block_names: set[str] = set()

    # ------------------------------------------------------------------------------------------------------- the frame

    def program(self, template: nodes.Template) -> Program:
        body = template.body
        self.scope = Scope(body, None)
        self.cost = 1
        statements = [self.stmt(stmt) for stmt in body[:-1]]
        read, self.names = self.names | self.block_names, set()
        statements += [self.stmt(stmt) for stmt in body[-1:]]
        prompt_reads = None
        read_before = ADD_GENERATION_PROMPT in read or ADD_GENERATION_PROMPT in self.scope.stores
        if ADD_GENERATION_PROMPT in self.names and not read_before and changes_nothing(body[-1]):
            prompt_reads = frozenset(self.names - {ADD_GENERATION_PROMPT})
        return Program(
            statements=tuple(statements),
            cost=self.cost,
            prompt_reads=prompt_reads,
            height=self.deepest,
            branches=self.branches,
            masked=self.scope.masked() if self.dialect.lexical_macros else (),
            names=frozenset(read | self.names | self.block_names),
            blocks=self.blocks,
        )

    def expr(self, node: nodes.Expr) -> Closure:
        self.descend(node)
        closure = _EXPRESSIONS[type(node)](self, node)
        self.depth -= 1
        return closure

    def stmt(self, node: nodes.Stmt) -> Closure:
        self.descend(node)
        closure = _STATEMENTS[type(node)](self, node)
        self.depth -= 1
        return closure

    def descend(self, node: nodes.Node) -> None:
        """Enter a node of the tree: it costs a step and is a level below what holds it."""
        self.cost += 1
        self.depth += 1
        if self.depth > self.deepest:
            self.deepest = self.depth
            if self.depth > self.limits.depth:
                raise self._too_deep(node)

    def look_up(self, name: str) -> None:
        """Pay for finding a long name again, which is compared with the one that was stored."""
        self.cost += len(name) // _NAME_A_STEP

    def _too_deep(self, node: nodes.Node) -> LimitExceeded:
        allowed = self.limits.depth
        return LimitExceeded(
            f"limit exceeded: depth (allowed {allowed:,})",
            line=node.line,
            column=node.column,
            limit="depth",
            allowed=allowed,
        )

    def body(self, stmts: list[nodes.Stmt], branch: tuple[int, str] | None = None) -> Closure:
        """A closure that charges for the straight-line code of `stmts` and runs it; it marks `branch` as reached."""
        outer_cost, self.cost = self.cost, 1
        outer_jumps, self.jumps = self.jumps, False
        index = len(self.branches)
        if branch is not None:
            self.branches.append(branch)
        closures = tuple([self.stmt(stmt) for stmt in stmts])
        cost, jumps = self.cost, self.jumps
        self.cost, self.jumps = outer_cost, outer_jumps or jumps

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
        outer_depth, outer_deepest, outer_loops = self.depth, self.deepest, self.loops
        self.depth = self.deepest = self.loops = 0
        scope = self.enter(stmts, parameters, alone=alone)
        closure = self.body(stmts)
        masked = self.leave(scope)
        height = self.deepest
        self.depth, self.deepest = outer_depth, max(outer_deepest, outer_depth + height)
        self.loops = outer_loops
        if self.deepest > self.limits.depth:
            raise self._too_deep(stmts[0])
        return closure, height, masked

    def enter(self, stmts: list[nodes.Stmt], parameters: tuple[str, ...] = (), *, alone: bool = False) -> Scope:
        self.scope = Scope(stmts, self.scope, parameters, alone=alone)
        return self.scope

    def leave(self, scope: Scope) -> tuple[str, ...]:
        """The names that are masked in it."""
        outer = scope.outer
        if outer is None:
            raise AssertionError("a scope was left twice")
        self.scope = outer
        masked = scope.masked() if self.dialect.lexical_macros else ()
        scope.close()
        return masked

    # ------------------------------------------------------------------------------------------------------ statements

    def data(self, node: nodes.Data) -> Closure:
        text = self.string(node, node.text)

        def data(env: Env) -> None:
            env.write(text)

        return data

    def string(self, node: nodes.Node, text: str) -> str:
        text = self.dialect.literal(text)
        return Text.of(text, Origin(is_input=False, place=f"line {node.line}")) if self.watched else text

    def output(self, node: nodes.Output) -> Closure:
        value = self.escaped(self.expr(node.value))
        to_text = self.dialect.text

        if self.watched:
            origin = Origin(is_input=False, place=f"line {node.line}")

            def output_watched(env: Env) -> None:
                try:
                    result = value(env)
                    if not isinstance(result, str):
                        result = to_text(env.run, result)
                        if not result:
                            return  # undefined: not even an empty part
                except Exception as error:
                    raise located(error, node.value) from None
                if type(result) is not Text:
                    env.run.charge(len(result) // STEP_BYTES)
                    result = Text.of(str(result), origin)
                else:
                    parts = result.parts
                    if len(parts) > 1:
                        env.run.charge(len(parts) - 1)
                    for _, of in parts:
                        if of is COMPUTED:
                            result = Text.joined((piece, origin if of is COMPUTED else of) for piece, of in parts)
                            break
                env.write(result)

            return output_watched

        if isinstance(node.value, nodes.Const) and isinstance(node.value.value, str) and self.escaping is None:
            text = self.string(node, node.value.value)
            return lambda env: env.write(text)

        def output(env: Env) -> None:
            try:
                result = value(env)
                if type(result) is not str:
                    result = to_text(env.run, result)
            except Exception as error:
                raise located(error, node.value) from None
            env.write(result)

        return output

    def if_(self, node: nodes.If) -> Closure:
        outer_soft, self.scope.soft = self.scope.soft, True
        arms = []
        for i, branch in enumerate(node.branches):
            test = self.condition(branch.test)
            line = branch.test.line
            arms.append((test, self.arm(branch.body, (line, "elif" if i else "if"))))
        otherwise = None
        if node.otherwise is not None:
            line = node.otherwise[0].line if node.otherwise else node.line
            otherwise = self.arm(node.otherwise, (line, "else"))
        self.scope.soft = outer_soft

        if len(arms) == 1:
            test, body = arms[0]
            if otherwise is None:

                def if_only(env: Env) -> int | None:
                    return body(env) if test(env) else None

                return if_only
            other = otherwise

            def if_else(env: Env) -> int | None:
                return body(env) if test(env) else other(env)  # type: ignore[no-any-return]

            return if_else

        def if_elif(env: Env) -> int | None:
            for test, body in arms:
                if test(env):
                    return body(env)  # type: ignore[no-any-return]
            return otherwise(env) if otherwise is not None else None

        return if_elif

    def arm(self, stmts: list[nodes.Stmt], branch: tuple[int, str]) -> Closure:
        outer_jumps, self.jumps = self.jumps, False
        body = self.body(stmts, branch)
        jumps, self.jumps = self.jumps, self.jumps or outer_jumps
        if not jumps or self.dialect.partial_output:
            return body

        def arm_without_partial_output(env: Env) -> int | None:
            written = len(env.out)
            signal: int | None = body(env)
            if signal is not None:
                del env.out[written:]
            return signal

        return arm_without_partial_output

    def break_(self, node: nodes.Break) -> Closure:
        return self.jump(node, "break", BREAK)

    def continue_(self, node: nodes.Continue) -> Closure:
        return self.jump(node, "continue", CONTINUE)

    def jump(self, node: nodes.Break | nodes.Continue, word: str, signal: int) -> Closure:
        if self.loops:
            self.jumps = True
            return lambda _env: signal
        if self.dialect.lexical_macros:
            raise TemplateSyntaxError(f"`{word}` outside of a loop", line=node.line, column=node.column)

        def stray(_env: Env) -> None:
            raise RenderError(f"`{word}` outside of a loop", line=node.line, column=node.column)

        return stray

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
        outer_cost, self.cost = self.cost, 1
        assign = self.target(node.target)
        item_cost, self.cost = self.cost, outer_cost
        outer_names, self.names = self.names, set()
        outer_jumps = self.jumps

        scope = self.enter([], names)
        outer_cost, self.cost = self.cost, item_cost
        test = None if node.test is None else self.condition(node.test)
        test_cost, self.cost = self.cost, outer_cost
        self.leave(scope)

        scope = self.enter(node.body, names)
        self.loops += 1
        if self.loops > dialect.nested_loops:
            message = f"more than {dialect.nested_loops} loops inside one another, which Jinja2 cannot compile"
            raise TemplateSyntaxError(message, line=node.line, column=node.column)
        body = self.body(node.body, (node.line, "for"))
        self.loops -= 1
        masked = self.leave(scope)
        uses_loop = "loop" in self.names or node.recursive
        fresh = tuple(name for name in scope.stores if name not in names) if dialect.scoped_blocks else ()
        fresh_cost = len(fresh) // VARIABLES_A_STEP
        item_cost += fresh_cost
        self.names = union([self.names, outer_names])
        self.jumps = outer_jumps

        otherwise = None
        if node.otherwise is not None:
            line = node.otherwise[0].line if node.otherwise else node.line
            otherwise = self.inner_body(node.otherwise, (line, "for-else"))
        height = self.deepest - self.depth if node.recursive else 0

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

    def inner_body(self, stmts: list[nodes.Stmt], branch: tuple[int, str] | None = None) -> Closure:
        """A body that is a scope of its own where the dialect says so."""
        if not self.dialect.scoped_blocks:
            return self.body(stmts, branch)
        scope = self.enter(stmts)
        body = self.body(stmts, branch)
        masked = self.leave(scope)
        if not scope.stores:
            return body

        def scoped(env: Env) -> Any:
            inner = env.child(masked)
            return body(inner)

        return scoped

    def target(self, node: nodes.Expr) -> Callable[[Env, Any], None]:
        """How a value is assigned to `node`."""
        if isinstance(node, nodes.Name):
            name = node.name
            self.scope.store(name)
            self.look_up(name)

            def assign(env: Env, value: Any) -> None:
                env[name] = value

            return assign
        if isinstance(node, nodes.TupleExpr):
            targets = [self.target(item) for item in node.items]
            unpack, count = self.dialect.unpack, len(targets)

            def assign_each(env: Env, value: Any) -> None:
                for target, item in zip(targets, unpack(env.run, value, count), strict=True):
                    target(env, item)

            return assign_each
        if isinstance(node, nodes.GetAttr):
            owner = self.expr(node.value)
            self.look_up(node.name)
            name, set_attribute = node.name, self.dialect.set_attribute

            def assign_attribute(env: Env, value: Any) -> None:
                changed = owner(env)
                set_attribute(env.run, changed, name, value)
                if type(value) not in FLAT:
                    env.run.hold(changed)

            return assign_attribute

        message = node.message if isinstance(node, nodes.Invalid) else "cannot assign to this expression"

        def refuse(_env: Env, _value: Any) -> None:
            raise RenderError(message, line=node.line, column=node.column)

        return refuse

    def set(self, node: nodes.Set) -> Closure:
        value = self.expr(node.value)
        assign = self.target(node.target)

        def set_(env: Env) -> None:
            try:
                assign(env, value(env))
            except Exception as error:
                raise located(error, node) from None

        return set_

    def captured(self, stmts: list[nodes.Stmt]) -> Callable[[Env], str]:
        """The text that `stmts` write."""
        body = self.inner_body(stmts)
        finish = self.finish

        def captured(env: Env) -> str:
            written = env.out
            out = env.capture()
            body(env)
            env.out, env.write = written, written.append
            return finish(env, out)

        return captured

    def set_block(self, node: nodes.SetBlock) -> Closure:
        text = self.captured(node.body)
        through = None if node.filters is None else self.filters(node.filters)
        assign = self.target(node.target)

        def set_block(env: Env) -> None:
            try:
                value = text(env)
                assign(env, value if through is None else through(env, value))
            except Exception as error:
                raise located(error, node) from None

        return set_block

    def filter_block(self, node: nodes.FilterBlock) -> Closure:
        text = self.captured(node.body)
        through = self.filters(node.filters)
        strict, to_text = self.dialect.filter_blocks_write_strings, self.dialect.text

        def filter_block(env: Env) -> None:
            try:
                value = through(env, text(env))
                if not isinstance(value, str):
                    if strict:
                        raise TypeError(f"a filter block writes a str, not {type(value).__name__}")
                    value = to_text(env.run, value)
                env.write(value)
            except Exception as error:
                raise located(error, node) from None

        return filter_block

    def filters(self, node: nodes.Filter) -> Callable[[Env, Any], Any]:
        """A chain of filters as a function of the text that goes in."""
        self.descend(node)
        outer_soft, self.scope.soft = self.scope.soft, False
        inner = self.filters(node.value) if isinstance(node.value, nodes.Filter) else None
        apply = self.filter_function(node)
        self.scope.soft = outer_soft
        self.depth -= 1

        def filters(env: Env, value: Any) -> Any:
            return apply(env, value if inner is None else inner(env, value))

        return filters

    def macro(self, node: nodes.Macro) -> Closure:
        prototype = self.function(node.name, node.parameters, node.body)
        name, lexical = node.name, self.dialect.lexical_macros
        self.scope.store(name)

        def macro(env: Env) -> None:
            env[name] = prototype.defined_in(env if lexical else None)
            if lexical:
                env.run.hold(env)

        return macro

    def function(self, name: str, parameters: list[nodes.Parameter], body: list[nodes.Stmt]) -> Macro:
        outer_names, self.names = self.names, set()
        params = tuple(parameter.name for parameter in parameters)
        defaults: dict[str, Closure] = {}
        outer_cost, self.cost = self.cost, len(parameters)
        outer_depth, outer_deepest = self.depth, self.deepest
        self.depth = self.deepest = 0
        for parameter in parameters:
            self.look_up(parameter.name)
            if parameter.default is not None:
                outer_soft, self.scope.soft = self.scope.soft, False
                defaults[parameter.name] = self.expr(parameter.default)
                self.scope.soft = outer_soft
            elif (not_given := self.dialect.not_given(parameter.name)) is not None:
                defaults[parameter.name] = _constant(not_given)
        cost, self.cost = self.cost, outer_cost
        height = self.deepest
        self.depth, self.deepest = outer_depth, max(outer_deepest, outer_depth + height)
        closure, body_height, masked = self.function_body(body, params)
        height = max(height, body_height)
        special = SPECIAL & self.names
        self.names = union([self.names, outer_names])
        return Macro(name, params, defaults, closure, self.finish, height, cost, special, masked)

    def call_block(self, node: nodes.CallBlock) -> Closure:
        caller = self.function("caller", node.parameters, node.body)
        if not isinstance(node.call, nodes.Call):
            raise TemplateSyntaxError("a call block needs a call", line=node.line, column=node.column)
        callee = self.expr(node.call.callee)
        arguments = self.arguments(node.call.arguments)
        dialect = self.dialect
        to_text = dialect.text

        def call_block(env: Env) -> None:
            try:
                args, kwargs = arguments(env)
                inner = env.child()
                macro = caller.defined_in(inner)
                env.run.hold(inner)
                if dialect.lexical_macros:
                    kwargs["caller"] = macro
                else:
                    env = env.child()
                    env["caller"] = macro
                value = dialect.call(env, callee(env), args, kwargs)
                env.write(value if isinstance(value, str) else to_text(env.run, value))
            except Exception as error:
                raise located(error, node) from None

        return call_block

    def with_(self, node: nodes.With) -> Closure:
        values = [self.expr(value) for _, value in node.assignments]
        names = tuple(name for target, _ in node.assignments for name in target_names(target))
        scope = self.enter(node.body, names)
        targets = [self.target(target) for target, _ in node.assignments]
        body = self.body(node.body)
        masked = self.leave(scope)

        def with_(env: Env) -> Any:
            inner = env.child(masked)
            try:
                for target, value in zip(targets, [value(env) for value in values], strict=True):
                    target(inner, value)
            except Exception as error:
                raise located(error, node) from None
            return body(inner)

        return with_

    def block(self, node: nodes.Block) -> Closure:
        outer, self.escaping = self.escaping, None
        outer_names, self.names = self.names, set()
        body, height, masked = self.function_body(node.body, (), alone=True)
        loop = self.names & {"loop"} if node.scoped else set()
        self.block_names = union([self.names, self.block_names])
        self.names = outer_names | loop if loop else outer_names
        self.escaping = outer
        self.blocks[node.name] = Macro(node.name, (), {}, body, self.finish, height, 0, frozenset(), masked)
        scoped, required = node.scoped, node.required

        def block(env: Env) -> None:
            run = env.run
            if required:
                raise RenderError(f"required block {quote(node.name)!r} was not given", line=node.line)
            inner = (env if scoped else run.root).child(masked)
            inner.out, inner.write = env.out, env.write
            run.depth += height
            body(inner)
            run.depth -= height

        return block

    def autoescape(self, node: nodes.Autoescape) -> Closure:
        """Inside, what is written is HTML-escaped where `enabled` is true.

        Filters do not know of it, and text that is captured inside counts as unescaped; no chat template is known to
        use this tag.
        """
        outer, before = (self.escaping, self.escaping_cost), self.cost
        outer_soft, self.scope.soft = self.scope.soft, False
        self.escaping = self.expr(node.enabled)
        self.escaping_cost = self.cost - before
        self.scope.soft = outer_soft
        body = self.inner_body(node.body)
        self.escaping, self.escaping_cost = outer
        return body

    def escaped(self, value: Closure) -> Closure:
        """`value` as it is written inside an autoescape block."""
        escaping, escape = self.escaping, self.dialect.filter("escape")
        if escaping is None or escape is None:
            return value
        self.cost += self.escaping_cost
        enabled, apply = escaping, escape
        return lambda env: apply(env.run, value(env)) if enabled(env) else value(env)

    def generation(self, node: nodes.Generation) -> Closure:
        if not self.dialect.scoped_blocks:
            return self.body(node.body)
        # Jinja2 makes a function of it, which no `break` can leave.
        outer_loops, self.loops = self.loops, 0
        body = self.inner_body(node.body)
        self.loops = outer_loops
        if not self.watched:
            return body
        finish = self.finish

        def generation(env: Env) -> None:
            found = env.run.generations
            if found is None:
                body(env)
                return
            written = env.out
            out = env.capture()
            body(env)
            env.out, env.write = written, written.append
            text = finish(env, out)
            found.note(text)
            env.write(text)

        return generation

    def load(self, node: nodes.Load) -> Closure:
        def load(_env: Env) -> None:
            raise SandboxViolation(
                f"`{node.tag}` needs a loader, and no engine gives chat templates one",
                line=node.line,
                column=node.column,
            )

        return load

    # ----------------------------------------------------------------------------------------------------- expressions

    def const(self, node: nodes.Const) -> Closure:
        return _constant(self.string(node, node.value) if isinstance(node.value, str) else node.value)

    def invalid(self, node: nodes.Invalid) -> Closure:
        def invalid(_env: Env) -> None:
            raise RenderError(node.message, line=node.line, column=node.column)

        return invalid

    def name(self, node: nodes.Name) -> Closure:
        name = node.name
        self.scope.load(name)
        self.names.add(name)
        self.look_up(name)
        if self.watched:

            def watched_name(env: Env) -> Any:
                value = env[name]
                if env.run.trace is not None:
                    env.run.trace.use(value)
                return value

            return watched_name
        return lambda env: env[name]

    def tuple_(self, node: nodes.TupleExpr) -> Closure:
        items = [self.expr(item) for item in node.items]
        return lambda env: tuple([item(env) for item in items])

    def list_(self, node: nodes.ListExpr) -> Closure:
        items = [self.expr(item) for item in node.items]
        return lambda env: [item(env) for item in items]

    def dict_(self, node: nodes.DictExpr) -> Closure:
        pairs = [(self.expr(key), self.expr(value)) for key, value in node.pairs]
        make = self.dialect.make_dict
        return lambda env: make(env.run, [(key(env), value(env)) for key, value in pairs])

    def unary(self, node: nodes.Unary) -> Closure:
        operand = self.expr(node.operand)
        if node.op == "not":
            return lambda env: not operand(env)
        operate = self.dialect.unary[node.op]
        return lambda env: operate(env.run, operand(env))

    def binary(self, node: nodes.Binary) -> Closure:
        ops = {op for op, _ in node.rest}
        if ops == {"or"}:
            return self.any_of([node.first, *(operand for _, operand in node.rest)])
        if ops == {"and"}:
            return self.all_of([node.first, *(operand for _, operand in node.rest)])
        if self.dialect.concat_first and "~" in ops:
            return self.sum_of_concats(node)
        return self.fold(self.expr(node.first), [(op, self.expr(operand)) for op, operand in node.rest])

    def fold(self, first: Closure, rest: list[tuple[str, Closure]]) -> Closure:
        """Operators of one level, from left to right."""
        if not rest:
            return first
        table = self.dialect.binary
        if len(rest) == 1:
            op, right = rest[0]
            operate = table[op]
            return lambda env: operate(env.run, first(env), right(env))
        steps = [(table[op], operand) for op, operand in rest]

        def fold(env: Env) -> Any:
            run = env.run
            value = first(env)
            for operate, operand in steps:
                value = operate(run, value, operand(env))
            return value

        return fold

    def sum_of_concats(self, node: nodes.Binary) -> Closure:
        """`a + b ~ c - d` as Jinja2 groups it: a + (b ~ c) - d."""
        groups: list[tuple[str, list[nodes.Expr]]] = [("", [node.first])]
        for op, operand in node.rest:
            if op == "~":
                groups[-1][1].append(operand)
            else:
                groups.append((op, [operand]))
        closures = [(op, self.concat(operands)) for op, operands in groups]
        return self.fold(closures[0][1], closures[1:])

    def concat(self, operands: list[nodes.Expr]) -> Closure:
        first, *rest = [self.expr(operand) for operand in operands]
        return self.fold(first, [("~", operand) for operand in rest])

    def any_of(self, operands: list[nodes.Expr]) -> Closure:
        closures = [self.expr(operand) for operand in operands]
        if len(closures) == 2:
            left, right = closures
            return lambda env: left(env) or right(env)

        def any_of(env: Env) -> Any:
            value = None
            for closure in closures:
                value = closure(env)
                if value:
                    return value
            return value

        return any_of

    def all_of(self, operands: list[nodes.Expr]) -> Closure:
        closures = [self.expr(operand) for operand in operands]
        if len(closures) == 2:
            left, right = closures
            return lambda env: left(env) and right(env)

        def all_of(env: Env) -> Any:
            value = None
            for closure in closures:
                value = closure(env)
                if not value:
                    return value
            return value

        return all_of

    def compare(self, node: nodes.Compare) -> Closure:
        first = self.expr(node.first)
        table = self.dialect.binary
        if len(node.rest) == 1:
            op, right = node.rest[0]
            if op in ("==", "!=") and isinstance(right, nodes.Const) and type(right.value) is str:
                return self.compare_with_string(first, op, self.string(right, right.value))
        rest = [(op, self.expr(operand)) for op, operand in node.rest]
        if len(rest) == 1 or not self.dialect.chained_comparisons:
            return self.fold(first, rest)
        steps = [(table[op], operand) for op, operand in rest]

        def compare_chain(env: Env) -> Any:
            run = env.run
            left = first(env)
            result: Any = True
            for operate, operand in steps:
                right = operand(env)
                result = operate(run, left, right)
                if not result:
                    return result
                left = right
            return result

        return compare_chain

    def compare_with_string(self, first: Closure, op: str, string: str) -> Closure:
        self.cost += 1
        self.look_up(string)
        operate = self.dialect.binary[op]
        kind = Text if self.watched else str
        if op == "==":

            def equals(env: Env) -> Any:
                value = first(env)
                return value == string if type(value) is kind else operate(env.run, value, string)

            return equals

        def differs(env: Env) -> Any:
            value = first(env)
            return value != string if type(value) is kind else operate(env.run, value, string)

        return differs

    def conditional(self, node: nodes.Conditional) -> Closure:
        outer_soft, self.scope.soft = self.scope.soft, True
        test, then = self.expr(node.test), self.expr(node.then)
        otherwise = None if node.otherwise is None else self.expr(node.otherwise)
        self.scope.soft = outer_soft
        if otherwise is None:
            missing = self.dialect.missing_else
            return lambda env: then(env) if test(env) else missing()
        other = otherwise
        return lambda env: then(env) if test(env) else other(env)

    def get_attr(self, node: nodes.GetAttr) -> Closure:
        value = self.expr(node.value)
        name = node.name
        self.look_up(name)
        attribute = self.dialect.attribute
        if name in self.dialect.dict_methods or name.startswith("_"):
            return lambda env: attribute(env.run, value(env), name)
        return self.member(node.value, value, self.dialect.literal(name), attribute, name)

    def member(
        self, of: nodes.Expr, value: Closure, key: str, find: Callable[[Run, Any, str], Any], sought: str
    ) -> Closure:
        """What `value`, which is `of` compiled, has under `key`; else `find` looks for what is `sought`."""
        if self.watched:

            def watched_member(env: Env) -> Any:
                owner = value(env)
                if type(owner) is dict and key in owner and env.run.trace is None:
                    return owner[key]
                return find(env.run, owner, sought)

            return watched_member

        if isinstance(of, nodes.Name):
            name = of.name

            def member_of_variable(env: Env) -> Any:
                owner = env[name]
                if type(owner) is dict and key in owner:
                    return owner[key]
                return find(env.run, owner, sought)

            return member_of_variable

        def member(env: Env) -> Any:
            owner = value(env)
            if type(owner) is dict and key in owner:
                return owner[key]
            return find(env.run, owner, sought)

        return member

    def get_item(self, node: nodes.GetItem) -> Closure:
        value = self.expr(node.value)
        if isinstance(node.index, nodes.Slice):
            return self.slice(value, node.index, constant=_is_constant(node.value))
        item = self.dialect.item
        index = self.expr(node.index)
        if isinstance(node.index, nodes.Const) and type(node.index.value) is str:
            key = self.string(node.index, node.index.value)
            self.look_up(key)
            return self.member(node.value, value, key, item, key)
        return lambda env: item(env.run, value(env), index(env))

    def slice(self, value: Closure, node: nodes.Slice, *, constant: bool) -> Closure:
        take = self.dialect.slice

        def bound(part: nodes.Expr | None) -> Closure:
            return (lambda _env: ...) if part is None else self.expr(part)

        start, stop, step = bound(node.start), bound(node.stop), bound(node.step)
        return lambda env: take(env.run, value(env), (start(env), stop(env), step(env)), constant=constant)

    def arguments(self, arguments: list[nodes.Argument]) -> Callable[[Env], tuple[list[Any], dict[str, Any]]]:
        if all(argument.kind == "positional" for argument in arguments):
            values = [self.expr(argument.value) for argument in arguments]
            return lambda env: ([value(env) for value in values], {})
        parts = [(argument.kind, argument.name, self.expr(argument.value)) for argument in arguments]
        dialect = self.dialect

        def collect(env: Env) -> tuple[list[Any], dict[str, Any]]:
            args: list[Any] = []
            kwargs: dict[str, Any] = {}
            for kind, name, closure in parts:
                value = closure(env)
                if kind == "positional":
                    args.append(value)
                elif kind == "keyword":
                    if dialect.ordered_keywords:
                        args.append(dialect.keyword(name, value))
                    elif name in kwargs:
                        raise TypeError(f"got multiple values for keyword argument {name!r}")
                    else:
                        kwargs[name] = value
                elif kind == "star":
                    args.extend(_spread(env.run, value))
                else:
                    kwargs.update(_spread_named(env.run, value, kwargs))
            return args, kwargs

        return collect

    def call(self, node: nodes.Call) -> Closure:
        arguments = self.arguments(node.arguments)
        dialect = self.dialect
        call = dialect.call
        callee_node = node.callee
        if isinstance(callee_node, nodes.GetAttr) and not self.watched:
            table = dialect.methods(callee_node.name)
            if table:
                return self.call_method(node, callee_node, table, arguments)
        callee = self.expr(callee_node)

        def call_(env: Env) -> Any:
            try:
                function = callee(env)
                args, kwargs = arguments(env)
                return call(env, function, args, kwargs)
            except Exception as error:
                raise located(error, node) from None

        return call_

    def call_method(
        self,
        node: nodes.Call,
        callee: nodes.GetAttr,
        table: Any,
        arguments: Callable[[Env], tuple[list[Any], dict[str, Any]]],
    ) -> Closure:
        receiver = self.expr(callee.value)
        self.cost += 1
        dialect, name = self.dialect, callee.name

        def call_method(env: Env) -> Any:
            try:
                owner = receiver(env)
                method = table.get(type(owner))
                args, kwargs = arguments(env)
                if method is not None:
                    return method(env.run, owner, *args, **kwargs)
                return dialect.call(env, dialect.attribute(env.run, owner, name), args, kwargs)
            except Exception as error:
                raise located(error, node) from None

        return call_method

    def filter(self, node: nodes.Filter) -> Closure:
        if node.value is None:
            raise TemplateSyntaxError("a filter without a value", line=node.line, column=node.column)
        value = self.expr(node.value)
        apply = self.filter_function(node)
        return lambda env: apply(env, value(env))

    def filter_function(self, node: nodes.Filter) -> Callable[[Env, Any], Any]:
        function = self.dialect.filter(node.name, called=node.called)
        arguments = self.arguments(node.arguments)
        if function is None:
            function = self.unknown(node, "filter")
        apply = function
        plain = not node.arguments

        def filter_(env: Env, value: Any) -> Any:
            try:
                if plain:
                    return apply(env.run, value)
                args, kwargs = arguments(env)
                return apply(env.run, value, *args, **kwargs)
            except Exception as error:
                raise located(error, node) from None

        return filter_

    def test(self, node: nodes.Test) -> Closure:
        value = self.expr(node.value)
        function = self.dialect.test(node.name)
        arguments = self.arguments(node.arguments)
        negated = node.negated
        if function is None:
            function = self.unknown(node, "test")
        elif node.name in ("defined", "undefined") and isinstance(node.value, nodes.Name) and not self.watched:
            return self.is_defined(node.value.name, (node.name == "undefined") != negated)
        apply = function
        plain = not node.arguments

        def test(env: Env) -> bool:
            try:
                owner = value(env)
                if plain:
                    result = apply(env.run, owner)
                else:
                    args, kwargs = arguments(env)
                    result = apply(env.run, owner, *args, **kwargs)
                return not result if negated else result
            except Exception as error:
                raise located(error, node) from None

        return test

    def is_defined(self, name: str, negated: bool) -> Closure:
        undefined = self.dialect.undefined_type
        if negated:
            return lambda env: isinstance(env[name], undefined)
        return lambda env: not isinstance(env[name], undefined)

    def unknown(self, node: nodes.Filter | nodes.Test, kind: str) -> Callable[..., Any]:
        """What stands for a filter or test that the dialect does not have: an error, at once or when reached."""
        message = f"no {kind} named {quote(node.name)!r} in {self.dialect.name}"
        if not self.scope.soft:
            raise TemplateSyntaxError(message, line=node.line, column=node.column)

        def unknown(*_: Any, **__: Any) -> Any:
            raise RenderError(message, line=node.line, column=node.column)

        return unknown


_EXPRESSIONS: dict[type, Callable[[_Compiler, Any], Closure]] = {
    nodes.Const: _Compiler.const,
    nodes.Name: _Compiler.name,
    nodes.TupleExpr: _Compiler.tuple_,
    nodes.ListExpr: _Compiler.list_,
    nodes.DictExpr: _Compiler.dict_,
    nodes.Unary: _Compiler.unary,
    nodes.Binary: _Compiler.binary,
    nodes.Compare: _Compiler.compare,
    nodes.Conditional: _Compiler.conditional,
    nodes.GetAttr: _Compiler.get_attr,
    nodes.GetItem: _Compiler.get_item,
    nodes.Call: _Compiler.call,
    nodes.Filter: _Compiler.filter,
    nodes.Test: _Compiler.test,
    nodes.Invalid: _Compiler.invalid,
}
_STATEMENTS: dict[type, Callable[[_Compiler, Any], Closure]] = {
    nodes.Data: _Compiler.data,
    nodes.Output: _Compiler.output,
    nodes.If: _Compiler.if_,
    nodes.For: _Compiler.for_,
    nodes.Set: _Compiler.set,
    nodes.SetBlock: _Compiler.set_block,
    nodes.Macro: _Compiler.macro,
    nodes.CallBlock: _Compiler.call_block,
    nodes.FilterBlock: _Compiler.filter_block,
    nodes.With: _Compiler.with_,
    nodes.Block: _Compiler.block,
    nodes.Autoescape: _Compiler.autoescape,
    nodes.Generation: _Compiler.generation,
    nodes.Load: _Compiler.load,
    nodes.Break: _Compiler.break_,
    nodes.Continue: _Compiler.continue_,
}

_NOTHING = object()


def _constant(value: Any) -> Closure:
    return lambda _env: value


def _finish(env: Env, out: list[str]) -> str:
    """The captured output as one string, charged."""
    size = _charge_text(env.run, out)
    text = "".join(out)
    if size >= 1_000_000 and not text.isascii() and utf8_size(text) > env.run.limits.string_bytes:
        raise env.run.exceeded("string_bytes")
    return text


def _finish_watched(env: Env, out: list[str]) -> str:
    _charge_text(env.run, out)
    return join(env.run, out)


def _charge_text(run: Run, out: list[str]) -> int:
    size = sum(map(len, out))
    if size >= STEP_BYTES:
        run.string(size)
    return size


def _is_constant(node: nodes.Expr) -> bool:
    """A literal: what Jinja2 computes while compiling, and then by other rules for slices than while rendering."""
    if isinstance(node, (nodes.TupleExpr, nodes.ListExpr)):
        return all(_is_constant(item) for item in node.items)
    if isinstance(node, nodes.DictExpr):
        return all(_is_constant(part) for pair in node.pairs for part in pair)
    return isinstance(node, nodes.Const)


def _filtered(items: Any, env: Env, assign: Callable[[Env, Any], None], test: Closure, cost: int) -> Any:
    """The items for which `test` holds, one at a time; to ask takes `cost` steps."""
    inner = env.child()
    for item in items:
        env.run.charge(cost)
        assign(inner, item)
        if test(inner):
            yield item


def _spread(run: Run, value: Any) -> list[Any]:
    items = []
    for item in value:
        run.charge(1)
        items.append(item)
    run.items(len(items))
    return items


def _spread_named(run: Run, value: Any, taken: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"argument after ** must be a mapping, not {type(value).__name__}")
    run.items(len(value))
    for name in value:
        if not isinstance(name, str):
            raise TypeError("keywords must be strings")
        if name in taken:
            raise TypeError(f"got multiple values for keyword argument {name!r}")
    return value
