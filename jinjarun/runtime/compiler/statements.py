"""All other statements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinjarun.errors import RenderError, SandboxViolation, TemplateSyntaxError, quote
from jinjarun.limits import STEP_BYTES
from jinjarun.runtime.compiler.calls import SPECIAL
from jinjarun.runtime.compiler.expressions import is_constant
from jinjarun.runtime.compiler.loops import Loops
from jinjarun.runtime.failures import located
from jinjarun.runtime.macro import Macro
from jinjarun.runtime.scope import target_names, union
from jinjarun.runtime.text import COMPUTED, Origin, Text
from jinjarun.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinjarun.runtime.compiler.frame import Closure
    from jinjarun.runtime.scope import Env


class Statements(Loops):
    def data(self, node: nodes.Data) -> Closure:
        text = self.string(node, node.text)

        def data(env: Env) -> None:
            env.write(text)

        return data

    def output(self, node: nodes.Output) -> Closure:
        if is_constant(node.value):
            with self.inside(constant=True):
                value = self.escaped(self.expr(node.value))
        else:
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
                            env.run.charge(len(result) // STEP_BYTES)
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

    def macro(self, node: nodes.Macro) -> Closure:
        prototype = self.function(node.name, node.parameters, node.body)
        name, lexical = node.name, self.dialect.lexical_macros
        self.frame.scope.store(name)

        def macro(env: Env) -> None:
            env[name] = prototype.defined_in(env if lexical else None)
            if lexical:
                env.run.hold(env)

        return macro

    def call_block(self, node: nodes.CallBlock) -> Closure:
        caller = self.function(self.dialect.caller_name, node.parameters, node.body)
        if not isinstance(node.call, nodes.Call):
            raise TemplateSyntaxError("a call block needs a call", line=node.line, column=node.column)
        callee = self.expr(node.call.callee)
        arguments = self.arguments(node.call.arguments)
        dialect = self.dialect
        if dialect.lexical_macros and any(argument.name == "caller" for argument in node.call.arguments):
            raise TemplateSyntaxError("a call block gives `caller` itself", line=node.line, column=node.column)
        to_text = dialect.text

        def call_block(env: Env) -> None:
            try:
                function = callee(env)
                args, kwargs = arguments(env)
                inner = env.child()
                macro = caller.defined_in(inner)
                env.run.hold(inner)
                if dialect.lexical_macros:
                    if "caller" in kwargs:
                        raise TypeError("got multiple values for keyword argument 'caller'")
                    kwargs["caller"] = macro
                else:
                    env = env.child()
                    env["caller"] = macro
                value = dialect.call(env, function, args, kwargs)
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
        # Jinja2 makes a caller of it, which no `break` can leave, and which is called without arguments.
        with self.inside(loops=0, names=set()) as frame:
            body = self.inner_body(node.body)
            special = SPECIAL & frame.names
        if special:
            body = self.called_with_nothing(body, special)
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

    def called_with_nothing(self, body: Closure, special: frozenset[str]) -> Closure:
        values = self.dialect.special_values

        def called_with_nothing(env: Env) -> Any:
            inner = env.child()
            inner.update((name, value) for name, value in values([], {}, None).items() if name in special)
            return body(inner)

        return called_with_nothing

    def load(self, node: nodes.Load) -> Closure:
        def load(_env: Env) -> None:
            raise SandboxViolation(
                f"`{node.tag}` needs a loader, and no engine gives chat templates one",
                line=node.line,
                column=node.column,
            )

        return load
