"""Methods of list, tuple, dict, its views and range that leave their receiver as it is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jinjarun.dialects.transformers.iteration import collect, copied, keys_from
from jinjarun.dialects.transformers.measure import pay_for_key
from jinjarun.dialects.transformers.operators import eq, in_

if TYPE_CHECKING:
    from jinjarun.runtime.run import Run

Method = Callable[..., Any]

_ITEM_STEPS = 2
"""Steps to compare an item, besides that to visit it."""


def count(run: Run, receiver: Any, value: Any, /) -> int:
    run.items(len(receiver))
    run.charge(_ITEM_STEPS * len(receiver))
    return sum(item is value or eq(run, item, value) for item in receiver)


def index(run: Run, receiver: Any, value: Any, start: int = 0, stop: int = sys.maxsize, /) -> int:
    run.items(len(receiver))
    run.charge(_ITEM_STEPS * len(receiver))
    for place in range(*slice(start, stop).indices(len(receiver))):
        if receiver[place] is value or eq(run, receiver[place], value):
            return place
    raise ValueError("the value is not in the list")


def range_index(run: Run, receiver: range, value: Any, /) -> int:
    return index(run, receiver, value)


def copy(run: Run, receiver: Any, /) -> Any:
    if isinstance(receiver, dict):
        return copied(run, receiver)
    run.items(len(receiver))
    return receiver.copy()


def get(run: Run, receiver: dict[Any, Any], key: Any, default: Any = None, /) -> Any:
    pay_for_key(run, key, len(receiver))
    return receiver.get(key, default)


def keys(_run: Run, receiver: dict[Any, Any], /) -> Any:
    return receiver.keys()


def values(_run: Run, receiver: dict[Any, Any], /) -> Any:
    return receiver.values()


def items(_run: Run, receiver: dict[Any, Any], /) -> Any:
    return receiver.items()


def fromkeys(run: Run, _receiver: dict[Any, Any], /, iterable: Any, value: Any = None) -> dict[Any, Any]:
    return keys_from(run, iterable, value)


def isdisjoint(run: Run, receiver: Any, other: Any, /) -> bool:
    items = collect(run, other)
    run.charge(_ITEM_STEPS * len(items))
    return not any(in_(run, item, receiver) for item in items)


LIST: dict[str, Method] = {"copy": copy, "count": count, "index": index}
TUPLE: dict[str, Method] = {"count": count, "index": index}
RANGE: dict[str, Method] = {"count": count, "index": range_index}
DICT: dict[str, Method] = {
    "copy": copy,
    "fromkeys": fromkeys,
    "get": get,
    "items": items,
    "keys": keys,
    "values": values,
}
VIEW: dict[str, Method] = {"isdisjoint": isdisjoint}
