"""A template asked on the raw path where it renders more, in the form in which it takes its input."""

from __future__ import annotations

import re
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from jinjarun.errors import JinjarunError
from probes.canaries import (
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
from probes.chats import CHATS
from probes.renders import LLAMA_RAW, RAW, dialect_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from probes.chats import Chat, Message, Tool
    from probes.renders import Outcome, Renders

SECOND_PARAMETER, OTHER_VALUE = "meadow_48201", "east of 48202"
"""A second argument of the first call: what stands between two arguments tells how one ends."""

UNKNOWN_BOS, UNKNOWN_EOS = "{{ bos_token }}", "{{ eos_token }}"
"""What the shape's texts hold where the template prints a special token whose text nobody gave."""

SET_BY_SERVERS = frozenset(
    {"messages", "tools", "add_generation_prompt", "bos_token", "eos_token", "documents"}
    | {"raise_exception", "strftime_now", "namespace", "range", "dict", "loop", "caller", "varargs", "kwargs", "self"}
    | {"true", "false", "none", "True", "False", "None"}
)
"""Names that a template reads and that no caller sets by hand."""


class Asking:
    """Requests to one template, their texts, and what is known of the form it wants."""

    def __init__(self, renders: Renders) -> None:
        self.renders = renders
        self.path = _better_path(renders)
        self.bos = renders.bos_token or UNKNOWN_BOS
        self.eos = renders.eos_token or UNKNOWN_EOS
        self.form = Form()
        self.lead: list[Message] = []
        if self.text([say("user", USER)]) is None:
            self._find_form()

    def _find_form(self) -> None:
        """Content as parts, or a system message first, where a plain question does not come through."""
        for form in (Form(), Form(parts="but system"), Form(parts="yes")):
            for lead in ([], [say("system", SYSTEM)]):
                self.form, self.lead = form, lead
                text = self.text([say("user", USER)])
                if text is not None and USER in text:
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
        return sorted(name for name in template.names - SET_BY_SERVERS if self._is_free(name))

    def _is_free(self, name: str) -> bool:
        source = self.renders.source
        word = re.escape(name)
        if re.search(rf"\b{word}\s+is\s+(not\s+)?(defined|none|undefined)|\b{word}\s*\|\s*default", source):
            return not re.search(rf"\bfor\s+[^%]*\b{word}\b[^%]*\bin\b|macro\s+\w+\([^)]*\b{word}\b", source)
        assigned = rf"\bset\s+(?:[\w\s,]*\b)?{word}\b[\w\s,]*(?:=|%|-%)|\bfor\s+[\w\s,()]*\b{word}\b[\w\s,()]*\bin\b"
        parameter = rf"\bmacro\s+(?:{word}\b|\w+\([^)]*\b{word}\b)|\bimport\b.*\b{word}\b|\bcall\s*\([^)]*\b{word}\b"
        return re.search(rf"(?:{assigned}|{parameter})", source) is None

    def values(self, name: str) -> list[Any]:
        """Values worth giving to a switch: both booleans, or the texts that the template compares it with."""
        texts = re.findall(rf"\b{re.escape(name)}\s*(?:==|!=)\s*(['\"])([^'\"]{{1,20}})\1", self.renders.source)
        return list(dict.fromkeys(text for _, text in texts))[:3] or [True, False]


def _better_path(renders: Renders) -> str:
    """The bare dialect on which more of the conversations render; transformers where both do alike."""
    rendered = {
        path: sum(renders.render(path, build()).ok for build in CHATS.values())
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
