"""Tools and the arguments of calls can be read back from the prompt."""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from probes.laws.base import Break, Case, Law, Prompt, forms_of, inner_json, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from probes.chats.named import Message, Tool

DECODER = json.JSONDecoder()
OPENING = re.compile(r"[{\[]")


def documents(text: str) -> list[Any]:
    """The outermost objects and lists of JSON that stand in a text."""
    found = []
    opening = OPENING.search(text)
    while opening is not None:
        at = opening.end()
        try:
            value, at = DECODER.raw_decode(text, opening.start())
            found.append(value)
        except (ValueError, RecursionError):
            pass
        opening = OPENING.search(text, at)
    return found


def inside(values: list[Any]) -> Iterator[Any]:
    """Every value in these documents, at any depth."""
    for value in values:
        yield value
        if isinstance(value, dict):
            yield from inside(list(value.values()))
        elif isinstance(value, list):
            yield from inside(value)


def same(a: Any, b: Any) -> bool:
    """Equal as JSON: true is not 1, and 1.0 is 1."""
    return bool(a == b) and _same_kinds(a, b)


def _same_kinds(a: Any, b: Any) -> bool:
    """Whether no truth value stands in one where a number stands in the other, in what Python takes for equal."""
    if isinstance(a, dict):
        return all(_same_kinds(value, b[key]) for key, value in a.items())
    if isinstance(a, list):
        return all(map(_same_kinds, a, b))
    return isinstance(a, bool) is isinstance(b, bool)


def same_order(a: Any, b: Any) -> bool:
    """Whether equal values also have their keys in one order."""
    if isinstance(a, dict):
        return list(a) == list(b) and all(same_order(value, b[key]) for key, value in a.items())
    return all(map(same_order, a, b)) if isinstance(a, list) else True


def leaves(value: Any) -> Iterator[str]:
    """The texts in a value, keys among them."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, str):
        yield value


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


def arguments_read_back(case: Case) -> Iterator[Break]:
    whole = case.whole
    if whole is None:
        return
    for index, message in enumerate(case.messages):
        if message.get("tool_calls"):
            written = region(whole, case.messages, index)
            yield from _Message(case, whole, index, written).calls(message["tool_calls"])


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

    def broken(self, code: str, cause: str, message: str, sent: Any) -> Break:
        kept = sent if isinstance(sent, str) else json.dumps(sent, ensure_ascii=False)
        at = self.prompt.text.find(self.written)
        line = self.prompt.line_at(at) if at >= 0 else None
        return Break("arguments-read-back", code, cause, message, self.prompt.chat, kept, self.written, line=line)

    def calls(self, calls: list[dict[str, Any]]) -> Iterator[Break]:
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
            elif arguments:
                yield from self.arguments(which, arguments, as_text=as_text)

    def traces(self, call: dict[str, Any], arguments: Any, times: int) -> bool:
        """Whether a call is there without its name: by its id, or by arguments that are sent so many `times`."""
        dumped = json.dumps(arguments, ensure_ascii=False)
        return call.get("id", dumped) in self.written or (bool(arguments) and self.written.count(dumped) >= times)

    def arguments(self, which: str, arguments: Any, *, as_text: bool) -> Iterator[Break]:
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
        elif self.case.subject.frames.arguments_as_json.get("string" if as_text else "object"):
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

    def own_form(self, which: str, arguments: Any) -> Iterator[Break]:
        """Arguments in a form of the template's own: values that are no texts as JSON, keys in their order."""
        if not isinstance(arguments, dict):
            return
        for key, value in arguments.items():
            if isinstance(value, str) or _dumped(value, self.written) or f"{key}={value!r}" in self.written:
                continue  # the last: calls are written as Python's
            if repr(value) in self.written:
                message = f"{which}: its argument {key} stands as Python writes it"
                yield self.broken("CT101", "repr", message, arguments)
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


def candidates(tool: Tool) -> list[Any]:
    """What of a tool may stand in the prompt as one document, the most first."""
    function = tool.get("function", tool)
    return [tool, function, function["parameters"], function["parameters"]["properties"]]


PARTS_OF_A_TOOL = 2
"""The first of the `candidates` that is not the whole of a tool."""


def tools_read_back(case: Case) -> Iterator[Break]:
    whole, tools = case.whole, case.chat.get("tools", [])
    if whole is None or not tools:
        return
    form = case.subject.frames.tool_form
    values: list[Any] | None = None

    def broken(code: str, cause: str, message: str, sent: Any) -> Break:
        kept = sent if isinstance(sent, str) else json.dumps(sent, ensure_ascii=False)
        at = whole.text.find(tools[0].get("function", tools[0])["name"])
        line = whole.line_at(max(0, at))
        return Break("tools-read-back", code, cause, message, whole.chat, kept, whole.text, line=line)

    for number, tool in enumerate(tools):
        function = tool.get("function", tool)
        if function["name"] not in whole.text:
            yield broken("TL113", "name", f"tool {number}: its name is not written", function["name"])
            continue
        if form is None:
            pieces = [piece.strip() for piece in function["description"].splitlines() if piece.strip()]
            if not all(any(f in whole.text for f in (*forms_of(piece), repr(piece)[1:-1])) for piece in pieces):
                yield broken("TL113", "description", f"tool {number}: its description is not written", pieces)
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
        ("TL113", "PS105"),
        "the tools that are offered can be read back",
        tools_read_back,
        "writes the tools that are offered",
        lambda supports: supports.tools,
    ),
)

__all__ = ["LAWS", "candidates", "documents", "inside", "same", "text_of"]
