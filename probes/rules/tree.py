"""The syntax tree of a template, for rules about its source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache, lru_cache
from typing import Any

from jinjarun.dialects import dialect_named
from jinjarun.errors import JinjarunError
from jinjarun.limits import Limits
from jinjarun.serving.cache import cached_template
from jinjarun.syntax.nodes import Const, Expr, GetAttr, GetItem, Node
from jinjarun.syntax.parser import parse


@lru_cache(maxsize=8)
def tree_of(source: str) -> Node | None:
    """The tree as transformers reads it, else as llama.cpp does; None where neither reads it."""
    for name in ("transformers", "llama.cpp"):
        try:
            return _tree_in(name, source)
        except JinjarunError:
            continue
    return None


def _tree_in(dialect: str, source: str) -> Node:
    """A tree that does not compile is a tree too."""
    try:
        return cached_template(source, dialect, Limits()).tree
    except JinjarunError:
        return parse(source, dialect_named(dialect).syntax, Limits())


@lru_cache(maxsize=8)
def nodes(source: str) -> tuple[Node, ...]:
    """Every node of the tree, each before those inside of it."""
    root = tree_of(source)
    return () if root is None else tuple(inside(root))


def inside(*roots: Node) -> Iterator[Node]:
    """These nodes and all inside of them, each before those inside of it."""
    pending: list[Any] = list(reversed(roots))
    while pending:
        item = pending.pop()
        if isinstance(item, (list, tuple)):
            pending += reversed(item)
            continue
        if isinstance(item, Node):
            yield item
        parts = (getattr(item, name) for name in _parts(item.__class__))
        pending += [part for part in parts if part is not None and part.__class__ not in _LEAVES]


def last_key(node: Expr) -> str | None:
    """The last key of `message.role` and `message['role']`."""
    if isinstance(node, GetAttr):
        return node.name
    if isinstance(node, GetItem) and isinstance(node.index, Const) and isinstance(node.index.value, str):
        return node.index.value
    return None


_LEAVES = frozenset({str, int, float, bool})


@cache
def _parts(kind: type) -> tuple[str, ...]:
    """The fields of a node or of a part of one, the last first."""
    return tuple(field.name for field in reversed(fields(kind))) if is_dataclass(kind) else ()
