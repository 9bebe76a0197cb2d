"""Reasoning: its delimiters, when it is kept, what switches that, and empty blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from probes.chapters.shape.requests import answer, next_question, question, two_tools
from probes.chats.canaries import ANSWER, REASONING, USER, fields_of, result
from probes.chats.messages import REASONING_FIELDS
from probes.rendering.texts import between, common_start
from probes.report import GenerationPrompt, GenerationVariant, ReasoningShape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from probes.chapters.shape.requests import Requests
    from probes.chapters.shape.turns import Frame
    from probes.chats.messages import Message

FIELD = re.compile(r"(?:\.|\[\s*|\bget\(\s*|\()['\"]?(\w*(?:reason|think|thought)\w*)['\"]?")


@dataclass(frozen=True, slots=True)
class Reasoning:
    """`open` and `close` as they stand around the reasoning of an answer. `written`: a render showed them there."""

    open: str
    close: str
    shape: ReasoningShape
    written: bool = True

    def strip_empty(self, text: str) -> str:
        """`text` without an empty block of reasoning at its start, or a lone end of one."""
        opening, closing = re.escape(self.open.strip()), re.escape(self.close.strip())
        if not closing:
            return text
        start = rf"(?:{opening}\s*)?" if opening else ""
        return re.sub(rf"\A\s*{start}{closing}\s*", "", text)


def reasoning(ask: Requests, frame: Frame) -> Reasoning | None:
    """Reasoning in a field of its own, else inside the text of an answer, else only in the generation prompt."""
    return _in_field(ask, frame) or _inline(ask, frame) or _in_prompt(ask, frame)


def field_names(source: str) -> tuple[str, ...]:
    """Names under which a message may hold its reasoning: the usual ones and what the source reads."""
    if not re.search(r"reason|think|thought|plan", source):
        return ()
    read = [name for name in FIELD.findall(source) if name not in REASONING_FIELDS]
    return tuple(name for name in (*REASONING_FIELDS, *dict.fromkeys(read[:6])) if name in source)


def _in_field(ask: Requests, frame: Frame) -> Reasoning | None:
    """Reasoning in a field of its own, or in a part of the content; where it is only printed when a switch that
    changes the generation prompt is set, with that switch."""
    source = ask.renders.source
    names = field_names(source)
    if not names:
        return None
    together = fields_of(names, REASONING)
    alone = [{name: text} for name, text in together.items() if len(names) > 1]
    for fields in (together, *alone):
        found = _printed(ask, frame, fields, {})
        if found is not None:
            return found
    for variables in [*(kwargs for kwargs, _ in frame.variants), *ask.settings]:
        text = ask.text([question(), answer(**together)], variables=variables)
        if text is not None and REASONING in text:
            return _printed(ask, frame, together, variables)
    if re.search(r"\[?['\"]?type['\"]?\]?\s*==\s*['\"]thinking['\"]", source):
        parts = [{"type": "thinking", "thinking": REASONING}, {"type": "text", "text": ANSWER}]
        return _printed(ask, frame, {"content": parts}, {})
    return None


def _printed(ask: Requests, frame: Frame, fields: Mapping[str, Any], variables: Mapping[str, Any]) -> Reasoning | None:
    thought = answer(**fields)
    last = ask.text([question(), thought], variables=variables)
    earlier = ask.text([question(), thought, next_question()], variables=variables)
    called = {**ask.best_form.calling(), **fields}
    calling = ask.text([question(), called, result()], two_tools(), variables=variables, form=ask.best_form)
    for value in fields.values():
        text = value if isinstance(value, str) else REASONING
        shown = next((t for t in (last, earlier) if t is not None and text in t and ANSWER in t), None)
        in_call = calling is not None and text in calling
        if shown is None and not in_call:
            continue
        if shown is not None and shown.find(ANSWER) > shown.find(text):
            opening = _opening(frame, between(shown, USER, text))
            close = _closing(frame, between(shown, text, ANSWER) or "")
        elif shown is not None:
            opening = (between(shown, ANSWER, text) or "").lstrip()
            close = shown.rpartition(text)[2].partition(frame.assistant_close.strip() or frame.end or "\n")[0].rstrip()
        else:
            assert calling is not None
            opening, close = _around_call(frame, calling, text)
        keeps = [t is not None and text in t for t in (last, earlier, calling)]
        switches = _switches(ask, thought, text, kept=keeps[1] and not variables)
        shape = ReasoningShape(
            open=opening,
            close=close,
            history=_policy(*keeps) if not variables else "dropped",
            switches=list(dict.fromkeys([*variables, *switches])),
            empty_block_written=_empty_block(frame, opening, close),
        )
        return Reasoning(opening, close, shape)
    return None


def _around_call(frame: Frame, text: str, thought: str) -> tuple[str, str]:
    before = between(text, USER, thought)
    rest = text.partition(thought)[2]
    marker = re.match(r"\s*(?:<[^<>]+>|\[/?[A-Z_ ]+\])\s*", rest)
    return _opening(frame, before), marker.group().rstrip(" ") if marker is not None else ""


def _opening(frame: Frame, before: str | None) -> str:
    """What stands before the reasoning, without the end of the user's turn and the header of the assistant's."""
    text = (before or "").removeprefix(frame.user_close)
    for header in sorted({frame.header, frame.assistant_open}, key=len, reverse=True):
        if header.strip() and text.startswith(header):
            return text[len(header) :].lstrip()
    common = common_start(text, frame.assistant_open)
    return text[len(common) :].lstrip() or text.lstrip()


def _closing(frame: Frame, after: str) -> str:
    """What stands between reasoning and answer, without the header of a turn that the answer has for itself."""
    prompted = (text.removeprefix(frame.header) for _, text in frame.variants)
    for header in (frame.assistant_open, frame.assistant_open.removeprefix(frame.header), *prompted):
        if header.strip() and after.endswith(header) and after[: len(after) - len(header)].strip():
            return after[: len(after) - len(header)]
    return after


def _policy(last: bool, earlier: bool, calling: bool) -> str:
    if earlier:
        return "kept"
    if calling:
        return "kept_after_last_user" if last else "kept_in_tool_turn"
    return "kept_in_last_answer" if last else "dropped"


def _switches(ask: Requests, thought: Message, text: str, *, kept: bool) -> list[str]:
    """Variables that turn the policy for earlier turns round."""
    found: list[str] = []
    for variables in ask.settings:
        other = ask.text([question(), thought, next_question()], variables=variables)
        if other is not None and (text in other) != kept:
            found += variables
    return list(dict.fromkeys(found))


def _empty_block(frame: Frame, opening: str, close: str) -> str | None:
    """Which answers without reasoning get a block of it all the same."""
    if _is_block(frame.assistant_open, frame.header, opening, close):
        return "every assistant turn without reasoning"
    if _is_block(frame.last_answer_open or "", frame.header, opening, close):
        return "last assistant turn without reasoning"
    return None


def _is_block(text: str, header: str, opening: str, close: str) -> bool:
    rest = text.removeprefix(header) if text.startswith(header) else text
    ends = close.strip()
    return bool(ends) and ends in rest and not rest.replace(opening.strip() or ends, "").replace(ends, "").strip()


def _inline(ask: Requests, frame: Frame) -> Reasoning | None:
    """A template that reads no field but takes an answer apart at a closing tag that its source names."""
    for close in cut_marks(ask.renders.source):
        opening = _pair(close)
        text = f"{opening}\n{REASONING}\n{close}\n\n{ANSWER}"
        thought: Message = {"role": "assistant", "content": text}
        last = ask.text([question(), thought])
        earlier = ask.text([question(), thought, next_question()])
        if earlier is None or ANSWER not in earlier:
            continue
        kept = REASONING in earlier
        in_last = last is not None and REASONING in last
        if kept and f"{opening}\n{REASONING}\n{close}" in earlier:
            # perhaps only the very last answer keeps what it thought
            later = ask.text([question(), thought, next_question(), answer(), next_question()])
            if later is None or REASONING in later or ANSWER not in later:
                continue
            kept, in_last = False, True
        shown = earlier if kept else last if in_last else None
        opening = _as_prompted(frame, opening)
        if shown is not None and text not in shown:
            opening = _opening(frame, between(shown, USER, REASONING))
            close = _closing(frame, between(shown, REASONING, ANSWER) or "")
        called = {**ask.best_form.calling(), "content": text}
        calling = ask.text([question(), called, result()], two_tools(), form=ask.best_form)
        in_call = calling is not None and REASONING in calling
        shape = ReasoningShape(
            open=opening,
            close=close,
            history=_policy(in_last, kept, in_call),
            switches=_switches(ask, thought, REASONING, kept=kept),
            empty_block_written=_empty_block(frame, opening, close),
        )
        return Reasoning(opening, close, shape, written=shown is not None and text not in shown)
    return None


def _as_prompted(frame: Frame, opening: str) -> str:
    """The opening tag with the space that a generation prompt writes after it."""
    for prompt in (frame.prompt, *(text for _, text in frame.variants)):
        if prompt is not None and prompt.rstrip().endswith(opening):
            return prompt[prompt.rfind(opening) :]
    return opening


def cut_marks(source: str) -> list[str]:
    """Closing tags at which the source splits a text."""
    marks = re.findall(r"\bsplit\(\s*(['\"])([^'\"\n]{3,40})\1", source)
    return list(dict.fromkeys(mark for _, mark in marks if _pair(mark) != mark and "think" in mark.lower()))[:2]


def _pair(close: str) -> str:
    """The opening tag that a closing one belongs to; the text itself where it is no closing tag."""
    for mark, start in (("</", "<"), ("[/", "["), ("<|/", "<|"), ("END", "START"), ("end", "begin")):
        if mark in close:
            return close.replace(mark, start, 1)
    return close


def _in_prompt(ask: Requests, frame: Frame) -> Reasoning | None:
    """A template that only begins the reasoning, or writes an empty block of it, in its generation prompt."""
    for prompt in (frame.prompt, *(text for _, text in frame.variants)):
        header = frame.header.strip()
        if not prompt or not prompt.lstrip().startswith(header):
            continue
        extra = prompt.lstrip()[len(header) :]
        opening = re.match(r"\s*(<[^<>\s/|][^<>\s]*>)", extra)
        if opening is None or "think" not in opening.group().lower():
            continue
        close = opening.group(1).replace("<", "</", 1)
        history = _history_of_prompted(ask, opening.group(1), close)
        tag = _as_prompted(frame, opening.group(1))
        shape = ReasoningShape(open=tag, close=close, history=history, switches=[], empty_block_written=None)
        return Reasoning(tag, close, shape, written=False)
    return None


def _history_of_prompted(ask: Requests, opening: str, close: str) -> str:
    """What becomes of a block inside the text of an earlier answer."""
    thought: Message = {"role": "assistant", "content": f"{opening}\n{REASONING}\n{close}\n\n{ANSWER}"}
    earlier = ask.text([question(), thought, next_question()])
    if earlier is None:
        return "unknown"
    return "kept" if REASONING in earlier else "dropped"


def generation_prompt(ask: Requests, frame: Frame, found: Reasoning | None) -> GenerationPrompt | None:
    if frame.prompt is None:
        return None
    return GenerationPrompt(
        text=frame.prompt,
        equals_suffix_difference=frame.prompt_is_suffix,
        starts_in_reasoning=starts_in_reasoning(frame.prompt, found),
        variants=[
            GenerationVariant(kwargs=kwargs, text=text, starts_in_reasoning=starts_in_reasoning(text, found))
            for kwargs, text in frame.variants
        ],
    )


def starts_in_reasoning(prompt: str, found: Reasoning | None) -> bool:
    """Whether a block of reasoning is open at the end of the prompt."""
    if found is None:
        return False
    opening, close = found.open.strip(), found.close.strip()
    if not opening or opening not in prompt:
        return False
    return not close or close not in prompt[prompt.rfind(opening) + len(opening) :]
