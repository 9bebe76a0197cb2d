"""Which bodies llama-server refuses, where, and with which status. The statuses are what the code of b11434 answered,
except for the last rows, which no JSON text can hold.
"""

from __future__ import annotations

from typing import Any

import pytest

from jinjarun.errors import InputError, LimitExceeded
from jinjarun.limits import Limits
from jinjarun.serving.requests import ChatRequest, parse_request

USER = {"role": "user", "content": "q"}
FUNCTION = {"name": "f", "arguments": "{}"}


def read(body: Any) -> ChatRequest:
    return parse_request(body, {}, Limits())


def with_message(**message: Any) -> dict[str, Any]:
    return {"messages": [message]}


def with_call(call: Any) -> dict[str, Any]:
    return with_message(role="assistant", tool_calls=[call])


def with_tool(tool: Any) -> dict[str, Any]:
    return {"messages": [USER], "tools": [tool]}


def with_user(**fields: Any) -> dict[str, Any]:
    return {"messages": [USER], **fields}


@pytest.mark.parametrize(
    ("body", "status", "path"),
    [
        (None, 400, "messages"),
        ([], 400, "messages"),
        ("text", 400, "messages"),
        ({}, 400, "messages"),
        ({"messages": None}, 400, "messages"),
        ({"messages": {}}, 400, "messages"),
        ({"messages": ["text"]}, 400, "messages[0]"),
        ({"messages": [[]]}, 400, "messages[0]"),
        (with_message(role="user"), 400, "messages[0]"),
        (with_message(role="assistant"), 400, "messages[0]"),
        (with_message(content="q"), 500, "messages[0]"),
        (with_message(role=1, content="q"), 500, "messages[0].role"),
        (with_message(role=None, content="q"), 500, "messages[0].role"),
        (with_message(role="user", content=1), 400, "messages[0].content"),
        (with_message(role="user", content={}), 400, "messages[0].content"),
        (with_message(role="user", content=["text"]), 400, "messages[0].content[0].type"),
        (with_message(role="user", content=[{}]), 400, "messages[0].content[0].type"),
        (with_message(role="user", content=[{"type": "media_marker"}]), 400, "messages[0].content[0].type"),
        (with_message(role="user", content=[{"type": "image_url"}]), 500, "messages[0].content[0]"),
        (with_message(role="user", content=[{"type": "input_audio"}]), 500, "messages[0].content[0]"),
        (with_message(role="user", content=[{"type": "video_url"}]), 500, "messages[0].content[0]"),
        (with_message(role="user", content=[{"type": "text"}]), 500, "messages[0].content[0]"),
        (with_message(role="user", content=[{"type": "text", "text": None}]), 500, "messages[0].content[0].text"),
        (with_message(role="user", content="q", name=None), 500, "messages[0].name"),
        (with_message(role="user", content="q", reasoning_content=None), 500, "messages[0].reasoning_content"),
        (with_message(role="tool", content="q", tool_call_id=7), 500, "messages[0].tool_call_id"),
        (with_message(role="assistant", tool_calls="text"), 500, "messages[0].tool_calls[0]"),
        (with_call("text"), 500, "messages[0].tool_calls[0]"),
        (with_call({}), 500, "messages[0].tool_calls[0]"),
        (with_call({"type": "code"}), 500, "messages[0].tool_calls[0].type"),
        (with_call({"type": "function"}), 500, "messages[0].tool_calls[0]"),
        (with_call({"type": "function", "function": "f"}), 500, "messages[0].tool_calls[0].function"),
        (with_call({"type": "function", "function": {"name": "f"}}), 500, "messages[0].tool_calls[0].function"),
        (with_call({"type": "function", "function": FUNCTION, "id": None}), 500, "messages[0].tool_calls[0].id"),
        (with_user(tools={}), 500, "tools"),
        (with_user(tools="text"), 500, "tools"),
        (with_tool("text"), 500, "tools[0]"),
        (with_tool({"type": "web_search"}), 500, "tools[0].type"),
        (with_tool({"type": "function"}), 500, "tools[0]"),
        (with_tool({"type": "function", "function": {}}), 500, "tools[0].function"),
        (with_tool({"type": "function", "function": {"name": 1}}), 500, "tools[0].function.name"),
        (
            with_tool({"type": "function", "function": {"name": "f", "description": None}}),
            500,
            "tools[0].function.description",
        ),
        (with_user(tool_choice="any"), 400, "tool_choice"),
        (with_user(continue_final_message=True), 400, "continue_final_message"),
        ({"messages": [USER, *[{"role": "assistant", "content": "a"}] * 2]}, 400, "messages[2]"),
        ({"messages": [USER, {"role": "assistant", "tool_calls": [{"type": "function", "function": FUNCTION}]}]}, 400,
         "messages[1]"),
        (with_user(reasoning_format=1), 400, "reasoning_format"),
        (with_user(reasoning_format="other"), 500, "reasoning_format"),
        (with_user(json_schema={}, grammar="root ::= x"), 500, "json_schema"),
        (with_user(response_format={"type": "xml"}), 400, "response_format.type"),
        (
            {**with_tool({"type": "function", "function": {"name": "f"}}), "grammar": None},
            400,
            "grammar",
        ),
        (with_user(chat_template_kwargs={"enable_thinking": "false"}), 400, "chat_template_kwargs.enable_thinking"),
        (with_user(x=float("nan")), 400, "x"),
        (with_user(x=["\ud800"]), 400, "x[0]"),
        (with_user(x={1: 2}), 400, "x"),
        (with_user(x=(b"",)), 400, "x[0]"),
        (with_user(x=10**400), 400, "x"),
    ],
)  # fmt: skip
def test_refused(body: Any, status: int, path: str) -> None:
    with pytest.raises(InputError) as caught:
        read(body)
    assert (caught.value.status, caught.value.details["path"]) == (status, path)


