"""The syntax of answers from what the template writes of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jinjarun.responses import ResponseSyntax
from jinjarun.responses.parts import Calls, Channels, Content, Reasoning
from probes.chapters.response.answers import Answers
from probes.chapters.response.calls import calls_of
from probes.chapters.shape.reasoning import Reasoning as Thinking
from probes.chapters.shape.reasoning import reasoning, starts_in_reasoning
from probes.chapters.shape.requests import UNKNOWN_BOS, UNKNOWN_EOS
from probes.chapters.shape.turns import frame
from probes.chats.canaries import ANSWER
from probes.rendering.markers import MARKER
from probes.rendering.texts import common_start
from probes.report import ReasoningShape

if TYPE_CHECKING:
    from probes.chapters.shape.requests import Requests
    from probes.chapters.shape.turns import Frame

EMPTY_BLOCK = re.compile(r"\A\s*<([\w:]+)>\s*</\1>\s*")
PROMPTED = re.compile(r"\s*(<[^<>/|]*think[^<>/|]*>)\s*")
"""What a prompt opens reasoning with, where no render shows any."""
CHANNEL = re.compile(r"(<\|?channel\|?>)\s*(\w+)[^<>]*(<\|?message\|?>)\Z")
"""The end of a header with a channel: the markers around the name, and the name."""
RECIPIENT = re.compile(r"(\w+=(?:\w+\.)?)\Z")


def derived(ask: Requests) -> ResponseSyntax:
    """The syntax of what `ask`'s template writes."""
    found = frame(ask)
    thinking = reasoning(ask, found)
    answers = Answers(ask)
    plain = answers.plain()
    if plain is None or ANSWER not in plain.text:
        return ResponseSyntax(generation_prompt=found.prompt or "", header=found.header)
    before, after = plain.text.split(ANSWER, 1)
    if found.header.strip() and after.rstrip().endswith(found.header.strip()):
        after = after[: after.rindex(found.header.strip())]
    opening = _without_reasoning(before, thinking)
    prompted = found.prompt is not None and starts_in_reasoning(found.prompt, thinking)
    closes = thinking is not None and thinking.close.strip() in before
    if thinking is None and (opened := PROMPTED.fullmatch(plain.prompted)) is not None:
        thinking = _prompted(opened.group(1))
    region = _region(thinking, opening, unclosed=prompted and not plain.prompted and not closes)
    called = calls_of(answers, thinking, opening, after)
    next_turns: list[str] = []
    if after and not after.strip():
        turns = (found.user_open.strip(), found.header.strip())
        next_turns = [after + text for text in turns if text and text not in before]
    before_calls = called.before_calls if called is not None else ""
    close, ends = _ends(after, before_calls.partition(found.end or "\0")[0], wrapped=bool(opening.strip()))
    ends = [*ends, *next_turns, *(called.ends if called is not None else ())]
    channels = _channels(found, region, opening, called.calls if called is not None else None, ends)
    return ResponseSyntax(
        generation_prompt=found.prompt or "",
        header=found.header,
        reasoning=region,
        content=Content(open=opening, close=close, before_calls=before_calls),
        calls=called.calls if called is not None else None,
        channels=channels,
        ends=tuple(dict.fromkeys(known(end) for end in ends if known(end))),
    )


def _prompted(tag: str) -> Thinking:
    """Reasoning of which only the prompt shows a tag."""
    shape = ReasoningShape(open=tag, close="", history="unknown", switches=[], empty_block_written=None)
    return Thinking(tag, tag.replace("<", "</", 1), shape, written=False)


def known(text: str) -> str:
    """`text` without the special tokens whose text nobody gave, and without the space at its end."""
    return text.replace(UNKNOWN_EOS, "").replace(UNKNOWN_BOS, "").rstrip()


def _without_reasoning(before: str, thinking: Thinking | None) -> str:
    """What stands before an answer, without an empty block of reasoning."""
    if thinking is not None:
        rest = thinking.strip_empty(before)
        if rest != before:
            return rest
        opening = thinking.open.strip()
        if opening and before.strip() == opening:
            return ""
    return EMPTY_BLOCK.sub("", before)


def _region(thinking: Thinking | None, opening: str, *, unclosed: bool) -> Reasoning | None:
    if thinking is None or not thinking.close.strip():
        return None
    close = thinking.close if thinking.written else f"\n{thinking.close.strip()}\n\n"
    if opening.strip() and close.endswith(opening):
        close = close[: len(close) - len(opening)]
    return Reasoning(open=thinking.open, close=close, unclosed="content" if unclosed else "reasoning")


def _ends(after: str, before_calls: str, *, wrapped: bool) -> tuple[str, list[str]]:
    """What closes the content of an answer, and what ends the answer then."""
    shared = common_start(after, before_calls) if before_calls.strip() else ""
    close = shared if shared.strip() else after[: len(after) - len(after.lstrip())] if after.strip() else ""
    rest = after[len(close) :]
    text = rest.strip()
    if close and not close.strip() and not MARKER.match(text):
        return "", [after.rstrip()] if known(after) else []
    markers = [marker.group() for marker in MARKER.finditer(text)]
    if len(markers) > 1 and text.startswith(markers[0]) and text.endswith(markers[-1]):
        head = text[: len(text) - len(markers[-1])].rstrip()
        if wrapped and not close.strip():
            return close + head, [markers[-1]]
        return close, [head, markers[-1]]
    return close, [text] if text else []


def _channels(
    found: Frame, region: Reasoning | None, opening: str, calls: Calls | None, ends: list[str]
) -> Channels | None:
    """Messages with headers: where the answer's own text follows a header with the name of a channel."""
    pieces = calls.call.pieces if calls is not None and calls.call.style == "pieces" else ()
    written = (found.header + opening, found.assistant_open, *(piece.text for piece in pieces))
    header = next((match for text in written if (match := CHANNEL.search(text)) is not None), None)
    if header is None or header.group(1) == header.group(3) or not found.header.strip():
        return None
    thought = CHANNEL.search(found.header + region.open) if region is not None else None
    recipient = None
    if calls is not None and (first := RECIPIENT.search(calls.section.open + calls.open)) is not None:
        recipient = first.group(1)
    return Channels(
        start=found.header.partition(header.group(1))[0].strip(),
        channel=header.group(1),
        message=header.group(3),
        ends=tuple(
            dict.fromkeys(
                [
                    *(marker for end in ends for marker in MARKER.findall(end)),
                    *(MARKER.findall(region.close)[:1] if region is not None else []),
                    *(MARKER.findall(calls.close + calls.section.close)[:1] if calls is not None else []),
                ]
            )
        ),
        reasoning=(thought.group(2),) if thought is not None else ("analysis",),
        recipient=recipient or "to=functions.",
    )
