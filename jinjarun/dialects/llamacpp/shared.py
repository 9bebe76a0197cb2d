"""Builtins that several types share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from jinjarun.dialects.llamacpp.arguments import ARRAY, Args, count, keyword_or_position, position
from jinjarun.dialects.llamacpp.values import (
    UNDEFINED,
    Keyword,
    Undefined,
    as_int,
    as_string,
    ascii_json,
    check_key,
    to_json,
    type_name,
)
from jinjarun.errors import RenderError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jinjarun.runtime.run import Run


def not_implemented(what: str) -> NoReturn:
    raise RenderError(f"llama.cpp does not implement {what}")


def default_value(_run: Run, *args: Any) -> Any:
    count(args, 2, 3)
    missing = not args[0] if keyword_or_position(args, "boolean", 2) else is_missing(args[0])
    return args[1] if missing else args[0]


def is_missing(value: Any) -> bool:
    return value is None or isinstance(value, Undefined)


def to_json_filter(run: Run, *args: Any) -> str:
    count(args, 1, 5)
    to_ascii = keyword_or_position(args, "ensure_ascii", 1)
    given_indent = keyword_or_position(args, "indent", 2)
    separators = keyword_or_position(args, "separators", 3)
    if run.trace is not None:
        run.trace.use_deeply(args[0])
    indent = given_indent if type(given_indent) is int else -1
    if keyword_or_position(args, "sort_keys", 4):
        not_implemented("tojson with sort_keys")
    given = separators[:2] if isinstance(separators, ARRAY) else ()
    item_separator = as_string(run, given[0]) if given else (", " if indent < 0 else ",")
    key_separator = as_string(run, given[1]) if len(given) > 1 else ": "
    text = to_json(run, args[0], indent, item_separator, key_separator)
    return ascii_json(run, text) if to_ascii else text


def slice_bounds(args: Args) -> tuple[int, int, int]:
    """Start, stop and step behind the value that is sliced."""
    count(args, 1, 4)
    start, stop = as_int(position(args, 1)), as_int(position(args, 2))
    step = as_int(position(args, 3))
    if step == 0:
        raise RenderError("slice step cannot be zero")
    return start, stop, step


def take_slice(run: Run, items: Sequence[Any], start: int, stop: int, step: int) -> Any:
    """The engine's own slicing, of the same type: as Python's, but for bounds below zero with a negative step."""
    size = len(items)
    if step > 0:
        start = max(size + start, 0) if start < 0 else min(start, size)
        stop = max(size + stop, 0) if stop < 0 else min(stop, size)
    else:
        start = max(size + start, 0) if start < 0 else min(start, size - 1)
        stop = max(size + stop, -1) if stop < -1 else min(stop, size - 1)
    taken = len(range(start, stop, step))
    run.charge(taken if not isinstance(items, str) else taken >> 4)
    return items[start : None if stop < 0 else stop : step] if taken else items[:0]


def get_attribute(run: Run, value: Any, attribute: Any, default: Any) -> Any:
    """An item by key, or by index where it may be written as a string; `default` where there is none."""
    if isinstance(attribute, Undefined):
        return default
    if isinstance(value, ARRAY):
        index = attribute
        if isinstance(attribute, str) and len(attribute) < 20 and attribute.isascii() and attribute.isdigit():
            index = int(attribute)
        if isinstance(index, int):
            at = int(index) + len(value) if index < 0 else int(index)
            return value[at] if 0 <= at < len(value) else default
        return default
    if isinstance(value, dict):
        return value.get(check_key(run, attribute, len(value)), default)
    return default


def to_object(run: Run, *args: Any) -> dict[Any, Any]:
    """`dict(...)` and `namespace(...)`: from an object or pairs, then keywords."""
    result: dict[Any, Any] = {}
    first = args[0] if args else UNDEFINED
    taken = isinstance(first, (dict, *ARRAY))
    if isinstance(first, ARRAY):
        run.items(len(first))
        for pair in first:
            if not (isinstance(pair, ARRAY) and len(pair) == 2):
                raise RenderError(f"dict() takes pairs, not {type_name(pair)}")
            result[check_key(run, pair[0], len(result))] = pair[1]
    elif isinstance(first, dict):
        run.items(len(first))
        result.update(first)
    for arg in args:
        if isinstance(arg, Keyword):
            result[arg.name] = arg.value
        elif not taken:
            raise RenderError(f"dict() takes keywords, an object or pairs, not {type_name(arg)}")
        taken = False
    run.items(len(result))
    return result
