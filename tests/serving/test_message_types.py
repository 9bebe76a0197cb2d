"""The types of messages that vLLM reads, against those of the real `openai` package."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, ValidationError

from jinjarun.serving.vllm import message_types as ours

chat = pytest.importorskip("openai.types.chat", reason="the oracles are not installed")

NAMES = [
    *("ChatCompletionDeveloperMessageParam", "ChatCompletionSystemMessageParam", "ChatCompletionUserMessageParam"),
    *("ChatCompletionAssistantMessageParam", "ChatCompletionToolMessageParam", "ChatCompletionFunctionMessageParam"),
]


class Theirs(BaseModel):
    model_config = ConfigDict(extra="allow")

    message: chat.ChatCompletionMessageParam  # type: ignore[name-defined]


class Ours(BaseModel):
    model_config = ConfigDict(extra="allow")

    message: (
        ours.ChatCompletionDeveloperMessageParam
        | ours.ChatCompletionSystemMessageParam
        | ours.ChatCompletionUserMessageParam
        | ours.ChatCompletionAssistantMessageParam
        | ours.ChatCompletionToolMessageParam
        | ours.ChatCompletionFunctionMessageParam
    )


def read(model: Any, message: Any) -> str:
    """What the union makes of a message, lists that are validated late included, or its errors."""
    try:
        found = model(message=message).message
        return json.dumps(
            {key: value if isinstance(value, str | dict | None) else list(value) for key, value in found.items()}
        )
    except ValidationError as error:
        return str([(one["type"], one["loc"], one["msg"]) for one in error.errors()])


TEXTS = st.sampled_from(
    ["text", "refusal", "function", "custom", "system", "user", "assistant", "tool", "developer", "x"]
)
KEYS = st.sampled_from(
    [
        *("role", "content", "name", "tool_calls", "tool_call_id", "refusal", "audio", "function_call", "id", "type"),
        *("text", "function", "arguments", "custom", "input", "image_url", "url", "detail", "file", "file_id", "extra"),
    ]
)
VALUES = st.recursive(
    st.none() | TEXTS | st.integers(0, 1),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=8,
)
ROLES = st.sampled_from(["system", "user", "assistant", "tool", "developer", "function", "critic"])
MESSAGES = st.fixed_dictionaries(
    {"role": ROLES},
    optional=dict.fromkeys(("content", "name", "tool_calls", "tool_call_id", "refusal", "audio"), VALUES),
)


@settings(max_examples=300, deadline=None)
@given(message=MESSAGES | VALUES)
def test_messages_are_read_as_by_openai(message: Any) -> None:
    assert read(Ours, message) == read(Theirs, message)


@pytest.mark.parametrize("name", NAMES)
def test_keys_are_those_of_openai(name: str) -> None:
    mine, real = getattr(ours, name), getattr(chat, name)
    assert (mine.__required_keys__, mine.__optional_keys__) == (real.__required_keys__, real.__optional_keys__)
