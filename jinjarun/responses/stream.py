"""Answers that come in pieces."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jinjarun.errors import InputError, LimitExceeded
from jinjarun.responses.channels import ChannelsReader
from jinjarun.responses.message import ParsedMessage
from jinjarun.responses.reader import Compiled, Reader
from jinjarun.responses.values import schemas_of

if TYPE_CHECKING:
    from jinjarun.responses.parts import Written

MOST_TEXT = 4_000_000
"""Code points of an answer."""
SMALL = 4096
"""Code points below which pieces are added at once; a longer text waits for a sixteenth more, so that all of it is
copied a bounded number of times."""

Delta = dict[str, Any]
"""What a streaming API adds to a message: `content`, `reasoning_content`, or `tool_calls` with an `index` each and
`arguments` as JSON text."""


@lru_cache(maxsize=128)
def _compiled(syntax: Written) -> Compiled:
    return Compiled(syntax)


class ResponseParser:
    """A parser of one answer: `feed` it pieces, `finalize` it, then `message` is what `parse_response` gives.

    A call is told in one delta when it is read to its end: before that it may still turn out to be content.
    """

    def __init__(
        self, syntax: Written, *, prefix: str, tools: Sequence[Mapping[str, Any]] | None, strict: bool
    ) -> None:
        self.message = ParsedMessage()
        self._strict = strict
        self._deltas: list[Delta] = []
        self._texts: dict[str, list[str]] = {"content": [], "reasoning_content": []}
        self._calls: list[dict[str, Any]] = []
        self._waiting: list[str] = []
        self._waits = 0
        self._size = 0
        kind = Reader if syntax.channels is None else ChannelsReader
        self._reader = kind(_compiled(syntax), prefix=prefix, tools=schemas_of(tools), strict=strict, say=self._say)
        self._run = self._reader.run()
        self._done = False

    def feed(self, piece: str) -> list[Delta]:
        """Adds a piece of the answer and gives what it makes certain."""
        if self._reader.final:
            raise InputError("this answer is finalized: make another parser", path="response")
        self._size += len(piece)
        if self._size > MOST_TEXT:
            raise LimitExceeded(
                f"the response has more than {MOST_TEXT:,} code points", limit="response", allowed=MOST_TEXT
            )
        self._waiting.append(piece)
        self._waits += len(piece)
        held = len(self._reader.text)
        if held > SMALL and self._waits * 16 < held:
            return []
        self._add()
        self._advance()
        return self._taken()

    def finalize(self) -> list[Delta]:
        """Says that the answer is over, gives the last deltas and fills in `message`."""
        if self._reader.final:
            return []
        self._add()
        self._advance()
        self._reader.final = True
        self._advance()
        message = self.message
        content, reasoning = ("".join(self._texts[key]) for key in ("content", "reasoning_content"))
        message["content"] = content if content or not self._calls else None
        if reasoning:
            message["reasoning_content"] = reasoning
        if self._calls:
            message["tool_calls"] = self._calls
        message.complete = self._reader.complete
        message.problems += self._reader.problems
        if self._strict and message.problems:
            first = message.problems[0]
            raise InputError(f"the syntax does not write this response: {first.message}", path=f"response[{first.at}]")
        return self._taken()

    def _add(self) -> None:
        self._reader.text += "".join(self._waiting)
        self._waiting.clear()
        self._waits = 0

    def _advance(self) -> None:
        if not self._done:
            try:
                next(self._run)
            except StopIteration:
                self._done = True

    def _say(self, kind: str, value: Any) -> None:
        if kind != "call":
            self._texts[kind].append(value)
            if self._deltas and kind in self._deltas[-1]:
                self._deltas[-1][kind] += value
            else:
                self._deltas.append({kind: value})
            return
        function = value["function"]
        arguments = json.dumps(function["arguments"], ensure_ascii=False)
        told = {"index": len(self._calls), **value, "function": {**function, "arguments": arguments}}
        self._calls.append(value)
        self._deltas.append({"tool_calls": [told]})

    def _taken(self) -> list[Delta]:
        deltas, self._deltas = self._deltas, []
        return deltas
