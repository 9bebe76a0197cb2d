"""What a template takes, as far as a made-up conversation has to know it: found by asking small requests.

A feature is supported where the template neither fails nor stays silent about it: what it does not support is left out
of the conversations that are made up for it, and no law speaks of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from probes.rendering.outcomes import is_dumped
from probes.rendering.texts import MARKER

if TYPE_CHECKING:
    from probes.chats.named import Chat, Message, Tool

ArgumentForm = Literal["object", "string"]
Beside = Literal["empty", "null", "missing", "text"]

REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking")
"""Fields under which the reasoning of a message is looked for; the first that is written is used."""
MOST_MARKERS = 12
"""Markers of a template that texts are made of."""


@dataclass(frozen=True, slots=True)
class Supports:
    """What made-up conversations may hold. The defaults are what most templates with tools take.

    `leading_system`: every conversation has a system message. `second_system`, `late_system`: further ones behind the
    first, or in the middle. `consecutive_users`: two user messages in a row. `calls_only_offered`: tools are offered
    wherever the history calls some. `arguments`: the forms in which arguments are taken, `beside` the contents of a
    message that calls tools. `bare`: tools and calls without `type` and `function` around them. `reasoning`: the field
    of it, or None. `inline_reasoning`: texts of the assistant may hold reasoning between tags. `markers` are the
    template's own, and texts are made to hold them. `variables` are sent with every request.
    """

    string_content: bool = True
    text_parts: bool = False
    system: bool = True
    leading_system: bool = False
    second_system: bool = False
    late_system: bool = False
    developer: bool = False
    consecutive_users: bool = False
    assistant: bool = True
    tools: bool = True
    tool_calls: bool = True
    calls_only_offered: bool = False
    parallel_calls: bool = True
    several_rounds: bool = True
    answer_after_calls: bool = True
    arguments: tuple[ArgumentForm, ...] = ("object",)
    beside: tuple[Beside, ...] = ("empty", "text")
    bare: bool = False
    reasoning: str | None = None
    markers: tuple[str, ...] = ()
    variables: tuple[tuple[str, Any], ...] = ()


TEXTS = tuple(f"Canary {number} sings." for number in range(48301, 48320))
NAME = "tell_weather"


def call(number: int, arguments: dict[str, Any], supports: Supports, name: str = NAME) -> dict[str, Any]:
    """A call; its id has nine characters, the only length that some templates take."""
    form = supports.arguments[0] if supports.arguments else "object"
    sent = arguments if form == "object" else json.dumps(arguments, ensure_ascii=False)
    function = {"name": name, "arguments": sent}
    return function if supports.bare else {"id": call_id(number), "type": "function", "function": function}


def call_id(number: int) -> str:
    return f"call{number:05}"


def tool(name: str = NAME, description: str = TEXTS[18], *, bare: bool = False) -> Tool:
    properties = {"place": {"type": "string", "description": "A town."}}
    parameters = {"type": "object", "properties": properties, "required": ["place"]}
    function = {"name": name, "description": description, "parameters": parameters}
    return function if bare else {"type": "function", "function": function}


def result(number: int, text: str, name: str = NAME) -> Message:
    return {"role": "tool", "tool_call_id": call_id(number), "name": name, "content": text}


def say(role: str, text: str, **fields: Any) -> Message:
    return {"role": role, "content": text, **fields}


@dataclass(frozen=True, slots=True)
class _Trial:
    """Requests in the form found so far; `render` gives the text, or None where the template fails."""

    render: Callable[[Chat], str | None]
    found: Supports

    def chat(self, messages: list[Message], tools: list[Tool] | None = None) -> Chat:
        lead = [say("system", TEXTS[0])] if self.found.leading_system and messages[0]["role"] != "system" else []
        formed = [*lead, *messages]
        if not self.found.string_content:
            formed = [in_parts(message) for message in formed]
        chat: dict[str, Any] = {"messages": formed}
        if tools is not None:
            chat["tools"] = tools
        if self.found.variables:
            chat["variables"] = dict(self.found.variables)
        return chat  # type: ignore[return-value]  # the keys of a Chat

    def takes(self, messages: list[Message], tools: list[Tool] | None = None) -> bool:
        return self.render(self.chat(messages, tools)) is not None

    def writes(self, messages: list[Message], *texts: str, tools: list[Tool] | None = None) -> bool:
        text = self.render(self.chat(messages, tools))
        return text is not None and all(wanted in text for wanted in texts)

    def takes_parts(self) -> bool:
        """Whether a text part is written as text, and several do no worse than to be left out."""
        several = {**USER, "content": [{"type": "text", "text": TEXTS[1]}, {"type": "text", "text": TEXTS[3]}]}
        one, two = self.render(self.chat([in_parts(USER)])), self.render(self.chat([several]))
        if one is None or two is None or TEXTS[1] not in one:
            return False
        return not is_dumped(one, TEXTS[1]) and not is_dumped(two, TEXTS[1])

    def having(self, **found: Any) -> _Trial:
        return replace(self, found=replace(self.found, **found))

    def calling(self, numbers: tuple[int, ...] = (1,), beside: Beside | None = None) -> Message:
        message: Message = {"role": "assistant", **beside_content(beside or self.found.beside[0], TEXTS[4])}
        message["tool_calls"] = [call(n, {"place": TEXTS[4 + n]}, self.found) for n in numbers]
        return message

    @property
    def offered(self) -> list[Tool]:
        return [tool(bare=self.found.bare)]


def beside_content(beside: Beside, text: str) -> dict[str, Any]:
    """The key `content` of a message that calls tools."""
    contents: dict[Beside, dict[str, Any]] = {
        "empty": {"content": ""},
        "null": {"content": None},
        "missing": {},
        "text": {"content": text},
    }
    return contents[beside]


def in_parts(message: Message) -> Message:
    content = message.get("content")
    if not isinstance(content, str):
        return message
    return {**message, "content": [{"type": "text", "text": content}]}


USER, ANSWER, NEXT = say("user", TEXTS[1]), say("assistant", TEXTS[2]), say("user", TEXTS[3])
CALL_FORMS: tuple[dict[str, Any], ...] = (
    {"arguments": ("object",), "beside": ("empty",)},
    {"arguments": ("string",), "beside": ("empty",)},
    {"arguments": ("object",), "beside": ("null",)},
    {"arguments": ("object",), "beside": ("missing",)},
    {"arguments": ("string",), "beside": ("null",)},
    {"arguments": ("object",), "beside": ("text",)},
    {"arguments": ("object",), "beside": ("empty",), "bare": True},
)
"""Forms of a message that calls, tried in turn until one is written."""


def find_supports(render: Callable[[Chat], str | None], source: str) -> Supports | None:
    """What the template takes; None where not even a plain question renders. `render` answers one request with its
    text, or None where it fails; `source` is the template, for its markers."""
    nothing = Supports(
        system=False,
        assistant=False,
        tools=False,
        tool_calls=False,
        parallel_calls=False,
        arguments=(),
        beside=("empty",),
        markers=markers_in(source),
    )
    trial = _first_form(_Trial(render, nothing))
    if trial is None:
        return None
    trial = trial.having(assistant=trial.takes([USER, ANSWER, NEXT]))
    trial = _systems(trial)
    if trial.found.string_content:
        trial = trial.having(text_parts=trial.takes_parts())
    trial = trial.having(consecutive_users=trial.writes([USER, NEXT], TEXTS[1], TEXTS[3]))
    trial = trial.having(tools=trial.writes([USER], NAME, tools=trial.offered))
    trial = _calls(trial)
    return _reasoning(trial).found


def _first_form(trial: _Trial) -> _Trial | None:
    for form in ({}, {"string_content": False}, {"leading_system": True}):
        formed = trial.having(**form)
        if formed.writes([USER], TEXTS[1]):
            return formed
    return trial if trial.takes([USER]) else None


def _systems(trial: _Trial) -> _Trial:
    first, second = say("system", TEXTS[0]), say("system", TEXTS[10])
    return trial.having(
        system=trial.takes([first, USER]),
        second_system=trial.takes([first, second, USER]),
        late_system=trial.takes([first, USER, ANSWER, second, NEXT]),
        developer=trial.writes([say("developer", TEXTS[0]), USER], TEXTS[0]),
    )


def _calls(trial: _Trial) -> _Trial:
    """Calls, in the first form in which the name, the argument and the result are all written."""
    reply = result(1, TEXTS[12])
    marks = (NAME, TEXTS[5], TEXTS[12])
    for form in CALL_FORMS:
        formed = trial.having(**form)
        if formed.writes([USER, formed.calling(), reply], *marks, tools=formed.offered):
            break
    else:
        return trial
    offered = formed.offered
    found = {
        "tool_calls": True,
        "calls_only_offered": not formed.writes([USER, formed.calling(), reply], *marks),
        "arguments": tuple(
            form
            for form in ("object", "string")
            if (asked := formed.having(arguments=(form,))).takes([USER, asked.calling(), reply], offered)
        ),
        "beside": tuple(
            beside
            for beside in ("empty", "null", "missing", "text")
            if formed.writes([USER, formed.calling(beside=beside), reply], *marks, tools=offered)
        ),
        "parallel_calls": formed.takes([USER, formed.calling((1, 2)), reply, result(2, TEXTS[13])], offered),
        "several_rounds": formed.takes([USER, formed.calling(), reply, formed.calling((2,)), result(2, TEXTS[13])]),
        "answer_after_calls": formed.takes([USER, formed.calling(), reply, ANSWER, NEXT], offered),
    }
    return formed.having(**found)


def _reasoning(trial: _Trial) -> _Trial:
    for name in REASONING_FIELDS:
        thought = {**ANSWER, name: TEXTS[15]}
        chats: list[tuple[list[Message], list[Tool] | None]] = [([USER, thought, NEXT], None), ([USER, thought], None)]
        if trial.found.tool_calls:
            calling = {**trial.calling(), name: TEXTS[15]}
            chats.append(([USER, calling, result(1, TEXTS[12])], trial.offered))
        if any(trial.writes(messages, TEXTS[15], tools=tools) for messages, tools in chats):
            return trial.having(reasoning=name)
    return trial


JINJA = re.compile(r"\{[{%#]|[}%#]\}")


def markers_in(source: str) -> tuple[str, ...]:
    """What looks like a marker in the template's text, in the order in which it comes first."""
    found = (marker for marker in MARKER.findall(source) if not JINJA.search(marker))
    return tuple(dict.fromkeys(marker for marker in found if "'" not in marker and '"' not in marker))[:MOST_MARKERS]
