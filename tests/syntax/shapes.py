"""Trees as plain tuples, so that ours and Jinja2's can be compared.

Operators are grouped as Jinja2 groups them, neighbouring texts are joined, and names and literals carry their line.
"""

from __future__ import annotations

import warnings
from typing import Any

import jinja2.ext
import jinja2.nodes as j
from jinja2.sandbox import ImmutableSandboxedEnvironment

from jinjarun.syntax import nodes as n

Shape = tuple[Any, ...]


class _Generation(jinja2.ext.Extension):
    """`{% generation %}` as transformers adds it to Jinja2."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Any) -> j.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return j.CallBlock(self.call_method("_run"), [], [], body).set_lineno(line)

    def _run(self, caller: Any) -> str:
        return str(caller())


JINJA2_ENVIRONMENT = ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, jinja2.ext.loopcontrols]
)


# ---------------------------------------------------------------------------------------------------------------- ours


def ours(node: Any) -> Any:
    match node:
        case None:
            return None
        case n.Const():
            return "const", node.line, type(node.value).__name__, repr(node.value)
        case n.Name():
            return "name", node.line, node.name
        case n.TupleExpr() | n.ListExpr():
            return type(node).__name__[:-4].lower(), [ours(item) for item in node.items]
        case n.DictExpr():
            return "dict", [(ours(key), ours(value)) for key, value in node.pairs]
        case n.Unary():
            return node.op, ours(node.operand)
        case n.Binary():
            return _grouped(ours(node.first), [(op, ours(operand)) for op, operand in node.rest])
        case n.Compare():
            return "compare", ours(node.first), [(op, ours(operand)) for op, operand in node.rest]
        case n.Conditional():
            return "if", ours(node.test), ours(node.then), ours(node.otherwise)
        case n.GetAttr():
            return "attribute", ours(node.value), node.name
        case n.GetItem():
            return "item", ours(node.value), ours(node.index)
        case n.Slice():
            return "slice", ours(node.start), ours(node.stop), ours(node.step)
        case n.Call():
            return "call", ours(node.callee), _arguments(node.arguments)
        case n.Filter():
            return "filter", ours(node.value), node.name, _arguments(node.arguments)
        case n.Test():
            shape = "test", ours(node.value), node.name, _arguments(node.arguments)
            return ("not", shape) if node.negated else shape
        case n.If():
            arms = [(ours(branch.test), our_body(branch.body)) for branch in node.branches]
            return "if", arms, our_body(node.otherwise or [])
        case n.For():
            head = ours(node.target), ours(node.iterable), ours(node.test), node.recursive
            return "for", *head, our_body(node.body), our_body(node.otherwise or [])
        case n.Set():
            return "set", ours(node.target), ours(node.value)
        case n.SetBlock():
            return "set", ours(node.target), ours(node.filters), our_body(node.body)
        case n.Macro():
            return "macro", node.name, _parameters(node.parameters), our_body(node.body)
        case n.CallBlock():
            return "call", _parameters(node.parameters), ours(node.call), our_body(node.body)
        case n.FilterBlock():
            return "filter", ours(node.filters), our_body(node.body)
        case n.With():
            return "with", [(ours(target), ours(value)) for target, value in node.assignments], our_body(node.body)
        case n.Block():
            return "block", node.name, node.scoped, node.required, our_body(node.body)
        case n.Autoescape():
            return "autoescape", ours(node.enabled), our_body(node.body)
        case n.Generation():
            return "generation", our_body(node.body)
        case n.Load():
            return "load", node.tag, node.names
        case n.Break() | n.Continue():
            return (type(node).__name__.lower(),)
    raise TypeError(node)


def our_body(body: list[n.Stmt]) -> list[Shape]:
    out: list[Shape] = []
    for node in body:
        if isinstance(node, n.Data):
            _add_text(out, node.text)
        elif isinstance(node, n.Output):
            out.append(("output", ours(node.value)))
        else:
            out.append(ours(node))
    return out


def _grouped(first: Shape, rest: list[tuple[str, Shape]]) -> Shape:
    operands, operators = [[first]], []
    for op, operand in rest:
        if op == "~":
            operands[-1].append(operand)
        else:
            operators.append(op)
            operands.append([operand])
    shapes = [group[0] if len(group) == 1 else ("~", group) for group in operands]
    left = shapes[0]
    for op, right in zip(operators, shapes[1:], strict=True):
        left = (op, left, right)
    return left


def _arguments(arguments: list[n.Argument]) -> Shape:
    def of(kind: str) -> list[n.Argument]:
        return [argument for argument in arguments if argument.kind == kind]

    return (
        [ours(a.value) for a in of("positional")],
        [(a.name, ours(a.value)) for a in of("keyword")],
        [ours(a.value) for a in of("star")],
        [ours(a.value) for a in of("double_star")],
    )


def _parameters(parameters: list[n.Parameter]) -> list[Shape]:
    return [(parameter.name, ours(parameter.default)) for parameter in parameters]


def _add_text(out: list[Shape], text: str) -> None:
    if out and out[-1][0] == "text":
        text = out.pop()[1] + text
    out.append(("text", text))


# ------------------------------------------------------------------------------------------------------------- Jinja2's

_BINARY = {j.Add: "+", j.Sub: "-", j.Mul: "*", j.Div: "/", j.FloorDiv: "//", j.Mod: "%", j.Pow: "**"}
_BINARY |= {j.And: "and", j.Or: "or"}
_UNARY = {j.Not: "not", j.Neg: "-", j.Pos: "+"}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "lteq": "<=", "gt": ">", "gteq": ">=", "in": "in", "notin": "not in"}


def theirs(node: Any) -> Any:
    if type(node) in _BINARY:
        return _BINARY[type(node)], theirs(node.left), theirs(node.right)
    if type(node) in _UNARY:
        return _UNARY[type(node)], theirs(node.node)
    match node:
        case None:
            return None
        case j.Const():
            return "const", node.lineno, type(node.value).__name__, repr(node.value)
        case j.Name():
            return "name", node.lineno, node.name
        case j.NSRef():
            return "attribute", ("name", node.lineno, node.name), node.attr
        case j.Tuple() | j.List():
            return type(node).__name__.lower(), [theirs(item) for item in node.items]
        case j.Dict():
            return "dict", [(theirs(pair.key), theirs(pair.value)) for pair in node.items]
        case j.Concat():
            return "~", [theirs(item) for item in node.nodes]
        case j.Compare():
            return "compare", theirs(node.expr), [(_COMPARE[operand.op], theirs(operand.expr)) for operand in node.ops]
        case j.CondExpr():
            return "if", theirs(node.test), theirs(node.expr1), theirs(node.expr2)
        case j.Getattr():
            return "attribute", theirs(node.node), node.attr
        case j.Getitem():
            return "item", theirs(node.node), theirs(node.arg)
        case j.Slice():
            return "slice", theirs(node.start), theirs(node.stop), theirs(node.step)
        case j.Call():
            return "call", theirs(node.node), _their_arguments(node)
        case j.Filter() | j.Test():
            return type(node).__name__.lower(), theirs(node.node), node.name, _their_arguments(node)
        case j.If():
            arms = [(theirs(arm.test), their_body(arm.body)) for arm in [node, *node.elif_]]
            return "if", arms, their_body(node.else_)
        case j.For():
            head = theirs(node.target), theirs(node.iter), theirs(node.test), node.recursive
            return "for", *head, their_body(node.body), their_body(node.else_)
        case j.Assign():
            return "set", theirs(node.target), theirs(node.node)
        case j.AssignBlock():
            return "set", theirs(node.target), theirs(node.filter), their_body(node.body)
        case j.Macro():
            return "macro", node.name, _their_parameters(node), their_body(node.body)
        case j.CallBlock() if isinstance(node.call.node, j.ExtensionAttribute):
            return "generation", their_body(node.body)
        case j.CallBlock():
            return "call", _their_parameters(node), theirs(node.call), their_body(node.body)
        case j.FilterBlock():
            return "filter", theirs(node.filter), their_body(node.body)
        case j.With():
            pairs = zip(node.targets, node.values, strict=True)
            return "with", [(theirs(target), theirs(value)) for target, value in pairs], their_body(node.body)
        case j.Block():
            return "block", node.name, node.scoped, node.required, their_body(node.body)
        case j.Scope():
            (modifier,) = node.body
            return "autoescape", theirs(modifier.options[0].value), their_body(modifier.body)
        case j.Include() | j.Extends():
            return "load", type(node).__name__.lower(), []
        case j.Import():
            return "load", "import", [node.target]
        case j.FromImport():
            return "load", "from", [name if isinstance(name, str) else name[1] for name in node.names]
        case j.Break() | j.Continue():
            return (type(node).__name__.lower(),)
    raise TypeError(node)


def their_body(body: list[j.Node]) -> list[Shape]:
    out: list[Shape] = []
    for node in body:
        if not isinstance(node, j.Output):
            out.append(theirs(node))
            continue
        for item in node.nodes:
            if isinstance(item, j.TemplateData):
                _add_text(out, item.data)
            else:
                out.append(("output", theirs(item)))
    return out


def _their_arguments(node: Any) -> Shape:
    return (
        [theirs(value) for value in node.args],
        [(keyword.key, theirs(keyword.value)) for keyword in node.kwargs],
        [theirs(node.dyn_args)] if node.dyn_args is not None else [],
        [theirs(node.dyn_kwargs)] if node.dyn_kwargs is not None else [],
    )


def _their_parameters(node: Any) -> list[Shape]:
    defaults = [None] * (len(node.args) - len(node.defaults)) + [theirs(default) for default in node.defaults]
    return [(argument.name, default) for argument, default in zip(node.args, defaults, strict=True)]


def jinja2_shape(source: str) -> list[Shape]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python's, about escapes such as `\\d`
        return their_body(JINJA2_ENVIRONMENT.parse(source).body)
