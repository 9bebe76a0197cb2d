"""Expressions, and the targets of assignments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinjarun.errors import RenderError
from jinjarun.runtime.compiler.calls import Calls, constant
from jinjarun.runtime.generation_prompt import FLAT
from jinjarun.runtime.text import Text
from jinjarun.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinjarun.runtime.compiler.frame import Closure
    from jinjarun.runtime.run import Run
    from jinjarun.runtime.scope import Env


class Expressions(Calls):
    def const(self, node: nodes.Const) -> Closure:
        return constant(self.string(node, node.value) if isinstance(node.value, str) else node.value)

    def invalid(self, node: nodes.Invalid) -> Closure:
        before = [self.expr(expr) for expr in node.before]

        def invalid(env: Env) -> None:
            for closure in before:
                closure(env)
            raise RenderError(node.message, line=node.line, column=node.column)

        return invalid

    def blank(self, _node: nodes.Blank) -> Closure:
        missing = self.dialect.missing_else
        return lambda _env: missing()

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
            return self.slice(value, node.index)
        item = self.dialect.item
        index = self.expr(node.index)
        if isinstance(node.index, nodes.Const) and type(node.index.value) is str:
            key = self.string(node.index, node.index.value)
            self.look_up(key)
            return self.member(node.value, value, key, item, key)
        return lambda env: item(env.run, value(env), index(env))

    def slice(self, value: Closure, node: nodes.Slice) -> Closure:
        take, constant = self.dialect.slice, self.frame.constant

        def bound(part: nodes.Expr | None) -> Closure:
            return (lambda _env: ...) if part is None else self.expr(part)

        start, stop, step = bound(node.start), bound(node.stop), bound(node.step)
        return lambda env: take(env.run, value(env), (start(env), stop(env), step(env)), constant=constant)

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


_UNFOLDED = frozenset({"map", "reject", "rejectattr", "select", "selectattr", "random"})
"""Filters that Jinja2 does not apply while it compiles: they need the variables, or give something else each time."""


def is_constant(root: nodes.Expr) -> bool:
    """What Jinja2 works out while it compiles: it names no variable, and calls nothing."""
    waiting: list[nodes.Expr | None] = [root]
    while waiting:
        node = waiting.pop()
        match node:
            case nodes.Const() | None:
                pass
            case nodes.TupleExpr(items=items) | nodes.ListExpr(items=items):
                waiting += items
            case nodes.DictExpr():
                waiting += [part for pair in node.pairs for part in pair]
            case nodes.Unary():
                waiting.append(node.operand)
            case nodes.Binary() | nodes.Compare():
                waiting += [node.first, *(operand for _, operand in node.rest)]
            case nodes.Conditional():
                waiting += [node.test, node.then, node.otherwise]
            case nodes.GetAttr():
                waiting.append(node.value)
            case nodes.GetItem():
                waiting += [node.value, node.index]
            case nodes.Slice():
                waiting += [node.start, node.stop, node.step]
            case nodes.Filter() | nodes.Test():
                if type(node) is nodes.Filter and node.name in _UNFOLDED:
                    return False
                waiting += [node.value, *(argument.value for argument in node.arguments)]
            case _:
                return False
    return True
