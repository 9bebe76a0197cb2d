"""Tool calls in a text: where they begin and end, and how names and arguments are written."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from probes.chapters.shape.requests import OTHER_VALUE, SECOND_PARAMETER, call_arguments
from probes.chats.canaries import (
    ID,
    PARAMETER,
    RESULT,
    SECOND_ID,
    SECOND_TOOL,
    SECOND_VALUE,
    TOOL,
    USER,
    VALUE,
)
from probes.rendering.texts import closing, common_end, common_start, document, key_paths

NAME = "\0"
"""Stands for a parameter's name where the texts after two arguments are compared."""


@dataclass(frozen=True, slots=True)
class Written:
    """Calls found in a text: where the first begins and the last ends, and how they are written.

    `gap` is what stands between two calls; `item` a call as data where it is written as a document."""

    start: int
    end: int
    gap: str | None
    style: str
    encoding: str
    item: Any = None


def find_calls(text: str, count: int) -> Written | None:
    """The calls in a text: from the first value, name or id of theirs to the end of the last."""
    first, second = _anchor(text, VALUE, TOOL), _anchor(text, SECOND_VALUE, SECOND_TOOL)
    if first is None:
        return None
    low = text.rfind(USER, 0, first)
    low = low + len(USER) if low >= 0 else 0
    one = _one(text, low, (TOOL, ID, PARAMETER, VALUE), VALUE, OTHER_VALUE)
    if one is None:
        return None
    if count == 1 or second is None or second < first:
        return one
    if one.end > second:
        return _listed(text, one)
    two = _one(text, one.end, (SECOND_TOOL, SECOND_ID, PARAMETER, SECOND_VALUE), SECOND_VALUE, SECOND_VALUE)
    if two is None or two.start < one.end:
        return one
    if one.style == "python_calls" and (around := _bracket_around(text, one.start, two.end)) is not None:
        return Written(around[0], around[1], text[one.end : two.start], one.style, one.encoding)
    end, gap = two.end, text[one.end : two.start]
    if one.style == "tagged_arguments":
        end = _past_argument(text, end, PARAMETER)
    return Written(one.start, end, gap, one.style, one.encoding, one.item)


def _anchor(text: str, value: str, name: str) -> int | None:
    """Where a call is surely written: at its value; at its name, before the result, where values are left out."""
    at = text.find(value)
    if at >= 0:
        return at
    limit = text.find(RESULT)
    start = text.find(USER)
    at = text.rfind(name, 0, limit if limit >= 0 else len(text))
    return at if at > start >= 0 else None


def _one(text: str, low: int, marks: tuple[str, ...], value: str, last: str) -> Written | None:
    anchor = text.find(value, low)
    if anchor < 0:
        return _name_only(text, low, marks[0], marks[1])
    high = text.find(last, anchor)
    high = (high if high >= 0 else anchor) + len(last if high >= 0 else value)
    places = [at for mark in marks if (at := text.rfind(mark, low, anchor + len(value))) >= 0]
    start = min(places)
    found = document(text, low, start + 1, value)
    if found is not None and key_paths(found[2], "assistant"):
        return None  # the message as it is, not a call
    if found is not None and marks[0] in text[found[0] : found[1]]:
        item = _item(found[2], marks[0])
        encoding = _encoding(item, text[found[0] : found[1]], is_json=found[3])
        style = "json_list" if isinstance(found[2], list) else "json_in_tags"
        return Written(found[0], found[1], None, style, encoding, item)
    name_end = text.rfind(marks[0], low, anchor)
    name_end = name_end + len(marks[0]) if name_end >= 0 else start
    arguments = document(text, min(name_end, anchor), anchor, value)
    if arguments is not None:
        encoding = "json" if arguments[3] else "python_repr"
        return Written(min(start, arguments[0]), arguments[1], None, "name_then_json", encoding)
    quoted = _quoted(text, name_end, anchor, high)
    if quoted is not None:
        return Written(start, quoted, None, "name_then_json", "double_encoded")
    bracket = re.compile(r"\s*([({])").match(text, name_end)
    if bracket is not None and (end := closing(text, bracket.start(1))) is not None and end >= high:
        if bracket.group(1) == "(":
            return _python_call(text, start, end)
        return Written(start, end, None, "name_then_arguments", "other")
    loose = _loose_document(text, low, start, high)
    if loose is not None:
        return Written(loose[0], loose[1], None, "json_in_tags", "other")
    return _tagged(text, start, high, value)


def _python_call(text: str, start: int, end: int) -> Written:
    if start and text[start - 1] == "[" and closing(text, start - 1) == end + 1:
        start, end = start - 1, end + 1
    return Written(start, end, None, "python_calls", "python_arguments")


