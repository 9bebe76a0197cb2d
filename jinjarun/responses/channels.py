"""Reading answers that are made of messages with headers, as Harmony's are."""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jinjarun.responses.reader import Reader
from jinjarun.responses.values import json_value

if TYPE_CHECKING:
    from jinjarun.responses.parts import Channels

Need = Generator[None, None, Any]

LONGEST_HEADER = 1000
"""Code points that a header may have."""


@dataclass(frozen=True, slots=True)
class Header:
    """What a header says: the channel of the message, and the function that it calls."""

    channel: str | None
    function: str | None


def header_of(text: str, channels: Channels) -> Header:
    word = r"\s*([\w.\-/:]+)"
    recipient = re.search(re.escape(channels.recipient.strip()) + word, text)
    channel = re.search(re.escape(channels.channel) + word, text) if channels.channel else None
    return Header(channel.group(1) if channel else None, recipient.group(1) if recipient else None)


class ChannelsReader(Reader):
    """A reader of messages with headers."""

    def run(self) -> Need:
        assert self.syntax.channels is not None
        return read_channels(self, self.syntax.channels)


def read_channels(reader: Reader, channels: Channels) -> Need:
    """The messages of an answer, each with its header."""
    prompt = reader.prefix.rpartition(channels.start)[2]
    header = header_of(prompt, channels) if channels.message in prompt else None
    marks = tuple(dict.fromkeys((*channels.ends, channels.start)))
    while True:
        if header is None:
            at = yield from _to_header(reader, channels, marks)
            if at < 0:
                return
            found = yield from _seek(reader, at, channels.message)
            begun = reader.text[at:]
            if found < 0:
                reader.complete = False
                reader._problem(at, "the header of a message is never ended")
                reader._emit("content", begun)
                return
            header = header_of(reader.text[at:found], channels)
            reader._drop(found + len(channels.message))
        at = yield from _message(reader, channels, marks, header)
        if at < 0:
            return
        header = None


def _openers(channels: Channels) -> tuple[str, ...]:
    return (channels.start, channels.channel, channels.message, channels.recipient.strip())


def _to_header(reader: Reader, channels: Channels, marks: tuple[str, ...]) -> Need:
    """Where the next header begins; -1 at the end of the answer. Text without a header is content."""
    openers = _openers(channels)
    while True:
        at = yield from reader._space(reader.at)
        yield from reader._more(at + max(map(len, (*openers, *marks))))
        end = next((mark for mark in marks if reader.text.startswith(mark, at)), None)
        if end is not None:
            reader._drop(at + len(end))
            continue
        if at >= len(reader.text):
            return -1
        if reader.text.startswith(openers, at):
            return at
        header = Header(None, None)
        at = yield from _message(reader, channels, (*marks, channels.channel), header)
        if at < 0:
            return -1


def _seek(reader: Reader, at: int, mark: str) -> Need:
    while (found := reader.text.find(mark, at)) < 0:
        if reader.final or len(reader.text) - at > LONGEST_HEADER:
            return -1
        yield
    return found


def _message(reader: Reader, channels: Channels, marks: tuple[str, ...], header: Header) -> Need:
    """The text of a message up to one of `marks`; -1 where the answer ends first."""
    start = reader.at
    if header.function is None:
        kind = "reasoning_content" if header.channel in channels.reasoning else "content"
        found = yield from reader._find(start, marks, 0, kind, start)
        text = reader.text[reader.at :] if found < 0 else reader.text[reader.at : found]
        reader._emit(kind, text)
        if found < 0 and kind == "reasoning_content":
            reader.complete = False
            reader._problem(len(reader.text), "the reasoning is never closed")
        return _past(reader, found)
    ended = yield from reader._json_end((yield from reader._space(start)))
    found = yield from _first(reader, start if ended < 0 else ended, marks)
    text = reader.text[start:] if found < 0 else reader.text[start:found]
    try:
        call = reader._made(header.function, json_value(text))
    except (ValueError, RecursionError):
        call = None
    if call is None:
        reader.complete = found >= 0 and reader.complete
        reader._problem(start, f"the arguments of {header.function} are no JSON object: they stay content")
        reader._emit("content", text)
    else:
        reader.called = True
        reader.say("call", call)
    return _past(reader, found)


def _first(reader: Reader, start: int, marks: tuple[str, ...]) -> Need:
    scan = start
    while True:
        places = [at for mark in marks if (at := reader.text.find(mark, scan)) >= 0]
        held = reader._held(scan, marks)
        if places and min(places) <= held:
            return min(places)
        if reader.final:
            return -1
        scan = held
        yield


def _past(reader: Reader, found: int) -> int:
    """Goes on at the mark that ends a message, which may begin the next."""
    reader._drop(len(reader.text) if found < 0 else found)
    return -1 if found < 0 else 0
