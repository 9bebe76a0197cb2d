"""The formats compiled into llama.cpp: what its code writes for each (recorded), and what becomes of their names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jinjarun.errors import InputError, JinjarunError, SourceError
from jinjarun.serving.builtin_formats import FORMATS, NAMES, FormatServer, misread_name
from jinjarun.serving.llama_server import LlamaServer

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "builtin-formats.json").read_text(encoding="utf-8"))
QUESTION: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}]}


def test_the_names_are_those_of_the_build() -> None:
    assert sorted(NAMES) == RECORDED["names"]
    assert list(FORMATS) == sorted(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_writes_what_the_compiled_one_writes(name: str) -> None:
    server = FormatServer(name)
    for conversation, request in RECORDED["conversations"].items():
        last = request["messages"][-1]["role"] if request["messages"] else None
        if last == "assistant" and request["add_generation_prompt"]:
            continue  # the server continues such a message, so it does not ask its format for a generation prompt
        assert server.apply(request) == RECORDED["prompts"][name][conversation], conversation


def test_the_last_message_of_the_assistant_is_written_whole_and_no_turn_opened() -> None:
    body = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]}
    assert FormatServer("phi3").apply(body) == "<|user|>\nHi<|end|>\n<|assistant|>\nHo<|end|>\n"


def test_text_parts_are_joined_by_line_breaks() -> None:
    parts = [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]
    assert "user\nOne.\nTwo.<|im_end|>" in FormatServer("chatml").apply(
        {"messages": [{"role": "user", "content": parts}]}
    )


@pytest.mark.parametrize(
    ("extra", "status"),
    [
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, 500),
        ({"tool_choice": "none"}, 500),
        ({"messages": 1}, 400),
        ({"response_format": {"type": "json_object", "schema": {"type": "nothing"}}}, 500),
        ({"top_logprobs": 1}, 400),
    ],
)
def test_what_is_refused(extra: dict[str, Any], status: int) -> None:
    with pytest.raises(InputError) as caught:
        FormatServer("chatml").apply(QUESTION | extra)
    assert caught.value.status == status


@pytest.mark.parametrize(
    ("name", "said"),
    [("command-r", "not available here"), ("chatml3", "did you mean 'chatml'"), ("{{ x }}", "runs no templates")],
)
def test_a_format_that_is_not_there(name: str, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        FormatServer(name)


def test_with_jinja_a_name_is_a_template_that_writes_itself() -> None:
    assert LlamaServer("llama3").apply(QUESTION) == "llama3"
    assert LlamaServer("chatml").apply(QUESTION).startswith("<|im_start|>user")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("llama3", "--no-jinja"),
        ("lama3", "'llama3'"),
        ("./template.jinja", "--chat-template-file"),
        ("chatml", None),
        ("{{ messages }}", None),
        ("One line\nand another", None),
    ],
)
def test_a_name_that_was_probably_meant(text: str, said: str | None) -> None:
    warning = misread_name(text)
    assert (warning is None) if said is None else (warning is not None and said in warning)


def test_errors_stay_in_the_tree() -> None:
    for body in (None, [], "x", {"messages": [{"role": "user", "content": "\ud800"}]}):
        with pytest.raises(JinjarunError):
            FormatServer("gemma").apply(body)
