"""The syntax tree of a template, for rules about its source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

from jinjarun.dialects import dialect_named
from jinjarun.errors import JinjarunError
from jinjarun.limits import Limits
from jinjarun.syntax.nodes import Node
from jinjarun.syntax.parser import parse


@lru_cache(maxsize=8)
def tree_of(source: str) -> Node | None:
    """The tree as transformers reads it, else as llama.cpp does; None where neither reads it."""
    for name in ("transformers", "llama.cpp"):
        try:
            return parse(source, dialect_named(name).syntax, Limits())
        except JinjarunError:
            continue
    return None


def nodes(source: str) -> Iterator[Node]:
    """Every node of the tree, each before those inside of it."""
    root = tree_of(source)
    return iter(()) if root is None else inside(root)


def inside(*roots: Node) -> Iterator[Node]:
    """These nodes and all inside of them, each before those inside of it."""
    pending: list[Any] = list(reversed(roots))
    while pending:
        item = pending.pop()
        if isinstance(item, Node):
            yield item
        if isinstance(item, (list, tuple)):
            pending += reversed(item)
        elif is_dataclass(item):
            pending += [getattr(item, field.name) for field in reversed(fields(item))]
