"""The synthetic conversations: named, documented, plain JSON, the same each time, and those of the recordings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from probes.chats.named import CHATS, conversation, conversation_named
from tests.conformance.golden import NO_SHARED, have_shared, suite


@pytest.mark.parametrize("name", CHATS)
def test_a_conversation(name: str) -> None:
    chat = conversation(name)
    assert json.loads(json.dumps(chat)) == chat
    assert conversation(name) == chat
    assert conversation(name)["messages"] is not chat["messages"]
    assert chat.keys() <= {"messages", "tools", "add_generation_prompt", "variables"}
    assert (CHATS[name].__doc__ or "").endswith(".")


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(KeyError, match="two-turns"):
        conversation("two-turn")


def test_a_taken_name_is_refused() -> None:
    with pytest.raises(ValueError, match="'user'"):
        conversation_named("user")(CHATS["user"])


@pytest.mark.skipif(not have_shared(), reason=NO_SHARED)
def test_they_are_those_of_the_recordings() -> None:
    """So that `rendered 27 of 31` here and in the recordings mean the same."""

    def ours(recorded: dict[str, Any]) -> dict[str, Any]:
        return {"variables" if key == "kwargs" else key: value for key, value in recorded.items()}

    assert {name: conversation(name) for name in CHATS} == {
        name: ours(chat) for name, chat in suite()["conversations"].items()
    }
    assert list(CHATS) == list(suite()["conversations"])