@pytest.mark.parametrize(
    "body",
    [
        {"messages": []},
        with_message(role="assistant", content=None),
        with_message(role="whoever", content=None),
        with_message(role="assistant", content="", tool_calls=None),
        with_user(tools=None, tool_choice=None, response_format=None, chat_template_kwargs=None),
        with_user(tool_choice={"type": "function"}, stream="yes", stop=[], add_generation_prompt=1),
        with_user(response_format={"type": "text"}),
        with_user(chat_template_kwargs=["a"]),
        with_user(continue_final_message="both"),
    ],
)
def test_accepted(body: Any) -> None:
    assert isinstance(read(body), ChatRequest)


def test_what_the_server_finds_wrong_in_the_end() -> None:
    tool = {"type": "function", "function": {"name": "f"}}
    fault = read(with_user(top_logprobs=5)).late_fault
    assert fault is not None
    assert fault.details["path"] == "top_logprobs"
    assert read({**with_tool(tool), "logprobs": True, "stream": True}).late_fault is not None
    assert read(with_user(logprobs=True, top_logprobs=5)).late_fault is None


@pytest.mark.parametrize(
    ("fields", "schema"),
    [
        ({}, None),
        ({"json_schema": {}}, {"type": "object"}),
        ({"json_schema": {"type": "string"}}, {"type": "string"}),
        ({"response_format": {"type": "json_object"}}, {"type": "object"}),
        ({"response_format": {"type": "json_object", "schema": {"const": 1}}}, {"const": 1}),
        ({"response_format": {"type": "json_object"}, "json_schema": {"const": 1}}, {"const": 1}),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"const": 1}}}}, {"const": 1}),
        ({"response_format": {"type": "json_schema"}}, {"type": "object"}),
    ],
)
def test_schema_of_the_answer(fields: dict[str, Any], schema: Any) -> None:
    assert read(with_user(**fields)).json_schema == schema


def test_tools_are_rewritten_with_all_keys_in_order() -> None:
    function = {"parameters": None, "strict": True, "name": "f"}
    (tool,) = read(with_tool({"function": function, "type": "function"})).tools
    assert list(tool) == ["type", "function"]
    assert list(tool["function"].items()) == [("name", "f"), ("description", ""), ("parameters", None)]


def test_messages_are_rewritten_with_keys_in_order() -> None:
    call = {"id": "1", "function": {"arguments": {"a": [1.0]}, "name": "f"}, "type": "function"}
    raw = {"tool_calls": [call], "extra": 1, "name": "n", "reasoning_content": "r", "content": None}
    (message,) = read({"messages": [{**raw, "role": "user"}]}).messages
    assert list(message.to_json()) == ["role", "content", "reasoning_content", "name", "tool_calls"]
    assert message.to_json()["tool_calls"] == [
        {"type": "function", "function": {"name": "f", "arguments": '{"a":[1.0]}'}, "id": "1"}
    ]


def test_data_nested_too_deep_is_not_evaluated() -> None:
    nested: Any = []
    for _ in range(200):
        nested = [nested]
    with pytest.raises(LimitExceeded) as caught:
        read(with_user(x=nested))
    assert caught.value.limit == "data_depth"
