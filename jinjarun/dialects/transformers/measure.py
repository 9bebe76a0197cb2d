"""How large a value is, found before the host copies, prints, compares or hashes it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from jinjarun.dialects.transformers.markup import Markup
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
SCALARS = frozenset({str, int, float, bool, type(None)})
_LISTS = frozenset({list, tuple, KeysView, ValuesView})
_KEYED = (dict, KeysView, ItemsView)

_FLOAT_STEPS = 3
"""Steps to write a float."""
_HASH_MODULUS = (1 << 61) - 1
"""Python hashes an int as its residue by this (sys.hash_info.modulus on 64 bits)."""
_PASSED_A_STEP, _COMPARED_A_STEP = 16, 4
"""Keys in the way of another that are passed in a step, and those whose equal hash asks for a comparison."""
_WORD = 64


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


def measure(run: Run, value: Any, *, keys: bool = False) -> Extent:
    """Walk `value`: a step an item and 16 bytes of text, LimitExceeded beyond `data_depth` levels.

    `keys`: those of objects in it are about to be looked up, which is paid for, too.
    """
    children = _children(run, value)
    if children is None:
        return Extent(_leaf(run, value), 1, 0)
    if keys and isinstance(value, _KEYED):
        pay_for_keys(run, value)
    items = depth = 0
    size = 1
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
                    if keys and isinstance(item, _KEYED):
                        pay_for_keys(run, item)
                    size += 1
                    stack.append(children)
                    break
            size += _leaf(run, item)
        else:
            stack.pop()
    return Extent(size + items, items, depth)


def _leaf(run: Run, value: Any) -> int:
    """Bytes of a value that is not a container, charged for."""
    if isinstance(value, str):
        run.charge(len(value) >> 4)
        return utf8_size(value)
    if type(value) is Macro:
        shown = repr(value)
        run.charge(len(shown) >> 4)
        return len(shown)
    if isinstance(value, int):
        pay_for_digits(run, value)
        return value.bit_length() // 4
    if type(value) is float:
        run.charge(_FLOAT_STEPS)
    return 1


def pay_for_digits(run: Run, value: int) -> None:
    """An integer is about to be written or read in decimals, which takes as many steps as its words squared."""
    if not -(1 << 63) <= value < 1 << 63:
        pay_for_product(run, run.integer(value), value)


def pay_for_product(run: Run, a: int, b: int) -> None:
    """Two integers are about to be multiplied or divided."""
    run.charge((1 + a.bit_length() // _WORD) * (1 + b.bit_length() // _WORD) // 16)


def pay_for_key(run: Run, key: Any, population: int) -> None:
    """`key` is about to be looked up among `population` keys.

    Python hashes strings by a secret. Of all else a template can choose keys that stand in each other's way, up to all
    that are there; and those that hash alike are compared.
    """
    if isinstance(key, str):
        run.charge(len(key) >> 6)  # it is compared with the key that it finds
    elif isinstance(key, tuple):
        before = run.steps
        measure(run, key)
        run.charge(population * (1 + before - run.steps) // _COMPARED_A_STEP)
    elif isinstance(key, range):
        run.charge(population)
    elif isinstance(key, float) or (isinstance(key, int) and not -_HASH_MODULUS < key < _HASH_MODULUS):
        run.charge(population // _COMPARED_A_STEP)
    else:
        run.charge(population // _PASSED_A_STEP)


def pay_for_keys(run: Run, of: Collection[Any]) -> None:
    """All keys of an object, or of a view of one, are about to be looked up among as many."""
    population = len(of)
    every: Iterable[Any] = (key for key, _ in of) if type(of) is ItemsView else of
    run.charge(population >> 2)
    for key in every:
        if type(key) is not str:
            pay_for_key(run, key, population)


def size_of(run: Run, text: str) -> int:
    """Bytes of a text that may be used many times or never: counting them is paid for, where it takes a walk."""
    if text.isascii():
        return len(text)
    run.charge(len(text) >> 7)
    return utf8_size(text)


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
    if value is None or value is True or value is False:
        return str(value)
    if type(value) is float:
        run.charge(_FLOAT_STEPS)
        return str(value)
    if type(value) is int:
        pay_for_digits(run, value)
        return str(value)
    check_size(run, measure(run, value).size)
    text = str(value)
    run.string(utf8_size(text))
    return text


def soft_text(run: Run, value: Any) -> str:
    """A str as it is (Markup stays Markup), anything else as it prints."""
    return value if isinstance(value, str) else to_text(run, value)