def _bracket_around(text: str, start: int, end: int) -> tuple[int, int] | None:
    if start and text[start - 1] == "[" and (close := closing(text, start - 1)) is not None and close >= end:
        return start - 1, close
    return None


def _quoted(text: str, low: int, anchor: int, high: int) -> int | None:
    """The end of a JSON string that holds the arguments as JSON once more."""
    start = text.find('"{\\"', low, anchor)
    if start < 0:
        return None
    try:
        value, size = json.JSONDecoder().raw_decode(text[start:])
    except ValueError:
        return None
    return start + size if isinstance(value, str) and start + size >= high else None


def _loose_document(text: str, low: int, start: int, high: int) -> tuple[int, int] | None:
    """A bracket around name and arguments whose content is no valid document."""
    for at in range(start - 1, max(low, start - 80) - 1, -1):
        if text[at] == "{" and (end := closing(text, at)) is not None and end >= high:
            return at, end
    return None


def _tagged(text: str, start: int, high: int, value: str) -> Written:
    end = _past_argument(text, high, SECOND_PARAMETER) if value == VALUE else high
    name_key = re.search(r"<\W*parameter\b|<\W*arg", text[start:high])
    encoding = "xml_like" if name_key is not None or re.search(r"[<\[][^<>\[\]]*[>\]]", text[start:high]) else "other"
    style = "tagged_arguments" if encoding == "xml_like" else "other"
    return Written(start, end, None, style, encoding)


def _past_argument(text: str, end: int, name: str) -> int:
    """The end of an argument whose value ends at `end`: past what follows a value and also the last one, but not into
    what may begin another argument."""
    value = text.find(VALUE)
    second = text.find(SECOND_PARAMETER, value)
    if value < 0 or second < 0:
        return end
    inner = text[value + len(VALUE) : second]
    last = text.rfind(OTHER_VALUE) + len(OTHER_VALUE)
    rest = text[last : last + len(inner) + len(SECOND_PARAMETER)]
    ending = common_start(inner.replace(PARAMETER, NAME), rest.replace(SECOND_PARAMETER, NAME))
    name_at = text.rfind(PARAMETER, 0, value)
    opening = common_end(text[:name_at], inner)
    without = inner.removesuffix(opening).replace(PARAMETER, NAME)
    extra = ending[len(without) :] if ending.startswith(without) else ""
    if extra.strip() and without.strip() and not text[:value].endswith(extra):
        ending = without
    ending = ending.replace(NAME, name)
    return end + len(ending) if text.startswith(ending, end) else end


def _name_only(text: str, low: int, name: str, call_id: str) -> Written | None:
    limit = text.find(RESULT)
    high = limit if limit >= 0 else len(text)
    places = [(at, at + len(mark)) for mark in (name, call_id) if (at := text.rfind(mark, low, high)) >= 0]
    if not places or low == 0:
        return None
    start = min(start for start, _ in places)
    end = max(end for _, end in places)
    return Written(start, end, None, "name_only", "not_written")


def _listed(text: str, found: Written) -> Written:
    """A document that holds both calls: what stands between its items."""
    first = text.find("{", found.start)
    end = closing(text, first) if first >= 0 else None
    second = text.find("{", end) if end is not None else -1
    gap = text[end:second] if end is not None and second >= 0 else None
    return Written(found.start, found.end, gap, found.style, found.encoding, found.item)


def _item(value: Any, name: str) -> Any:
    if isinstance(value, list):
        return next((item for item in value if name in json.dumps(item)), None)
    return value


def _encoding(item: Any, source: str, *, is_json: bool) -> str:
    first, second = call_arguments()
    for arguments in (first, second):
        if key_paths(item, arguments):
            return "json" if is_json else _mixed(source)
        texts = [text for text in _texts(item) if PARAMETER in text]
        for text in texts:
            try:
                if json.loads(text) == arguments:
                    return "double_encoded"
            except ValueError:
                continue
    return "other"


def _mixed(source: str) -> str:
    return "python_repr" if re.search(rf"'{PARAMETER}'", source) else "json"


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in _texts(item)]


def keys_of(item: Any) -> tuple[str | None, str | None]:
    """The keys under which name and arguments stand."""
    if not isinstance(item, dict):
        return None, None
    name = next((".".join(path) for path in key_paths(item, TOOL) if path), None)
    for value in (call_arguments()[0], *(text for text in _texts(item) if PARAMETER in text)):
        path = next((path for path in key_paths(item, value) if path), None)
        if path is not None:
            return name, ".".join(path) if TOOL not in path else None
    return name, None
