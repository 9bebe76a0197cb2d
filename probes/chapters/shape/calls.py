"""Tool calls and results: what stands around them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from probes.chapters.shape.requests import answer, call_arguments, next_question, question, two_tools
from probes.chapters.shape.turns import trimmed
from probes.chapters.shape.written import Written, find_calls, keys_of
from probes.chats.canaries import (
    ANSWER,
    ID,
    RESULT,
    RESULT_NAME,
    SECOND_ID,
    SECOND_RESULT,
    SECOND_RESULT_NAME,
    SECOND_TOOL,
    TEXT,
    TOOL,
    USER,
    result,
    second_result,
)
from probes.chats.messages import function_of
from probes.rendering.texts import between, common_end, common_start
from probes.report import ToolCallShape, Turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from probes.chapters.shape.reasoning import Reasoning
    from probes.chapters.shape.requests import Requests
    from probes.chapters.shape.turns import Frame
    from probes.chats.canaries import Form
    from probes.chats.messages import Message


@dataclass(frozen=True, slots=True)
class Calls:
    """`ended`: whether a message that calls ends as an answer does. `text` is a whole conversation with calls."""

    shape: ToolCallShape
    tool_turn: Turn | None
    ended: bool | None
    text: str


def calls(ask: Requests, frame: Frame, thinking: Reasoning | None) -> Calls | None:
    """Two calls in a message, or one where the template takes no more, in the form in which it takes calls."""
    if ask.call_form is None:
        return None
    incomplete: Calls | None = None
    for count in (2, 1):
        caller = _Caller(ask, frame, thinking, ask.call_form, count)
        whole = caller.text(results=True, more=[answer(), next_question()])
        text = whole if whole is not None else caller.text()
        if text is None or (found := find_calls(text, count)) is None:
            continue
        written = text[found.start : found.end]
        if found.style != "name_only" and (TOOL in written or ID in written):
            return caller.described(text, found)
        incomplete = incomplete or caller.described(text, found)
    return incomplete


def calling(form: Form, count: int) -> Message:
    """The message that calls, with two arguments in its first call."""
    message = form.calling(calls=count)
    for made, arguments in zip(message["tool_calls"], call_arguments(), strict=False):
        function_of(made)["arguments"] = arguments if form.arguments == "object" else json.dumps(arguments)
    return message


@dataclass(frozen=True, slots=True)
class _Caller:
    """One form and number of calls, asked of one template."""

    ask: Requests
    frame: Frame
    thinking: Reasoning | None
    form: Form
    count: int

    def text(
        self, *, results: bool = False, more: Sequence[Message] = (), form: Form | None = None, count: int | None = None
    ) -> str | None:
        form, count = form or self.form, count or self.count
        replies = [result(), second_result()][:count] if results else []
        return self.ask.text([question(), calling(form, count), *replies, *more], two_tools(), form=form)

    def described(self, text: str, found: Written) -> Calls:
        """What stands around the calls found in `text`, a whole conversation where one renders."""
        last = self.text()
        opening = self._opening(text, found)
        at_end = find_calls(last, self.count) if last is not None else None
        tail = last[at_end.end :] if last is not None and at_end is not None else None
        result_at = text.find(RESULT, found.end)
        to_result = text[found.end : result_at] if result_at >= 0 else None
        if self._is_unfinished(tail, to_result):
            tail = self._tail_before_result(to_result, tail)
        close, ended = self._close(found, opening, tail)
        gap = named(found.gap or "")
        if not opening and not close and gap and found.style == "name_then_json" and text.endswith(gap, 0, found.start):
            opening = gap  # the generation prompt begins with it too, but each call has its own
        name_key, arguments_key = keys_of(found.item)
        shape = ToolCallShape(
            style="json" if found.style == "json_in_tags" and not opening and not close else found.style,
            open=opening,
            between=_apart(found, opening, close) if found.gap is not None else None,
            close=close,
            name_key=name_key,
            arguments_key=arguments_key,
            arguments_encoding=found.encoding,
            id_written=ID in text[max(0, found.start - len(opening)) : found.end + len(close)],
        )
        ending = self.frame.assistant_close.strip()
        if ended is False and tail is not None and to_result is not None and not (ending and ending in tail):
            tail = self._without_next_turn(text, to_result, tail, close)
        turn = self._tool_turn(text, to_result, tail) if to_result is not None else None
        return Calls(shape, turn, ended, text)

    def _opening(self, text: str, found: Written) -> str:
        """What stands between the header of the turn and the first call."""
        before = named(self._in_turn(text[text.rfind(USER, 0, found.start) + len(USER) : found.start]))
        if self.form.beside == "text":
            return before.rpartition(TEXT)[2].lstrip()
        repeated = common_end(before, named(found.gap)) if found.gap is not None else ""
        if before == repeated or len(before) <= 1:
            return before
        # What stands before a call and also before one that text precedes is of the call itself.
        with_text = self.text(form=self.form.but(beside="text"))
        again = find_calls(with_text, self.count) if with_text is not None else None
        if with_text is None or again is None or TEXT not in with_text[: again.start]:
            return before
        after_text = with_text[with_text.rfind(TEXT, 0, again.start) + len(TEXT) : again.start]
        shared = common_end(before, named(after_text))
        return shared.lstrip() or before

    def _in_turn(self, before: str) -> str:
        """`before` without the end of the user's turn, the header of this one and an empty block of reasoning."""
        frame = self.frame
        before = before.removeprefix(frame.user_close)
        headers = sorted({frame.header, frame.assistant_open, frame.last_answer_open or ""}, key=len, reverse=True)
        header = next((h for h in headers if h.strip() and before.startswith(h)), None)
        before = before[len(header if header is not None else common_start(before, frame.assistant_open)) :]
        if frame.assistant_close.strip() and before.startswith(frame.assistant_close):
            # a turn without content of its own comes first
            before = before.removeprefix(frame.assistant_close).removeprefix(frame.header)
        elif header is not None:
            # what closes the text of an answer closes the empty text here too
            before = before[len(common_start(before, frame.assistant_close)) :]
        if self.thinking is not None:
            before = self.thinking.strip_empty(before)
        return before.lstrip()

    def _tail_before_result(self, to_result: str | None, tail: str | None) -> str | None:
        """The end of the calls where the last message ends otherwise than one in the middle: up to the turn's end."""
        end, close = self.frame.end, self.frame.assistant_close
        if to_result is None:
            return tail
        if end is not None and end in to_result:
            whole = close if end in close and close in to_result else end
            return to_result[: to_result.find(whole) + len(whole)]
        shared = common_start(tail, to_result) if tail else to_result
        return shared.partition(self.frame.opener)[0] if self.frame.opener is not None else shared

    def _is_unfinished(self, tail: str | None, to_result: str | None) -> bool:
        """Whether a last message that calls ends otherwise than one that results follow."""
        if not tail or not tail.strip():
            return True
        end = self.frame.end
        return to_result is not None and (
            not to_result.startswith(tail) or (end is not None and end in to_result and end not in tail)
        )

    def _without_next_turn(self, text: str, to_result: str, tail: str, close: str) -> str:
        """`tail` without the opening of a result that some templates write right after a call."""
        apart = between(text, RESULT, SECOND_RESULT) if self.count > 1 else None
        if apart is None:
            return tail
        opening = common_end(named(to_result[len(close) :]), named(apart))
        size = len(named(to_result)) - len(opening)
        next_turn = tail[size:].strip()
        if not next_turn or next_turn in (between(text, SECOND_RESULT, ANSWER) or ""):
            return tail  # it ends turns, results too
        return tail[:size]

    def _close(self, found: Written, opening: str, tail: str | None) -> tuple[str, bool | None]:
        """What closes the calls, and whether the turn then ends as after an answer."""
        end, ending = self.frame.end, self.frame.assistant_close
        if tail is None:
            return "", None
        if end is not None and end in tail:
            user_close = self.frame.user_close
            closes = user_close if tail.endswith(user_close) and ending.endswith(user_close) else ""
            closes = closes if end in closes else common_end(tail, ending)
            size = len(tail) - len(closes) if end in closes and tail.count(end) == 1 else tail.find(end)
            return tail[:size].rstrip(), True
        ended = False if end is not None else None
        if ending and tail.endswith(ending):
            return tail[: len(tail) - len(ending)].rstrip(), ended
        if found.gap is not None and opening and named(found.gap).endswith(opening):
            shared = common_start(found.gap, tail)
            tail = shared if shared.strip() else tail
        return (tail.rstrip() if opening.strip() else ""), ended

    def _tool_turn(self, text: str, to_result: str, tail: str | None) -> Turn:
        opening = to_result[len(tail) :] if tail is not None and to_result.startswith(tail) else to_result
        apart = between(text, RESULT, SECOND_RESULT) if self.count > 1 else None
        last = SECOND_RESULT if apart is not None else RESULT
        rest = between(text, last, ANSWER) or ""
        headers = (self.frame.assistant_open, self.frame.header)
        header = next((h for h in headers if h.strip() and rest.endswith(h)), None)
        if header is not None:
            close = rest[: len(rest) - len(header)]
        else:
            alone = self.text(results=True)
            close = alone.rpartition(last)[2] if alone is not None and last in alone else ""
        return Turn(
            open=named(opening),
            close=named(close),
            trims_content=self._trims_result(),
            between=named(apart) if apart is not None else None,
            rendered_as=_rendered_as(self.frame, opening),
        )

    def _trims_result(self) -> bool | None:
        padded = f"  {RESULT} \n"
        text = self.text(more=[{**result(), "content": padded}], count=1)
        if text is not None and json.dumps(padded) in text:
            return False
        return trimmed(text, padded)


