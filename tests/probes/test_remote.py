"""A running server beside our own path: equal where it is, and where it is not, what differs and may explain it."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any

import pytest

from jinjarun.errors import JinjarunError
from jinjarun.serving.caps import chat_template_caps
from jinjarun.serving.llama_server import LlamaServer
from jinjarun.sources.server import Prompt, RunningServer
from probes.chats.named import CHATS
from probes.reporters.text import server_text
from probes.serve.check import Asked, check_server
from tests.families import NOW, family


class Played(RunningServer):
    """A server that is played by our own path, with what a real one may have otherwise."""

    def __init__(self, name: str, *, build: str = "b11434-1a2b3c", days: int = 0, **settings: Any) -> None:
        super().__init__("http://played:80")
        found = family(name)
        self._now = NOW + timedelta(days=days).total_seconds()
        self._server = LlamaServer(found.source, **found.tokens, **settings)
        self._props = {
            "chat_template": found.source,
            "chat_template_caps": chat_template_caps(found.source).to_dict(),
            "build_info": build,
            **found.tokens,
        }

    def apply_template(self, body: Any) -> Prompt:
        try:
            return Prompt(200, self._server.apply(copy.deepcopy(body), now=self._now), None)
        except JinjarunError as error:
            return Prompt(error.status, None, error.message)


@pytest.mark.parametrize("name", ["chatml", "llama3-today", "hermes-tools", "mistral"])
def test_equal(name: str) -> None:
    check = check_server(Played(name), now=NOW)
    assert (check.equal, check.asked, check.differences, check.caps, check.note) == (True, len(CHATS), [], {}, None)
    assert (check.adds_bos, check.adds_eos, check.days_apart) == (False, False, 0)
    assert "equal: " in server_text(check)


def test_what_the_tokenizer_adds_is_found_out() -> None:
    check = check_server(Played("mistral", add_bos=True), now=NOW)
    assert (check.equal, check.adds_bos, check.adds_eos) == (True, True, False)
    assert "adds BOS," in server_text(check)


@pytest.mark.parametrize("days", [-1, 1])
def test_another_time_zone_is_found_out(days: int) -> None:
    check = check_server(Played("llama3-today", days=days), now=NOW)
    assert (check.equal, check.days_apart) == (True, days)
    assert f"{days:+d} day" in server_text(check)


def test_another_prompt() -> None:
    check = check_server(Played("qwen3", default_kwargs={"enable_thinking": False}), now=NOW)
    assert not check.equal
    assert {found.conversation for found in check.differences} < set(CHATS)
    found = check.differences[0]
    assert found.at is not None
    assert found.server != found.ours
    assert check.note is not None
    assert "--chat-template-kwargs" in check.note
    assert found.conversation in server_text(check)


def test_another_build() -> None:
    played = Played("qwen3", build="b9000-x", default_kwargs={"enable_thinking": False})
    note = check_server(played, now=NOW).note
    assert note is not None
    assert "b9000" in note


def test_other_caps() -> None:
    played = Played("flat")
    played.props["chat_template_caps"] = {**played.props["chat_template_caps"], "supports_tools": True, "new": False}
    check = check_server(played, now=NOW)
    assert (check.equal, check.caps) == (False, {"supports_tools": (True, False), "new": (False, None)})
    assert "supports_tools" in server_text(check)


def test_a_server_without_caps() -> None:
    played = Played("flat")
    del played.props["chat_template_caps"]
    assert check_server(played, now=NOW).equal


def test_errors_beside_prompts() -> None:
    body = {"messages": [{"role": "user", "content": "Hi"}]}
    server = Played("flat")
    prompts = [Prompt(200, "user: Hi\nassistant:", None), Prompt(500, None, "no"), Prompt(200, "x\ud800", None)]
    asked = [Asked(str(i), body, prompt) for i, prompt in enumerate(prompts)]
    asked.append(Asked("bad", {"messages": 1}, Prompt(400, None, "their words")))
    asked.append(Asked("worse", {"messages": 1}, Prompt(500, None, "their words")))
    found = {one.conversation: one for one in check_server(server, asked, now=NOW).differences}
    assert list(found) == ["1", "2", "worse"]
    assert found["1"].server == "error 500: no"
    assert found["worse"].ours.startswith("error 400: ")
    assert found["2"].at == 0
