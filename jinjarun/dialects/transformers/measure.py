"""How large a value is, found before the host copies, prints, compares or hashes it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from jinjarun.dialects.transformers.values import Namespace
from jinjarun.limits import utf8_size
from jinjarun.runtime.macro import Macro

if TYPE_CHECKING:
    from jinjarun.runtime.run import Run

_EMPTY: dict[Any, Any] = {}
KeysView = type(_EMPTY.keys())
ValuesView = type(_EMPTY.values())
ItemsView = type(_EMPTY.items())
VIEWS: tuple[type[Collection[Any]], ...] = (KeysView, ValuesView, ItemsView)
SCALARS = frozenset({str, int, float, bool, type(None), complex})
_LISTS = frozenset({list, tuple, KeysView, ValuesView})


class Extent(NamedTuple):
    """The size of a value: bytes that its text has at the least, items in all its containers, levels of them."""

    size: int
    items: int
    depth: int


def _children(run: Run, value: Any) -> Iterator[Any] | None:
    """The items of a container, charged for; None for other values."""
    kind = type(value)
    if kind in _LISTS:
        run.items(len(value))
        return iter(value)  # type: ignore[no-any-return]
    if isinstance(value, dict):
        run.items(2 * len(value))
        return chain.from_iterable(value.items())
    if kind is ItemsView:
        run.items(2 * len(value))
        return chain.from_iterable(value)
    if isinstance(value, Namespace):
        return _children(run, value.attrs)
    if isinstance(value, (list, tuple)):
        run.items(len(value))
        return iter(value)
    return None


def measure(run: Run, value: Any) -> Extent:
    """Walk `value`: a step an item and 16 bytes of text, LimitExceeded beyond `data_depth` levels."""
    children = _children(run, value)
    if children is None:
        return Extent(_leaf(run, value), 1, 0)
    size = items = depth = 0
    stack = [children]
    while stack:
        depth = max(depth, len(stack))
        if depth > run.limits.data_depth:
            raise run.exceeded("data_depth")
        for item in stack[-1]:
            items += 1
            kind = type(item)
            if kind is str and len(item) < 16:
                size += len(item)
                continue
            if kind not in SCALARS:
                children = _children(run, item)
                if children is not None:
                    stack.append(children)
                    break
            size += _leaf(run, item)
        else:
            stack.pop()
    return Extent(size, items, depth)


def _leaf(run: Run, value: Any) -> int:
    """Bytes of a value that is not a container, charged for."""
    if isinstance(value, str):
        run.charge(len(value) >> 4)
        return utf8_size(value)
    if isinstance(value, bytes):
        run.charge(len(value) >> 4)
        return len(value)
    if type(value) is Macro:
        return len(value.name)
    if isinstance(value, int):
        run.integer(value)
        return value.bit_length() // 4
    return 1


def check_size(run: Run, size: int) -> None:
    """A string of `size` bytes, already paid for, is about to be made."""
    if size > run.limits.string_bytes:
        raise run.exceeded("string_bytes")


def to_text(run: Run, value: Any) -> str:
    """What `{{ value }}` writes: `str(value)`, bounded; functions and iterators without their address."""
    if isinstance(value, Markup):
        run.string(utf8_size(value))
        return str(value)
    if isinstance(value, str):
        return value
    if value is None or value is True or value is False or type(value) is float:
        return str(value)
    if type(value) is int:
        run.charge(value.bit_length() >> 6)
        return str(run.integer(value))
    check_size(run, measure(run, value).size)
    text = str(value)
    run.string(utf8_size(text))
    return text


def soft_text(run: Run, value: Any) -> str:
    """A str as it is (Markup stays Markup), anything else as it prints."""
    return value if isinstance(value, str) else to_text(run, value)
