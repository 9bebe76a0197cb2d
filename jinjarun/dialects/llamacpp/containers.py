"""What llama.cpp offers on arrays (tuples are arrays) and on objects, as filters and as methods alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinjarun.dialects.llamacpp.arguments import ARRAY, count, keyword, keyword_or_position, types
from jinjarun.dialects.llamacpp.shared import (
    default_value,
    get_attribute,
    not_implemented,
    slice_bounds,
    take_slice,
    to_json_filter,
)
from jinjarun.dialects.llamacpp.sorting import std_sort
from jinjarun.dialects.llamacpp.tests import TESTS
from jinjarun.dialects.llamacpp.values import UNDEFINED, Keyword, Undefined, as_int, as_string, check_key, ordered
from jinjarun.errors import RenderError, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jinjarun.runtime.run import Run


def like(source: Any, items: list[Any]) -> Any:
    """`items` as a tuple if `source` is one."""
    return tuple(items) if isinstance(source, tuple) else items


# -------------------------------------------------------------------------------------------------------------- arrays


def _list(run: Run, *args: Any) -> list[Any]:
    types(args, ARRAY)
    run.items(len(args[0]))
    return list(args[0])


def _first(_run: Run, *args: Any) -> Any:
    types(args, ARRAY)
    return args[0][0] if args[0] else UNDEFINED


def _last(_run: Run, *args: Any) -> Any:
    types(args, ARRAY)
    return args[0][-1] if args[0] else UNDEFINED


def _length(_run: Run, *args: Any) -> int:
    types(args, ARRAY)
    return len(args[0])


def _slice(run: Run, *args: Any) -> Any:
    types(args, ARRAY, int)
    start, stop, step = slice_bounds(args)
    return like(args[0], take_slice(run, args[0], start, stop, step))


def _selecting(*, reject: bool) -> Callable[..., list[Any]]:
    """`select`, `selectattr` and their opposites are one function each, told apart by the number of arguments only."""

    def builtin(run: Run, *args: Any) -> list[Any]:
        count(args, 2, 4)
        types(args, ARRAY, str)
        items, attribute = args[0], args[1]
        run.items(len(items))
        run.charge(len(items))  # each is also asked for
        if len(args) == 2:
            return [item for item in items if bool(get_attribute(run, item, attribute, UNDEFINED)) != reject]
        name, operand = (args[1], args[2]) if len(args) == 3 else (as_string(run, args[2]), args[3])
        test = TESTS.get(name)
        if test is None:
            raise RenderError(f"unknown test {quote(name)!r}")
        if len(args) == 3:
            return [item for item in items if bool(test(run, item, operand)) != reject]
        return [
            item for item in items if bool(test(run, get_attribute(run, item, attribute, UNDEFINED), operand)) != reject
        ]

    return builtin


def _join(run: Run, *args: Any) -> str:
    count(args, 1, 3)
    types(args, ARRAY)
    separator = keyword_or_position(args, "d", 1)
    attribute = keyword_or_position(args, "attribute", 2)
    between = "" if isinstance(separator, Undefined) else as_string(run, separator)
    pieces: list[str] = []
    size = 0
    for item in args[0]:
        run.charge(2)
        value = item if isinstance(attribute, Undefined) else get_attribute(run, item, attribute, UNDEFINED)
        if not isinstance(value, (str, int, float)) or isinstance(value, bool):
            raise RenderError("join() can only join arrays of strings or numerics")
        piece = as_string(run, value)
        size += len(piece) + len(between)
        if size > run.limits.string_bytes:
            raise run.exceeded("string_bytes")
        pieces.append(piece)
    run.string(size)
    return between.join(pieces)


def _string(run: Run, *args: Any) -> str:
    types(args, (*ARRAY, dict))
    if run.trace is not None:
        run.trace.use_deeply(args[0])
    return as_string(run, args[0])


def _map(run: Run, *args: Any) -> Any:
    count(args, 2)
    types(args, ARRAY)
    if not isinstance(args[1], Keyword):
        not_implemented("map with a filter")
    attribute = keyword_or_position(args, "attribute", 1)
    default = keyword(args, "default")
    run.items(len(args[0]))
    return like(args[0], [get_attribute(run, item, attribute, default) for item in args[0]])


def _append(run: Run, *args: Any) -> Any:
    count(args, 2)
    types(args, ARRAY)
    if isinstance(args[0], tuple):
        raise RenderError("Attempting to modify immutable type")
    run.charge(1)
    if len(args[0]) >= run.limits.items:
        raise run.exceeded("items")
    args[0].append(args[1])
    run.hold(args[0])
    return args[0]


def _pop(run: Run, *args: Any) -> Any:
    count(args, 1, 2)
    types(args, ARRAY)
    index = as_int(args[1]) if len(args) == 2 else -1
    if isinstance(args[0], tuple):
        raise RenderError("Attempting to modify immutable type")
    at = index + len(args[0]) if index < 0 else index
    if not 0 <= at < len(args[0]):
        raise RenderError(f"Index {index} out of bounds for array of size {len(args[0])}")
    run.charge(1 + (len(args[0]) >> 4))
    return args[0].pop(at)


def _by_attribute(run: Run, items: Sequence[Any], attribute: Any) -> list[Any]:
    """What the items are ordered by; a single item is ordered by nothing, which cannot fail."""
    run.items(len(items))
    return [get_attribute(run, item, attribute, UNDEFINED) for item in items] if len(items) > 1 else list(items)


def _sort(run: Run, *args: Any) -> Any:
    count(args, 1, 4)
    types(args, ARRAY)
    op = "gt" if keyword_or_position(args, "reverse", 1) else "lt"
    keyword_or_position(args, "case_sensitive", 2)
    attribute = keyword_or_position(args, "attribute", 3)
    if isinstance(attribute, Undefined):
        return like(args[0], std_sort(run, args[0], lambda a, b: ordered(run, a, b, op)))
    keyed = list(zip(_by_attribute(run, args[0], attribute), args[0], strict=True))
    return like(args[0], [item for _, item in std_sort(run, keyed, lambda a, b: ordered(run, a[0], b[0], op))])


def _reverse(run: Run, *args: Any) -> Any:
    types(args, ARRAY)
    run.items(len(args[0]))
    return like(args[0], list(args[0])[::-1])


def _extreme(op: str) -> Callable[..., Any]:
    def builtin(run: Run, *args: Any) -> Any:
        count(args, 1, 4)
        types(args, ARRAY)
        items, attribute = args[0], keyword_or_position(args, "attribute", 2)
        if not items:
            return UNDEFINED
        keys = items if isinstance(attribute, Undefined) else _by_attribute(run, items, attribute)
        best = 0
        for i in range(len(items)):  # the first is compared with itself, which Booleans cannot be
            if ordered(run, keys[i], keys[best], op):
                best = i
        return items[best]

    return builtin


def _unique(_run: Run, *_: Any) -> Any:
    not_implemented("unique")


ARRAYS: dict[str, Callable[..., Any]] = {
    "append": _append,
    "default": default_value,
    "first": _first,
    "join": _join,
    "last": _last,
    "length": _length,
    "list": _list,
    "map": _map,
    "max": _extreme("gt"),
    "min": _extreme("lt"),
    "pop": _pop,
    "reject": _selecting(reject=True),
    "rejectattr": _selecting(reject=True),
    "reverse": _reverse,
    "select": _selecting(reject=False),
    "selectattr": _selecting(reject=False),
    "slice": _slice,
    "sort": _sort,
    "string": _string,
    "tojson": to_json_filter,
    "unique": _unique,
}


# ------------------------------------------------------------------------------------------------------------- objects


def _get(run: Run, *args: Any) -> Any:
    count(args, 2, 3)
    types(args, dict, str)
    return args[0].get(check_key(run, args[1], len(args[0])), args[2] if len(args) == 3 else None)


def _keys(run: Run, *args: Any) -> list[Any]:
    types(args, dict)
    run.items(len(args[0]))
    return list(args[0])


def _values(run: Run, *args: Any) -> list[Any]:
    types(args, dict)
    run.items(len(args[0]))
    return list(args[0].values())


def _items(run: Run, *args: Any) -> list[Any]:
    types(args, dict)
    run.items(len(args[0]))
    return list(args[0].items())


def _object_length(_run: Run, *args: Any) -> int:
    types(args, dict)
    return len(args[0])


def _dictsort(run: Run, *args: Any) -> dict[Any, Any]:
    types(args, dict)
    by = keyword_or_position(args, "by", 2)
    op = "gt" if keyword_or_position(args, "reverse", 3) else "lt"
    at = 1 if isinstance(by, str) and by == "value" else 0
    return dict(std_sort(run, tuple(args[0].items()), lambda a, b: ordered(run, a[at], b[at], op)))


def _object_join(_run: Run, *_: Any) -> Any:
    not_implemented("join on an object")


OBJECTS: dict[str, Callable[..., Any]] = {
    "dictsort": _dictsort,
    "get": _get,
    "items": _items,
    "join": _object_join,
    "keys": _keys,
    "length": _object_length,
    "string": _string,
    "tojson": to_json_filter,
    "values": _values,
}
