"""Tool schemas: where they stand, how they are written, what stands around them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from probes.chapters.shape.requests import answer, next_question, question, two_tools
from probes.chats.canaries import ANSWER, DESCRIPTION, SECOND_TOOL, SECOND_USER, SYSTEM, TOOL, USER
from probes.chats.messages import say
from probes.rendering.texts import adjacent_marker, common_end, document, leading_marker, value_of
from probes.report import ToolsShape

if TYPE_CHECKING:
    from probes.chapters.shape.requests import Requests
    from probes.chapters.shape.turns import Frame


def schemas(ask: Requests, frame: Frame, system_turn: str) -> tuple[ToolsShape | None, str | None]:
    """The schemas, and where a system text stands beside them; None for both where no tool is written."""
    lead: list[Any] = [say("system", SYSTEM)]
    text = ask.text([*lead, question(), answer(), next_question()], two_tools())
    if text is None or TOOL not in text:
        text = ask.text([question(), answer(), next_question()], two_tools())
    if text is None or TOOL not in text:
        return None, None
    start, end, encoding = _written(text)
    shape = ToolsShape(
        placement=_placement(text, start, end, frame, system_turn),
        encoding=encoding,
        open=_before(text[:start]),
        close=_after(text[end:], frame),
    )
    return shape, _beside(text, start, end, frame)


def _before(before: str) -> str:
    """The marker right before the schemas, or else the line above them."""
    for canary in (SYSTEM, USER, ANSWER, SECOND_USER):
        before = before.rpartition(canary)[2]
    marker = adjacent_marker(before)
    if marker is not None:
        return marker
    return re.split(r"\n(?=[^\n]*\S)", before)[-1] if before.strip() else before


def _after(after: str, frame: Frame) -> str:
    """The marker right after the schemas, unless it ends the turn, or else the space after them."""
    marker = leading_marker(after)
    if marker is None:
        return after[: len(after) - len(after.lstrip())]
    return "" if marker.strip() in (frame.user_close.strip(), frame.assistant_close.strip()) else marker


def _written(text: str) -> tuple[int, int, str]:
    """Where the schemas begin and end, and how they are encoded."""
    at, second = text.find(TOOL), text.find(SECOND_TOOL)
    found = document(text, 0, at, DESCRIPTION) or document(text, 0, at, TOOL)
    if found is not None:
        start, end, value, is_json = found
        if not is_json:
            return start, _last_end(text, end, second), "python_repr"
        if isinstance(value, list):
            return start, end, "json_list"
        if end > second > 0:
            return start, end, "json_object"
        last = _last_end(text, end, second)
        if "\n" in text[start:end]:
            return start, last, "json_indented"
        next_one = text.find("{", end)
        gap = text[end : next_one if 0 <= next_one < second else end]
        return start, last, "json_per_line" if "\n" in gap else "json_sequence"
    if re.search(rf"type {TOOL} = |function {TOOL}\(", text):
        return (*_typescript(text, at, second), "typescript")
    if re.search(rf"<[^<>]*>\s*{TOOL}\s*</|name=\"{TOOL}\"", text):
        return (*_blocks(text, at, second), "xml_like")
    return (*_blocks(text, at, second), "other")


def _last_end(text: str, end: int, second: int) -> int:
    if second < end:
        return end
    found = document(text, end, second, SECOND_TOOL)
    return found[1] if found is not None and value_of(text[found[0] : found[1]])[0] is not None else end


def _typescript(text: str, at: int, second: int) -> tuple[int, int]:
    start = text.rfind("\n", 0, at) + 1
    while text[:start].endswith("\n") and text[text.rfind("\n", 0, start - 1) + 1 :].startswith("//"):
        start = text.rfind("\n", 0, start - 1) + 1
    line_end = text.find("\n", max(second, at))
    arrow = text.find("=> any;", max(second, at))
    end = arrow + len("=> any;") if arrow >= 0 else line_end
    return start, end if end >= 0 else len(text)


def _blocks(text: str, at: int, second: int) -> tuple[int, int]:
    """The blocks of two tools: what stands before both names begins a block, what ends the first ends the second."""
    if second < at:
        return at, at + len(TOOL)
    opening = common_end(text[:at], text[:second])
    start = at - len(opening.lstrip())
    first = text[at : second - len(opening)].rstrip()
    ending = adjacent_marker(first) or first[first.rfind("\n") + 1 :]
    end = second
    for _ in range(first.count(ending) if ending.strip() else 0):
        found = text.find(ending, end)
        if found < 0:
            break
        end = found + len(ending)
    return start, max(end, second + len(SECOND_TOOL))


def _placement(text: str, start: int, end: int, frame: Frame, system_turn: str) -> str:
    """The turn in which the schemas stand."""
    user, reply, last, system = (text.find(canary) for canary in (USER, ANSWER, SECOND_USER, SYSTEM))
    if start > last >= 0:
        return "after_last_user_turn"
    opened = frame.user_open
    if start > reply >= 0:
        return "last_user_turn" if _inside(text, reply + len(ANSWER), start, opened) else "before_last_user_turn"
    if start > user >= 0:
        return "after_first_user_turn"
    if system >= 0 and _same_turn(text, system, start, end, frame):
        return "system"
    if _inside(text, 0, start, opened):
        return "first_user_turn"
    marker = _header_word(system_turn)
    if marker and marker in text[:start]:
        return "system" if system < 0 else "own_system_turn"
    return "before_first_user_turn"


def _inside(text: str, low: int, high: int, opened: str) -> bool:
    return bool(opened.strip()) and opened.strip() in text[low:high]


def _same_turn(text: str, system: int, start: int, end: int, frame: Frame) -> bool:
    inner = text[system + len(SYSTEM) : start] if system < start else text[end:system]
    stop = frame.user_close.strip() or frame.user_open.strip()
    openings = [mark for mark in (frame.user_open.strip(), frame.header.strip()) if mark]
    return (not stop or stop not in inner) and not any(mark in inner for mark in openings)


def _header_word(system_turn: str) -> str:
    found = re.match(r"\s*\S+", system_turn)
    return found.group().strip() if found else ""


def _beside(text: str, start: int, end: int, frame: Frame) -> str | None:
    at = text.find(SYSTEM)
    if at < 0:
        return None
    where = "before" if at < start else "after"
    if _same_turn(text, at, start, end, frame):
        return f"text {where} the tool section"
    return f"text {where} the tool section, in another turn"
