"""`render --as`, and llama-server's flags on the command line."""

from __future__ import annotations

import builtins
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.probes.conftest import Run
from tests.probes.token_files import model_folder

BODY = {
    "messages": [
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}], "extra": 1},
        {"role": "user", "content": "Hi"},
    ],
    "reasoning_effort": "none",
}
PROMPT = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
THOUGHT = "<think>\n\n</think>\n\n"


@pytest.fixture
def body(tmp_path: Path) -> Path:
    path = tmp_path / "body.json"
    path.write_text(json.dumps(BODY), encoding="utf-8")
    return path


def test_as_llama_server(run: Run, body: Path) -> None:
    assert run("render", "family:qwen3", "--as", "llama-server", "--request", body) == (0, PROMPT + THOUGHT, "")


def test_as_transformers(run: Run, body: Path) -> None:
    code, text, errors = run("render", "family:chatml", "--as", "transformers", "--request", body)
    assert (code, text) == (1, "")
    assert "render error" in errors
    code, text, _ = run("render", "family:chatml", "--as", "transformers", "--conversation", "user")
    assert (code, text) == (0, "<|im_start|>user\nReverse a string.<|im_end|>\n<|im_start|>assistant\n")


MASKED = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}"
    "{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}{% else %}{{ m.content }}<|im_end|>{% endif %}\n"
    "{% endfor %}"
)


def test_mask(run: Run, tmp_path: Path) -> None:
    """What training would count as the answers: in characters, and in tokens where there is a tokenizer."""
    chat = [
        {"role": "user", "content": "Use a StringBuilder."},
        {"role": "assistant", "content": "Thanks"},
        {"role": "user", "content": "Use a StringBuilder."},
        {"role": "assistant", "content": "Use a StringBuilder."},
    ]
    messages, template = tmp_path / "messages.json", tmp_path / "t.jinja"
    messages.write_text(json.dumps(chat), encoding="utf-8")
    template.write_text(MASKED, encoding="utf-8")
    command = ["render", template, "--as", "transformers", "--messages", messages]
    code, prompt, errors = run(*command, "--mask")
    covered = len("Thanks<|im_end|>") + len("Use a StringBuilder.<|im_end|>")
    assert (code, errors) == (0, f"the mask covers {covered} of {len(prompt)} characters, in 2 places\n")
    assert prompt == run(*command)[1]
    answer = json.loads(run(*command, "--mask", "--json")[1])
    assert [prompt[start:end] for start, end in answer["assistant_spans"]] == [
        "Thanks<|im_end|>",
        "Use a StringBuilder.<|im_end|>",
    ]
    assert "assistant_spans" not in json.loads(run(*command, "--json")[1])
    pytest.importorskip("tokenizers")
    folder = model_folder(tmp_path / "model", MASKED)
    errors = run(*command, "--mask", "--tokenizer", folder)[2]
    assert errors == "the mask covers 7 of 25 tokens, in 2 places\n"
    assert run("render", template, "--as", "llama-server", "--messages", messages, "--mask")[0] == 2
    assert run("render", template, "--messages", messages, "--mask")[0] == 2
    code, _, errors = run(*command, "--tokenizer", folder)
    assert (code, "--mask" in errors) == (2, True)


def test_explain_leaves_the_prompt_exact(run: Run, body: Path) -> None:
    code, text, errors = run("render", "family:qwen3", "--as", "llama-server", "--request", body, "--explain")
    assert (code, text) == (0, PROMPT + THOUGHT)
    rows = dict(line.split(maxsplit=1) for line in errors.splitlines()[1:])
    assert rows["messages[0].extra"].startswith("keys-dropped: ")
    assert rows["messages[0].role"].startswith("developer-role-renamed: ")
    assert rows["messages[0].content"].startswith("text-parts-joined: ")
    assert rows["enable_thinking"].startswith("thinking-off-by-effort: ")


def test_nothing_to_explain(run: Run) -> None:
    errors = run("render", "family:flat", "--as", "llama-server", "--explain")[2]
    assert "nothing was changed" in errors


def test_as_json(run: Run, body: Path) -> None:
    answer = json.loads(run("render", "family:qwen3", "--as", "llama-server", "--request", body, "--json")[1])
    assert answer["engine"] == {"id": "llama.cpp", "version": "b11434", "path": "llama-server"}
    assert answer["text"] == PROMPT + THOUGHT
    assert {row["name"] for row in answer["reworks"]} >= {"keys-dropped", "developer-role-renamed"}
    assert "".join(span["text"] for span in answer["spans"]) == answer["text"]


def test_more_on_the_command_line(run: Run, body: Path) -> None:
    command = ["render", "family:qwen3", "--as", "llama-server"]
    assert run(*command, "--request", body, "--no-generation-prompt")[1] == PROMPT.removesuffix(
        "<|im_start|>assistant\n"
    )
    assert run(*command, "--chat-template-kwargs", '{"enable_thinking": false}')[1].endswith(THOUGHT)
    assert run(*command, "--spans")[1].startswith("text ")


def test_a_name_is_a_template_with_jinja(run: Run) -> None:
    code, text, errors = run("render", "family:flat", "--as", "llama-server", "--chat-template", "llama3")
    assert (code, text) == (0, "llama3")
    assert "warning" in errors
    assert "--no-jinja" in errors


