"""Documents of JSON inside a text, and what they are compared with."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from probes.chats.messages import function_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from probes.chats.messages import Tool

DECODER = json.JSONDecoder()
OPENING = re.compile(r"[{\[]")


def documents(text: str) -> list[Any]:
    """The outermost objects and lists of JSON that stand in a text."""
    found = []
    opening = OPENING.search(text)
    while opening is not None:
        at = opening.end()
        try:
            value, at = DECODER.raw_decode(text, opening.start())
            found.append(value)
        except (ValueError, RecursionError):
            pass
        opening = OPENING.search(text, at)
    return found


def inside(values: list[Any]) -> Iterator[Any]:
    """Every value in these documents, at any depth."""
    for value in values:
        yield value
        if isinstance(value, dict):
            yield from inside(list(value.values()))
        elif isinstance(value, list):
            yield from inside(value)


def same(a: Any, b: Any) -> bool:
    """Equal as JSON: true is not 1, and 1.0 is 1."""
    return bool(a == b) and _same_kinds(a, b)


def _same_kinds(a: Any, b: Any) -> bool:
    """Whether no truth value stands in one where a number stands in the other, in what Python takes for equal."""
    if isinstance(a, dict):
        return all(_same_kinds(value, b[key]) for key, value in a.items())
    if isinstance(a, list):
        return all(map(_same_kinds, a, b))
    return isinstance(a, bool) is isinstance(b, bool)


def same_order(a: Any, b: Any) -> bool:
    """Whether equal values also have their keys in one order."""
    if isinstance(a, dict):
        return list(a) == list(b) and all(same_order(value, b[key]) for key, value in a.items())
    return all(map(same_order, a, b)) if isinstance(a, list) else True


def leaves(value: Any) -> Iterator[str]:
    """The texts in a value, keys among them."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, str):
        yield value


def candidates(tool: Tool) -> list[Any]:
    """What of a tool may stand in the prompt as one document, the most first."""
    function = function_of(tool)
    return [tool, function, function["parameters"], function["parameters"]["properties"]]
