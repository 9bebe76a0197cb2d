"""How llama-server b11434 finds a template's reasoning markers: it renders pairs of small conversations that differ in
one thing, and compares. Facts: common/chat-diff-analyzer.cpp and common/chat-auto-parser-helpers.cpp of that build.

Everything is bytes, as there: a comparison may cut a character in two.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from jinjarun.sequences import common_prefix
from jinjarun.serving import server_json

if TYPE_CHECKING:
    from jinjarun.limits import Limits

SPACE = b" \t\n\v\f\r"
USER = "U_USER_MSG Hello END_U"
ANSWER = "A_ASST_MSG I can help END_A"
REASONING = "REASON_PART I am thinking END_R"
FIRST_TOOL, SECOND_TOOL = "FFF_FIRST_FUN_F", "SSS_SECOND_FUN_S"
FIRST_ARGUMENT, SECOND_ARGUMENT = "AA_ARG_FST_AA", "BB_ARG_SND_BB"
ANCHOR = 64
"""Bytes at the end of one text that are looked for in another."""

Render = Callable[[dict[str, Any]], bytes | None]
"""A render with exactly these variables, without special tokens added by the tokenizer; None where it fails."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of text; `is_marker` if it is <...> or [...] with its brackets."""

    text: bytes
    is_marker: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """Two texts as a common start, what only `left` or `right` has, and a common end."""

    prefix: bytes
    left: bytes
    right: bytes
    suffix: bytes


@dataclass(frozen=True, slots=True)
class ReasoningMarkers:
    """What the server believes to surround reasoning. `thinks` is false where it found none."""

    thinks: bool = False
    start: bytes = b""
    end: bytes = b""


@dataclass(frozen=True, slots=True)
class Analysis:
    markers: ReasoningMarkers
    schemas: tuple[str, ...]
    """Whose JSON schemas the server turns into a grammar, the first first. Those of tools only if it found calls."""
    fault: str | None = None
    """Why the server's analysis breaks on this template, if it does."""
    adds_stops: bool = False
    """Whether the server adds a stop of the model's to those of the client."""


def segments(text: bytes) -> list[Segment]:
    found: list[Segment] = []
    at = 0
    while (opening := _OPENER.search(text, at)) is not None:
        start = opening.start()
        if start > at:
            found.append(Segment(text[at:start], is_marker=False))
        at = start
        end = text.find(b">" if opening[0] == b"<" else b"]", start + 1)
        if end < 0:
            break
        found.append(Segment(text[start : end + 1], is_marker=True))
        at = end + 1
    if at < len(text):
        found.append(Segment(text[at:], is_marker=False))
    return found


_OPENER = re.compile(rb"[<\[]")


def _solid(found: list[Segment]) -> list[Segment]:
    return [segment for segment in found if segment.text.strip(SPACE)]


def difference(left: bytes, right: bytes) -> Difference:
    """Whole segments are matched from both ends first, then the bytes of the text that is left."""
    lefts, rights = segments(left), segments(right)
    if not lefts or not rights:
        return Difference(b"", left, right, b"")
    split = _Split(lefts, rights)
    split.match_segments()
    found = split.match_bytes()
    if not found.left and not found.right:
        return Difference(left, b"", b"", b"")
    if not found.left and right.startswith(left):
        return Difference(left, b"", right[len(left) :], b"")
    return found


