"""What a request is made of, as plain JSON: the types, and the one set of functions that build it."""

from __future__ import annotations

import json
from typing import Any, Literal, NotRequired, TypedDict

Message = dict[str, Any]
Tool = dict[str, Any]

ArgumentForm = Literal["object", "string"]
"""How the arguments of a call are sent: as an object, or as JSON text, as the OpenAI API does."""
Beside = Literal["empty", "null", "missing", "text", "parts"]
"""The content of a message that calls tools."""

REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking", "thought", "tool_plan")
"""Names under which templates look for the reasoning of a message."""


class Chat(TypedDict):
    """One request: a plain dict of plain JSON."""

    messages: list[Message]
    tools: NotRequired[list[Tool]]
    add_generation_prompt: NotRequired[bool]
    continue_final_message: NotRequired[bool]
    variables: NotRequired[dict[str, Any]]


def request_body(chat: Chat) -> dict[str, Any]:
    """The chat as a request body that `render --messages` and `--request` read."""
    body: dict[str, Any] = dict(chat)
    if "variables" in body:
        body["chat_template_kwargs"] = body.pop("variables")
    return body


def with_text_arguments(chat: Chat) -> Chat:
    """The chat with the arguments of its calls as JSON text."""
    if not any(message.get("tool_calls") for message in chat["messages"]):
        return chat
    return {**chat, "messages": [_with_text_arguments(message) for message in chat["messages"]]}


def _with_text_arguments(message: Message) -> Message:
    calls = message.get("tool_calls")
    if not calls:
        return message
    return {**message, "tool_calls": [_as_text(made) for made in calls]}


def _as_text(made: dict[str, Any]) -> dict[str, Any]:
    function = function_of(made)
    if isinstance(function.get("arguments"), str):
        return made
    function = {**function, "arguments": json.dumps(function.get("arguments"), ensure_ascii=False)}
    return {**made, "function": function} if "function" in made else function


def say(role: str, text: str | None, **fields: Any) -> Message:
    """A message with a text, and `fields` beside it."""
    return {"role": role, "content": text, **fields}


def text_part(text: str) -> dict[str, Any]:
    """A text as a part of a content that is a list."""
    return {"type": "text", "text": text}


def in_parts(message: Message) -> Message:
    """The same message with its text as a list of one part, of none where the text is empty."""
    content = message.get("content")
    if not isinstance(content, str):
        return message
    return {**message, "content": [text_part(content)] if content else []}


def beside_calls(beside: Beside, text: str) -> dict[str, Any]:
    """The key `content` of a message that calls tools; without the key where it is missing."""
    contents: dict[Beside, Any] = {"empty": "", "null": None, "text": text, "parts": [text_part(text)]}
    return {} if beside == "missing" else {"content": contents[beside]}


def call(
    name: str, arguments: dict[str, Any], call_id: str, *, form: ArgumentForm = "object", bare: bool = False
) -> dict[str, Any]:
    """A call of a tool; `bare` without `id`, `type` and `function` around it."""
    sent = arguments if form == "object" else json.dumps(arguments, ensure_ascii=False)
    function = {"name": name, "arguments": sent}
    return function if bare else {"id": call_id, "type": "function", "function": function}


def result(text: str, call_id: str, name: str) -> Message:
    """What a tool gave for the call of this id."""
    return {"role": "tool", "tool_call_id": call_id, "name": name, "content": text}


def tool(
    name: str, description: str, properties: dict[str, Any], required: list[str] | None = None, *, bare: bool = False
) -> Tool:
    """A tool that is offered; `bare` without `type` and `function` around it."""
    parameters: dict[str, Any] = {"type": "object", "properties": properties}
    if required is not None:
        parameters["required"] = required
    function = {"name": name, "description": description, "parameters": parameters}
    return function if bare else {"type": "function", "function": function}


def function_of(made: dict[str, Any]) -> dict[str, Any]:
    """The inner object of a tool or of a call, whether bare or not."""
    function: dict[str, Any] = made.get("function", made)
    return function
