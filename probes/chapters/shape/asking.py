"""A template asked on the raw path where it renders more, in the form in which it takes its input."""

from __future__ import annotations

import re
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from jinjarun.errors import JinjarunError
from probes.chapters.variables import caller_variables
from probes.chats.canaries import (
    ANSWER,
    PARAMETER,
    SECOND_DESCRIPTION,
    SECOND_TOOL,
    SECOND_USER,
    SECOND_VALUE,
    SYSTEM,
    USER,
    VALUE,
    Form,
    say,
    tool,
)
from probes.chats.named import CHATS
from probes.rendering.renders import LLAMA_RAW, RAW, dialect_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from probes.chats.named import Chat, Message, Tool
    from probes.rendering.renders import Outcome, Renders

SECOND_PARAMETER, OTHER_VALUE = "meadow_48201", "east of 48202"
"""A second argument of the first call: what stands between two arguments tells how one ends."""

UNKNOWN_BOS, UNKNOWN_EOS = "{{ bos_token }}", "{{ eos_token }}"
"""What the shape's texts hold where the template prints a special token whose text nobody gave."""

COMPARED = re.compile(r"\b(\w+)\s*(?:==|!=)\s*(['\"])([^'\"]{1,20})\2|\b(\w+)\s+(?:not\s+)?in\s*[\[(]([^\])]*)[\])]")
"""A name compared with a text, or looked for in a list."""
MOST_SWITCHES, MOST_VALUES = 16, 3


class Asking:
    """Requests to one template, their texts, and what is known of the form it wants."""

    def __init__(self, renders: Renders) -> None:
        self.renders = renders
        self.path = _better_path(renders)
        self.bos = renders.bos_token or UNKNOWN_BOS
        self.eos = renders.eos_token or UNKNOWN_EOS
        self.form = Form()
        self.lead: list[Message] = []
        if not self._comes_through():
            self._find_form()

    def _comes_through(self) -> bool:
        text = self.text([say("user", USER)])
        return text is not None and USER in text

    def _find_form(self) -> None:
        """Content as parts, or a system message first, where a plain question does not come through."""
        for form in (Form(), Form(parts="but system"), Form(parts="yes")):
            for lead in ([], [say("system", SYSTEM)]):
                self.form, self.lead = form, lead
                if self._comes_through():
                    return
        self.form, self.lead = Form(), []

    def chat(
        self,
        messages: list[Message],
        tools: list[Tool] | None = None,
        *,
        prompt: bool = False,
        variables: Mapping[str, Any] = MappingProxyType({}),
    ) -> Chat:
        """A request; `prompt` asks for a generation prompt, `variables` are the caller's."""
        if not self.renders.bos_token:
            variables = {"bos_token": self.bos, **variables}
        if not self.renders.eos_token:
            variables = {"eos_token": self.eos, **variables}
        lead = self.lead if not messages or messages[0]["role"] != "system" else []
        chat = self.form.chat([*lead, *messages], tools, variables=dict(variables))
        chat["add_generation_prompt"] = prompt
        return chat

    def text(
        self,
        messages: list[Message],
        tools: list[Tool] | None = None,
        *,
        prompt: bool = False,
        variables: Mapping[str, Any] = MappingProxyType({}),
    ) -> str | None:
        """The text of such a request, or None where the template fails."""
        return self.renders.render(self.path, self.chat(messages, tools, prompt=prompt, variables=variables)).text

    def at(self, chat: Chat, now: datetime | float) -> str | None:
        """The text at another moment."""
        return self.renders.render(self.path, chat, now=now).text

    def origins(self, chat: Chat) -> Outcome:
        """The text with the origin of every character."""
        return self.renders.spans(self.path, chat)

    @cached_property
    def switches(self) -> list[str]:
        """Variables of the caller that the template reads: not its own, not those that every server sets."""
        template = self.renders.template(dialect_of(self.path))
        if isinstance(template, JinjarunError):
            return []
        return caller_variables(self.renders.source, template.names)[:MOST_SWITCHES]

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


def _better_path(renders: Renders) -> str:
    """The bare dialect on which more of the conversations render; transformers where both do alike."""
    rendered = {
        path: sum(renders.conversation(path, name).ok for name in CHATS)
        for path in (RAW, LLAMA_RAW)
        if renders.loads(path) is None
    }
    return max(rendered, key=lambda path: (rendered[path], path == RAW)) if rendered else RAW


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