class _Split:
    """Two lists of segments, consumed from both ends.

    `first_*` and `last_*` are the segments not yet matched; the last one stays in place when it is matched too, and
    `*_done` says that it is.
    """

    def __init__(self, lefts: list[Segment], rights: list[Segment]) -> None:
        self.lefts, self.rights = lefts, rights
        self.first_left = self.first_right = 0
        self.last_left, self.last_right = len(lefts) - 1, len(rights) - 1
        self.left_done = self.right_done = False
        self.prefix: list[bytes] = []
        self.suffix: list[bytes] = []
        """In reverse."""

    def match_segments(self) -> None:
        lefts, rights = self.lefts, self.rights
        while self.first_left != self.last_left and self.first_right != self.last_right:
            advanced = False
            if lefts[self.first_left] == rights[self.first_right]:
                self.prefix.append(lefts[self.first_left].text)
                self.first_left += 1
                self.first_right += 1
                advanced = True
            if lefts[self.last_left] == rights[self.last_right]:
                self.suffix.append(lefts[self.last_left].text)
                if self.first_left != self.last_left:
                    self.last_left -= 1
                else:
                    self.left_done = True
                if self.first_right != self.last_right:
                    self.last_right -= 1
                else:
                    self.right_done = True
                advanced = True
            if not advanced:
                break
        self.match_single()

    def match_single(self) -> None:
        """The case that one side has a single segment left: it may be the start or the end of the other."""
        lefts, rights = self.lefts, self.rights
        single_left, single_right = self.first_left == self.last_left, self.first_right == self.last_right
        first_left, first_right = lefts[self.first_left], rights[self.first_right]
        if single_left and not single_right:
            if first_left == rights[self.last_right]:
                self.suffix.append(first_left.text)
                self.last_right -= 1
                self.left_done = True
            elif first_left == first_right:
                self.prefix.append(first_left.text)
                self.first_right += 1
                self.left_done = True
        elif single_right and not single_left:
            if lefts[self.last_left] == first_right:
                self.suffix.append(first_right.text)
                self.last_left -= 1
                self.right_done = True
            elif first_left == first_right:
                self.prefix.append(first_left.text)
                self.first_left += 1
                self.right_done = True
        elif single_left and single_right and first_left == first_right and first_left.is_marker:
            self.prefix.append(first_left.text)
            self.left_done = self.right_done = True

    def match_bytes(self) -> Difference:
        lefts, rights = self.lefts, self.rights
        ends_in_text = not lefts[self.last_left].is_marker and not rights[self.last_right].is_marker
        starts_in_text = not lefts[self.first_left].is_marker and not rights[self.first_right].is_marker
        left = b"".join(s.text for s in lefts[self.first_left : self.last_left + (not self.left_done)])
        right = b"".join(s.text for s in rights[self.first_right : self.last_right + (not self.right_done)])
        tail = _common_suffix(left, right) if ends_in_text else 0
        end_left, end_right = len(left) - tail, len(right) - tail
        head = common_prefix(left[:end_left], right[:end_right]) if starts_in_text else 0
        return Difference(
            prefix=b"".join([*self.prefix, left[:head]]),
            left=left[head:end_left],
            right=right[head:end_right],
            suffix=b"".join([left[end_left:], *reversed(self.suffix)]),
        )


def _common_suffix(left: bytes, right: bytes) -> int:
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[len(left) - middle : len(left) - low] == right[len(right) - middle : len(right) - low]:
            low = middle
        else:
            high = middle - 1
    return low


@dataclass(frozen=True, slots=True)
class _Around:
    """White space and one marker before and after an occurrence of a text."""

    before: tuple[int, int] | None
    after: tuple[int, int] | None


def _surroundings(text: bytes, inner: bytes) -> list[_Around]:
    """For each occurrence of `inner`, the spans of "marker, space" before it and of "space, marker, space" after it."""
    found = []
    closers = {opener: _Finder(text, closer) for opener, closer in ((b"<", b">"), (b"[", b"]"))}
    at = text.find(inner)
    while at >= 0:
        found.append(_Around(_marker_before(text, at), _marker_after(text, at + len(inner), closers)))
        at = text.find(inner, at + len(inner))
    return found


class _Finder:
    """`text.find(what, at)` for rising `at`, each byte looked at once."""

    def __init__(self, text: bytes, what: bytes) -> None:
        self.text, self.what = text, what
        self.next = text.find(what)

    def find(self, at: int) -> int:
        if 0 <= self.next < at:
            self.next = self.text.find(self.what, at)
        return self.next


def _marker_before(text: bytes, at: int) -> tuple[int, int] | None:
    end = at
    while end > 0 and text[end - 1] in SPACE:
        end -= 1
    closer = text[end - 1 : end]
    if closer not in {b">", b"]"}:
        return None
    previous = text.rfind(closer, 0, end - 1)
    start = text.find(b"<" if closer == b">" else b"[", previous + 1, end - 1)
    return None if start < 0 else (start, at)


def _marker_after(text: bytes, at: int, closers: dict[bytes, _Finder]) -> tuple[int, int] | None:
    start = _skip_space(text, at)
    opener = text[start : start + 1]
    if opener not in closers:
        return None
    closer = closers[opener].find(start + 1)
    return None if closer < 0 else (at, _skip_space(text, closer + 1))


