"""Filters that write data: JSON and pretty printing."""

from __future__ import annotations

import json
import pprint
from typing import TYPE_CHECKING, Any

from jinjarun.dialects.transformers.measure import check_size, measure
from jinjarun.limits import utf8_size

if TYPE_CHECKING:
    from jinjarun.runtime.run import Run

_TOJSON_STEPS = 3
"""Steps of one call, besides those of what is written."""
_SORT_STEPS = 8
_PPRINT_STEPS = 16
"""Steps an item that is printed prettily, for each level above it."""


def tojson(  # noqa: PLR0917 - its parameters are transformers' own
    run: Run,
    value: Any,
    /,
    ensure_ascii: Any = False,
    indent: Any = None,
    separators: Any = None,
    sort_keys: Any = False,
) -> str:
    """`json.dumps(value, ...)`, as transformers 5.24 (chat_template_utils) defines the filter: no HTML escapes."""
    extent = measure(run, value)
    run.charge(_TOJSON_STEPS)
    size = extent.size
    if sort_keys:
        run.charge(extent.items * extent.items.bit_length())
    if indent is not None:
        # Written by Python code, a generator for each level.
        run.charge(8 + extent.items * (1 + extent.depth // 4))
        width = len(indent) if isinstance(indent, str) else indent
        size += max(extent.items * extent.depth, 1) * max(width, 0) if isinstance(width, int) else 0
    if isinstance(separators, (list, tuple)):
        size += extent.items // 2 * max((len(part) for part in separators if isinstance(part, str)), default=0)
    check_size(run, size)
    text = json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
    run.string(utf8_size(text))
    return text


def pprint_(run: Run, value: Any, /) -> str:
    extent = measure(run, value, keys=True)
    check_size(run, extent.size)
    run.charge(_PPRINT_STEPS * (1 + extent.items) * (1 + extent.depth) + extent.size)
    run.charge(extent.items * extent.items.bit_length() * _SORT_STEPS)  # keys of objects, by functions of Python
    text = pprint.pformat(value)
    run.string(utf8_size(text))
    return text
