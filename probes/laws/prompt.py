"""The text of a request, and where each message's text stands in it.

Where a text stands is read from the spans of a prompt: a text whose origin the template lost (by writing it as JSON, by
formatting it into another) is looked for by its characters.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinjarun.template import Span
    from probes.chats.messages import Chat, Message


@dataclass(frozen=True, slots=True)
class Place:
    """Where the text of a message stands in a prompt. `exact`: unaltered; `own`: found by its origin, not by its
    characters; `count`: how often."""

    index: int
    start: int
    end: int
    written: str
    own: bool
    count: int = 1


GAP = "\0"
"""Stands for a text of the input in what the template wrote."""


class Prompt:
    """The text of a request, and where each message's text stands in it.

    Spans double the cost of a render, so that a prompt made without them makes them when a law first asks for places:
    most laws see from two texts that they hold. `find_spans` makes them.
    """

    def __init__(
        self, chat: Chat, text: str, find_spans: Callable[[Chat], tuple[Span, ...]], spans: tuple[Span, ...] = ()
    ) -> None:
        self.chat = chat
        self.text = text
        self._find_spans = find_spans
        if spans:
            self.spans = spans

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """Empty where the request hits a limit only with spans."""
        return self._find_spans(self.chat)

    @cached_property
    def places(self) -> dict[int, Place]:
        return _places(self.chat["messages"], self.text, self.spans)

    def only(self, text: str) -> int:
        """Where this text stands if it stands there once; else -1."""
        at = self.text.find(text)
        return at if at >= 0 and self.text.find(text, at + 1) < 0 else -1

    def place(self, index: int) -> Place | None:
        """Where the text of a message stands: by its characters, if they stand there once and nothing of them could be
        trimmed; else by its origin."""
        text = text_of(self.chat["messages"][index])
        at = self.only(text) if text and text == text.strip() and "places" not in self.__dict__ else -1
        return self.places.get(index) if at < 0 else Place(index, at, at + len(text), text, own=False)

    def of(self, origin: str) -> list[Span]:
        """The spans that stem from this place of the input or from below it."""
        return [span for span in self.spans if under(span.origin, origin)]

    def written(self, start: int, end: int) -> str:
        """What the template itself wrote between two places, a gap where the input's texts stood."""
        if start >= min(end, len(self.text)):
            return ""
        starts, own = self._own
        first, last = max(0, bisect_right(starts, start) - 1), bisect_left(starts, end)
        pieces = own[first:last]
        if pieces and pieces[-1] != GAP:
            pieces[-1] = pieces[-1][: end - starts[last - 1]]
        if pieces and pieces[0] != GAP:
            pieces[0] = pieces[0][max(0, start - starts[first]) :]
        return "".join(pieces)

    @cached_property
    def _own(self) -> tuple[list[int], list[str]]:
        """Where each span begins, and its text, or a gap where it is the input's."""
        return [span.start for span in self.spans], [
            GAP if of_request(span.origin) else span.text for span in self.spans
        ]

    def line_at(self, at: int) -> int | None:
        """The line of the template that wrote what stands there, or what stands before it."""
        line = None
        for span in self.spans:
            if span.start > at and line is not None:
                break
            if span.origin.startswith("line "):
                line = int(span.origin.removeprefix("line "))
                if span.end > at:
                    break
        return line


def of_request(origin: str) -> bool:
    """Whether a text stems from messages or tools, not from the template or the model's special tokens."""
    return origin.startswith(("messages", "tools"))


def under(place: str, origin: str) -> bool:
    return place.startswith(origin) and place[len(origin) : len(origin) + 1] in ("", ".", "[")


def text_of(message: Message) -> str:
    """The text of a message: its content, or the texts of its parts one after the other."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return ""


def inner_json(text: str) -> str:
    """A text as it stands between the quotes of a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def forms_of(text: str) -> Iterator[str]:
    """How a text may stand in a prompt unharmed: as it is, or inside a JSON string."""
    yield text
    yield inner_json(text)
    yield json.dumps(text)[1:-1]


def _places(messages: list[Message], prompt: str, spans: tuple[Span, ...]) -> dict[int, Place]:
    places: dict[int, Place] = {}
    own: dict[int, list[Span]] = {}
    for span in spans:
        found = CONTENT.match(span.origin)
        if found is not None:
            own.setdefault(int(found[1]), []).append(span)
    cursor = 0
    for index, message in enumerate(messages):
        text = text_of(message)
        if not text.strip():
            continue
        place = _by_origin(index, text, own.get(index, [])) or _by_text(index, text, prompt, cursor)
        if place is not None:
            places[index] = place
            cursor = max(cursor, place.start)
    return places


CONTENT = re.compile(r"messages\[(\d+)\]\.content(?![\w])")


def _by_origin(index: int, text: str, spans: list[Span]) -> Place | None:
    if not spans:
        return None
    written = "".join(span.text for span in spans)
    count = (
        len(written) // len(text) if len(written) >= len(text) and written == text * (len(written) // len(text)) else 1
    )
    if count > 1:
        return Place(index, spans[0].start, spans[0].start + len(text), text, own=True, count=count)
    return Place(index, spans[0].start, spans[-1].end, written, own=True)


def _by_text(index: int, text: str, prompt: str, cursor: int) -> Place | None:
    for wanted in (text, text.strip()):
        for form in forms_of(wanted):
            at = prompt.find(form, cursor)
            at = at if at >= 0 else prompt.find(form)
            if at >= 0:
                return Place(index, at, at + len(form), wanted, own=False)
    return None
