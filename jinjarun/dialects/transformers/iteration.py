"""Walking values that builtins take as iterables, and looking up keys, bounded."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from jinjarun.dialects.transformers.measure import VIEWS, pay_for_key
from jinjarun.dialects.transformers.undefined import Undefined

if TYPE_CHECKING:
    from jinjarun.runtime.run import Run

_SIZED: tuple[type[Collection[Any]], ...] = (str, list, tuple, dict, range, *VIEWS)


def refuse(value: Any, wanted: str) -> NoReturn:
    """Fail because `value` is not what was wanted; an undefined one says in its own words why it is not there."""
    if isinstance(value, Undefined):
        value.fail()
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
        made = copied(run, source)
    else:
        made = {}
        for number, pair in enumerate(collect(run, source)):
            item = collect(run, pair) if isinstance(pair, Iterable) else pair
            if not isinstance(item, list):
                raise TypeError(f"cannot convert dictionary update sequence element #{number} to a sequence")
            if len(item) != 2:
                raise ValueError(f"dictionary update sequence element #{number} has length {len(item)}; 2 is required")
            pay_for_key(run, item[0], len(made))
            made[item[0]] = item[1]
    run.items(len(made) + len(kwargs))
    made.update(kwargs)
    return made


def copied(run: Run, source: dict[Any, Any]) -> dict[Any, Any]:
    """A copy, each key paid for: whether Python looks them up anew depends on how the original was made."""
    run.items(len(source))
    for key in source:
        if type(key) is not str:
            pay_for_key(run, key, len(source))
    return source.copy()


def keys_from(run: Run, /, iterable: Any, value: Any = None) -> dict[Any, Any]:
    """`dict.fromkeys(iterable, value)`."""
    made: dict[Any, Any] = {}
    for key in collect(run, iterable):
        pay_for_key(run, key, len(made))
        made[key] = value
    return made
