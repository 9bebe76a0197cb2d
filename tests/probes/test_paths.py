"""One request on one path: the prompt, the origin of each of its characters, and what was changed."""

from __future__ import annotations

from typing import Any

import pytest

from jinjarun.errors import InputError, JinjarunError
from jinjarun.serving.llama_server import apply_template
from jinjarun.serving.transformers import apply_chat_template
from probes.chats.named import CHATS
from probes.rendering.paths import SERVER_ORIGIN, Setting, answer_on_path
from probes.rendering.renders import APPLY, LLAMA_RAW, LLAMA_SERVER, PATHS, RAW
from probes.serve.check import as_body
from probes.serve.worker import from_json, to_json
from tests.families import NOW, WITH_TEMPLATE, family

QUESTION: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}]}
MERGED = "{% for m in messages if m.role != 'system' %}[{{ m.content }}]{% endfor %}"


def setting(name: str, **changes: Any) -> Setting:
    found = family(name)
    return Setting({"default": found.source}, **{**found.tokens, "now": NOW, **changes})


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", WITH_TEMPLATE)
def test_spans_cover_every_prompt(name: str, path: str) -> None:
    for build in CHATS.values():
        try:
            answer = answer_on_path(path, setting(name), as_body(build()), spans=True)
        except JinjarunError:
            continue
        assert "".join(span.text for span in answer.spans) == answer.text
        at = 0
        for span in answer.spans:
            assert (span.start, span.end) == (at, at + len(span.text))
            at = span.end


def test_a_path_is_what_its_own_function_gives() -> None:
    body = QUESTION | {"chat_template_kwargs": {"enable_thinking": False}}
    qwen3 = family("qwen3")
    ours = {path: answer_on_path(path, setting("qwen3"), body).text for path in PATHS}
    assert ours[LLAMA_SERVER] == apply_template(qwen3.source, body, **qwen3.tokens, now=NOW)
    tokens = {name: text or None for name, text in qwen3.tokens.items()}
    assert ours[APPLY] == apply_chat_template(
        qwen3.source, QUESTION["messages"], add_generation_prompt=True, enable_thinking=False, now=NOW, **tokens
    )
    assert ours[RAW] == qwen3.render("transformers", QUESTION["messages"], variables={"enable_thinking": False})
    assert ours[LLAMA_RAW] == qwen3.render("llama.cpp", QUESTION["messages"], variables={"enable_thinking": False})


def test_origins_count_messages_as_the_request_does() -> None:
    body = {"messages": [{"role": "system", "content": "Be brief."}, *QUESTION["messages"] * 2]}
    answer = answer_on_path(LLAMA_SERVER, Setting({"default": MERGED}), body, spans=True)
    assert answer.text == "[Be brief.\nHi][Hi]"
    assert [span.origin for span in answer.spans if span.text == "Hi"] == ["messages[2].content"]


def test_what_the_server_appends_is_of_the_server() -> None:
    body = {"messages": [*QUESTION["messages"], {"role": "assistant", "content": "Half an ans"}]}
    answer = answer_on_path(LLAMA_SERVER, setting("chatml"), body, spans=True)
    last = answer.spans[-1]
    assert last.origin == SERVER_ORIGIN
    assert last.text.endswith("Half an ans")
    assert "final-message-appended" in {row["name"] for row in answer.reworks}


def test_a_trimmed_bos_moves_the_spans() -> None:
    answer = answer_on_path(LLAMA_SERVER, setting("mistral", add_bos=True), QUESTION, spans=True)
    assert answer.text == "[INST]Hi[/INST]"
    assert {span.text: span.origin for span in answer.spans}["Hi"] == "messages[0].content"


def test_the_server_has_variables_of_its_own() -> None:
    off = setting("qwen3", default_kwargs={"enable_thinking": False})
    for path in PATHS:
        assert answer_on_path(path, off, QUESTION).text.endswith("</think>\n\n")


def test_a_format_of_llama_cpp() -> None:
    answer = answer_on_path(LLAMA_SERVER, Setting({}, format="phi3"), QUESTION, spans=True)
    assert (answer.text, answer.template, answer.family) == ("<|user|>\nHi<|end|>\n<|assistant|>\n", None, "phi3")


@pytest.mark.parametrize("path", [RAW, LLAMA_RAW, APPLY])
@pytest.mark.parametrize(
    "body", [None, [], {}, {"messages": "x"}, {**QUESTION, "chat_template_kwargs": []}, {**QUESTION, "tools": 1}]
)
def test_bodies_that_are_refused(path: str, body: Any) -> None:
    with pytest.raises(InputError):
        answer_on_path(path, setting("chatml"), body)


def test_a_path_that_is_none() -> None:
    with pytest.raises(InputError, match="llama-server"):
        answer_on_path("vllm", setting("chatml"), QUESTION)


@pytest.mark.parametrize("now", [None, NOW, 0.5])
def test_a_setting_crosses_to_a_worker(now: float | None) -> None:
    given = Setting({"default": "a", "tool_use": "b"}, "<s>", "</s>", True, True, {"x": [1]}, now, "phi3")
    assert from_json(to_json(given)) == given
