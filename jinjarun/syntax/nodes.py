"""The tree of a template: what the parser builds and the compiler reads.

One tree for both dialects. Where the engines group operators differently (`~` binds tighter than `+` in Jinja2 and
the same in llama.cpp; comparisons chain in Jinja2 and nest in llama.cpp) the tree keeps the flat sequence as written
and the dialect decides. Every node carries the line and the column (both 1-based) of its first token.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Node:
    line: int
    column: int


# ---------------------------------------------------------------------------------------------------------- expressions


@dataclass(slots=True)
class Expr(Node):
    pass


@dataclass(slots=True)
class Const(Expr):
    """A literal: str (escapes resolved, neighbours joined), int, float, True, False or None."""

    value: str | int | float | bool | None


@dataclass(slots=True)
class Name(Expr):
    name: str


@dataclass(slots=True)
class TupleExpr(Expr):
    items: list[Expr]


@dataclass(slots=True)
class ListExpr(Expr):
    items: list[Expr]


@dataclass(slots=True)
class DictExpr(Expr):
    pairs: list[tuple[Expr, Expr]]


@dataclass(slots=True)
class Unary(Expr):
    """`not`, `-` or `+` before one operand."""

    op: str
    operand: Expr


@dataclass(slots=True)
class Binary(Expr):
    """Operands joined by operators of one level, as written: `first`, then (operator, operand) pairs.

    The levels are: `or`; `and`; `+ - ~`; `* / // %`; `**`.
    """

    first: Expr
    rest: list[tuple[str, Expr]]


@dataclass(slots=True)
class Compare(Expr):
    """Comparisons as written; the operators are `== != < <= > >= in` and `not in`."""

    first: Expr
    rest: list[tuple[str, Expr]]


@dataclass(slots=True)
class Conditional(Expr):
    """`then if test else otherwise`; `otherwise` is None where there is no `else`."""

    test: Expr
    then: Expr
    otherwise: Expr | None


@dataclass(slots=True)
class GetAttr(Expr):
    """`value.name`."""

    value: Expr
    name: str


@dataclass(slots=True)
class GetItem(Expr):
    """`value[index]`; `value.0` reads as an index too."""

    value: Expr
    index: Expr


@dataclass(slots=True)
class Slice(Expr):
    """`start:stop:step` between brackets; stands only as a GetItem's index."""

    start: Expr | None
    stop: Expr | None
    step: Expr | None


@dataclass(slots=True)
class Argument:
    """One argument of a call, in the order written. `kind` is "positional", "keyword", "star" or "double_star"."""

    kind: str
    name: str
    value: Expr


@dataclass(slots=True)
class Call(Expr):
    callee: Expr
    arguments: list[Argument]


@dataclass(slots=True)
class Filter(Expr):
    """`value | name(arguments)`; `value` is None in a filter block, where the text of the block takes its place.
    `called`: it is written with parentheses, which is not the same in llama.cpp even where they are empty."""

    value: Expr | None
    name: str
    arguments: list[Argument]
    called: bool


@dataclass(slots=True)
class Test(Expr):
    """`value is name(arguments)`, or `is not` where `negated`."""

    value: Expr
    name: str
    arguments: list[Argument]
    negated: bool


@dataclass(slots=True)
class Invalid(Expr):
    """What llama.cpp parses and fails at when it is reached, `before` having been evaluated: `{% set x[0] = 1 %}`,
    `{{ x|f(1).y }}`."""

    message: str
    before: list[Expr]


@dataclass(slots=True)
class Blank(Expr):
    """Nothing between the brackets of a GetItem, which llama.cpp reads as undefined."""


# ----------------------------------------------------------------------------------------------------------- statements


@dataclass(slots=True)
class Stmt(Node):
    pass


@dataclass(slots=True)
class Data(Stmt):
    """Text outside of tags, after whitespace control."""

    text: str


@dataclass(slots=True)
class Output(Stmt):
    """`{{ value }}`."""

    value: Expr


@dataclass(slots=True)
class Branch:
    """One arm of an `if`."""

    test: Expr
    body: list[Stmt]


@dataclass(slots=True)
class If(Stmt):
    branches: list[Branch]
    otherwise: list[Stmt] | None


@dataclass(slots=True)
class For(Stmt):
    """`target` is an assignable expression: a Name, or a TupleExpr of them."""

    target: Expr
    iterable: Expr
    test: Expr | None
    body: list[Stmt]
    otherwise: list[Stmt] | None
    recursive: bool


@dataclass(slots=True)
class Set(Stmt):
    """`{% set target = value %}`; `target` is a Name, a GetAttr on a Name (a namespace), or a TupleExpr of those."""

    target: Expr
    value: Expr


@dataclass(slots=True)
class SetBlock(Stmt):
    """`{% set target | filters %}...{% endset %}`; `filters` has no innermost value (see Filter)."""

    target: Expr
    filters: Filter | None
    body: list[Stmt]


@dataclass(slots=True)
class Parameter:
    name: str
    default: Expr | None


@dataclass(slots=True)
class Macro(Stmt):
    name: str
    parameters: list[Parameter]
    body: list[Stmt]


@dataclass(slots=True)
class CallBlock(Stmt):
    """`{% call(parameters) macro(arguments) %}...{% endcall %}`."""

    parameters: list[Parameter]
    call: Expr
    body: list[Stmt]


@dataclass(slots=True)
class FilterBlock(Stmt):
    """`{% filter name %}...{% endfilter %}`; the innermost Filter's value is None."""

    filters: Filter
    body: list[Stmt]


@dataclass(slots=True)
class With(Stmt):
    assignments: list[tuple[Expr, Expr]]
    body: list[Stmt]


@dataclass(slots=True)
class Block(Stmt):
    """`{% block name scoped required %}`: template inheritance without a parent is just the body."""

    name: str
    scoped: bool
    required: bool
    body: list[Stmt]


@dataclass(slots=True)
class Autoescape(Stmt):
    enabled: Expr
    body: list[Stmt]


@dataclass(slots=True)
class Generation(Stmt):
    """`{% generation %}...{% endgeneration %}`: what an assistant wrote, for training masks (transformers)."""

    body: list[Stmt]


@dataclass(slots=True)
class Load(Stmt):
    """`include`, `import`, `from` or `extends`: parses, and always fails when reached, for there is no loader."""

    tag: str
    names: list[str]


@dataclass(slots=True)
class Break(Stmt):
    pass


@dataclass(slots=True)
class Continue(Stmt):
    pass


@dataclass(slots=True)
class Template(Node):
    body: list[Stmt] = field(default_factory=list)
