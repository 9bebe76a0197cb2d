"""The statement that writes the generation prompt: the last one of most chat templates, and the only one that reads
`add_generation_prompt`. What such a template writes with the prompt and without differs in that statement alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinjarun.runtime.text import Text
from jinjarun.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jinjarun.runtime.dialect import Dialect

ADD_GENERATION_PROMPT = "add_generation_prompt"
"""The variable that asks for the opening of the model's turn."""

FLAT = frozenset({str, Text, int, float, bool, type(None)})
"""Types of values that hold no other."""


def is_plain_data(values: Iterable[Any], dialect: Dialect) -> bool:
    """Whether all of `values`, and all inside them, stays as it is when it is read; an iterator does not."""
    waiting, seen = list(values), set()
    while waiting:
        value = waiting.pop()
        if type(value) in FLAT or id(value) in seen:
            continue
        seen.add(id(value))
        inside = dialect.contents(value)
        if inside is None:
            return False
        waiting += inside
    return True


def changes_nothing(item: nodes.Stmt | nodes.Expr) -> bool:
    """Whether nothing is assigned, called or filtered in here: if it reads plain data, it may run again."""
    match item:
        case nodes.Const() | nodes.Name() | nodes.Data():
            return True
        case nodes.Unary(operand=value) | nodes.GetAttr(value=value) | nodes.Output(value=value):
            return changes_nothing(value)
        case nodes.GetItem(value=value, index=index):
            return _change_nothing([value, index])
        case nodes.Test(value=value, arguments=arguments):
            return _change_nothing([value, *(argument.value for argument in arguments)])
        case nodes.Compare(first=first, rest=rest) | nodes.Binary(first=first, rest=rest):
            return _change_nothing([first, *(operand for _, operand in rest)])
        case nodes.Conditional(test=test, then=then, otherwise=otherwise):
            return _change_nothing([test, then] if otherwise is None else [test, then, otherwise])
        case nodes.If(branches=branches, otherwise=otherwise):
            bodies = [*(branch.body for branch in branches), otherwise or []]
            return _change_nothing([branch.test for branch in branches]) and all(map(_change_nothing, bodies))
    return False


def _change_nothing(items: Sequence[nodes.Stmt | nodes.Expr]) -> bool:
    return all(changes_nothing(item) for item in items)