def test_a_name_is_a_format_without_jinja(run: Run) -> None:
    command = ["render", "family:flat", "--as", "llama-server", "--no-jinja", "--chat-template"]
    code, text, errors = run(*command, "phi3")
    assert (code, text) == (0, "<|user|>\nReverse a string.<|end|>\n<|assistant|>\n")
    assert "<|user|>, <|end|>, <|assistant|>, which the model's own template does not know" in errors
    code, text, errors = run(*command, "command-r")
    assert (code, text) == (2, "")
    assert "not available" in errors


def test_a_template_file_instead(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "x.jinja"
    file.write_text("[{{ messages[0].content }}]{{ bos_token }}", encoding="utf-8")
    text = run("render", "family:mistral", "--as", "llama-server", "--chat-template-file", file)[1]
    assert text == "[Reverse a string.]<s>"


def test_a_model_without_a_template(run: Run) -> None:
    code, text, errors = run("render", "family:base-model-without-template", "--as", "llama-server")
    assert (code, text.startswith("<|im_start|>user")) == (0, True)
    assert "ChatML" in errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--explain"], "--as"),
        (["--request", "x.json"], "--as"),
        (["--no-jinja"], "--as"),
        (["--as", "ollama"], "llama-server"),
        (["--as", "llama-server", "--dialect", "llama.cpp"], "one of them"),
        (["--as", "llama-server", "--no-jinja"], "--chat-template NAME"),
        (["--as", "llama-server", "--no-jinja", "--chat-template-file", "x"], "--chat-template NAME"),
        (["--as", "llama-server", "--chat-template", "x", "--chat-template-file", "y"], "exclude"),
        (["--as", "llama-server", "--request", "x.json", "--messages", "y.json"], "whole request"),
        (["--as", "llama-server", "--request", "missing.json"], "missing.json"),
        (["--as", "llama-server", "--chat-template-kwargs", "1"], "JSON object"),
    ],
)
def test_wrong_usage(run: Run, arguments: list[str], message: str) -> None:
    code, text, errors = run("render", "family:flat", *arguments)
    assert (code, text) == (2, "")
    assert message in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--port", "x"], "no port"), (["--port", "70000"], "no port"), (["--host", "256.0.0.1"], "cannot listen")],
)
def test_wrong_addresses(run: Run, arguments: list[str], message: str) -> None:
    pytest.importorskip("starlette")
    pytest.importorskip("uvicorn")
    code, _, errors = run("serve", "family:flat", *arguments)
    assert code == 2
    assert message in errors


def test_a_missing_extra_says_how_to_install_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_starlette(name: str, *rest: Any) -> Any:
        if name.startswith(("starlette", "uvicorn")):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.delitem(sys.modules, "probes.serve.app", raising=False)
    monkeypatch.delattr("probes.serve.app", raising=False)
    monkeypatch.setattr(builtins, "__import__", without_starlette)
    code, _, errors = run("serve", "family:flat")
    assert code == 2
    assert "pip install 'jinjarun[server]'" in errors


def test_as_vllm_and_sglang(run: Run, body: Path) -> None:
    code, text, errors = run("render", "family:chatml", "--as", "vllm", "--request", body, "--explain")
    assert (code, text.endswith("<|im_start|>assistant\n")) == (0, True)
    assert errors.startswith("vllm:chat-completions 0.33.0, template default, content as string:\n")
    assert "messages[0].role" in errors
    assert "developer-made-system" in errors
    answer = json.loads(run("render", "family:chatml", "--as", "sglang", "--request", body, "--json")[1])
    assert answer["engine"] == {"id": "sglang", "version": "0.5.23", "path": "chat-completions"}
    assert answer["content_format"] == "string"
    assert "<|im_start|>developer\nBe brief." in answer["text"]
    assert {"name", "path", "why", "source"} == answer["reworks"][0].keys()


def test_a_refusal_says_what_to_send(run: Run, tmp_path: Path) -> None:
    request = tmp_path / "request.json"
    request.write_text(json.dumps({"messages": [{"role": "user", "content": "q"}], "tools": []}), encoding="utf-8")
    code, text, errors = run("render", "family:chatml", "--as", "vllm", "--request", request)
    assert (code, text) == (2, "")
    assert "the server answers 400: an empty list of tools is refused\ninstead: leave tools out" in errors
    assert run("render", "family:chatml", "--as", "sglang", "--request", request)[0] == 0


def test_flags_of_vllm_and_sglang(run: Run, tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text('[{"type": "function", "function": {"name": "f"}}]', encoding="utf-8")
    command = ["render", "family:chatml", "--as", "vllm", "--tools", tools]
    assert run(*command)[0] == 0
    assert '"auto" tool choice requires' in run(*command, "--no-enable-auto-tool-choice")[2]
    thinks = ["render", "family:qwen3", "--default-chat-template-kwargs", '{"enable_thinking": false}', "--as"]
    assert all("</think>" in run(*thinks, server)[1] for server in ("vllm", "sglang"))
    assert run("render", "family:chatml", "--as", "sglang", "--chat-template-content-format", "string")[0] == 2
    assert run("render", "family:chatml", "--as", "llama-server", "--transformers", "5.24")[0] == 2
    assert "known are" in run("render", "family:chatml", "--as", "vllm", "--transformers", "4.0")[2]


def test_a_model_that_vllm_does_not_render_by_its_template(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "gpt_oss"}', encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text('{"chat_template": "{{ messages[0].content }}"}', encoding="utf-8")
    code, _, errors = run("render", tmp_path, "--as", "vllm")
    assert (code, "Harmony" in errors) == (2, True)
    assert run("render", tmp_path, "--as", "sglang")[:2] == (0, "Reverse a string.")
