"""The syntax of answers from what the template writes of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jinjarun.responses import ResponseSyntax
from jinjarun.responses.parts import Calls, Channels, Content, Region
from probes.chapters.response.answers import Answers
from probes.chapters.response.calls import calls_of
from probes.chapters.shape.reasoning import Reasoning, reasoning
from probes.chapters.shape.requests import UNKNOWN_BOS, UNKNOWN_EOS
from probes.chapters.shape.turns import frame
from probes.chats.canaries import ANSWER
from probes.rendering.markers import MARKER
from probes.rendering.texts import common_start

if TYPE_CHECKING:
    from probes.chapters.shape.requests import Requests
    from probes.chapters.shape.turns import Frame

EMPTY_BLOCK = re.compile(r"\A\s*<([\w:]+)>\s*</\1>\s*")
CHANNEL = re.compile(r"(<\|?channel\|?>)\s*(\w+)\s*(<\|?message\|?>)\Z")
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
    opening = _without_reasoning(before, thinking)
    region = _region(thinking, opening)
    called = calls_of(answers, thinking, opening, after)
    close, ends = _ends(after, called.before_calls if called is not None else "")
    ends = [*ends, *(called.ends if called is not None else ())]
    channels = _channels(found, region, opening, called.calls if called is not None else None, ends)
    return ResponseSyntax(
        generation_prompt=found.prompt or "",
        header=found.header,
        reasoning=region,
        content=Content(open=opening, close=close, before_calls=called.before_calls if called is not None else ""),
        calls=called.calls if called is not None else None,
        channels=channels,
        ends=tuple(dict.fromkeys(known(end) for end in ends if known(end))),
    )


def known(text: str) -> str:
    """`text` without the special tokens whose text nobody gave, and without the space at its end."""
    return text.replace(UNKNOWN_EOS, "").replace(UNKNOWN_BOS, "").rstrip()


def _without_reasoning(before: str, thinking: Reasoning | None) -> str:
    """What stands before an answer, without an empty block of reasoning."""
    if thinking is not None:
        rest = thinking.strip_empty(before)
        if rest != before:
            return rest
        opening = thinking.open.strip()
        if opening and before.strip() == opening:
            return ""
    return EMPTY_BLOCK.sub("", before)


def _region(thinking: Reasoning | None, opening: str) -> Region | None:
    if thinking is None or not thinking.close.strip():
        return None
    close = thinking.close
    if opening.strip() and close.endswith(opening):
        close = close[: len(close) - len(opening)]
    return Region(open=thinking.open, close=close)


def _ends(after: str, before_calls: str) -> tuple[str, list[str]]:
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
        return close, [head, markers[-1]]
    return close, [text] if text else []


def _channels(
    found: Frame, region: Region | None, opening: str, calls: Calls | None, ends: list[str]
) -> Channels | None:
    """Messages with headers: where the answer's own text follows a header with the name of a channel."""
    header = CHANNEL.search(opening)
    if header is None or header.group(1) == header.group(3):
        return None
    thought = CHANNEL.search(region.open) if region is not None else None
    recipient = None
    if calls is not None and (first := RECIPIENT.search(calls.section.open + calls.open)) is not None:
        recipient = first.group(1)
    return Channels(
        start=found.header.strip() or "<|start|>assistant",
        channel=header.group(1),
        message=header.group(3),
        ends=tuple(
            dict.fromkeys(
                [
                    *(marker for end in ends for marker in MARKER.findall(end)),
                    *(MARKER.findall(region.close)[:1] if region is not None else []),
                ]
            )
        ),
        reasoning=(thought.group(2),) if thought is not None else ("analysis",),
        recipient=recipient or "to=functions.",
    )
