"""Questions that both servers ask of a template's tree: what a loop goes over, below filters, tests and slices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from jinjarun.errors import TemplateSyntaxError
from jinjarun.serving.cache import cached_template
from jinjarun.syntax.nodes import Const, Expr, Filter, GetAttr, GetItem, Name, Slice, Test

if TYPE_CHECKING:
    from collections.abc import Container

    from jinjarun.limits import Limits
    from jinjarun.syntax.nodes import Node

ContentFormat = Literal["string", "openai"]


def tree_of(source: str, limits: Limits) -> Node | None:
    """The tree of a template, None where transformers does not load it."""
    try:
        return cached_template(source, "transformers", limits).tree
    except TemplateSyntaxError:
        return None


def peeled(node: Expr | None) -> Expr | None:
    """What is left of a value without the filters, tests and slices around it."""
    while True:
        sliced = isinstance(node, GetItem) and isinstance(node.index, Slice)
        if isinstance(node, Filter) or (isinstance(node, Test) and not node.negated) or sliced:
            node = node.value  # type: ignore[union-attr]
        else:
            return node


def variable_of(node: Expr | None) -> str | None:
    """The name of a variable ("messages") or of a namespace's attribute ("ns.messages") below the wrappings."""
    node = peeled(node)
    if isinstance(node, Name):
        return node.name
    if isinstance(node, GetAttr) and isinstance(node.value, Name):
        return f"{node.value.name}.{node.name}"
    return None


def reads_key(node: Expr | None, variables: Container[str], key: str) -> bool:
    """Whether a value below its wrappings is `variable.key` or `variable['key']` of one of `variables`."""
    node = peeled(node)
    if isinstance(node, GetAttr):
        named = node.name == key
    elif isinstance(node, GetItem):
        named = isinstance(node.index, Const) and node.index.value == key
    else:
        return False
    return named and isinstance(node.value, Name) and node.value.name in variables
