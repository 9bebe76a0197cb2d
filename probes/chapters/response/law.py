"""The law that what a template writes of a message is read back as this message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from probes.chapters.response.answers import Answers
from probes.chapters.shape.requests import UNKNOWN_EOS
from probes.chats.canaries import ID
from probes.chats.messages import call as made_call
from probes.chats.messages import say

if TYPE_CHECKING:
    from jinjarun.responses import ResponseSyntax
    from probes.chapters.shape.requests import Requests
    from probes.chats.messages import Message, Tool

Meaning = tuple[str, str, tuple[tuple[str, Any], ...]]
"""Content, reasoning, and calls with their arguments."""
Verdict = Literal["read", "edges", "same text", "begins like reasoning", "misread", "not written"]


@dataclass(frozen=True, slots=True)
class ReadBack:
    """What became of a message. `read`: it came back. `edges`: but for white space at the edges of texts. `same text`:
    the template writes `other` as the very same text, so nobody can tell them apart. `not written`: the template fails,
    or its history is no model of what is generated. `begins like reasoning`: the text for the user begins with a marker
    of reasoning, and is taken for it. `misread`: it is none of these, and the syntax is at fault."""

    verdict: Verdict
    text: str
    other: Meaning | None


def meaning(message: dict[str, Any]) -> Meaning:
    """What a message means, whatever the form of its keys."""
    calls = tuple((call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls") or ())
    return message.get("content") or "", message.get("reasoning_content") or "", calls


class Reading:
    """Messages that are written by one template and read back by its syntax."""

    def __init__(self, ask: Requests, syntax: ResponseSyntax, tools: list[Tool] | None = None) -> None:
        self.ask = ask
        self.syntax = syntax
        self.tools = tools
        self.field = ask.on.reasoning_field

    def back(self, meant: Meaning) -> ReadBack:
        """What becomes of a message with this meaning."""
        generated = self.written(meant)
        if generated is None:
            return ReadBack("not written", "", None)
        prompt, text = generated
        if meant[1].strip() not in text or meant[0].strip() not in text:
            return ReadBack("not written", text, None)
        read = meaning(self.syntax.parse_response(text, prefix=prompt, tools=self.tools))
        if read == meant:
            return ReadBack("read", text, None)
        if self.written(read) == generated:
            return ReadBack("same text", text, read)
        if _trimmed(read) == _trimmed(meant):
            return ReadBack("edges", text, read)
        reasoning = self.syntax.reasoning
        marks = () if reasoning is None else (reasoning.open.strip(), reasoning.close.strip())
        begins = meant[0].lstrip().startswith(tuple(mark for mark in marks if mark))
        return ReadBack("begins like reasoning" if begins else "misread", text, read)

    def written(self, meant: Meaning) -> tuple[str, str] | None:
        """The prompt, and what is generated of a message with this meaning."""
        generated = Answers(self.ask).prompted(self.message(meant), self.tools)
        if generated is None:
            return None
        prompt, text = generated
        return prompt, text.partition(UNKNOWN_EOS)[0]  # an engine stops there

    def message(self, meant: Meaning) -> Message:
        content, reasoning, calls = meant
        form = self.ask.best_form
        message = say("assistant", content)
        if not content and calls and form.beside == "null":
            message["content"] = None
        elif not content and calls and form.beside == "missing":
            del message["content"]
        if reasoning:
            message[self.field or "reasoning_content"] = reasoning
        if calls:
            message["tool_calls"] = [
                made_call(name, arguments, ID, form=form.arguments, bare=form.bare) for name, arguments in calls
            ]
        return message


def _trimmed(value: Any) -> Any:
    """`value` without white space at the edges of its texts."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, dict):
        return {key: _trimmed(item) for key, item in value.items()}
    return [_trimmed(item) for item in value] if isinstance(value, list | tuple) else value
