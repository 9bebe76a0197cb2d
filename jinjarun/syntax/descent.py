"""Tokens -> tree as llama.cpp reads them (common/jinja/parser.cpp, build b11434): by recursive descent, of words alone.

Its parser has no keywords and asks little of what it finds: every word may be a variable, most commas may be left out,
and where it takes any expression but can use only a name, the template fails when that place is reached, not before.
Such places are `nodes.Invalid`. Productions of Jinja2 are in grammar.lark.

Statements are no recursion here, nor are chains of operators: only brackets are, of which the lexer allows some.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from jinjarun.syntax import nodes
from jinjarun.syntax.builder import Builder
from jinjarun.syntax.lexer import END_OF_INPUT

if TYPE_CHECKING:
    from jinjarun.limits import Limits
    from jinjarun.syntax.excerpts import Source
    from jinjarun.syntax.lexer import Token
    from jinjarun.syntax.rules import SyntaxRules

_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_ADDERS = frozenset({"+", "-", "~"})
_MULTIPLIERS = frozenset({"*", "/", "%"})
_MEMBERS = frozenset({"ATTRIBUTE", ".", "[", "("})
_NUMBERS = frozenset({"INTEGER", "FLOAT"})
_BARE_ARGUMENTS = frozenset({"INTEGER", "FLOAT", "STRING", "{", "["})
"""Tokens that are the argument of a test without parentheses; a word is, too, but for these:"""
_NO_ARGUMENTS = frozenset({"and", "or", "else"})
_UNASSIGNABLE = "this cannot be assigned"


class _Open:
    """A tag that waits for its end: the tags that may come, the node, and the body around it."""

    __slots__ = ("around", "expected", "node")

    def __init__(self, node: Any, expected: tuple[str, ...], around: list[nodes.Stmt]) -> None:
        self.node = node
        self.expected = expected
        self.around = around


class Descent:
    """One template."""

    def __init__(
        self, source: Source, kinds: list[str], tokens: list[Token], rules: SyntaxRules, limits: Limits
    ) -> None:
        self.kinds = kinds
        self.tokens = tokens
        self.builder = Builder(source, rules, limits)
        self.at = 0
        self.body: list[nodes.Stmt] = []
        self.open: list[_Open] = []

    # --------------------------------------------------------------------------------------------------------- tokens

    def unexpected(self) -> NoReturn:
        before = self.tokens[self.at - 1] if self.at else None
        self.builder.unexpected(self.kinds[self.at], self.tokens[self.at], before)

    def fail(self, message: str, token: Token, hint: str = "") -> NoReturn:
        self.builder.fail(message, token[0], token[1], hint)

    def take(self, kind: str) -> Token:
        if self.kinds[self.at] != kind:
            self.unexpected()
        self.at += 1
        return self.tokens[self.at - 1]

    def skip(self, kind: str) -> bool:
        """Whether the next token is of this kind, which then is behind us."""
        found = self.kinds[self.at] == kind
        self.at += found
        return found

    def word(self) -> str:
        """The next token if it is a word; else nothing."""
        return self.tokens[self.at][2] if self.kinds[self.at] == "NAME" else ""

    def skip_word(self, word: str) -> bool:
        found = self.kinds[self.at] == "NAME" and self.tokens[self.at][2] == word
        self.at += found
        return found

    # ----------------------------------------------------------------------------------------------------- statements

    def template(self) -> list[nodes.Stmt]:
        while (kind := self.kinds[self.at]) != END_OF_INPUT:
            token = self.tokens[self.at]
            if kind == "TEXT":
                self.at += 1
                self.body.append(nodes.Data(*token))
            elif kind == "{{":
                self.at += 1
                value = self.expression()
                self.take("}}")
                self.body.append(nodes.Output(token[0], token[1], value))
            elif kind.startswith("{% "):
                self.statement(kind[3:], token)
            else:
                self.unexpected()
        if self.open:
            self.unexpected()
        return self.body

    def statement(self, word: str, tag: Token) -> None:
        read = _STATEMENTS.get(word)
        if read is None and not (self.open and word in self.open[-1].expected):
            self.unexpected()
        self.at += 1
        if read is not None:
            read(self, tag)
        elif word == "elif":
            branch = nodes.Branch(self.expression(), [])
            self.take("%}")
            self.open[-1].node.branches.append(branch)
            self.body = branch.body
        elif word == "else":
            self.take("%}")
            opened = self.open[-1]
            opened.expected = opened.expected[-1:]
            self.body = opened.node.otherwise = []
        else:
            self.take("%}")
            self.builder.open.pop()
            self.body = self.open.pop().around

    def enter(self, node: Any, tag: Token, body: list[nodes.Stmt], *expected: str) -> None:
        """The tag that makes `node` ends here; what follows is `body`, up to the last of the tags `expected`."""
        self.take("%}")
        self.builder.enter(tag)
        self.open.append(_Open(node, expected, self.body))
        self.body.append(node)
        self.body = body

    def if_(self, tag: Token) -> None:
        branch = nodes.Branch(self.expression(), [])
        self.enter(nodes.If(tag[0], tag[1], [branch], None), tag, branch.body, "elif", "else", "endif")

    def for_(self, tag: Token) -> None:
        target = self.target(self.sequence(self.primary))
        if not self.skip_word("in"):
            self.unexpected()
        iterable = choice = self.expression()
        test: nodes.Expr | None = None
        if isinstance(choice, nodes.Conditional) and choice.otherwise is None:
            iterable, test = choice.then, choice.test
        if type(target) is nodes.GetAttr:
            target = self.invalid(target, _UNASSIGNABLE)
        node = nodes.For(tag[0], tag[1], target, iterable, test, [], None, False)
        self.enter(node, tag, node.body, "else", "endfor")

    def set(self, tag: Token) -> None:
        target = self.target(self.sequence(self.expression))
        if self.skip("="):
            node = nodes.Set(tag[0], tag[1], target, self.sequence(self.expression))
            self.take("%}")
            self.body.append(node)
        else:
            block = nodes.SetBlock(tag[0], tag[1], target, None, [])
            self.enter(block, tag, block.body, "endset")

    def target(self, node: nodes.Expr) -> nodes.Expr:
        """Any expression is read as a target; names, tuples of names and members can be assigned."""
        if type(node) is nodes.TupleExpr:
            names = [item if type(item) is nodes.Name else self.invalid(item, _UNASSIGNABLE) for item in node.items]
            return nodes.TupleExpr(node.line, node.column, [*names])
        return node if type(node) in (nodes.Name, nodes.GetAttr) else self.invalid(node, _UNASSIGNABLE)

    def macro(self, tag: Token) -> None:
        name = self.primary()
        arguments = self.arguments()
        if type(name) is nodes.Name:
            parameters, body = self.parameters(arguments)
            self.enter(nodes.Macro(tag[0], tag[1], name.name, parameters, body), tag, body, "endmacro")
        else:
            self.enter(
                nodes.Output(tag[0], tag[1], self.invalid(name, "a macro's name is a word")), tag, [], "endmacro"
            )

    def parameters(self, arguments: list[nodes.Argument]) -> tuple[list[nodes.Parameter], list[nodes.Stmt]]:
        """What a macro or caller takes, and the beginning of its body: a call fails where a parameter is no name."""
        parameters = []
        for argument in arguments:
            if argument.kind == "keyword":
                parameters.append(nodes.Parameter(argument.name, argument.value))
            elif type(argument.value) is nodes.Name:
                parameters.append(nodes.Parameter(argument.value.name, None))
            else:
                value = argument.value
                wrong = nodes.Output(value.line, value.column, self.invalid(value, "a parameter is a name"))
                return [nodes.Parameter("", self.invalid(value, "a parameter is a name"))], [wrong]
        return parameters, []

    def call_block(self, tag: Token) -> None:
        arguments: list[nodes.Argument] = []
        if self.kinds[self.at] == "(":
            arguments = self.arguments()
        place = self.tokens[self.at]
        callee = self.primary()
        if type(callee) is not nodes.Name:
            self.fail("the name of a macro is expected after `call`", place, "such as `{% call macro() %}`")
        call = nodes.Call(callee.line, callee.column, callee, self.arguments())
        parameters, body = self.parameters(arguments)
        self.enter(nodes.CallBlock(tag[0], tag[1], parameters, call, body), tag, body, "endcall")

    def filter_block(self, tag: Token) -> None:
        name = self.primary()
        if type(name) is nodes.Name and self.kinds[self.at] == "(":
            name = self.calls(name)
        applied = self.filtered(None, name)
        node: nodes.FilterBlock | nodes.SetBlock
        if type(applied) is nodes.Filter:
            node = nodes.FilterBlock(tag[0], tag[1], applied, [])
        else:
            node = nodes.SetBlock(tag[0], tag[1], applied, None, [])
        self.enter(node, tag, node.body, "endfilter")

    def break_(self, tag: Token) -> None:
        self.take("%}")
        self.body.append(nodes.Break(tag[0], tag[1]))

    def continue_(self, tag: Token) -> None:
        self.take("%}")
        self.body.append(nodes.Continue(tag[0], tag[1]))

    def generation(self, _tag: Token) -> None:
        """Means nothing; the token behind it is passed over, whatever it is."""
        if self.kinds[self.at] != END_OF_INPUT:
            self.at += 1

    # ----------------------------------------------------------------------------------------------------- expressions

    def invalid(self, node: nodes.Node, message: str, *before: nodes.Expr) -> nodes.Invalid:
        return nodes.Invalid(node.line, node.column, message, list(before))

    def sequence(self, item: Any) -> nodes.Expr:
        """One expression, or a tuple of several."""
        first: nodes.Expr = item()
        if self.kinds[self.at] != ",":
            return first
        items = [first]
        while self.skip(","):
            items.append(item())
        return nodes.TupleExpr(first.line, first.column, items)

    def expression(self) -> nodes.Expr:
        taken: list[tuple[nodes.Expr, nodes.Expr]] = []
        value = self.any_of()
        while self.skip_word("if"):
            test = self.any_of()
            if not self.skip_word("else"):
                value = nodes.Conditional(value.line, value.column, test, value, None)
                break
            taken.append((value, test))
            value = self.any_of()
        for then, test in reversed(taken):
            value = nodes.Conditional(then.line, then.column, test, then, value)
        return value

    def any_of(self) -> nodes.Expr:
        first, rest = self.all_of(), []
        while self.skip_word("or"):
            rest.append(("or", self.all_of()))
        return nodes.Binary(first.line, first.column, first, rest) if rest else first

    def all_of(self) -> nodes.Expr:
        first, rest = self.negation(), []
        while self.skip_word("and"):
            rest.append(("and", self.negation()))
        return nodes.Binary(first.line, first.column, first, rest) if rest else first

    def negation(self) -> nodes.Expr:
        begin = self.at
        while self.skip_word("not"):
            pass
        end = self.at
        value = self.comparison()
        for token in reversed(self.tokens[begin:end]):
            value = nodes.Unary(token[0], token[1], "not", value)
        return value

    def comparison(self) -> nodes.Expr:
        first = self.sum()
        rest: list[tuple[str, nodes.Expr]] = []
        while True:
            kind, word = self.kinds[self.at], self.word()
            if kind in _COMPARISONS:
                operator = kind
                self.at += 1
            elif word == "in":
                operator = word
                self.at += 1
            elif word == "not" and self.kinds[self.at + 1] == "NAME" and self.tokens[self.at + 1][2] == "in":
                operator = "not in"
                self.at += 2
            else:
                return nodes.Compare(first.line, first.column, first, rest) if rest else first
            rest.append((operator, self.sum()))

    def sum(self) -> nodes.Expr:
        first, rest = self.product(), []
        while (kind := self.kinds[self.at]) in _ADDERS:
            self.at += 1
            rest.append((kind, self.product()))
        return nodes.Binary(first.line, first.column, first, rest) if rest else first

    def product(self) -> nodes.Expr:
        first, rest = self.tested(), []
        while (kind := self.kinds[self.at]) in _MULTIPLIERS:
            self.at += 1
            rest.append((kind, self.tested()))
        return nodes.Binary(first.line, first.column, first, rest) if rest else first

    def tested(self) -> nodes.Expr:
        value = self.signed()
        while (kind := self.kinds[self.at]) == "FILTER" or kind == "|":
            value = self.filter(value)
        while self.skip_word("is"):
            value = self.test(value)
        return value

    def filter(self, value: nodes.Expr) -> nodes.Expr:
        token = self.tokens[self.at]
        if self.skip("FILTER"):
            name: nodes.Expr = nodes.Name(*token)
        else:
            self.at += 1
            name = self.primary()
        if self.kinds[self.at] == "(":
            name = self.calls(name)
        return self.filtered(value, name)

    def filtered(self, value: nodes.Expr | None, name: nodes.Expr) -> nodes.Expr:
        place = name if value is None else value
        if type(name) is nodes.Name:
            return nodes.Filter(place.line, place.column, value, name.name, [], False)
        if type(name) is nodes.Call and type(name.callee) is nodes.Name:
            return nodes.Filter(place.line, place.column, value, name.callee.name, name.arguments, True)
        return self.invalid(place, "a filter is a name, with or without arguments", *([] if value is None else [value]))

    def test(self, value: nodes.Expr) -> nodes.Expr:
        negated = self.skip_word("not")
        name = self.primary()
        arguments: list[nodes.Argument] = []
        kind = self.kinds[self.at]
        if kind == "(":
            called = self.calls(name)
            if type(called) is nodes.Call:
                name, arguments = called.callee, called.arguments
            else:
                name = called
        elif kind in _BARE_ARGUMENTS or (kind == "NAME" and self.word() not in _NO_ARGUMENTS):
            arguments = [nodes.Argument("positional", "", self.signed())]
        if type(name) is nodes.Name:
            return nodes.Test(value.line, value.column, value, name.name, arguments, negated)
        return self.invalid(value, "a test is a name, with or without arguments", value)

    def signed(self) -> nodes.Expr:
        begin = self.at
        while self.skip("SIGN"):
            pass
        end = self.at
        value = self.primary()
        kind = self.kinds[self.at]
        if kind in _MEMBERS:
            value = self.members(value)
        for token in reversed(self.tokens[begin:end]):
            value = nodes.Unary(token[0], token[1], token[2], value)
        return value

    def calls(self, callee: nodes.Expr) -> nodes.Expr:
        """`callee` with arguments, and all that follows upon it."""
        return self.members(nodes.Call(callee.line, callee.column, callee, self.arguments()))

    def members(self, value: nodes.Expr) -> nodes.Expr:
        while True:
            kind, token = self.kinds[self.at], self.tokens[self.at]
            if kind == "ATTRIBUTE":
                self.at += 1
                value = nodes.GetAttr(value.line, value.column, value, token[2])
            elif kind == ".":
                self.at += 1
                value = self.member(value, self.primary())
            elif kind == "[":
                self.at += 1
                value = nodes.GetItem(value.line, value.column, value, self.subscript(token))
            elif kind == "(":
                value = nodes.Call(value.line, value.column, value, self.arguments())
            else:
                return value

    def member(self, value: nodes.Expr, key: nodes.Expr) -> nodes.Expr:
        if type(key) is nodes.Name:
            return nodes.GetAttr(value.line, value.column, value, key.name)
        if type(key) is nodes.Const and type(key.value) is int and key.value >= 0:
            return nodes.GetItem(value.line, value.column, value, key)
        return self.invalid(value, "after a dot stands a name or an index", value)

    def subscript(self, bracket: Token) -> nodes.Expr:
        """Up to three parts count where there is a colon among them, else the first; nothing parts them but colons."""
        parts: list[nodes.Expr | None] = []
        sliced = False
        while not self.skip("]"):
            if self.skip(":"):
                sliced = True
                parts.append(None)
            else:
                parts.append(self.expression())
                sliced = self.skip(":") or sliced
        line, column, _ = bracket
        if sliced:
            return nodes.Slice(line, column, *(*parts, None, None)[:3])
        return nodes.Blank(line, column) if not parts or parts[0] is None else parts[0]

    def arguments(self) -> list[nodes.Argument]:
        self.take("(")
        found = []
        while not self.skip(")"):
            begin = self.tokens[self.at]
            if self.skip("*"):
                value = self.expression()
                wrong = nodes.Invalid(begin[0], begin[1], "llama.cpp spreads no arguments", [])
                found.append(nodes.Argument("positional", "", wrong))
            else:
                value = self.expression()
                if not self.skip("="):
                    found.append(nodes.Argument("positional", "", value))
                elif type(value) is nodes.Name:
                    found.append(nodes.Argument("keyword", value.name, self.expression()))
                else:
                    self.expression()
                    wrong = self.invalid(value, "the name of an argument is a word")
                    found.append(nodes.Argument("positional", "", wrong))
            self.skip(",")
        return found

    def primary(self) -> nodes.Expr:
        kind, token = self.kinds[self.at], self.tokens[self.at]
        if kind == "NAME":
            self.at += 1
            return nodes.Name(*token)
        if kind == "STRING":
            text = self.take(kind)[2]
            while self.kinds[self.at] == "STRING":
                text += self.take("STRING")[2]
            return nodes.Const(token[0], token[1], text)
        if kind in _NUMBERS:
            self.at += 1
            return nodes.Const(*token)
        if kind == "(":
            self.at += 1
            value = self.sequence(self.expression)
            if type(value) is nodes.TupleExpr:
                value.line, value.column = token[:2]
            self.take(")")
            return value
        if kind == "[":
            self.at += 1
            items = []
            while not self.skip("]"):
                items.append(self.expression())
                self.skip(",")
            return nodes.ListExpr(token[0], token[1], items)
        if kind == "{":
            self.at += 1
            pairs = []
            while not self.skip("}"):
                key = self.expression()
                self.take(":")
                pairs.append((key, self.expression()))
                self.skip(",")
            return nodes.DictExpr(token[0], token[1], pairs)
        return self.unexpected()


_STATEMENTS = {
    "if": Descent.if_,
    "for": Descent.for_,
    "set": Descent.set,
    "macro": Descent.macro,
    "call": Descent.call_block,
    "filter": Descent.filter_block,
    "break": Descent.break_,
    "continue": Descent.continue_,
    "generation": Descent.generation,
    "endgeneration": Descent.generation,
}
