"""What a request may leave out may be left out, and what it may name it may name.

A tool needs neither description nor parameters, a parameter neither type nor description, a result no name. A request
without one of them renders as one with it does. The names of parameters are free: `type` is as good as any.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from jinjarun.errors import LimitExceeded, TemplateRaised, quote
from probes.chats.messages import function_of
from probes.laws.law import Law, Violation

if TYPE_CHECKING:
    from probes.chats.messages import Chat
    from probes.laws.case import Case

WORDS = ("type", "description", "properties", "items", "name")
"""Words of JSON Schema that are good names of parameters, too."""
PYTHON = re.compile(r"(?<!= )\bNone\b|\bUndefined\b")
"""What Python prints for nothing; behind `= ` it may be meant, in a signature."""

NO_PROPERTIES = "a tool whose parameters have no properties"

Change = Callable[[dict[str, Any]], None]


def _first_tool(chat: dict[str, Any]) -> dict[str, Any]:
    function: dict[str, Any] = function_of(chat["tools"][0])
    return function


def _first_property(chat: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(iter(_first_tool(chat)["parameters"]["properties"].values()))
    return found


def _first_result(chat: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(message for message in chat["messages"] if message["role"] == "tool")
    return found


def _null_in_schema(chat: dict[str, Any]) -> None:
    _first_property(chat)["default"] = None


def _no_results_name(chat: dict[str, Any]) -> None:
    for message in chat["messages"]:
        if message["role"] == "tool":
            message.pop("name", None)


ABSENT: dict[str, Change] = {
    "a tool without a description": lambda chat: _first_tool(chat).pop("description"),
    "a tool without parameters": lambda chat: _first_tool(chat).pop("parameters"),
    NO_PROPERTIES: lambda chat: _first_tool(chat).update(parameters={"type": "object"}),
    "a tool without required": lambda chat: _first_tool(chat)["parameters"].pop("required"),
    "a parameter without a type": lambda chat: _first_property(chat).pop("type"),
    "a parameter without a description": lambda chat: _first_property(chat).pop("description"),
    "a parameter whose default is null": _null_in_schema,
    "a result without a name": _no_results_name,
}
"""What is left out -> how to leave it out of a request that has it; KeyError or StopIteration where it has none."""


def completed(chat: Chat) -> Chat:
    """The same with all that may be left out; a field that is there stays."""
    whole: Any = deepcopy(chat)
    for tool in whole.get("tools") or []:
        function = function_of(tool)
        function.setdefault("description", "Does one thing.")
        parameters = function.setdefault("parameters", {"type": "object", "properties": {}, "required": []})
        properties = parameters.setdefault("properties", {})
        parameters.setdefault("required", [])
        for schema in properties.values():
            if isinstance(schema, dict):
                schema.setdefault("description", "A value.")
                if not {"anyOf", "$ref", "enum"} & schema.keys():
                    schema.setdefault("type", "string")
                if "default" in schema and schema["default"] is None:
                    del schema["default"]
    names = {
        call.get("id"): function_of(call)["name"]
        for message in whole["messages"]
        for call in message.get("tool_calls") or []
    }
    for message in whole["messages"]:
        if message["role"] == "tool" and message.get("tool_call_id") in names:
            message.setdefault("name", names[message["tool_call_id"]])
    return whole  # type: ignore[no-any-return]


def optional_fields(case: Case) -> Iterator[Violation]:
    """What the conversation leaves out; where it leaves out nothing, each field in its turn."""
    whole = completed(case.chat)
    if not whole.get("tools") and not any(message["role"] == "tool" for message in case.messages):
        return
    expected = case.subject.render(whole).text
    if expected is None:
        return
    if whole != case.chat:
        without = [name for name, change in ABSENT.items() if _lacks(whole, case.chat, change)]
        name = without[0] if len(without) == 1 else "a request without optional fields"
        yield from _judged(case, name, case.chat, expected)
        return
    if not list(_judged(case, "all", _without_all(whole), expected)):
        return
    asked = {name: made for name, change in ABSENT.items() if (made := _changed(whole, change)) is not None}
    for name, made in asked.items():
        yield from _judged(case, name, made, expected)


def _changed(chat: Chat, change: Change) -> Chat | None:
    made: Any = deepcopy(chat)
    try:
        change(made)
    except (KeyError, StopIteration):
        return None
    return None if made == chat else made


def _without_all(chat: Chat) -> Chat:
    """The request without any of it: asked first, as most templates do well. Of two tools the second has no parameters,
    and of one alone the first has none."""
    made: Any = deepcopy(chat)
    for change in ABSENT.values():
        if change is ABSENT["a tool without parameters"] or change is ABSENT[NO_PROPERTIES]:
            continue
        with suppress(KeyError, StopIteration):
            change(made)
    if made.get("tools"):
        function_of(made["tools"][-1]).pop("parameters", None)
    return made  # type: ignore[no-any-return]


def _lacks(whole: Chat, chat: Chat, change: Change) -> bool:
    return _changed(whole, change) == chat


def _judged(case: Case, name: str, chat: Chat, expected: str) -> Iterator[Violation]:
    outcome = case.subject.render(chat)
    error, found = outcome.error, outcome.text or ""
    if isinstance(error, TemplateRaised | LimitExceeded):
        return
    if error is not None:
        said = f"{name} fails: {quote(error.message)[:100]}"
        yield Violation("optional-fields", "TL117", f"{name} fails", said, chat, expected, "", line=error.line)
    elif len(PYTHON.findall(found)) > len(PYTHON.findall(expected)):
        word = PYTHON.search(found)
        said = f"{name} is printed as {word[0] if word else 'None'}"
        yield Violation("optional-fields", "TL117", f"{name} printed", said, chat, expected, found)


def property_names(case: Case) -> Iterator[Violation]:
    """A tool whose parameters have these names says as much as one whose parameters have other names."""
    if not case.chat.get("tools"):
        return
    as_words, plain = (_named(case.chat, suffix) for suffix in ("", "_48330"))
    expected = case.subject.render(plain).text
    known = [text for text in _descriptions() if expected is not None and text in expected]
    if expected is None or not known:
        return
    outcome = case.subject.render(as_words)
    if isinstance(outcome.error, TemplateRaised | LimitExceeded):
        return
    if outcome.error is not None:
        said = f"parameters with names like {WORDS[0]!r} fail: {quote(outcome.error.message)[:100]}"
        line = outcome.error.line
        yield Violation("property-names", "TL116", "fails", said, as_words, expected, "", line=line)
        return
    found = outcome.text or ""
    lost = [word for word, text in zip(WORDS, _descriptions(), strict=True) if text in known and text not in found]
    if lost:
        said = (
            f"a parameter called {' or '.join(map(repr, lost))} is lost from the tool; under another name it is written"
        )
        yield Violation("property-names", "TL116", "lost", said, as_words, expected, found)


def _descriptions() -> list[str]:
    return [f"Says value {48331 + number}" for number in range(len(WORDS))]


def _named(chat: Chat, suffix: str) -> Chat:
    """The request with one tool, whose parameters are called by the words and `suffix`."""
    made: Any = deepcopy(chat)
    described = zip(WORDS, _descriptions(), strict=True)
    properties = {f"{word}{suffix}": {"type": "string", "description": text} for word, text in described}
    parameters = {"type": "object", "properties": properties, "required": [f"{WORDS[0]}{suffix}"]}
    function = function_of(made["tools"][0])
    function["parameters"] = parameters
    made["tools"] = made["tools"][:1]
    return made  # type: ignore[no-any-return]


LAWS = (
    Law(
        "optional-fields",
        ("TL117",),
        "what a request may leave out may be left out",
        optional_fields,
        "writes the tools that are offered",
        lambda supports: supports.tools,
        heavy=True,
    ),
    Law(
        "property-names",
        ("TL116",),
        "parameters may be called by words of schemas",
        property_names,
        "writes the tools that are offered",
        lambda supports: supports.tools,
        heavy=True,
    ),
)
