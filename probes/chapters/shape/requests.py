"""The requests that the shape is found with, and their texts."""

from __future__ import annotations

import re
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from probes.chats.canaries import (
    ANSWER,
    PARAMETER,
    SECOND_DESCRIPTION,
    SECOND_TOOL,
    SECOND_USER,
    SECOND_VALUE,
    USER,
    VALUE,
    tool,
)
from probes.chats.messages import say

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from probes.chats.canaries import Form
    from probes.chats.messages import Chat, Message, Tool
    from probes.rendering.input_form import PathObserver
    from probes.rendering.renders import Outcome

SECOND_PARAMETER, OTHER_VALUE = "meadow_48201", "east of 48202"
"""A second argument of the first call: what stands between two arguments tells how one ends."""

UNKNOWN_BOS, UNKNOWN_EOS = "{{ bos_token }}", "{{ eos_token }}"
"""What the shape's texts hold where the template prints a special token whose text nobody gave."""

COMPARED = re.compile(r"\b(\w+)\s*(?:==|!=)\s*(['\"])([^'\"]{1,20})\2|\b(\w+)\s+(?:not\s+)?in\s*[\[(]([^\])]*)[\])]")
"""A name compared with a text, or looked for in a list."""
MOST_SWITCHES, MOST_VALUES = 16, 3


class Requests:
    """Requests to one template in the form that it takes, and their texts.

    A special token whose text nobody gave is printed as `UNKNOWN_BOS` and `UNKNOWN_EOS`.
    """

    def __init__(self, on: PathObserver) -> None:
        self.on = on
        self.renders = on.renders
        self.path = on.path
        self.bos = self.renders.bos_token or UNKNOWN_BOS
        self.eos = self.renders.eos_token or UNKNOWN_EOS
        self.form = on.system_form
        self.call_form = None if on.call_form is None else on.call_form.but(parts=self.form.parts)
        """The form of messages that call; None where no calls are written."""

    @property
    def best_form(self) -> Form:
        """The form of calls, or where none is written that of plain messages."""
        return self.call_form or self.form

    def chat(
        self,
        messages: list[Message],
        tools: list[Tool] | None = None,
        *,
        prompt: bool = False,
        variables: Mapping[str, Any] = MappingProxyType({}),
        form: Form | None = None,
    ) -> Chat:
        """A request; `prompt` asks for a generation prompt, `variables` are the caller's."""
        if not self.renders.bos_token:
            variables = {"bos_token": self.bos, **variables}
        if not self.renders.eos_token:
            variables = {"eos_token": self.eos, **variables}
        chat = (form or self.form).chat(messages, tools, variables=dict(variables))
        chat["add_generation_prompt"] = prompt
        return chat

    def text(
        self,
        messages: list[Message],
        tools: list[Tool] | None = None,
        *,
        prompt: bool = False,
        variables: Mapping[str, Any] = MappingProxyType({}),
        form: Form | None = None,
    ) -> str | None:
        """The text of such a request, or None where the template fails."""
        return self.renders.render(
            self.path, self.chat(messages, tools, prompt=prompt, variables=variables, form=form)
        ).text

    def at(self, chat: Chat, now: datetime | float) -> str | None:
        """The text at another moment."""
        return self.renders.render(self.path, chat, now=now).text

    def origins(self, chat: Chat) -> Outcome:
        """The text with the origin of every character."""
        return self.renders.spans(self.path, chat)

    @cached_property
    def switches(self) -> list[str]:
        """Variables of the caller that the template reads: not its own, not those that every server sets."""
        return self.on.variables[:MOST_SWITCHES]

    @cached_property
    def settings(self) -> list[dict[str, Any]]:
        """Each switch with each value worth giving to it: the texts that it is compared with, or both booleans."""
        texts: dict[str, dict[str, None]] = {}
        for name, _, text, listed, values in COMPARED.findall(self.renders.source):
            found = [text] if name else re.findall(r"['\"]([^'\"]{1,20})['\"]", values)
            texts.setdefault(name or listed, {}).update(dict.fromkeys(found))
        return [
            {name: value}
            for name in self.switches
            for value in (*list(texts.get(name, ()))[:MOST_VALUES],) or (True, False)
        ]


def question() -> Message:
    return say("user", USER)


def answer(**fields: Any) -> Message:
    return say("assistant", ANSWER, **fields)


def next_question() -> Message:
    return say("user", SECOND_USER)


def two_tools() -> list[Tool]:
    return [tool(), tool(SECOND_TOOL, SECOND_DESCRIPTION)]


def call_arguments() -> tuple[dict[str, str], dict[str, str]]:
    """The arguments of the two calls: two and one."""
    return {PARAMETER: VALUE, SECOND_PARAMETER: OTHER_VALUE}, {PARAMETER: SECOND_VALUE}
