"""Tools and the arguments of calls can be read back from the prompt."""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from probes.laws.case import Case
from probes.laws.documents import candidates, documents, inside, leaves, same, same_order
from probes.laws.law import Law, Violation
from probes.laws.prompt import Prompt, forms_of, inner_json
from probes.rendering.outcomes import prints_nothing_as_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from probes.chats.messages import Chat, Message


def arguments_of(call: dict[str, Any]) -> tuple[str, Any, bool]:
    """Name, arguments as data, and whether they are sent as JSON text."""
    function = call.get("function", call)
    sent = function["arguments"]
    if not isinstance(sent, str):
        return function["name"], sent, False
    try:
        return function["name"], json.loads(sent), True
    except ValueError:
        return function["name"], sent, True


def region(prompt: Prompt, messages: list[Message], index: int) -> str:
    """What stands between the texts around a message that calls, its own text left out where it stands first; the
    whole prompt where texts stand out of order."""
    starts = [prompt.places[i].start for i in sorted(prompt.places)]
    if starts != sorted(starts):
        return prompt.text
    before = [i for i in prompt.places if i < index]
    after = [i for i in prompt.places if i > index]
    start = prompt.places[max(before)].end if before else 0
    if index in prompt.places and prompt.places[index].own:
        own = prompt.places[index]
        ends = [prompt.places[i].start for i in after if prompt.places[i].start >= own.end]
        return prompt.text[start : own.start] + prompt.text[own.end : min(ends, default=len(prompt.text))]
    ends = [prompt.places[i].start for i in after if prompt.places[i].start >= start]
    return prompt.text[start : min(ends, default=len(prompt.text))]


def arguments_read_back(case: Case) -> Iterator[Violation]:
    whole = case.whole
    if whole is None:
        return
    yield from _nothing_as_text(case, whole)
    for index, message in enumerate(case.messages):
        if message.get("tool_calls"):
            written = region(whole, case.messages, index)
            yield from _Message(case, whole, index, written).calls(message["tool_calls"])


def _nothing_as_text(case: Case, whole: Prompt) -> Iterator[Violation]:
    """Null or missing content beside calls leaves no word."""
    silent = [message for message in case.messages if message.get("tool_calls") and message.get("content") is None]
    if not silent:
        return
    filled = [{**message, "content": ""} if message in silent else message for message in case.messages]
    chat: Chat = {**whole.chat, "messages": filled}
    other = case.subject.render(chat).text
    if other is not None and prints_nothing_as_text(whole.text, other):
        what = "null" if "content" in silent[0] else "missing"
        said = f"{what} content beside a call is printed as a word of Python"
        yield Violation("arguments-read-back", "CT101", f"{what} content", said, whole.chat, other, whole.text)


