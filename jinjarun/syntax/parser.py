"""Tokens -> tree. The LALR tables come from Lark (tables.py); the Builder makes a node where a production ends."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NoReturn

from jinjarun.errors import quote
from jinjarun.limits import Limits, Meter
from jinjarun.syntax import nodes, tables
from jinjarun.syntax.lexer import END_OF_INPUT, KEYWORD_PAIRS, KEYWORDS, Token, tokenize

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinjarun.syntax.excerpts import Source
    from jinjarun.syntax.rules import SyntaxRules

    Kids = list[Any]
    Action = tuple[int, Callable[["Builder", Kids], Any] | None, str]
    State = dict[str, Any]
    """Symbol -> the next State, or the Action that reduces."""


def parse(source: str, rules: SyntaxRules, limits: Limits) -> nodes.Template:
    """Read a template as one engine does. Raises TemplateSyntaxError and LimitExceeded, nothing else."""
    text, kinds, tokens = tokenize(source, rules, limits)
    builder = Builder(text, rules, limits)
    body = _run(_automaton(rules), kinds, tokens, builder)
    builder.finish()
    return nodes.Template(1, 1, body)


@lru_cache(maxsize=8)
def _automaton(rules: SyntaxRules) -> State:
    """The start state; the tables as dictionaries that hold each other, with what the dialect refuses taken out."""
    compiled = tables.load()
    actions = [_action(size, symbol, alias, rules) for size, symbol, alias in compiled.rules]
    refused = rules.without.keys() - {symbol for _, symbol, _ in compiled.rules}
    states: list[State] = [{} for _ in compiled.states]
    for state, row in zip(states, compiled.states, strict=True):
        for symbol, number in row.items():
            if symbol not in refused:
                state[symbol] = states[number] if number >= 0 else actions[~number]
    return states[compiled.start]


def _action(size: int, symbol: str, alias: str, rules: SyntaxRules) -> Action:
    refused = rules.without.get(alias or symbol)
    if refused is not None:
        return size, partial(_refuse, hint=refused), symbol
    if not alias:
        assert size == 1, f"{symbol} needs an alias"
        return size, None, symbol
    build: Callable[[Builder, Kids], Any] = getattr(Builder, alias)
    return size, build, symbol


def _run(state: State, kinds: list[str], tokens: list[Token], builder: Builder) -> list[nodes.Stmt]:
    states: list[State] = [state]
    values: list[Any] = []
    push_state, push_value = states.append, values.append
    for kind, token in zip(kinds, tokens, strict=True):
        later: tuple[str, Token] | None = None
        while True:
            action = state.get(kind)
            if action.__class__ is dict:
                push_state(action)
                push_value(token)
                state = action
                if later is None:
                    break
                (kind, token), later = later, None
            elif action is not None:
                size, build, symbol = action
                if size:
                    if build is not None:
                        kids = values[-size:]
                        del values[-size:]
                        push_value(build(builder, kids))
                    del states[-size:]
                else:
                    push_value(build(builder, []))
                # A production that only passes its child on changes nothing but the state.
                base = states[-1]
                state = base[symbol]
                action = state.get(kind)
                while action.__class__ is tuple and action[1] is None:
                    state = base[action[2]]
                    action = state.get(kind)
                push_state(state)
            elif kind in KEYWORDS:
                kind = "NAME"
            elif kind in KEYWORD_PAIRS:
                (first, second), words = KEYWORD_PAIRS[kind], token[2].split()
                kind, token, later = first, (*token[:2], words[0]), (second, (*token[:2], words[1]))
            elif "JUXTAPOSED" in state and kind != "JUXTAPOSED":
                kind, later = "JUXTAPOSED", (kind, token)
            else:
                builder.unexpected(kind, token, state, values)
    body: list[nodes.Stmt] = values[0]
    return body


def _refuse(builder: Builder, kids: Kids, hint: str) -> NoReturn:
    line, column = _place(kids) or (1, 1)
    builder.fail(f"{builder.rules.engine} does not read this", line, column, hint)


def _place(kids: Any) -> tuple[int, int] | None:
    """Where a production begins, from the first of its children that knows."""
    for kid in kids:
        if type(kid) is list or type(kid) is tuple:
            place = (kid[0], kid[1]) if kid and type(kid[0]) is int else _place(kid)
            if place:
                return place
        elif isinstance(kid, nodes.Node):
            return kid.line, kid.column
    return None


class Builder:
    """One method for every alias of the grammar: from the children of a production to a node."""

    def __init__(self, source: Source, rules: SyntaxRules, limits: Limits) -> None:
        self.source = source
        self.rules = rules
        self.limits = limits
        self.constants = rules.constants
        self.open: list[Token] = []
        """The tags that wait for their end."""
        self.loose: list[nodes.Break | nodes.Continue] = []
        """Loop controls whose loop has not been found."""
        self.loop_targets: list[nodes.Name] = []
        """Where a variable `loop` is assigned."""
        self.blocks: set[str] = set()

    # ------------------------------------------------------------------------------------------------------- problems

    def fail(self, message: str, line: int, column: int, hint: str = "") -> NoReturn:
        raise self.source.error_at(message, line, column, hint)

    def unexpected(self, kind: str, token: Token, state: State, values: Kids) -> NoReturn:
        line, column, value = token
        hint = self.rules.without.get(kind, "")
        if kind == END_OF_INPUT:
            what = "the template ends too early"
        elif kind == "TEXT":
            what = "text is not expected here"
        elif kind.startswith("{% "):
            what = f"the tag `{value}` is not expected here"
        else:
            what = f"`{quote(str(value))}` is not expected here"
        if not hint and (kind == END_OF_INPUT or kind.startswith("{% ")) and self.open:
            opened_line, _, word = self.open[-1]
            hint = f"`{{% {word} %}}` of line {opened_line} needs its `{{% end{word} %}}`"
        self.fail(what, line, column, hint)

    def finish(self) -> None:
        if self.loose and self.rules.compiled_to_python:
            self.loop_control_outside(self.loose[0])

    def loop_control_outside(self, node: nodes.Break | nodes.Continue) -> NoReturn:
        word = type(node).__name__.lower()
        self.fail(f"`{word}` outside of a loop", node.line, node.column)

    def enter(self, tag: Token) -> None:
        self.open.append(tag)
        if len(self.open) > self.limits.depth:
            error = Meter(self.limits).exceeded("depth")
            error.line, error.column = tag[:2]
            raise error

    # ----------------------------------------------------------------------------------------------------------- text

    def empty_body(self, k: Kids) -> Kids:
        return []

    def text(self, k: Kids) -> Kids:
        body: Kids = k[0]
        body.append(nodes.Data(*k[1]))
        return body

    def output(self, k: Kids) -> Kids:
        body, (line, column, _), value, _ = k
        body.append(nodes.Output(line, column, value))
        return body  # type: ignore[no-any-return]

    output_tuple = output

    def print_nothing(self, k: Kids) -> Kids:
        body: Kids = k[0]
        return body

    def print(self, k: Kids) -> Kids:
        body, (line, column, _), values, _ = k
        body.extend(nodes.Output(line, column, value) for value in values)
        return body  # type: ignore[no-any-return]

    def statement(self, k: Kids) -> Kids:
        body: Kids = k[0]
        body.append(k[1])
        return body

    def colon(self, k: Kids) -> Any:
        return k[1]

    # ------------------------------------------------------------------------------------------------------ if and for

    def if_head(self, k: Kids) -> Kids:
        self.enter(k[0])
        return k

    def elif_head(self, k: Kids) -> Any:
        return k[1]

    def otherwise(self, k: Kids) -> None:
        return None

    def if_arm(self, k: Kids) -> nodes.If:
        (tag, test, _), body = k
        return nodes.If(tag[0], tag[1], [nodes.Branch(test, body)], None)

    def elif_arm(self, k: Kids) -> nodes.If:
        node: nodes.If = k[0]
        node.branches.append(nodes.Branch(k[1], k[2]))
        return node

    def if_end(self, k: Kids) -> nodes.If:
        self.open.pop()
        node: nodes.If = k[0]
        return node

    def if_else_end(self, k: Kids) -> nodes.If:
        self.open.pop()
        node: nodes.If = k[0]
        node.otherwise = k[2]
        return node

    def condition_tuple(self, k: Kids) -> Any:
        return k[0]

    condition_inline_if = condition_tuple

    def for_head(self, k: Kids) -> tuple[nodes.For, int]:
        return self._for_head(k, False)

    def for_head_recursive(self, k: Kids) -> tuple[nodes.For, int]:
        return self._for_head(k, True)

    def _for_head(self, k: Kids, recursive: bool) -> tuple[nodes.For, int]:
        (line, column, _), target, _, (iterable, test) = k[:4]
        if (
            test is None
            and self.rules.filtered_group
            and type(iterable) is nodes.Conditional
            and not iterable.otherwise
        ):
            iterable, test = iterable.then, iterable.test
        items = target.items if type(target) is nodes.TupleExpr else [target]
        for item in items:
            if type(item) is nodes.GetAttr:
                self.fail("a loop assigns to names", item.line, item.column)
        self.enter(k[0])
        return nodes.For(line, column, target, iterable, test, [], None, recursive), len(self.loose)

    def for_otherwise(self, k: Kids) -> int:
        return len(self.loose)

    def for_end(self, k: Kids) -> nodes.For:
        (node, loose), body, _, _ = k
        node.body = body
        del self.loose[loose:]
        return self._for_end(node)

    def for_else_end(self, k: Kids) -> nodes.For:
        (node, loose), body, inside, otherwise, _, _ = k
        node.body, node.otherwise = body, otherwise
        del self.loose[loose:inside]
        return self._for_end(node)

    def _for_end(self, node: nodes.For) -> nodes.For:
        self.open.pop()
        if self.loop_targets and self.rules.compiled_to_python:
            target = self.loop_targets[-1]
            if (target.line, target.column) > (node.line, node.column):
                self.fail("`loop` cannot be assigned in a loop", target.line, target.column, "use another name")
        return node

    def iterate(self, k: Kids) -> tuple[Any, Any]:
        return k[0], None

    iterate_tuple = iterate

    def iterate_if(self, k: Kids) -> tuple[Any, Any]:
        return k[0], k[2]

    iterate_if_inline_if = iterate_if

    def iterate_tuple_if(self, k: Kids) -> tuple[Any, Any]:
        return self.tuple(k), k[2]

    def iterate_inline_if(self, k: Kids) -> tuple[Any, Any]:
        return self.inline_if_else(k), None

    def break_loop(self, k: Kids) -> nodes.Break:
        node = nodes.Break(k[0][0], k[0][1])
        self.loose.append(node)
        return node

    def continue_loop(self, k: Kids) -> nodes.Continue:
        node = nodes.Continue(k[0][0], k[0][1])
        self.loose.append(node)
        return node

    # -------------------------------------------------------------------------------------------------------- targets

    def name_target(self, k: Kids) -> nodes.Name:
        node = nodes.Name(*k[0])
        if node.name in self.constants:
            self.fail(f"`{node.name}` cannot be assigned", node.line, node.column)
        if node.name == "loop":
            self.loop_targets.append(node)
        return node

    def attribute_target(self, k: Kids) -> nodes.GetAttr:
        (line, column, name), attribute = k
        return nodes.GetAttr(line, column, nodes.Name(line, column, name), attribute[2])

    def member_target(self, k: Kids) -> nodes.GetAttr:
        return self.attribute(k)

    def item_target(self, k: Kids) -> nodes.Expr:
        node = self._target_value(k[0])
        return nodes.Invalid(node.line, node.column, "only names and attributes can be assigned")

    call_target = item_target

    def _target_value(self, value: Any) -> nodes.Expr:
        return nodes.Name(*value) if type(value) is tuple else value

    def group_target(self, k: Kids) -> nodes.Expr:
        node: nodes.Expr = k[0]
        return self._group_target(node)

    def _group_target(self, node: nodes.Expr) -> nodes.Expr:
        if type(node) is nodes.Name:
            if node.name == "loop":
                self.loop_targets.append(node)
            return node
        if type(node) is nodes.TupleExpr:
            node.items = [self._group_target(item) for item in node.items]
            return node
        if self.rules.strict_targets:
            self.fail("this cannot be assigned", node.line, node.column, "only names can be assigned in parentheses")
        if type(node) is nodes.GetAttr:
            return node
        return nodes.Invalid(node.line, node.column, "only names and attributes can be assigned")

    def one_target(self, k: Kids) -> nodes.TupleExpr:
        return nodes.TupleExpr(k[0].line, k[0].column, [k[0]])

    def target_tuple(self, k: Kids) -> nodes.TupleExpr:
        return nodes.TupleExpr(k[0][0].line, k[0][0].column, k[0])

    # ------------------------------------------------------------------------------------------------- other statements

    def set(self, k: Kids) -> nodes.Set:
        (line, column, _), target, _, value, _ = k
        return nodes.Set(line, column, target, value)

    def set_head(self, k: Kids) -> nodes.SetBlock:
        return self._set_head(k[0], k[1], None)

    def set_head_filters(self, k: Kids) -> nodes.SetBlock:
        return self._set_head(k[0], k[1], k[2])

    def set_head_one_target(self, k: Kids) -> nodes.SetBlock:
        return self._set_head(k[0], self.one_target(k[1:]), None)

    def set_head_target_list(self, k: Kids) -> nodes.SetBlock:
        return self._set_head(k[0], self.target_tuple(k[1:]), None)

    def _set_head(self, tag: Token, target: nodes.Expr, filters: nodes.Filter | None) -> nodes.SetBlock:
        self.enter(tag)
        return nodes.SetBlock(tag[0], tag[1], target, filters, [])

    def set_end(self, k: Kids) -> nodes.SetBlock:
        node: nodes.SetBlock = k[0]
        self.open.pop()
        node.body = k[1]
        return node

    def macro_head(self, k: Kids) -> tuple[nodes.Macro, int]:
        (line, column, _), (name_line, name_column, name), _, parameters = k[:4]
        if name in self.constants:
            self.fail(f"`{name}` cannot be assigned", name_line, name_column)
        self.enter(k[0])
        return nodes.Macro(line, column, name, self._parameters(parameters), []), len(self.loose)

    def macro_end(self, k: Kids) -> nodes.Macro:
        node: nodes.Macro = k[0][0]
        node.body = k[1]
        self._function_end(k[0][1])
        return node

    def _function_end(self, loose: int) -> None:
        self.open.pop()
        if len(self.loose) > loose and self.rules.compiled_to_python:
            self.loop_control_outside(self.loose[loose])

    def parameter(self, k: Kids) -> tuple[Token, nodes.Expr | None]:
        return k[0], None

    def parameter_default(self, k: Kids) -> tuple[Token, nodes.Expr | None]:
        return k[0], k[2]

    def parameters_end(self, k: Kids) -> Any:
        return k[0]

    def _parameters(self, pairs: list[tuple[Token, nodes.Expr | None]]) -> list[nodes.Parameter]:
        parameters: list[nodes.Parameter] = []
        if self.rules.ordered_arguments:
            seen: set[str] = set()
            defaults = False
            for (line, column, name), default in pairs:
                if name in self.constants:
                    self.fail(f"`{name}` cannot be assigned", line, column)
                if name in seen:
                    self.fail(f"two parameters are named `{quote(name)}`", line, column)
                if defaults and default is None:
                    self.fail(
                        f"the parameter `{quote(name)}` needs a default", line, column, "those before it have one"
                    )
                defaults = default is not None
                seen.add(name)
        for (_, _, name), default in pairs:
            parameters.append(nodes.Parameter(name, default))
        return parameters

    def call_head(self, k: Kids) -> tuple[nodes.CallBlock, int]:
        return self._call_head(k[0], [], k[1])

    def call_head_parameters(self, k: Kids) -> tuple[nodes.CallBlock, int]:
        return self._call_head(k[0], k[2], k[4])

    def _call_head(self, tag: Token, parameters: Any, call: nodes.Expr) -> tuple[nodes.CallBlock, int]:
        if type(call) is not nodes.Call:
            self.fail("a call is expected after `call`", call.line, call.column, "such as `{% call macro() %}`")
        if self.rules.call_block_callee and type(call.callee) is not nodes.Name:
            self.fail("the name of a macro is expected after `call`", call.line, call.column)
        self.enter(tag)
        return nodes.CallBlock(tag[0], tag[1], self._parameters(parameters), call, []), len(self.loose)

    def call_end(self, k: Kids) -> nodes.CallBlock:
        node: nodes.CallBlock = k[0][0]
        node.body = k[1]
        self._function_end(k[0][1])
        return node

    def filter_head(self, k: Kids) -> nodes.FilterBlock:
        self.enter(k[0])
        return nodes.FilterBlock(k[0][0], k[0][1], k[1], [])

    def filter_end(self, k: Kids) -> nodes.FilterBlock:
        self.open.pop()
        node: nodes.FilterBlock = k[0]
        node.body = k[1]
        return node

    def with_head_nothing(self, k: Kids) -> nodes.With:
        self.enter(k[0])
        return nodes.With(k[0][0], k[0][1], [], [])

    def with_head(self, k: Kids) -> nodes.With:
        self.enter(k[0])
        return nodes.With(k[0][0], k[0][1], k[1], [])

    def assignment(self, k: Kids) -> Kids:
        return self.more_assignments([[], None, *k])

    def more_assignments(self, k: Kids) -> Kids:
        assignments, _, target, _, value = k
        targets = target.items if type(target) is nodes.TupleExpr else [target]
        for item in targets:
            if type(item) is nodes.GetAttr:
                self.fail("`with` assigns to names", item.line, item.column)
            if self.loop_targets and item is self.loop_targets[-1]:
                self.loop_targets.pop()
        assignments.append((target, value))
        return assignments  # type: ignore[no-any-return]

    def with_end(self, k: Kids) -> nodes.With:
        self.open.pop()
        node: nodes.With = k[0]
        node.body = k[1]
        return node

    def block_head(self, k: Kids) -> tuple[nodes.Block, int]:
        (line, column, _), (name_line, name_column, name), *words, _ = k
        flags = [word[2] for word in words]
        if flags not in ([], ["scoped"], ["required"], ["scoped", "required"]):
            self.fail("`scoped` and `required` may follow a block's name", *words[0][:2])
        if name in self.blocks:
            self.fail(f"there are two blocks `{quote(name)}`", name_line, name_column)
        self.blocks.add(name)
        self.enter(k[0])
        return nodes.Block(line, column, name, "scoped" in flags, "required" in flags, []), len(self.loose)

    def block_end(self, k: Kids) -> nodes.Block:
        node: nodes.Block = k[0][0]
        node.body = k[1]
        self._function_end(k[0][1])
        if node.required and not all(type(item) is nodes.Data and item.text.isspace() for item in node.body):
            self.fail("a required block has no content", node.line, node.column)
        return node

    def block_end_name(self, k: Kids) -> nodes.Block:
        node = self.block_end(k)
        line, column, name = k[3]
        if name != node.name:
            self.fail(f"block `{quote(node.name)}` ends as `{quote(name)}`", line, column)
        return node

    def autoescape_head(self, k: Kids) -> nodes.Autoescape:
        self.enter(k[0])
        return nodes.Autoescape(k[0][0], k[0][1], k[1], [])

    def autoescape_end(self, k: Kids) -> nodes.Autoescape:
        self.open.pop()
        node: nodes.Autoescape = k[0]
        node.body = k[1]
        return node

    def generation_head(self, k: Kids) -> tuple[nodes.Generation, int]:
        self.enter(k[0])
        return nodes.Generation(k[0][0], k[0][1], []), len(self.loose)

    def generation_end(self, k: Kids) -> nodes.Generation:
        node: nodes.Generation = k[0][0]
        node.body = k[1]
        self._function_end(k[0][1])
        return node

    def load(self, k: Kids) -> nodes.Load:
        line, column, tag = k[0]
        if tag == "extends" and any(word != "if" for _, _, word in self.open):
            self.fail("`extends` inside of another tag", line, column)
        return nodes.Load(*k[0], [])

    def load_import(self, k: Kids) -> nodes.Load:
        return nodes.Load(*k[0], [self._imported(k[3])])

    def load_from(self, k: Kids) -> nodes.Load:
        return nodes.Load(*k[0], k[3])

    def from_name(self, k: Kids) -> str:
        return self.from_name_as([k[0], None, k[0]])

    def from_name_as(self, k: Kids) -> str:
        line, column, name = k[0]
        if name.startswith("_"):
            self.fail("names that begin with an underscore cannot be imported", line, column)
        self._imported(k[0])
        return self._imported(k[2])

    def _imported(self, token: Token) -> str:
        line, column, name = token
        if name in self.constants:
            self.fail(f"`{name}` cannot be assigned", line, column)
        return str(name)

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

    def negation(self, k: Kids) -> nodes.Unary:
        return nodes.Unary(*k[0], k[1])

    def sign(self, k: Kids) -> nodes.Unary:
        return nodes.Unary(*k[0], k[1])

    def dotted_filter(self, k: Kids) -> Token:
        (line, column, name), attribute = k
        return line, column, f"{name}.{attribute[2]}"

    dotted_test = dotted_filter

    def bare_filter(self, k: Kids) -> Any:
        return k[0], []

    def filter_arguments(self, k: Kids) -> Any:
        return k[0], self._arguments(k[2])

    def call_result(self, k: Kids) -> Any:
        return *k[0], self._arguments(k[2])

    def filter(self, k: Kids) -> nodes.Expr:
        value, ((_, _, name), arguments, *calls) = k
        node: nodes.Expr = nodes.Filter(value.line, value.column, value, name, arguments)
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
        node: nodes.Expr = nodes.Test(value.line, value.column, value, name, arguments, False)
        return self._called(node, calls) if calls else node

    def negated_test(self, k: Kids) -> nodes.Expr:
        value, _, _, ((_, _, name), arguments, *calls) = k
        node: nodes.Expr = nodes.Test(value.line, value.column, value, name, arguments, True)
        return self._called(node, calls) if calls else node

    def block_filter(self, k: Kids) -> nodes.Filter:
        (line, column, name), arguments, *calls = k[0]
        if calls:
            self.fail("the result of a filter cannot be called here", line, column)
        return nodes.Filter(line, column, None, name, arguments)

    def block_filter_chain(self, k: Kids) -> nodes.Filter:
        value, ((_, _, name), arguments, *calls) = k
        if calls:
            self.fail("the result of a filter cannot be called here", *k[1][0][:2])
        return nodes.Filter(value.line, value.column, value, name, arguments)

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
        if self.rules.ordered_arguments:
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
