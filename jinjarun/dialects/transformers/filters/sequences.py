"""Filters that take and give sequences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from jinja2.exceptions import FilterArgumentError

from jinjarun.dialects.transformers.iteration import collect
from jinjarun.dialects.transformers.lazy import Lazy, metered
from jinjarun.dialects.transformers.lookup import MISSING, attribute, getter
from jinjarun.dialects.transformers.markup import alike
from jinjarun.dialects.transformers.measure import ItemsView, KeysView, ValuesView
from jinjarun.dialects.transformers.operators import add
from jinjarun.dialects.transformers.undefined import Undefined
from jinjarun.errors import RenderError
from jinjarun.limits import utf8_size

if TYPE_CHECKING:
    from jinjarun.runtime.run import Run

_NUMBERS = frozenset({int, float, bool})

_REVERSED = {
    list: "<list_reverseiterator object>",
    dict: "<dict_reversekeyiterator object>",
    KeysView: "<dict_reversekeyiterator object>",
    ValuesView: "<dict_reversevalueiterator object>",
    ItemsView: "<dict_reverseitemiterator object>",
    range: "<range_iterator object>",
}
"""How Python prints `reversed(value)`, by type of value."""


def default(_run: Run, value: Any, /, default_value: Any = "", boolean: Any = False) -> Any:
    return default_value if isinstance(value, Undefined) or (boolean and not value) else value


def attr(run: Run, value: Any, /, name: Any) -> Any:
    """The attribute, never the item, of that name."""
    if not isinstance(name, str):
        raise TypeError("attribute name must be string")
    run.charge(len(name) >> 6)
    found = attribute(run, value, name)
    return Undefined(name=name, kind=type(value)) if found is MISSING else found


def length(_run: Run, value: Any, /) -> int:
    return len(value)


def first(_run: Run, value: Any, /) -> Any:
    for item in value:
        return item
    return Undefined("No first item, sequence was empty.")


def last(_run: Run, value: Any, /) -> Any:
    for item in reversed(value):
        return item
    return Undefined("No last item, sequence was empty.")


def random(_run: Run, _value: Any, /) -> Any:
    raise RenderError("the random filter has no answer that could be repeated")


def list_(run: Run, value: Any, /) -> list[Any]:
    return collect(run, value)


def items(run: Run, value: Any, /) -> Lazy:
    return Lazy(run, "<generator object do_items>", _items(run, value), value)


def _items(run: Run, value: Any) -> Iterator[Any]:
    if isinstance(value, Undefined):
        return
    if not isinstance(value, dict):
        raise TypeError("Can only get item pairs from a mapping.")
    yield from metered(run, iter(value.items()))


def reverse(run: Run, value: Any, /) -> Any:
    """A string backwards, or an iterator over the items from the last; a list where there is no going backwards."""
    if isinstance(value, str):
        run.string(utf8_size(value))
        return alike(value[::-1], value)
    try:
        backwards = reversed(value)
    except TypeError:
        if not isinstance(value, Iterable):
            raise FilterArgumentError("argument must be iterable") from None
        return collect(run, value)[::-1]
    return Lazy(run, _REVERSED.get(type(value), "<reversed object>"), metered(run, backwards))


def batch(run: Run, value: Any, /, linecount: Any, fill_with: Any = None) -> Lazy:
    return Lazy(run, "<generator object do_batch>", _batch(run, value, linecount, fill_with), value)


def _batch(run: Run, value: Any, linecount: Any, fill_with: Any) -> Iterator[list[Any]]:
    row: list[Any] = []
    for item in value:
        run.charge(1)
        if len(row) == linecount:
            yield row
            row = []
        if len(row) >= run.limits.items:
            raise run.exceeded("items")
        row.append(item)
    if row:
        if fill_with is not None and len(row) < linecount:
            run.items(linecount)
            row += [fill_with] * (linecount - len(row))
        yield row


def slice_(run: Run, value: Any, /, slices: Any, fill_with: Any = None) -> Lazy:
    return Lazy(run, "<generator object sync_do_slice>", _slice(run, value, slices, fill_with), value)


def _slice(run: Run, value: Any, slices: Any, fill_with: Any) -> Iterator[list[Any]]:
    """`slices` lists of nearly equal length, the longer ones first."""
    every = collect(run, value)
    size, longer = divmod(len(every), slices)
    start = 0
    for number in range(slices):
        end = start + size + (number < longer)
        run.charge(1 + end - start)
        part = every[start:end]
        if fill_with is not None and number >= longer:
            part.append(fill_with)
        yield part
        start = end


def sum_(run: Run, value: Any, /, attribute: Any = None, start: Any = 0) -> Any:
    if isinstance(start, str):
        raise TypeError("sum() can't sum strings")
    get = None if attribute is None else getter(run, attribute)
    numbers = collect(run, value)
    if get is not None:
        numbers = [get(item) for item in numbers]
    if type(start) in _NUMBERS and all(type(number) in _NUMBERS for number in numbers):
        # Python's own, for newer ones round less often.
        total = sum(numbers, start)
        return run.integer(total) if isinstance(total, int) else total
    for number in numbers:
        start = add(run, start, number)
    return start
