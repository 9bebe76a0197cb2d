"""Calls, filters and tests, and the functions that macros and call blocks are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinjarun.errors import RenderError, TemplateSyntaxError, quote
from jinjarun.runtime.compiler.frame import Walker
from jinjarun.runtime.failures import located
from jinjarun.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinjarun.runtime.compiler.frame import Closure
    from jinjarun.runtime.macro import Macro
    from jinjarun.runtime.run import Run
    from jinjarun.runtime.scope import Env


SPECIAL = frozenset({"caller", "kwargs", "varargs"})


class Calls(Walker):
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

        def call_arguments_first(env: Env) -> Any:
            try:
                args, kwargs = arguments(env)
                return call(env, callee(env), args, kwargs)
            except Exception as error:
                raise located(error, node) from None

        return call_arguments_first if dialect.arguments_first else call_

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
        arguments_first = dialect.arguments_first

        def call_method(env: Env) -> Any:
            try:
                if arguments_first:
                    args, kwargs = arguments(env)
                    owner = receiver(env)
                else:
                    owner = receiver(env)
                    args, kwargs = arguments(env)
                method = table.get(type(owner))
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

    def test(self, node: nodes.Test) -> Closure:
        value = self.expr(node.value)
        function = self.dialect.test(node.name)
        arguments = self.arguments(node.arguments)
        negated = node.negated
        if function is None:
            function = self.unknown(node, "test")
        elif (
            node.name in ("defined", "undefined")
            and not node.arguments
            and isinstance(node.value, nodes.Name)
            and not self.traced
        ):
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

    def function(self, name: str | None, parameters: list[nodes.Parameter], body: list[nodes.Stmt]) -> Macro:
        params = tuple(parameter.name for parameter in parameters)
        defaults: dict[str, Closure] = {}
        with self.inside(cost=len(parameters), names=set(), soft=False) as frame:
            for parameter in parameters:
                self.look_up(parameter.name)
                if parameter.default is not None:
                    defaults[parameter.name] = self.expr(parameter.default)
                elif (not_given := self.dialect.not_given(parameter.name)) is not None:
                    defaults[parameter.name] = constant(not_given)
            closure, _, masked = self.function_body(body, params)
            special = SPECIAL & frame.names
        needs_default = "caller" in special and self.dialect.lexical_macros
        if needs_default and any(p.name == "caller" and p.default is None for p in parameters):
            message = "a parameter `caller` needs a default where the body reads it"
            raise TemplateSyntaxError(message, line=body[0].line, column=body[0].column)
        cost, height = frame.cost, frame.height
        return self.dialect.macro_type(name, params, defaults, closure, self.finish, height, cost, special, masked)


def constant(value: Any) -> Closure:
    return lambda _env: value


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
