"""From a template's tree to closures, each called with the variables in sight (`Env`).

Nothing is folded and no Python is generated. Steps are charged by block: on entry to a body the number of its nodes
that run in a straight line, before any of them does. `Program.height` is the depth of the whole tree; macros and
recursive loops add the height of their bodies while they are active, so that the depth limit bounds the host's stack.

A compiler makes plain closures, or with `traced` ones that also keep the origin of strings and the trace of inputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jinjarun.errors import LimitExceeded, RenderError, SandboxViolation, TemplateSyntaxError, quote
from jinjarun.limits import STEP_BYTES, utf8_size
from jinjarun.runtime.failures import located
from jinjarun.runtime.frame import Frame
from jinjarun.runtime.generation_prompt import ADD_GENERATION_PROMPT, FLAT, changes_nothing
from jinjarun.runtime.macro import Macro
from jinjarun.runtime.scope import VARIABLES_A_STEP, Scope, target_names, union
from jinjarun.runtime.text import COMPUTED, Origin, Text, join
from jinjarun.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinjarun.limits import Limits
    from jinjarun.runtime.dialect import Dialect
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


def compile_template(template: nodes.Template, dialect: Dialect, limits: Limits, *, traced: bool = False) -> Program:
    """Raises TemplateSyntaxError for what Jinja2 refuses while compiling, LimitExceeded for a tree too deep."""
    return _Compiler(template, dialect, limits, traced=traced).program(template)


class _Compiler:
    def __init__(self, template: nodes.Template, dialect: Dialect, limits: Limits, *, traced: bool) -> None:
        self.dialect = dialect
        self.limits = limits
        self.traced = traced
        self.branches: list[tuple[int, str]] = []
        self.frame = Frame(Scope(template.body, None))
        self.finish = _finish_traced if traced else _finish
        self.blocks: dict[str, Macro] = {}
        self.block_names: set[str] = set()

    # ------------------------------------------------------------------------------------------------------- the frame

    def program(self, template: nodes.Template) -> Program:
        body, frame = template.body, self.frame
        statements = [self.stmt(stmt) for stmt in body[:-1]]
        read, frame.names = frame.names | self.block_names, set()
        statements += [self.stmt(stmt) for stmt in body[-1:]]
        prompt_reads = None
        read_before = ADD_GENERATION_PROMPT in read or ADD_GENERATION_PROMPT in frame.scope.stores
        if ADD_GENERATION_PROMPT in frame.names and not read_before and changes_nothing(body[-1]):
            prompt_reads = frozenset(frame.names - {ADD_GENERATION_PROMPT})
        return Program(
            statements=tuple(statements),
            cost=frame.cost,
            prompt_reads=prompt_reads,
            height=frame.height,
            branches=self.branches,
            masked=self.masked(),
            names=frozenset(read | frame.names | self.block_names),
            blocks=self.blocks,
        )

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
        closure = _EXPRESSIONS[type(node)](self, node)
        self.frame.depth -= 1
        return closure

    def stmt(self, node: nodes.Stmt) -> Closure:
        self.descend(node)
        closure = _STATEMENTS[type(node)](self, node)
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

    # ------------------------------------------------------------------------------------------------------ statements

    def data(self, node: nodes.Data) -> Closure:
        text = self.string(node, node.text)

        def data(env: Env) -> None:
            env.write(text)

        return data

    def string(self, node: nodes.Node, text: str) -> str:
        text = self.dialect.literal(text)
        return Text.of(text, Origin(is_input=False, place=f"line {node.line}")) if self.traced else text

    def output(self, node: nodes.Output) -> Closure:
        value = self.escaped(self.expr(node.value))
        to_text = self.dialect.text

        if self.traced:
            origin = Origin(is_input=False, place=f"line {node.line}")

            def output_traced(env: Env) -> None:
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

            return output_traced

        if isinstance(node.value, nodes.Const) and isinstance(node.value.value, str) and self.frame.escaping is None:
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
        arms = []
        otherwise = None
        with self.inside(soft=True):
            for i, branch in enumerate(node.branches):
                test = self.condition(branch.test)
                line = branch.test.line
                arms.append((test, self.arm(branch.body, (line, "elif" if i else "if"))))
            if node.otherwise is not None:
                line = node.otherwise[0].line if node.otherwise else node.line
                otherwise = self.arm(node.otherwise, (line, "else"))

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
        with self.inside(jumps=False) as frame:
            body = self.body(stmts, branch)
        self.frame.jumps |= frame.jumps
        if not frame.jumps or self.dialect.partial_output:
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
        if self.frame.loops:
            self.frame.jumps = True
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

    def target(self, node: nodes.Expr) -> Callable[[Env, Any], None]:
        """How a value is assigned to `node`."""
        if isinstance(node, nodes.Name):
            name = node.name
            self.frame.scope.store(name)
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
        with self.inside(soft=False):
            inner = self.filters(node.value) if isinstance(node.value, nodes.Filter) else None
            apply = self.filter_function(node)
        self.frame.depth -= 1

        def filters(env: Env, value: Any) -> Any:
            return apply(env, value if inner is None else inner(env, value))

        return filters

    def macro(self, node: nodes.Macro) -> Closure:
        prototype = self.function(node.name, node.parameters, node.body)
        name, lexical = node.name, self.dialect.lexical_macros
        self.frame.scope.store(name)

        def macro(env: Env) -> None:
            env[name] = prototype.defined_in(env if lexical else None)
            if lexical:
                env.run.hold(env)

        return macro

    def function(self, name: str, parameters: list[nodes.Parameter], body: list[nodes.Stmt]) -> Macro:
        params = tuple(parameter.name for parameter in parameters)
        defaults: dict[str, Closure] = {}
        with self.inside(cost=len(parameters), names=set(), soft=False) as frame:
            for parameter in parameters:
                self.look_up(parameter.name)
                if parameter.default is not None:
                    defaults[parameter.name] = self.expr(parameter.default)
                elif (not_given := self.dialect.not_given(parameter.name)) is not None:
                    defaults[parameter.name] = _constant(not_given)
            closure, _, masked = self.function_body(body, params)
            special = SPECIAL & frame.names
        cost, height = frame.cost, frame.height
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
        with self.inside_scope(node.body, names):
            targets = [self.target(target) for target, _ in node.assignments]
            body = self.body(node.body)
            masked = self.masked()

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
        with self.inside(escaping=None, names=set()) as frame:
            body, height, masked = self.function_body(node.body, (), alone=True)
            used = frame.names & {"loop"} if node.scoped else set()
            self.block_names = union([frame.names, self.block_names])
            frame.names = used
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
        with self.inside(soft=False, cost=0) as frame:
            escaping = self.expr(node.enabled)
        with self.inside(escaping=escaping, escaping_cost=frame.cost):
            return self.inner_body(node.body)

    def escaped(self, value: Closure) -> Closure:
        """`value` as it is written inside an autoescape block."""
        escaping, escape = self.frame.escaping, self.dialect.filter("escape")
        if escaping is None or escape is None:
            return value
        self.frame.cost += self.frame.escaping_cost
        enabled, apply = escaping, escape
        return lambda env: apply(env.run, value(env)) if enabled(env) else value(env)

    def generation(self, node: nodes.Generation) -> Closure:
        if not self.dialect.scoped_blocks:
            return self.body(node.body)
        # Jinja2 makes a function of it, which no `break` can leave.
        with self.inside(loops=0):
            body = self.inner_body(node.body)
        if not self.traced:
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
        self.frame.scope.load(name)
        self.frame.names.add(name)
        self.look_up(name)
        if self.traced:

            def traced_name(env: Env) -> Any:
                value = env[name]
                if env.run.trace is not None:
                    env.run.trace.use(value)
                return value

            return traced_name
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
        self.frame.cost += 1
        self.look_up(string)
        operate = self.dialect.binary[op]
        kind = Text if self.traced else str
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
        with self.inside(soft=True):
            test, then = self.expr(node.test), self.expr(node.then)
            otherwise = None if node.otherwise is None else self.expr(node.otherwise)
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
        if self.traced:

            def traced_member(env: Env) -> Any:
                owner = value(env)
                if type(owner) is dict and key in owner and env.run.trace is None:
                    return owner[key]
                return find(env.run, owner, sought)

            return traced_member

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
        if isinstance(callee_node, nodes.GetAttr) and not self.traced:
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
        self.frame.cost += 1
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
        elif node.name in ("defined", "undefined") and isinstance(node.value, nodes.Name) and not self.traced:
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
        if not self.frame.soft:
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


def _finish_traced(env: Env, out: list[str]) -> str:
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
