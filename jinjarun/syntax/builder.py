"""Productions of statements -> nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from jinjarun.errors import quote
from jinjarun.limits import Limits, Meter
from jinjarun.syntax import nodes
from jinjarun.syntax.expressions import Expressions
from jinjarun.syntax.lexer import END_OF_INPUT, Token

if TYPE_CHECKING:
    from jinjarun.syntax.excerpts import Source
    from jinjarun.syntax.expressions import Kids
    from jinjarun.syntax.rules import SyntaxRules

_DESCRIPTIONS = {
    "TEXT": "text",
    "NAME": "`{}`",
    "ATTRIBUTE": "`.{}`",
    "FILTER": "`|{}`",
    "STRING": "a string",
    "INTEGER": "`{}`",
    "FLOAT": "`{}`",
    "SIGNATURE": "`(`",
}


class Builder(Expressions):
    """One method for every alias of the grammar, and what must be known of the template around a node."""

    def __init__(self, source: Source, rules: SyntaxRules, limits: Limits) -> None:
        super().__init__(source, rules)
        self.limits = limits
        self.open: list[Token] = []
        """The tags that wait for their end."""
        self.loose: list[nodes.Break | nodes.Continue] = []
        """Loop controls whose loop has not been found."""
        self.loop_targets: list[nodes.Name] = []
        """Where a variable `loop` is assigned."""
        self.blocks: set[str] = set()

    def unexpected(self, kind: str, token: Token, before: Any) -> NoReturn:
        """The grammar has no place for `token`; `before` is the last token or node that it took in."""
        line, column, value = token
        hint = self.rules.without.get(kind, "")
        if kind == END_OF_INPUT:
            message = "the template ends too early"
        elif kind.startswith("{% "):
            message = f"the tag `{value}` is not expected here"
        elif kind in _DESCRIPTIONS:
            message = f"{_DESCRIPTIONS[kind].format(quote(str(value)))} is not expected here"
        else:
            message = f"`{kind}` is not expected here"
        if not hint and self.open and (kind == END_OF_INPUT or kind.startswith("{% ")):
            opened, _, word = self.open[-1]
            hint = f"`{{% {word} %}}` of line {opened} needs its `{{% end{word} %}}`"
        elif kind == "ATTRIBUTE" and type(before) is tuple and before[-1] == "{{":
            hint = "this looks like a Go template, which only Ollama reads"
        self.fail(message, line, column, hint)

    def finish(self) -> None:
        if self.loose:
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
        if self.loop_targets:
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
        return self.fail("this cannot be assigned", node.line, node.column, "only names can be assigned in parentheses")

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
        tag, target, filters, _ = k
        return self._set_head(tag, target, filters)

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
        if len(self.loose) > loose:
            self.loop_control_outside(self.loose[loose])

    def parameter(self, k: Kids) -> tuple[Token, nodes.Expr | None]:
        return k[0], None

    def parameter_default(self, k: Kids) -> tuple[Token, nodes.Expr | None]:
        return k[0], k[2]

    def parameters_end(self, k: Kids) -> Any:
        return k[0]

    def _parameters(self, pairs: list[tuple[Token, nodes.Expr | None]]) -> list[nodes.Parameter]:
        parameters: list[nodes.Parameter] = []
        seen: set[str] = set()
        defaults = False
        for (line, column, name), default in pairs:
            if name in self.constants:
                self.fail(f"`{name}` cannot be assigned", line, column)
            if name in seen:
                self.fail(f"two parameters are named `{quote(name)}`", line, column)
            if defaults and default is None:
                self.fail(f"the parameter `{quote(name)}` needs a default", line, column, "as those before it")
            defaults = default is not None
            seen.add(name)
            parameters.append(nodes.Parameter(name, default))
        return parameters

    def call_head(self, k: Kids) -> tuple[nodes.CallBlock, int]:
        return self._call_head(k[0], [], k[1])

    def call_head_parameters(self, k: Kids) -> tuple[nodes.CallBlock, int]:
        return self._call_head(k[0], k[2], k[4])

    def _call_head(self, tag: Token, parameters: Any, call: nodes.Expr) -> tuple[nodes.CallBlock, int]:
        if type(call) is not nodes.Call:
            self.fail("a call is expected after `call`", call.line, call.column, "such as `{% call macro() %}`")
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
        return nodes.Load(line, column, tag, [])

    def load_import(self, k: Kids) -> nodes.Load:
        (line, column, tag), _, _, name = k[:4]
        return nodes.Load(line, column, tag, [self._imported(name)])

    def load_from(self, k: Kids) -> nodes.Load:
        (line, column, tag), _, _, names = k[:4]
        return nodes.Load(line, column, tag, names)

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
