"""Walks over a template's tree."""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from jinjarun.syntax.nodes import Argument, Branch, Const, Filter, GetAttr, Node, Parameter

if TYPE_CHECKING:
    from collections.abc import Iterator

N = TypeVar("N")

PARTS = (Node, Argument, Branch, Parameter)


@lru_cache(maxsize=64)
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def walk(root: Any) -> Iterator[Any]:
    """Everything below `root`, itself included, in the order in which it is written."""
    waiting = [root]
    while waiting:
        found = waiting.pop()
        if isinstance(found, (list, tuple)):
            waiting.extend(reversed(found))
        elif isinstance(found, PARTS):
            yield found
            kind: type = type(found)
            waiting.extend(getattr(found, name) for name in reversed(_names(kind)))


def names_any(root: Any, names: frozenset[str]) -> bool:
    """Whether one of `names` is written below `root` as that of a filter or a member."""
    return bool(names) and any(
        (type(found) is Filter and found.name in names)
        or (type(found) is GetAttr and found.name in names)
        or (type(found) is Const and found.value in names)
        for found in walk(root)
    )


def find_all(root: Any, kind: type[N]) -> Iterator[N]:
    """The nodes of one kind below `root`."""
    return (found for found in walk(root) if isinstance(found, kind))
