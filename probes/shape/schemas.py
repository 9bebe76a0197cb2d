"""Tool schemas: where they stand, how they are written, what stands around them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from probes.canaries import ANSWER, DESCRIPTION, SECOND_TOOL, SECOND_USER, SYSTEM, TOOL, USER, say
from probes.report import ToolsShape
from probes.shape.asking import answer, next_question, question, two_tools
from probes.shape.texts import adjacent_marker, document, leading_marker, value_of

if TYPE_CHECKING:
    from probes.shape.asking import Asking
    from probes.shape.turns import Frame


def schemas(ask: Asking, frame: Frame, system_turn: str) -> tuple[ToolsShape | None, str | None]:
    """The schemas, and where a system text stands beside them; None for both where no tool is written."""
    lead: list[Any] = [say("system", SYSTEM)]
    text = ask.text([*lead, question(), answer(), next_question()], two_tools())
    if text is None or TOOL not in text:
        text = ask.text([question(), answer(), next_question()], two_tools())
    if text is None or TOOL not in text:
        return None, None
    start, end, encoding = _written(text)
    before, after = text[:start], text[end:]
    opening = adjacent_marker(before)
    if opening is None:
        opening = re.split(r"\n(?=[^\n]*\S)", before)[-1] if before.strip() else before
    close = leading_marker(after)
    if close is None:
        close = after[: len(after) - len(after.lstrip())]
    elif frame.user_close.strip() and close.strip() == frame.user_close.strip():
        close = ""
    shape = ToolsShape(
        placement=_placement(text, start, end, frame, system_turn), encoding=encoding, open=opening, close=close
    )
    return shape, _beside(text, start, end, frame)


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
        return (*_tagged(text, at, second), "xml_like")
    return at, max(text.rfind(SECOND_TOOL) + len(SECOND_TOOL), at + len(TOOL)), "other"


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


def _tagged(text: str, at: int, second: int) -> tuple[int, int]:
    """The blocks of two tools: the second begins where the text before its name equals that before the first."""
    size = 0
    while size < at and second - size - 1 > at and text[at - size - 1] == text[second - size - 1]:
        size += 1
    block = text[second - size : second].lstrip()
    start = at - len(block)
    first_block = text[at : second - len(block)].rstrip()
    tail = first_block.rpartition(">")[0].rpartition("<")[2] + ">"
    end = text.find("<" + tail, second)
    return start, end + len(tail) + 1 if end >= 0 else second + len(SECOND_TOOL)


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
