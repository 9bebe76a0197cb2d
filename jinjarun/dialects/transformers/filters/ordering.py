"""Filters that compare items: sorting, grouping, extremes, duplicates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from jinja2.exceptions import FilterArgumentError

from jinjarun.dialects.transformers.iteration import collect, refuse
from jinjarun.dialects.transformers.lazy import Lazy
from jinjarun.dialects.transformers.lookup import getter, multi_getter
from jinjarun.dialects.transformers.measure import SCALARS, measure, pay_for_key
from jinjarun.dialects.transformers.methods import strings
from jinjarun.dialects.transformers.operators import eq
from jinjarun.dialects.transformers.undefined import Undefined
from jinjarun.dialects.transformers.values import GroupTuple

if TYPE_CHECKING:
    from jinjarun.runtime.run import Run


_ITEM_STEPS, _GROUP_STEPS = 2, 4


def _folding(run: Run, case_sensitive: Any) -> Callable[[Any], Any] | None:
    """What makes strings compare without case; None where case counts."""
    if case_sensitive:
        return None
    lower = strings.STR["lower"]
    return lambda value: lower(run, value) if isinstance(value, str) else value


def _keys(run: Run, items: list[Any], get: Callable[[Any], Any]) -> list[Any]:
    """The key of each item, its comparisons in a sort paid for."""
    rounds = len(items).bit_length()
    run.charge(len(items) * rounds)
    keys = []
    for item in items:
        key = get(item)
        if type(key) not in SCALARS or isinstance(key, str):
            before = run.steps
            measure(run, key, keys=True)
            run.charge((before - run.steps) * rounds)
        keys.append(key)
    return keys


def _order(keys: list[Any], reverse: Any = False) -> list[int]:
    """The places of the keys in their order."""
    return sorted(range(len(keys)), key=keys.__getitem__, reverse=reverse)


def sort(
    run: Run, value: Any, /, reverse: Any = False, case_sensitive: Any = False, attribute: Any = None
) -> list[Any]:
    get = multi_getter(run, attribute, finish=_folding(run, case_sensitive))
    items = collect(run, value)
    return [items[place] for place in _order(_keys(run, items, get), reverse)]


def dictsort(run: Run, value: Any, /, case_sensitive: Any = False, by: Any = "key", reverse: Any = False) -> list[Any]:
    if by not in ("key", "value"):
        raise FilterArgumentError('You can only sort by either "key" or "value"')
    if not isinstance(value, dict):
        refuse(value, "an object")
    position = 0 if by == "key" else 1
    fold = _folding(run, case_sensitive)
    items = collect(run, value.items())
    keys = _keys(run, items, lambda pair: fold(pair[position]) if fold else pair[position])
    return [items[place] for place in _order(keys, reverse)]


def groupby(
    run: Run, value: Any, /, attribute: Any, default: Any = None, case_sensitive: Any = False
) -> list[GroupTuple]:
    """Groups of the items with equal keys, in the order of the keys."""
    get = getter(run, attribute, default=default, finish=_folding(run, case_sensitive))
    as_written = get if case_sensitive else getter(run, attribute, default=default)
    items = collect(run, value)
    keys = _keys(run, items, get)
    groups: list[tuple[Any, list[Any]]] = []
    for place in _order(keys):
        run.charge(_ITEM_STEPS)
        if not groups or not (groups[-1][0] is keys[place] or eq(run, groups[-1][0], keys[place])):
            run.charge(_GROUP_STEPS)
            groups.append((keys[place], []))
        groups[-1][1].append(items[place])
    return [GroupTuple(as_written(group[0]), group) for _, group in groups]


def _extreme(choose: Callable[..., Any], run: Run, value: Any, case_sensitive: Any, attribute: Any) -> Any:
    items = collect(run, value)
    if not items:
        return Undefined("No aggregated item, sequence was empty.")
    keys = _keys(run, items, getter(run, attribute, finish=_folding(run, case_sensitive)))
    return items[choose(range(len(items)), key=keys.__getitem__)]


def minimum(run: Run, value: Any, /, case_sensitive: Any = False, attribute: Any = None) -> Any:
    return _extreme(min, run, value, case_sensitive, attribute)


def maximum(run: Run, value: Any, /, case_sensitive: Any = False, attribute: Any = None) -> Any:
    return _extreme(max, run, value, case_sensitive, attribute)


def unique(run: Run, value: Any, /, case_sensitive: Any = False, attribute: Any = None) -> Lazy:
    items = _unique(run, value, case_sensitive, attribute)
    return Lazy(run, "<generator object sync_do_unique>", items, value)


def _unique(run: Run, value: Any, case_sensitive: Any, attribute: Any) -> Iterator[Any]:
    get = getter(run, attribute, finish=_folding(run, case_sensitive))
    seen: set[Any] = set()
    for item in value:
        run.charge(2)
        key = get(item)
        pay_for_key(run, key, len(seen))
        if key not in seen:
            seen.add(key)
            yield item
