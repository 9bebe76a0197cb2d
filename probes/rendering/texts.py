"""Comparing texts: common ends that never cut a marker or a word, and documents found inside a text."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from jinjarun.sequences import common_prefix
from probes.rendering.markers import MARKER

CLOSERS = {"[": "]", "{": "}", "(": ")"}


def common_start(a: str, b: str) -> str:
    """The longest common start that ends neither inside a marker nor inside a word of either text."""
    end = common_prefix(a, b)
    return a[: min(_before_cut(a, end), _before_cut(b, end))]


def common_end(a: str, b: str) -> str:
    """The longest common end that begins neither inside a marker nor inside a word of either text."""
    size = common_prefix(a[::-1], b[::-1])
    size = min(size, len(a) - _after_cut(a, len(a) - size), len(b) - _after_cut(b, len(b) - size))
    return a[len(a) - size :]


def _before_cut(text: str, at: int) -> int:
    for marker in MARKER.finditer(text):
        if marker.start() < at < marker.end():
            return marker.start()
    while 0 < at < len(text) and _in_word(text, at):
        at -= 1
    return at


def _after_cut(text: str, at: int) -> int:
    for marker in MARKER.finditer(text):
        if marker.start() < at < marker.end():
            return marker.end()
    while 0 < at < len(text) and _in_word(text, at):
        at += 1
    return at


def _in_word(text: str, at: int) -> bool:
    return (text[at - 1].isalnum() or text[at - 1] == "_") and (text[at].isalnum() or text[at] == "_")


def between(text: str, first: str, second: str) -> str | None:
    """What stands between the last `first` before `second`, and `second`; None unless both are there in this order."""
    end = text.rfind(second)
    start = text.rfind(first, 0, end) if end >= 0 else -1
    return text[start + len(first) : end] if start >= 0 else None


def after(text: str | None, canary: str) -> str | None:
    """What stands after the last `canary`."""
    if text is None or canary not in text:
        return None
    return text.rpartition(canary)[2]


def closing(text: str, at: int) -> int | None:
    """The end of the bracket that opens at `at`, quoted brackets not counted; None where it never closes."""
    stack: list[str] = []
    quote = ""
    i = at
    while i < len(text):
        char = text[i]
        if quote:
            if char == "\\":
                i += 1
            elif char == quote:
                quote = ""
        elif char in "\"'":
            quote = char
        elif char in CLOSERS:
            stack.append(CLOSERS[char])
        elif stack and char == stack[-1]:
            stack.pop()
            if not stack:
                return i + 1
        i += 1
    return None


def document(text: str, low: int, high: int, wanted: str) -> tuple[int, int, Any, bool] | None:
    """The outermost JSON or Python document that opens in `low:high` and holds `wanted`: start, end, value, is JSON."""
    at = text.find(wanted, low)
    for i in range(low, high):
        if text[i] not in "[{":
            continue
        end = closing(text, i)
        if end is None or end <= at:
            continue
        value, is_json = value_of(text[i:end])
        if value is not None:
            return i, end, value, is_json
    return None


def value_of(text: str) -> tuple[Any, bool]:
    """A text as JSON, or else as a Python literal; None where it is neither."""
    try:
        return json.loads(text), True
    except ValueError:
        pass
    try:
        return ast.literal_eval(text), False
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None, False


def key_paths(value: Any, wanted: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The keys that lead to each occurrence of `wanted` inside `value`; positions in lists are left out."""
    if value == wanted:
        return [path]
    found: list[tuple[str, ...]] = []
    if isinstance(value, dict):
        for key, item in value.items():
            found += key_paths(item, wanted, (*path, str(key)))
    elif isinstance(value, list):
        for item in value:
            found += key_paths(item, wanted, path)
    return found


def adjacent_marker(text: str) -> str | None:
    """The markers, with the space between them, that `text` ends with; None where it ends otherwise."""
    found = re.search(rf"(?:(?:{MARKER.pattern})\s*)\Z", text)
    return found.group() if found else None


def leading_marker(text: str) -> str | None:
    """The marker that `text` begins with, with the space before it; None where it begins otherwise."""
    found = re.match(rf"\s*(?:{MARKER.pattern})", text)
    return found.group() if found else None