def _skip_space(text: bytes, at: int) -> int:
    while at < len(text) and text[at] in SPACE:
        at += 1
    return at


def _message(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def _call(name: str, arguments: dict[str, str]) -> dict[str, Any]:
    return {"id": "call00001", "type": "function", "function": {"name": name, "arguments": arguments}}


def _tool(name: str, description: str) -> dict[str, Any]:
    properties = {
        FIRST_ARGUMENT: {"type": "string", "description": "First argument"},
        SECOND_ARGUMENT: {"type": "string", "description": "Second argument"},
    }
    parameters = {"type": "object", "properties": properties, "required": []}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


USER_TURN = {"role": "user", "content": USER}
TOOLS = [_tool(FIRST_TOOL, "Test function foo"), _tool(SECOND_TOOL, "Test function bar")]
BOTH_ARGUMENTS = {FIRST_ARGUMENT: "XXXX", SECOND_ARGUMENT: "YYYY"}


def analyze(source: str, render: Render, limits: Limits, *, supports_tool_calls: bool) -> Analysis:
    """What the server learns about a template that belongs to none of its families."""
    markers = _around_reasoning(render)
    markers = _in_generation_prompt(render, markers)
    has_calls, fault = False, None
    if supports_tool_calls:
        markers = _beside_calls(render, markers)
        has_calls, fault = _call_format(render, markers, limits)
        has_calls = has_calls or _is_nemotron_v2(source)
    schemas = ("answer", "tools") if has_calls else ("answer",)
    return Analysis(_corrected(source, markers), schemas, fault, adds_stops=_LAGUNA in source)


def _conversation(
    *turns: dict[str, Any], thinking: bool = True, tools: bool = False, generation_prompt: bool = False
) -> dict[str, Any]:
    variables: dict[str, Any] = {"messages": list(turns), "enable_thinking": thinking}
    if tools:
        variables["tools"] = TOOLS
    if generation_prompt:
        variables["add_generation_prompt"] = True
    return variables


def _pair(render: Render, left: dict[str, Any], right: dict[str, Any]) -> tuple[bytes, bytes] | None:
    first, second = render(left), render(right)
    return None if first is None or second is None else (first, second)


def _around_reasoning(render: Render) -> ReasoningMarkers:
    """Reasoning in the history: the markers that it appears between."""
    pair = _pair(
        render,
        _conversation(USER_TURN, _message(ANSWER)),
        _conversation(USER_TURN, _message(ANSWER, reasoning_content=REASONING)),
    )
    inner = REASONING.encode()
    if pair is None or inner not in difference(*pair).right:
        return ReasoningMarkers()
    text = pair[1]
    around = _surroundings(text, inner)
    wrapped = [(one.before, one.after) for one in around if one.before and one.after]
    if wrapped:
        before, after = min(wrapped)
        return ReasoningMarkers(thinks=True, start=text[slice(*before)], end=text[slice(*after)])
    end = _end_after(text, around)
    return ReasoningMarkers(thinks=True, end=end) if end else ReasoningMarkers()


def _end_after(text: bytes, around: list[_Around]) -> bytes:
    """The marker after the first occurrence, without the space before it."""
    after = around[0].after
    return text[slice(*after)].lstrip(SPACE) if after else b""


def _in_generation_prompt(render: Render, markers: ReasoningMarkers) -> ReasoningMarkers:
    """What switching enable_thinking on changes at the end of the prompt."""
    pair = _pair(
        render,
        _conversation(USER_TURN, thinking=False, generation_prompt=True),
        _conversation(USER_TURN, thinking=True, generation_prompt=True),
    )
    if pair is None:
        return markers
    off, on = pair
    diff = difference(off, on)
    left, right = diff.left.strip(SPACE), diff.right.strip(SPACE)
    if not left and diff.right:
        if right and on.endswith(right) and not markers.start:
            markers = replace(markers, thinks=True, start=diff.right)
    elif not right and diff.left:
        if left and off.endswith(left) and not markers.end:
            last = _solid(segments(off))[-2:]
            start = markers.start
            if len(last) == 2 and last[1].text == left and last[0].is_marker:
                start = last[0].text
            markers = ReasoningMarkers(thinks=True, start=start, end=diff.left)
    elif left and right:
        markers = _after_anchor(off, on, markers)
    if not markers.thinks and not markers.start and markers.end:
        markers = replace(markers, thinks=True)
    return markers


def _after_anchor(off: bytes, on: bytes, markers: ReasoningMarkers) -> ReasoningMarkers:
    """Both texts differ elsewhere too: one may still be the other with two markers at its end."""
    for base, extended in ((on, off), (off, on)):
        anchor = base[-ANCHOR:]
        at = extended.rfind(anchor)
        if at < 0:
            continue
        extra = _solid(segments(extended[at + len(anchor) :].strip(SPACE)))
        if len(extra) == 2 and extra[0].is_marker and extra[1].is_marker:
            return ReasoningMarkers(thinks=True, start=markers.start or extra[0].text, end=markers.end or extra[1].text)
    return markers


def _beside_calls(render: Render, markers: ReasoningMarkers) -> ReasoningMarkers:
    """Templates that show reasoning only next to tool calls."""
    arguments = {FIRST_ARGUMENT: "VVVV", SECOND_ARGUMENT: "XXXX"}
    pair = _pair(
        render,
        _conversation(USER_TURN, _message(ANSWER, reasoning_content=REASONING), tools=True),
        _conversation(
            USER_TURN,
            _message(None, reasoning_content=REASONING, tool_calls=[_call(FIRST_TOOL, arguments)]),
            tools=True,
        ),
    )
    inner = REASONING.encode()
    if pair is None or inner in pair[0] or inner not in pair[1]:
        return markers
    text = pair[1]
    around = _surroundings(text, inner)
    wrapped = [(one.before, one.after) for one in around if one.before and one.after]
    if wrapped:
        before, after = min(wrapped)
        return ReasoningMarkers(thinks=True, start=text[slice(*before)], end=text[slice(*after)].lstrip(SPACE))
    return replace(markers, thinks=True, end=_end_after(text, around))


def _call_format(render: Render, markers: ReasoningMarkers, limits: Limits) -> tuple[bool, str | None]:
    """Whether the server finds tool calls in the text at all, and the fault if it then takes for JSON what is none."""
    pair = _pair(
        render,
        _conversation(USER_TURN, _message(ANSWER), tools=True),
        _conversation(USER_TURN, _message("", tool_calls=[_call(FIRST_TOOL, BOTH_ARGUMENTS)]), tools=True),
    )
    calls = difference(*pair).right if pair is not None else b""
    if not calls:
        return False, None
    if _JSON_NAME.search(calls) is None:
        return True, None
    for marker in (markers.start, markers.end):
        before, found, after = calls.partition(marker) if marker else (calls, b"", b"")
        calls = before + after if found else calls
    start, end = calls.find(b"{"), calls.rfind(b"}")
    if start < 0:
        return True, "it writes a tool call like JSON, but without an opening brace"
    try:
        server_json.parse(calls[start : end + 1].decode(), limits)
    except ValueError:
        return True, "it writes a tool call like JSON, but from the first brace to the last it is none"
    return True, None


_JSON_NAME = re.compile(rb'[{:][ \t\n\v\f\r]*"' + FIRST_TOOL.encode() + b'"')


_LAGUNA = "laguna_glm_thinking"


def _corrected(source: str, markers: ReasoningMarkers) -> ReasoningMarkers:
    """Templates that the server knows to be judged wrongly by the above."""
    if (
        "content.split('</think>')" in source
        and "reasoning_content" not in source
        and "<SPECIAL_12>" not in source
        and not markers.thinks
    ):
        markers = THINK_TAGS
    if "Write your thoughts between <think></think> and write your response between <response></response>" in source:
        markers = THINK_TAGS
    if _is_nemotron_v2(source):
        markers = replace(THINK_TAGS, start=b"<think>\n")
    if _LAGUNA in source:
        markers = replace(markers, start=markers.start.strip(SPACE), end=markers.end.strip(SPACE))
    return markers


def _is_nemotron_v2(source: str) -> bool:
    return all(text in source for text in ("<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>", "<TOOL_RESPONSE>"))


THINK_TAGS = ReasoningMarkers(thinks=True, start=b"<think>", end=b"</think>")
