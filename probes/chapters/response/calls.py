"""The syntax of calls: what stands around and inside of two calls, one, and one beside a text."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from jinjarun.responses.parts import (
    KINDS,
    Calls,
    JsonArguments,
    JsonCall,
    Kind,
    Piece,
    PiecesCall,
    Region,
    TaggedArguments,
    Value,
)
from jinjarun.responses.values import relaxed_value
from probes.chapters.response.answers import TYPED
from probes.chapters.shape.requests import OTHER_VALUE, SECOND_PARAMETER
from probes.chapters.shape.written import find_calls, keys_of
from probes.chats.canaries import (
    ID,
    PARAMETER,
    SECOND_ID,
    SECOND_TOOL,
    SECOND_VALUE,
    TEXT,
    TOOL,
    VALUE,
)
from probes.rendering.texts import closing, common_end, common_start, key_paths

if TYPE_CHECKING:
    from probes.chapters.response.answers import Answers
    from probes.chapters.shape.reasoning import Reasoning

KEY = "\0"
"""Stands for the name of an argument in a text."""


@dataclass(frozen=True, slots=True)
class Called:
    """How calls are written, what stands between a text and them, and what ends an answer with calls."""

    calls: Calls
    before_calls: str
    ends: tuple[str, ...]


@dataclass(slots=True)
class _Around:
    """The texts around the calls: before the first slot, between the calls (None: only one), after the last slot."""

    before: str
    gap: str | None
    after: str


def calls_of(answers: Answers, thinking: Reasoning | None, opening: str, after_answer: str) -> Called | None:
    """How the template writes calls; None where it writes none that can be read."""
    if answers.ask.call_form is None:
        return None
    for count in (2, 1):
        generated = answers.calling(count)
        if generated is None or TOOL not in generated.text or VALUE not in generated.text:
            continue
        if count == 2 and SECOND_VALUE not in generated.text:
            continue
        made = _json(generated.text, count) or _pieces(answers, generated.text, count)
        if made is None:
            continue
        return _called(answers, made, thinking, opening, after_answer)
    return None


def _called(
    answers: Answers,
    made: tuple[JsonCall | PiecesCall, _Around],
    thinking: Reasoning | None,
    opening: str,
    after_answer: str,
) -> Called:
    call, around = made
    first = around.before
    first = first.rpartition(TEXT)[2] if TEXT in first else first
    if thinking is not None:
        first = thinking.strip_empty(first)
    before_calls = first[: len(first) - len(first.lstrip())]
    written_empty = bool(opening.strip()) and first.lstrip().startswith(opening.strip())
    beside = answers.calling(1, text=True)
    text = beside.text if beside is not None else ""
    if TEXT in text and not written_empty:
        slot = _first_slot(text, text.rfind(TEXT) + len(TEXT), call)
        if slot is not None:
            to_call = text[text.rfind(TEXT) + len(TEXT) : slot]
            start = common_end(first, to_call)
            if around.before.strip() and not start.strip() and first.strip() in to_call:
                start = first.strip()
            if start.strip() or not to_call.strip():
                first = start
            before_calls = to_call[: len(to_call) - len(first.lstrip())] if to_call.endswith(first.lstrip()) else ""
    if opening.strip() and first.lstrip().startswith(opening.strip()):
        first = first.lstrip()[len(opening.strip()) :]
        closes = common_start(after_answer, first)
        if closes.strip():
            first, before_calls = first[len(closes) :], closes
    first = first.lstrip()
    end = after_answer.strip()
    close, between, start = around.after, "", first
    section_open = section_close = ""
    if around.gap is not None:
        start = common_end(first, around.gap) if not isinstance(call, JsonCall) or not call.listed else ""
        section_open = first[: len(first) - len(start)]
        inner = around.gap[: len(around.gap) - len(start)]
        close = common_start(inner, around.after)
        between = inner[len(close) :]
        section_close = around.after[len(close) :]
    elif isinstance(call, JsonCall) and call.listed:
        section_open, start, section_close, close = first, "", around.after, ""
    ends: tuple[str, ...] = ()
    rest = section_close if around.gap is not None or section_open else close
    cut = rest.find(end) if end else -1
    if cut >= 0:
        rest = rest[:cut]
    elif not section_open.strip() and around.gap is not None and rest.strip():
        ends, rest = (rest.strip(),), ""
    if around.gap is not None or section_open:
        section_close = rest
    else:
        close = rest
    calls = Calls(
        section=Region(open=section_open, close=section_close),
        open=start,
        between=between,
        close=close,
        call=call,
    )
    return Called(calls, before_calls, ends)


def _first_slot(text: str, low: int, call: JsonCall | PiecesCall) -> int | None:
    """Where the first slot of a call, or its JSON, begins after `low`."""
    if isinstance(call, JsonCall):
        found = find_calls(text[low:], 1)
        if found is not None and found.item is not None:
            return low + found.start
        return None
    places = [at for mark in (TOOL, ID) if (at := text.find(mark, low)) >= 0]
    return min(places, default=None)


# JSON


def _json(text: str, count: int) -> tuple[JsonCall, _Around] | None:
    """Calls that are JSON objects, each for itself or in a list."""
    found = find_calls(text, count)
    if found is None or not isinstance(found.item, dict) or found.style not in ("json_in_tags", "json_list", "json"):
        return None
    listed = found.style == "json_list"
    name, arguments = keys_of(found.item)
    call_id = next((".".join(path) for path in key_paths(found.item, ID) if path), None)
    if name is None:
        if len(found.item) != 1 or TOOL not in found.item:
            return None
        call = JsonCall(name=None, arguments="", listed=listed)
    elif arguments is None:
        return None
    else:
        call = JsonCall(name=name, arguments=arguments, id=call_id, listed=listed)
    if listed or found.gap is None:
        if count == 2 and not listed:
            return None
        return call, _Around(text[: found.start], None, text[found.end :])
    return call, _Around(text[: found.start], found.gap, text[found.end :])


# Pieces


def _pieces(answers: Answers, text: str, count: int) -> tuple[PiecesCall, _Around] | None:
    """Calls as texts with slots: a name, perhaps an id, and arguments."""
    names = (TOOL, SECOND_TOOL)[:count]
    ids = (ID, SECOND_ID)[:count]
    values = (VALUE, SECOND_VALUE)[:count]
    splits: list[tuple[list[tuple[int, int, str]], Any]] = []
    low = 0
    for name, call_id, value in zip(names, ids, values, strict=True):
        made = _split(text, low, name, call_id, value)
        if made is None:
            return None
        splits.append(made)
        low = made[0][-1][1]
    slots, form = splits[0]
    last = splits[-1][0][-1][1]
    around = _Around(
        text[: slots[0][0]],
        text[slots[-1][1] : splits[1][0][0][0]] if count == 2 else None,
        text[last:],
    )
    inner = [text[a[1] : b[0]] for a, b in pairwise(slots)]
    others = inner
    if count == 2:
        second = splits[1][0]
        others = [text[a[1] : b[0]] for a, b in pairwise(second)]
        if len(others) != len(inner):
            return None
    arguments: JsonArguments | TaggedArguments
    closes = ""
    if form is None:
        made_form = _tagged_form(answers, text, slots, around)
        if made_form is None:
            return None
        arguments, closes, shorter = made_form
        others = [*others[:-1], others[-1].removesuffix(arguments.open)]
        inner = [*inner[:-1], shorter]
        if around.gap is not None:
            around.gap = _after(around.gap, closes.replace(KEY, SECOND_PARAMETER))
        around.after = _after(around.after, closes.replace(KEY, PARAMETER if count == 2 else SECOND_PARAMETER))
    else:
        arguments = form
    pieces: list[Piece] = []
    for index, slot in enumerate(slots):
        pieces.append(Piece(slot=slot[2]))  # type: ignore[arg-type]  # the names of slots
        if index < len(inner):
            pieces += _with_index(inner[index], others[index])
    return PiecesCall(pieces=tuple(pieces), arguments=arguments), around


def _after(text: str, start: str) -> str:
    if text.startswith(start):
        return text[len(start) :]
    bare = start.rstrip()
    return text[len(bare) :] if text.startswith(bare) else text


def _with_index(first: str, second: str) -> list[Piece]:
    """A text between two slots, with a slot for a number that counts the calls."""
    if first == second:
        return [Piece(text=first)] if first else []
    number = re.search(r"\d+", first)
    if number is None or re.sub(r"\d+", "0", first) != re.sub(r"\d+", "0", second):
        return [Piece(text=first)] if first else []
    return [
        *([Piece(text=first[: number.start()])] if number.start() else []),
        Piece(slot="index"),
        *([Piece(text=first[number.end() :])] if first[number.end() :] else []),
    ]


def _split(text: str, low: int, name: str, call_id: str, value: str) -> tuple[list[tuple[int, int, str]], Any] | None:
    """The slots of one call in their order, and the form of its arguments, None where they stand one by one."""
    value_at = text.find(value, low)
    if value_at < 0:
        return None
    key_at = text.rfind(PARAMETER, low, value_at)
    slots = [
        (found.start(), found.end(), kind)
        for kind, mark in (("name", name), ("id", call_id))
        for found in re.finditer(re.escape(mark), text[: value_at if key_at < 0 else key_at])
        if found.start() >= low
    ]
    if not any(kind == "name" for *_, kind in slots) or key_at < 0:
        return None
    slots.sort()
    after_name = slots[-1][1]
    body = _body(text, after_name, key_at, value_at)
    if body is None:
        end = value_at + len(value)
        other = text.find(OTHER_VALUE, end)
        if value == VALUE:
            if other < 0:
                return None
            end = other + len(OTHER_VALUE)
        return [*slots, (key_at, end, "arguments")], None
    start, end, form = body
    return [*slots, (start, end, "arguments")], form


def _body(text: str, low: int, key_at: int, value_at: int) -> tuple[int, int, JsonArguments] | None:
    """Arguments that are one object: where it stands and in which form."""
    escaped = text.rfind('{\\"', low, value_at)
    if escaped >= 0:
        end = re.compile(r'(?:[^"\\]|\\.)*', re.DOTALL).match(text, escaped)
        assert end is not None
        return escaped, end.end(), JsonArguments(escaped=True)
    for at in range(low, key_at):
        if text[at] != "{":
            continue
        end_at = closing(text, at)
        if end_at is None or end_at <= value_at:
            continue
        try:
            if isinstance(json.loads(text[at:end_at]), dict):
                return at, end_at, JsonArguments()
        except ValueError:
            pass
        colon = re.match(r"\s*:\s*(\S+?)$", text[key_at + len(PARAMETER) : value_at])
        if colon is None:
            return None
        mark = colon.group(1)
        try:
            value = relaxed_value(text[at:end_at], mark)
        except ValueError:
            return None
        return (at, end_at, JsonArguments(string_mark=mark)) if isinstance(value, dict) else None
    return None


# Arguments one by one


def _tagged_form(
    answers: Answers, text: str, slots: list[tuple[int, int, str]], around: _Around
) -> tuple[TaggedArguments, str, str] | None:
    """The form of arguments that stand one by one, what closes a value, and the text before the first argument."""
    start, end, _ = slots[-1]
    lead = text[slots[-2][1] : start]
    value_at = text.find(VALUE, start)
    second_at = text.find(SECOND_PARAMETER, value_at)
    if value_at < 0 or second_at < 0:
        return None
    mid = text[value_at + len(VALUE) : second_at].replace(PARAMETER, KEY)
    tail = text[end:].replace(SECOND_PARAMETER, KEY)
    opening = common_end(lead, mid)
    rest = mid[: len(mid) - len(opening)]
    close = common_start(rest, tail)
    between = rest[len(close) :]
    if between.strip() and around.gap is None and not close.strip() and opening.strip():
        close, between = rest, ""
    lead = lead[: len(lead) - len(opening)]
    value_open = text[start + len(PARAMETER) : value_at]
    values, nested = _values(answers, opening, between, close, value_open)
    form = TaggedArguments(open=opening, between=between, values=values, nested=nested)
    return form, close, lead


def _keyed(text: str) -> tuple[Piece, ...]:
    """A text with a slot for the name of the argument."""
    parts = re.split(f"({KEY})", text)
    return tuple(Piece(slot="key") if part == KEY else Piece(text=part) for part in parts if part)


def _values(
    answers: Answers, opening: str, between: str, close: str, value_open: str
) -> tuple[tuple[Value, ...], str | None]:
    """How values of each kind are written."""
    default = (Value(open=value_open, close=_keyed(close)),)
    typed = answers.calling(1, typed=True)
    if typed is None:
        return default, None
    text = typed.text
    found: dict[tuple[str, str], list[Kind]] = {}
    encoding = "raw"
    nested: str | None = None
    for key, value in TYPED.items():
        at = text.rfind(key)
        if at < 0:
            continue
        low = text.find(key) + len(key)
        kind: Kind = next(kind for kind in KINDS if _is(kind, value))
        rest = text[low:]
        for written in _spellings(value):
            place = _place(rest, written, close.replace(KEY, key))
            if place >= 0:
                break
        else:
            if kind == "array" and (item := re.search(r"([\w.-]+)\W*rook 48214", rest[:200])) is not None:
                nested = item.group(1)
            continue
        before, after = rest[:place], rest[place + len(written) :]
        if kind == "string" and written != value:
            quote = written[:1]
            encoding = "json" if quote == '"' else "python"
        closes = _close_of(after, key, between, opening, close)
        found.setdefault((before, closes), []).append(kind)
    if not found:
        return default, nested
    if not any("string" in kinds for kinds in found.values()):
        found.setdefault((value_open, close), []).append("string")
    forms = [
        Value(
            kinds=tuple(kinds) if len(found) > 1 else KINDS,
            open=before,
            close=_keyed(closes),
            encoding=encoding if "string" in kinds else "raw",  # type: ignore[arg-type]
        )
        for (before, closes), kinds in found.items()
    ]
    return tuple(forms), nested


def _place(text: str, written: str, close: str) -> int:
    """Where a value is written near the start of a text: where what closes it follows, else where it stands first."""
    places = [found.start() for found in re.finditer(re.escape(written), text[: 60 + len(written)])]
    closed = [at for at in places if close.strip() and text.startswith(close, at + len(written))]
    return min(closed or places, default=-1)


def _close_of(after: str, key: str, between: str, opening: str, usual: str) -> str:
    """What closes a value that `after` follows."""
    own = usual.replace(KEY, key)
    if own and after.startswith(own):
        return usual
    follows = between + opening
    end = after.find(follows) if follows else -1
    closes = after[:end] if 0 <= end < 60 else ""
    return closes.replace(key, KEY) if not re.search(r"[\w)\]]", closes.replace(key, "")) or KEY in closes else ""


def _is(kind: Kind, value: Any) -> bool:
    types: dict[Kind, Any] = {
        "string": str,
        "boolean": bool,
        "number": int,
        "null": type(None),
        "array": list,
        "object": dict,
    }
    return isinstance(value, types[kind]) and not (kind == "number" and isinstance(value, bool))


def _spellings(value: Any) -> list[str]:
    """Ways in which a value may be written."""
    if isinstance(value, str):
        return [value, json.dumps(value), repr(value)]
    texts = [json.dumps(value), json.dumps(value, separators=(",", ":")), repr(value)]
    return list(dict.fromkeys([*texts, "null"] if value is None else texts))
