"""Productions of expressions -> nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from jinjarun.errors import quote
from jinjarun.syntax import nodes

if TYPE_CHECKING:
    from jinjarun.syntax.excerpts import Source
    from jinjarun.syntax.lexer import Token
    from jinjarun.syntax.rules import SyntaxRules

    Kids = list[Any]
    """The children of a production: tokens, nodes, and lists or tuples of them."""


def _filter(line: int, column: int, value: Any, name: str, arguments: list[nodes.Argument] | None) -> nodes.Filter:
    """`arguments`: None where the filter is written without parentheses."""
    return nodes.Filter(line, column, value, name, arguments or [], arguments is not None)


class Expressions:
    """One method for every alias of the grammar's second half: from the children of a production to a node."""

    def __init__(self, source: Source, rules: SyntaxRules) -> None:
        self.source = source
        self.rules = rules
        self.constants = rules.constants

    def fail(self, message: str, line: int, column: int, hint: str = "") -> NoReturn:
        raise self.source.error_at(message, line, column, hint)

    # ---------------------------------------------------------------------------------------------------------- lists

    def nothing(self, k: Kids) -> Kids:
        return []

    def one(self, k: Kids) -> Kids:
        return k

    def pair(self, k: Kids) -> Kids:
        return [k[0], k[2]]

    def more(self, k: Kids) -> Kids:
        items: Kids = k[0]
        items.append(k[2])
        return items

    def list_end(self, k: Kids) -> Any:
        return k[0]

    # ---------------------------------------------------------------------------------------------------- expressions

    def one_tuple(self, k: Kids) -> nodes.TupleExpr:
        return nodes.TupleExpr(k[0].line, k[0].column, [k[0]])

    def tuple(self, k: Kids) -> nodes.TupleExpr:
        items = k[0]
        return nodes.TupleExpr(items[0].line, items[0].column, items)

    tuple_end = tuple

    def inline_if(self, k: Kids) -> nodes.Conditional:
        then = k[0]
        return nodes.Conditional(then.line, then.column, k[2], then, None)

    inline_if_again = inline_if

    def inline_if_else(self, k: Kids) -> nodes.Conditional:
        then = k[0]
        return nodes.Conditional(then.line, then.column, k[2], then, k[4])

    inline_if_again_else = inline_if_else

    def binary(self, k: Kids) -> nodes.Binary:
        first, operator, second = k
        return nodes.Binary(first.line, first.column, first, [(operator[2], second)])

    def compare(self, k: Kids) -> nodes.Compare:
        first, operator, second = k
        name = "not in" if operator[2].startswith("not") else operator[2]
        return nodes.Compare(first.line, first.column, first, [(name, second)])

    def more_binary(self, k: Kids) -> Any:
        node, operator, operand = k
        name = "not in" if operator[2].startswith("not") else operator[2]
        node.rest.append((name, operand))
        return node

    def unary(self, k: Kids) -> nodes.Unary:
        (line, column, operator), operand = k
        return nodes.Unary(line, column, operator, operand)

    def dotted_filter(self, k: Kids) -> Token:
        (line, column, name), attribute = k
        return line, column, f"{name}.{attribute[2]}"

    dotted_test = dotted_filter

    def bare_filter(self, k: Kids) -> Any:
        return k[0], None

    def filter_arguments(self, k: Kids) -> Any:
        return k[0], self._arguments(k[2])

    def call_result(self, k: Kids) -> Any:
        return *k[0], self._arguments(k[2])

    def filter(self, k: Kids) -> nodes.Expr:
        value, ((_, _, name), arguments, *calls) = k
        node: nodes.Expr = _filter(value.line, value.column, value, name, arguments)
        return self._called(node, calls) if calls else node

    filter_of_test = filter

    def _called(self, node: nodes.Expr, calls: Any) -> nodes.Expr:
        for arguments in calls:
            node = nodes.Call(node.line, node.column, node, arguments)
        return node

    def bare_test_argument(self, k: Kids) -> Any:
        value = k[1]
        return k[0], [nodes.Argument("positional", "", value)]

    def test(self, k: Kids) -> nodes.Expr:
        value, _, ((_, _, name), arguments, *calls) = k
        node: nodes.Expr = nodes.Test(value.line, value.column, value, name, arguments or [], False)
        return self._called(node, calls) if calls else node

    def negated_test(self, k: Kids) -> nodes.Expr:
        value, _, _, ((_, _, name), arguments, *calls) = k
        node: nodes.Expr = nodes.Test(value.line, value.column, value, name, arguments or [], True)
        return self._called(node, calls) if calls else node

    def block_filter(self, k: Kids) -> nodes.Filter:
        (line, column, name), arguments, *calls = k[0]
        if calls:
            self.fail("the result of a filter cannot be called here", line, column)
        return _filter(line, column, None, name, arguments)

    def block_filter_chain(self, k: Kids) -> nodes.Filter:
        value, ((_, _, name), arguments, *calls) = k
        if calls:
            self.fail("the result of a filter cannot be called here", *k[1][0][:2])
        return _filter(value.line, value.column, value, name, arguments)

    def attribute(self, k: Kids) -> nodes.GetAttr:
        value, token = k
        return nodes.GetAttr(value.line, value.column, value, token[2])

    def dot_index(self, k: Kids) -> nodes.GetItem:
        value, _, number = k
        return nodes.GetItem(value.line, value.column, value, nodes.Const(*number))

    def item(self, k: Kids) -> nodes.GetItem:
        value = k[0]
        return nodes.GetItem(value.line, value.column, value, k[2])

    def item_nothing(self, k: Kids) -> nodes.GetItem:
        value, (line, column, _), _ = k
        return nodes.GetItem(value.line, value.column, value, nodes.TupleExpr(line, column, []))

    def call(self, k: Kids) -> nodes.Call:
        callee = k[0]
        return nodes.Call(callee.line, callee.column, callee, self._arguments(k[2]))

    def subscript_tuple(self, k: Kids) -> nodes.TupleExpr:
        return self.tuple(k)

    def slice(self, k: Kids) -> nodes.Slice:
        parts: list[nodes.Expr | None] = [None, None, None]
        part = 0
        for kid in k:
            if type(kid) is tuple:
                part += 1
            else:
                parts[part] = kid
        first = k[0]
        line, column = first[:2] if type(first) is tuple else (first.line, first.column)
        return nodes.Slice(line, column, *parts)

    def positional(self, k: Kids) -> nodes.Argument:
        return nodes.Argument("positional", "", k[0])

    def keyword(self, k: Kids) -> nodes.Argument:
        return nodes.Argument("keyword", k[0][2], k[2])

    def star(self, k: Kids) -> nodes.Argument:
        return nodes.Argument("star", "", k[1])

    def double_star(self, k: Kids) -> nodes.Argument:
        return nodes.Argument("double_star", "", k[1])

    def _arguments(self, arguments: list[nodes.Argument]) -> list[nodes.Argument]:
        seen: set[str] = set()
        for argument in arguments:
            kind = argument.kind
            if kind == "positional":
                if not seen:
                    continue
                problem = "a positional argument cannot follow these"
            elif "double_star" in seen or kind in seen:
                problem = "this argument cannot follow those before it"
            elif kind == "keyword" and "=" + argument.name in seen:
                problem = f"two arguments are named `{quote(argument.name)}`"
            else:
                seen.add("=" + argument.name if kind == "keyword" else kind)
                continue
            self.fail(problem, argument.value.line, argument.value.column)
        return arguments

    def group(self, k: Kids) -> Any:
        return k[1]

    def group_tuple(self, k: Kids) -> nodes.TupleExpr:
        (line, column, _), node, _ = k
        node.line, node.column = line, column
        return node  # type: ignore[no-any-return]

    def empty_tuple(self, k: Kids) -> nodes.TupleExpr:
        return nodes.TupleExpr(k[0][0], k[0][1], [])

    def name(self, k: Kids) -> nodes.Expr:
        line, column, name = k[0]
        if name in self.constants:
            return nodes.Const(line, column, self.constants[name])
        return nodes.Name(line, column, name)

    def number(self, k: Kids) -> nodes.Const:
        return nodes.Const(*k[0])

    string = number

    def strings(self, k: Kids) -> nodes.Const:
        tokens = k[0]
        line, column, _ = tokens[0]
        return nodes.Const(line, column, "".join(token[2] for token in tokens))

    def two(self, k: Kids) -> Kids:
        return k

    def append(self, k: Kids) -> Kids:
        items: Kids = k[0]
        items.append(k[1])
        return items

    def empty_list(self, k: Kids) -> nodes.ListExpr:
        return nodes.ListExpr(k[0][0], k[0][1], [])

    def list(self, k: Kids) -> nodes.ListExpr:
        return nodes.ListExpr(k[0][0], k[0][1], k[1])

    def empty_dict(self, k: Kids) -> nodes.DictExpr:
        return nodes.DictExpr(k[0][0], k[0][1], [])

    def dict(self, k: Kids) -> nodes.DictExpr:
        return nodes.DictExpr(k[0][0], k[0][1], k[1])

    def one_pair(self, k: Kids) -> Kids:
        return [(k[0], k[2])]

    def more_pairs(self, k: Kids) -> Kids:
        pairs: Kids = k[0]
        pairs.append((k[2], k[4]))
        return pairs
