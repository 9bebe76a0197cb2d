"""`ResponseSyntax`: the data and the ways to read by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from pydantic import ValidationError

from jinjarun.errors import InputError
from jinjarun.responses.message import ParsedMessage
from jinjarun.responses.parts import Written
from jinjarun.responses.stream import ResponseParser


class ResponseSyntax(Written):
    """What a template writes of an assistant's message, for reading what a model writes. Frozen; JSON by
    `model_dump_json`, read by `from_json`.

    `generation_prompt` is what prompts end with by default and `header` what of it begins any turn of the assistant:
    the rest may open reasoning, in which answers then begin. `ends` are the texts that end an answer.
    """

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """A syntax from its JSON; InputError says where it is none."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"]))
            raise InputError(f"this is no response syntax: {first['msg']}", path=place or "syntax") from None

    def parse_response(
        self,
        text: str,
        *,
        prefix: str = "",
        tools: Sequence[Mapping[str, Any]] | None = None,
        strict: bool = False,
    ) -> ParsedMessage:
        """The message that a model means by `text`.

        `prefix`: the prompt, of which only what begins the turn matters; without it, the usual generation prompt.
        `tools`, as the request offers them, give arguments their types where the syntax writes strings without quotes.
        What does not parse stays content, and `problems` says so; `strict` raises InputError instead of it.
        """
        parser = self.parser(prefix=prefix, tools=tools, strict=strict)
        parser.feed(text)
        parser.finalize()
        return parser.message

    def parser(
        self, *, prefix: str = "", tools: Sequence[Mapping[str, Any]] | None = None, strict: bool = False
    ) -> ResponseParser:
        """A parser that is fed in pieces."""
        return ResponseParser(self, prefix=prefix, tools=tools, strict=strict)
