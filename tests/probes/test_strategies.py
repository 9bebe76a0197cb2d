"""Conversations are valid by construction, hold what they may, and shrink to the smallest."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

import probes
from probes import Supports, conversations, messages, tool_calls, tools
from probes.chats.messages import Chat

EVERYTHING = Supports(
    text_parts=True,
    second_system=True,
    late_system=True,
    developer=True,
    consecutive_users=True,
    arguments=("object", "string"),
    beside=("empty", "null", "missing", "text"),
    reasoning="reasoning_content",
    markers=("<|im_start|>", "<|im_end|>"),
)
NOTHING = Supports(system=False, assistant=False, tools=False, tool_calls=False, parallel_calls=False, arguments=())

some = settings(max_examples=60, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])


class Enough(BaseException):
    """Ends a search from inside."""


def smallest(wanted: Callable[[Chat], bool], supports: Supports = EVERYTHING, tries: int = 100) -> Chat:
    """The smallest conversation seen after so many tries to make it smaller."""
    seen: list[Chat] = []
    asked = 0

    def look(chat: Chat) -> bool:
        nonlocal asked
        asked += bool(seen)
        if asked > tries:
            raise Enough
        if wanted(chat):
            seen.append(chat)
            return True
        return False

    few = settings(max_examples=500, database=None, suppress_health_check=list(HealthCheck))
    with suppress(Enough):
        find(conversations(supports), look, settings=few, random=Random(1))
    return min(seen, key=lambda chat: (len(chat["messages"]), len(json.dumps(chat))))


@some
@given(conversations(EVERYTHING))
def test_roles_alternate_and_every_call_has_its_result(chat: Chat) -> None:
    turns = [message for message in chat["messages"] if message["role"] not in ("system", "developer")]
    assert turns[0]["role"] == "user"
    waiting: list[str] = []
    before = ""
    for message in turns:
        role = message["role"]
        if role == "tool":
            waiting.remove(message["tool_call_id"])
        else:
            assert not waiting
            if before in ("assistant", "tool"):
                assert role == "assistant" or before == "assistant"
            waiting = [call["id"] for call in message.get("tool_calls", [])]
        before = "calls" if message.get("tool_calls") else role
    assert not waiting
    assert all(len(call["id"]) == 9 for message in turns for call in message.get("tool_calls", []))


@some
@given(conversations(EVERYTHING))
def test_conversations_are_plain_json_with_texts_unlike_each_other(chat: Chat) -> None:
    assert json.loads(json.dumps(chat)) == chat
    texts = [message["content"] for message in chat["messages"] if isinstance(message.get("content"), str)]
    said = [text for text in texts if text]
    assert len(set(said)) == len(said)


@some
@given(conversations(NOTHING))
def test_nothing_is_made_up_that_is_not_supported(chat: Chat) -> None:
    assert [message["role"] for message in chat["messages"]] == ["user"]
    assert "tools" not in chat


@some
@given(conversations(EVERYTHING))
def test_called_tools_are_offered_tools(chat: Chat) -> None:
    calls = {call["function"]["name"] for message in chat["messages"] for call in message.get("tool_calls", [])}
    if "tools" in chat:
        assert calls <= {tool["function"]["name"] for tool in chat["tools"]}


def test_the_smallest_conversation_is_one_plain_question() -> None:
    assert smallest(lambda chat: True)["messages"] == [{"role": "user", "content": "Text 1."}]


def test_a_second_question_needs_three_messages() -> None:
    def second(chat: Chat) -> bool:
        roles = [message["role"] for message in chat["messages"]]
        return "assistant" in roles and roles[-1] == "user"

    assert [message["role"] for message in smallest(second)["messages"]] == ["user", "assistant", "user"]


def test_parallel_calls_shrink_to_two_without_arguments() -> None:
    chat = smallest(lambda chat: any(len(message.get("tool_calls", [])) > 1 for message in chat["messages"]))
    calls = next(message["tool_calls"] for message in chat["messages"] if message.get("tool_calls"))
    assert len(chat["messages"]) == 4
    assert [call["function"]["arguments"] for call in calls] == [{}, {}]


@pytest.mark.parametrize(
    "wanted",
    [
        lambda chat: any(message["role"] == "developer" for message in chat["messages"]),
        lambda chat: any(isinstance(message.get("content"), list) for message in chat["messages"]),
        lambda chat: any("reasoning_content" in message for message in chat["messages"]),
        lambda chat: any(message.get("content", "") is None for message in chat["messages"]),
        lambda chat: any("content" not in message for message in chat["messages"]),
        lambda chat: any("<|im_end|>" in str(message.get("content")) for message in chat["messages"]),
        lambda chat: any(message.get("content") == "" and message["role"] == "user" for message in chat["messages"]),
        lambda chat: chat["messages"][-1]["role"] == "tool",
        lambda chat: chat["messages"][-1]["role"] == "assistant",
        lambda chat: [message["role"] for message in chat["messages"]][:2] == ["system", "system"],
        lambda chat: any(
            results != sorted(results)
            for results in [[m["tool_call_id"] for m in chat["messages"] if m["role"] == "tool"]]
        ),
    ],
    ids=[
        *("developer", "parts", "reasoning", "null", "missing", "markers", "empty", "results-last", "answer-last"),
        *("two-systems", "results-out-of-order"),
    ],
)
def test_everything_that_is_supported_is_made_up(wanted: Callable[[Chat], bool]) -> None:
    assert wanted(smallest(wanted, tries=0))


def test_a_required_system_message_is_always_there() -> None:
    def without(chat: Chat) -> bool:
        return chat["messages"][0]["role"] != "system"

    few = settings(max_examples=100, database=None, suppress_health_check=list(HealthCheck))
    with pytest.raises(NoSuchExample):
        find(conversations(Supports(leading_system=True)), without, settings=few)


@some
@given(tools(), tool_calls(), messages(), st.data())
def test_parts_of_conversations_alone(
    offered: list[dict[str, Any]], calls: list[dict[str, Any]], said: list[dict[str, Any]], data: st.DataObject
) -> None:
    assert 1 <= len(offered) <= 3
    assert len({tool["function"]["name"] for tool in offered}) == len(offered)
    assert len({call["id"] for call in calls}) == len(calls)
    assert said
    chosen = data.draw(tool_calls(offered=offered))
    assert {call["function"]["name"] for call in chosen} <= {tool["function"]["name"] for tool in offered}


def test_they_are_public() -> None:
    assert {"Supports", "conversations", "messages", "tool_calls", "tools", "fuzz"} <= set(probes.__all__)


def test_no_conversation_is_taken_without_the_variables_that_a_template_needs() -> None:
    needy = Supports(variables=(("tools_json", "[]"),))
    asked: Chat = {"messages": [{"role": "user", "content": "Hi"}]}
    assert Supports().covers(asked)
    assert not needy.covers(asked)
    assert needy.covers({**asked, "variables": {"tools_json": "a", "more": 1}})
