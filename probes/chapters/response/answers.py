"""What a template writes of an answer: the text that a model would generate."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from probes.chapters.shape.calls import calling
from probes.chapters.shape.requests import answer, question, two_tools
from probes.chats.canaries import PARAMETER, VALUE
from probes.chats.messages import function_of
from probes.rendering.texts import common_start

if TYPE_CHECKING:
    from probes.chapters.shape.requests import Requests
    from probes.chats.messages import Message, Tool

TYPED: dict[str, Any] = {
    "meadow_48210": 'The "lark" \\ of 48210',
    "meadow_48211": 48211,
    "meadow_48212": True,
    "meadow_48213": None,
    "meadow_48214": ["rook 48214", False],
    "meadow_48215": {"crow_48215": "jay 48215"},
}
"""A value of each kind under a key of its own; the text holds what quotes and escapes change."""


@dataclass(frozen=True, slots=True)
class Generated:
    """`text`: what stands after the prompt. `prompted`: what the prompt has in its place."""

    text: str
    prompted: str


class Answers:
    """The answers of one template, in the form in which it takes messages."""

    def __init__(self, ask: Requests) -> None:
        self.ask = ask

    def of(self, message: Message, *, tools: bool = False) -> Generated | None:
        """What is generated of a message; None where the template fails."""
        offered = two_tools() if tools else None
        form = self.ask.best_form if tools else self.ask.form
        prompt = self.ask.text([question()], offered, prompt=True, form=form)
        whole = self.ask.text([question(), message], offered, form=form)
        if prompt is None or whole is None:
            return None
        if whole.startswith(prompt):
            return Generated(whole[len(prompt) :], "")
        common = len(common_start(prompt, whole))
        return Generated(whole[common:], prompt[common:])

    def prompted(self, message: Message, tools: list[Tool] | None) -> tuple[str, str] | None:
        """The prompt and what is generated of a message, where the history writes what the prompt begins; else None."""
        form = self.ask.best_form if tools else self.ask.form
        prompt = self.ask.text([question()], tools, prompt=True, form=form)
        whole = self.ask.text([question(), message], tools, form=form)
        if prompt is None or whole is None:
            return None
        if whole.startswith(prompt):
            return prompt, whole[len(prompt) :]
        common = len(common_start(prompt, whole))
        return (prompt[:common], whole[common:]) if question()["content"] in whole[:common] else None

    def plain(self) -> Generated | None:
        return self.of(answer())

    def calling(self, count: int, *, text: bool = False, typed: bool = False, empty: bool = False) -> Generated | None:
        """A message with one or two calls. `text`: beside a text. `typed`: the first has values of each kind.
        `empty`: it has no arguments."""
        form = self.ask.call_form
        assert form is not None
        message = calling(form.but(beside="text") if text else form, count)
        if typed or empty:
            function = function_of(message["tool_calls"][0])
            arguments = {PARAMETER: VALUE, **TYPED} if typed else {}
            function["arguments"] = arguments if form.arguments == "object" else json.dumps(arguments)
        return self.of(message, tools=True)
