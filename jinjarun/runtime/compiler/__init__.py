"""From a template's tree to closures, each called with the variables in sight (`Env`).

Nothing is folded and no Python is generated. Steps are charged by block: on entry to a body the number of its nodes
that run in a straight line, before any of them does. `Program.height` is the depth of the whole tree; macros and
recursive loops add the height of their bodies while they are active, so that the depth limit bounds the host's stack.

A compiler makes plain closures, or with `traced` ones that also keep the origin of strings and the trace of inputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from jinjarun.runtime.compiler.statements import Statements
from jinjarun.runtime.generation_prompt import ADD_GENERATION_PROMPT, changes_nothing
from jinjarun.runtime.macro import Macro
from jinjarun.syntax import nodes

if TYPE_CHECKING:
    from jinjarun.limits import Limits
    from jinjarun.runtime.compiler.frame import Closure, Table
    from jinjarun.runtime.dialect import Dialect


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
    return Compiler(template, dialect, limits, traced=traced).program(template)


class Compiler(Statements):
    """All of a template."""

    expressions: ClassVar[Table] = {
        nodes.Const: Statements.const,
        nodes.Name: Statements.name,
        nodes.TupleExpr: Statements.tuple_,
        nodes.ListExpr: Statements.list_,
        nodes.DictExpr: Statements.dict_,
        nodes.Unary: Statements.unary,
        nodes.Binary: Statements.binary,
        nodes.Compare: Statements.compare,
        nodes.Conditional: Statements.conditional,
        nodes.GetAttr: Statements.get_attr,
        nodes.GetItem: Statements.get_item,
        nodes.Call: Statements.call,
        nodes.Filter: Statements.filter,
        nodes.Test: Statements.test,
        nodes.Invalid: Statements.invalid,
        nodes.Blank: Statements.blank,
    }
    statements: ClassVar[Table] = {
        nodes.Data: Statements.data,
        nodes.Output: Statements.output,
        nodes.If: Statements.if_,
        nodes.For: Statements.for_,
        nodes.Set: Statements.set,
        nodes.SetBlock: Statements.set_block,
        nodes.Macro: Statements.macro,
        nodes.CallBlock: Statements.call_block,
        nodes.FilterBlock: Statements.filter_block,
        nodes.With: Statements.with_,
        nodes.Block: Statements.block,
        nodes.Autoescape: Statements.autoescape,
        nodes.Generation: Statements.generation,
        nodes.Load: Statements.load,
        nodes.Break: Statements.break_,
        nodes.Continue: Statements.continue_,
    }

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
