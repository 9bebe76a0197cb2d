"""Walking values that builtins take as iterables, bounded."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from jinja2 import Undefined

from jinjarun.dialects.transformers.measure import VIEWS, measure

if TYPE_CHECKING:
    from jinjarun.runtime.run import Run

_SIZED: tuple[type[Collection[Any]], ...] = (str, bytes, list, tuple, dict, range, *VIEWS)
_HASH_MODULUS = (1 << 61) - 1
"""Python hashes an int as its residue by this (sys.hash_info.modulus on 64 bits)."""


def refuse(value: Any, wanted: str) -> NoReturn:
    """Fail because `value` is not what was wanted; an undefined one says in its own words why it is not there."""
    if isinstance(value, Undefined):
        value()
    raise TypeError(f"{wanted} was expected, not {type(value).__name__}")


def collect(run: Run, value: Any) -> list[Any]:
    """`list(value)`; TypeError where it is not iterable."""
    if isinstance(value, _SIZED):
        run.items(len(value))
        return list(value)
    items: list[Any] = []
    for item in value:
        if len(items) >= run.limits.items:
            raise run.exceeded("items")
        run.charge(1)
        items.append(item)
    return items


def check_key(run: Run, key: Any, population: int) -> None:
    """`key` is about to be looked up among `population` keys.

    A template can choose ints (or tuples of them) that all hash alike, so these pay for every key that is there.
    """
    if isinstance(key, str):
        run.charge(len(key) >> 6)  # it is compared with the key that it finds
        return
    if key is None:
        return
    if isinstance(key, int):
        if not -_HASH_MODULUS < key < _HASH_MODULUS:
            run.charge(population)
    elif isinstance(key, tuple):
        measure(run, key)
        run.charge(population)
    elif isinstance(key, (float, complex)):
        run.charge(population >> 6)


def make_dict(run: Run, /, *args: Any, **kwargs: Any) -> dict[Any, Any]:
    """`dict(*args, **kwargs)`."""
    if len(args) > 1:
        raise TypeError(f"dict expected at most 1 argument, got {len(args)}")
    run.items(len(kwargs))
    if not args:
        return kwargs
    source = args[0]
    if isinstance(source, Undefined):
        refuse(source, "an object")
    if isinstance(source, dict):
        run.items(len(source) + len(kwargs))
        return {**source, **kwargs}
    pairs = []
    for pair in collect(run, source):
        pairs.append(collect(run, pair) if isinstance(pair, Iterable) else pair)
        if pairs[-1] and isinstance(pairs[-1], list):
            check_key(run, pairs[-1][0], len(pairs))
    return dict(pairs, **kwargs)


def keys_from(run: Run, /, iterable: Any, value: Any = None) -> dict[Any, Any]:
    """`dict.fromkeys(iterable, value)`."""
    keys = collect(run, iterable)
    for count, key in enumerate(keys):
        check_key(run, key, count)
    return dict.fromkeys(keys, value)