@dataclass(frozen=True)
class _Message:
    """A message that calls, and what the prompt holds of its calls."""

    case: Case
    prompt: Prompt
    index: int
    written: str

    @cached_property
    def values(self) -> list[Any]:
        return list(inside(documents(self.written)))

    def broken(self, code: str, cause: str, message: str, sent: Any) -> Violation:
        kept = sent if isinstance(sent, str) else json.dumps(sent, ensure_ascii=False)
        at = self.prompt.text.find(self.written)
        line = self.prompt.line_at(at) if at >= 0 else None
        return Violation("arguments-read-back", code, cause, message, self.prompt.chat, kept, self.written, line=line)

    def calls(self, calls: list[dict[str, Any]]) -> Iterator[Violation]:
        names, sent = [arguments_of(call)[0] for call in calls], [arguments_of(call)[1] for call in calls]
        for number, call in enumerate(calls):
            name, arguments, as_text = arguments_of(call)
            which = f"call {number} of message {self.index}"
            if self.written.count(name) < names[: number + 1].count(name):
                if len(calls) > 1 and not self.traces(call, arguments, sent[: number + 1].count(arguments)):
                    message = f"{which}: not all of {len(calls)} calls are written"
                    yield self.broken("TL106", "call missing", message, name)
                else:
                    yield self.broken("TL107", "name missing", f"{which}: the name {name} is not written", name)
                    if self.written_in_part(arguments):
                        yield from self.arguments(which, arguments, as_text=as_text)
            elif arguments:
                yield from self.arguments(which, arguments, as_text=as_text)

    def traces(self, call: dict[str, Any], arguments: Any, times: int) -> bool:
        """Whether a call is there without its name: by its id, or by arguments that are sent so many `times`."""
        dumped = json.dumps(arguments, ensure_ascii=False)
        return call.get("id", dumped) in self.written or (bool(arguments) and self.written.count(dumped) >= times)

    def written_in_part(self, arguments: Any) -> bool:
        """Whether any text of the arguments stands there."""
        return len(self.lost(arguments)) < sum(bool(leaf.strip()) for leaf in leaves(arguments))

    def arguments(self, which: str, arguments: Any, *, as_text: bool) -> Iterator[Violation]:
        dumped = json.dumps(arguments, ensure_ascii=False)
        if dumped in self.written:
            return
        equal = [value for value in self.values if same(value, arguments)]
        if equal:
            if not any(same_order(arguments, value) for value in equal):
                message = f"{which}: the keys of the arguments stand in another order"
                yield self.broken("PS105", "sorted", message, arguments)
        elif self.quoted_twice(arguments, dumped):
            form = "arguments that are JSON text" if as_text else "the arguments"
            yield self.broken("TL104", f"twice {form}", f"{which}: {form} are quoted a second time", arguments)
        elif repr(arguments) in self.written and repr(arguments) != dumped:
            yield self.broken("CT101", "repr", f"{which}: its arguments stand as Python writes them", arguments)
        elif (key := self.as_python(arguments)) is not None:
            yield self.broken("CT101", "repr", f"{which}: its argument {key} stands as Python writes it", arguments)
        elif self.case.frames.arguments_as_json.get("string" if as_text else "object"):
            escaped = any(html.escape(leaf) in self.written for leaf in self.lost(arguments))
            cause, said = ("escaped", "are escaped as HTML") if escaped else ("unreadable", "cannot be read back")
            yield self.broken("CT106", cause, f"{which}: its arguments {said}", arguments)
        else:
            for leaf in self.lost(arguments)[:1]:
                if repr(leaf)[1:-1] in self.written:
                    yield self.broken("CT101", "repr", f"{which}: its arguments stand as Python writes them", arguments)
                else:
                    message = f"{which}: of its arguments {leaf!r} is not written"
                    yield self.broken("CT106", "lost", message, arguments)
                return
            yield from self.own_form(which, arguments)

    def as_python(self, arguments: Any) -> str | None:
        """The first argument whose value, which is no text, stands there as Python writes it and not as JSON."""
        if not isinstance(arguments, dict):
            return None
        for key, value in arguments.items():
            if isinstance(value, str) or _dumped(value, self.written) or f"{key}={value!r}" in self.written:
                continue  # the last: calls are written as Python's
            if repr(value) in self.written:
                return str(key)
        return None

    def own_form(self, which: str, arguments: Any) -> Iterator[Violation]:
        """Arguments in a form of the template's own: keys in their order."""
        if not isinstance(arguments, dict):
            return
        at = 0
        for key in arguments:
            found = self.written.find(key, at)
            if found < 0 and key in self.written:
                message = f"{which}: the keys of the arguments stand in another order"
                yield self.broken("PS105", "sorted", message, arguments)
                return
            at = max(at, found)

    def lost(self, arguments: Any) -> list[str]:
        """Texts of the arguments that stand nowhere as they are."""
        texts = (leaf for leaf in leaves(arguments) if leaf.strip())
        return [leaf for leaf in texts if not any(form in self.written for form in forms_of(leaf.strip()))]

    def quoted_twice(self, arguments: Any, dumped: str) -> bool:
        if any(isinstance(value, str) and _loads_to(value, arguments) for value in self.values):
            return True
        return inner_json(dumped) in self.written and inner_json(dumped) != dumped


def _dumped(value: Any, text: str) -> bool:
    """Whether a value stands in a text as JSON, however it is spaced."""
    spaced, tight = json.dumps(value, ensure_ascii=False), json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return spaced in text or tight in text


def _loads_to(text: str, wanted: Any) -> bool:
    try:
        return same(json.loads(text), wanted)
    except (ValueError, RecursionError):
        return False