def _apart(found: Written, opening: str, close: str) -> str:
    """What stands between two calls, without the delimiters where each call has both of them."""
    gap = named(found.gap or "")
    if found.style in ("json_list", "python_calls") or not gap.endswith(opening):
        return gap
    inner = gap[: len(gap) - len(opening)]
    return inner[len(close) :] if inner.startswith(close) else gap


def named(text: str) -> str:
    """`text` with `{name}` and `{id}` for the names and ids of the calls and results that it quotes."""
    for name in (TOOL, SECOND_TOOL, RESULT_NAME, SECOND_RESULT_NAME):
        text = text.replace(name, "{name}")
    return text.replace(ID, "{id}").replace(SECOND_ID, "{id}")


def _rendered_as(frame: Frame, opening: str) -> str | None:
    """The role whose turn a result stands in, where the format names roles and it is not `tool`."""
    if frame.user_open.strip() and opening.startswith(frame.user_open):
        return "user"
    start, word, end = frame.user_open.partition("user")
    if not word or not start.strip() or not opening.startswith(start):
        return None
    name = re.match(r"[a-zA-Z_]{1,30}", opening[len(start) :])
    if name is None or not opening[len(start) + name.end() :].startswith(end[:1]):
        return None
    return name.group() if name.group() != "tool" and named(opening).startswith(opening[: len(start) + 1]) else None