def _as_python(function: dict[str, Any], text: str) -> bool:
    """Whether the properties of a function stand in a text as Python writes objects."""
    return any(re.search(rf"'{re.escape(key)}'\s*:\s*\{{", text) for key in function["parameters"]["properties"])


def _lists_as_python(function: dict[str, Any], text: str) -> list[list[Any]]:
    """Lists of types that stand in a text as Python writes them, perhaps in capitals."""
    lists = [
        value["type"]
        for value in inside([function["parameters"]])
        if isinstance(value, dict) and isinstance(value.get("type"), list)
    ]
    return [types for types in lists if repr(types) in text or repr(types).upper() in text]


def _names_and_values(schema: dict[str, Any]) -> Iterator[str]:
    """The names of what a schema describes and the texts that it allows, at any depth."""
    for name, inner in schema.get("properties", {}).items():
        yield name
        yield from _names_and_values(inner)
    yield from (value for value in schema.get("enum", []) if isinstance(value, str))
    for inner in (schema.get("items"), *schema.get("anyOf", [])):
        if isinstance(inner, dict):
            yield from _names_and_values(inner)


PARTS_OF_A_TOOL = 2
"""The first of the `candidates` that is not the whole of a tool."""


def tools_read_back(case: Case) -> Iterator[Violation]:
    whole, tools = case.whole, case.chat.get("tools", [])
    if whole is None or not tools:
        return
    form = case.frames.tool_form
    values: list[Any] | None = None

    def broken(code: str, cause: str, message: str, sent: Any) -> Violation:
        kept = sent if isinstance(sent, str) else json.dumps(sent, ensure_ascii=False)
        at = whole.text.find(tools[0].get("function", tools[0])["name"])
        line = whole.line_at(max(0, at))
        return Violation("tools-read-back", code, cause, message, whole.chat, kept, whole.text, line=line)

    for number, tool in enumerate(tools):
        function = tool.get("function", tool)
        if function["name"] not in whole.text:
            yield broken("TL113", "name", f"tool {number}: its name is not written", function["name"])
            continue
        as_python = _as_python(function, whole.text)
        if as_python:
            yield broken("CT101", "repr", f"tool {number} stands as Python writes it", function["parameters"])
        lists = _lists_as_python(function, whole.text)
        if lists:
            yield broken("TL113", "types", f"tool {number}: a list stands as Python writes it", lists[0])
        if as_python or lists:
            continue
        if form is None:
            pieces = [piece.strip() for piece in function["description"].splitlines() if piece.strip()]
            if not all(any(f in whole.text for f in (*forms_of(piece), repr(piece)[1:-1])) for piece in pieces):
                yield broken("TL113", "description", f"tool {number}: its description is not written", pieces)
            for text in _names_and_values(function["parameters"]):
                if not any(f in whole.text for f in forms_of(text)):
                    message = f"tool {number}: of its parameters {text!r} is not written"
                    yield broken("TL113", "parameters", message, function["parameters"])
                    break
            continue
        wanted = candidates(tool)[form]
        if form >= PARTS_OF_A_TOOL and not function["parameters"]["properties"]:
            continue  # nothing needs to be written of a tool without parameters
        if json.dumps(wanted, ensure_ascii=False) in whole.text:
            continue
        values = list(inside(documents(whole.text))) if values is None else values
        equal = [value for value in values if same(value, wanted)]
        if not equal:
            yield broken("TL113", "unreadable", f"tool {number} cannot be read back", wanted)
        elif not any(same_order(wanted, value) for value in equal):
            yield broken("PS105", "sorted", f"tool {number}: its keys stand in another order", wanted)


LAWS = (
    Law(
        "arguments-read-back",
        ("TL104", "TL106", "TL107", "CT101", "CT106", "PS105"),
        "names and arguments of calls can be read back",
        arguments_read_back,
        "writes tool calls",
        lambda supports: supports.tool_calls,
    ),
    Law(
        "tools-read-back",
        ("TL113", "CT101", "PS105"),
        "the tools that are offered can be read back",
        tools_read_back,
        "writes the tools that are offered",
        lambda supports: supports.tools,
    ),
)
