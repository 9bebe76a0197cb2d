"""The command line: exact output, exit codes, and one message instead of a traceback, whatever happens."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from probes import cli
from probes.commands import program
from tests.probes.conftest import Run

ROOT = Path(__file__).parents[2]
SYSTEM_USER = (
    "<|im_start|>system\nYou are a careful Java assistant.<|im_end|>\n"
    "<|im_start|>user\nReverse a string.<|im_end|>\n<|im_start|>assistant\n"
)


def feed(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def file(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def process(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "probes.cli", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def test_render_prints_the_exact_prompt(run: Run) -> None:
    for dialect in ("llama.cpp", "transformers"):
        assert run("render", "family:chatml", "--conversation", "system-user", "--dialect", dialect) == (
            0,
            SYSTEM_USER,
            "",
        )


def test_render_without_a_conversation_asks_the_smallest(run: Run) -> None:
    assert run("render", "family:flat")[1] == "user: Reverse a string.\nassistant:"


def test_a_list_of_messages_and_tools(run: Run, tmp_path: Path) -> None:
    messages = file(tmp_path, "chat.json", [{"role": "user", "content": "Hi"}])
    tools = file(tmp_path, "tools.json", [{"type": "function", "function": {"name": "look"}}])
    code, text, _ = run("render", "family:hermes-tools", "--messages", messages, "--tools", tools)
    assert code == 0
    assert '{"type": "function", "function": {"name": "look"}}' in text


def test_a_whole_request_body(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    body = {
        "messages": [{"role": "user", "content": "Hi"}],
        "chat_template_kwargs": {"enable_thinking": False},
        "model": "x",
    }
    feed(monkeypatch, json.dumps(body).encode())
    code, text, _ = run("render", "family:qwen3", "--messages", "-")
    assert (code, text[-20:]) == (0, "\n<think>\n\n</think>\n\n")


def test_variables_tokens_clock_and_generation_prompt(run: Run) -> None:
    thinking = run("render", "family:qwen3", "--chat-template-kwargs", '{"enable_thinking": false}')[1]
    assert thinking.endswith("<think>\n\n</think>\n\n")
    other_tokens = run("render", "family:mistral", "--bos-token", "<B>", "--conversation", "assistant-last")[1]
    assert other_tokens.startswith("<B>[INST]")
    assert other_tokens.endswith("</s>")
    for now in ("2026-10-03", "2026-10-03T12:00:00+00:00", "1790985600"):
        assert "Today Date: 03 Oct 2026" in run("render", "family:llama3-today", "--now", now)[1]
    assert not run("render", "family:chatml", "--no-generation-prompt")[1].endswith("assistant\n")


def test_a_template_from_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    feed(monkeypatch, b"{{ messages[0].content }}")
    assert run("render", "-")[:2] == (0, "Reverse a string.")


def test_spans_name_the_origin_of_each_part(run: Run) -> None:
    code, text, _ = run("render", "family:flat", "--spans")
    assert code == 0
    rows = [line.split(maxsplit=2) for line in text.splitlines()]
    assert ["input", "messages[0].content", "'Reverse a string.'"] in rows
    assert {row[0] for row in rows} == {"input", "text"}


def test_spans_as_json_cover_the_text(run: Run) -> None:
    answer = json.loads(run("render", "family:chatml", "--json")[1])
    assert "".join(span["text"] for span in answer["spans"]) == answer["text"]
    assert answer["engine"] == {"id": "llama.cpp", "version": "b11434", "path": "raw"}


def on_a_terminal(*arguments: str, **environment: str) -> str:
    """What the command writes to a terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "probes.cli", *arguments]
    variables = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    with subprocess.Popen(command, stdout=theirs, env={**variables, **environment}) as child:
        os.close(theirs)
        written = b""
        try:
            while block := os.read(ours, 65536):
                written += block
        except OSError:  # the terminal's other end is closed
            pass
        child.wait()
    os.close(ours)
    return written.decode().replace("\r\n", "\n")


def test_a_terminal_gets_colours_unless_told_not_to() -> None:
    assert re.search(r"\x1b\[3\dmReverse a string\.\x1b\[0m", on_a_terminal("render", "family:flat", "--spans"))
    assert "\x1b" not in on_a_terminal("render", "family:flat", "--spans", NO_COLOR="1")


def test_a_template_cannot_control_the_terminal(tmp_path: Path) -> None:
    template = file(tmp_path, "evil.jinja", "\x1b[2Jgone")
    assert on_a_terminal("render", str(template)) == "\\x1b[2Jgone\n"


def test_caps_prints_the_object_of_props(run: Run) -> None:
    code, text, _ = run("caps", "family:hermes-tools")
    flags = json.loads(text)
    assert code == 0
    assert len(flags) == 9
    assert flags["supports_parallel_tool_calls"] is True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["render", "missing.jinja"], "missing.jinja"),
        (["render", "family:nobody"], "chatml"),
        (["render", "family:base-model-without-template"], "no chat template"),
        (["render", "family:chatml", "--messages", "missing.json"], "missing.json"),
        (["render", "family:chatml", "--conversation", "nobody"], "two-turns"),
        (["render", "family:chatml", "--conversation", "user", "--messages", "-"], "exclude each other"),
        (["render", "-", "--messages", "-"], "only once"),
        (["render", "family:chatml", "--now", "soon"], "ISO 8601"),
        (["render", "family:chatml", "--now", "nan"], "ISO 8601"),
        (["render", "family:chatml", "--now", "1e300"], "ISO 8601"),
        (["render", "family:chatml", "--chat-template-kwargs", "{"], "line 1, column 2"),
        (["render", "family:chatml", "--chat-template-kwargs", "[]"], "JSON object"),
        (["render", "family:chatml", "--no-such-flag"], "--no-such-flag"),
        (["render"], "TEMPLATE"),
        (["caps", "x.jinja", "--dialect", "llama.cpp"], "--dialect"),
        ([], "COMMAND"),
        (["nothing"], "render"),
    ],
)
def test_wrong_usage_and_unreadable_input(run: Run, arguments: list[str], message: str) -> None:
    code, text, errors = run(*arguments)
    assert (code, text) == (2, "")
    assert message in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[", "line 1"),
        ("7", "messages must be a list"),
        ('["x"]', "messages[0]"),
        ('[{"role": "user", "content": NaN}]', "messages[0].content"),
        ("[" * 100_000, "nested"),
        ('[{"content": ' + "9" * 5000 + "}]", "not usable JSON"),
    ],
)
def test_unusable_messages(run: Run, tmp_path: Path, content: str, message: str) -> None:
    code, _, errors = run("render", "family:chatml", "--messages", file(tmp_path, "chat.json", content))
    assert code == 2
    assert message in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ raise_exception('no such role') }}", "raised: no such role"),
        ("{% if %}", "syntax error"),
        ("{{ messages | nosuch }}", "render error"),
        ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "limit exceeded"),
    ],
)
def test_a_template_that_fails(run: Run, tmp_path: Path, template: str, message: str) -> None:
    code, text, errors = run("render", file(tmp_path, "t.jinja", template))
    assert (code, text) == (1, "")
    assert message in errors


def test_a_bug_of_ours_is_one_message(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("x")

    monkeypatch.setattr("jinjarun.template.Template", broken)
    code, _, errors = run("render", "family:chatml")
    assert code == 2
    assert "internal error" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("command", [None, *program.COMMANDS])
def test_help_fits_80_columns(run: Run, monkeypatch: pytest.MonkeyPatch, command: str | None) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    code, text, _ = run(*([command] if command else []), "--help")
    assert code == 0
    assert max(map(len, text.splitlines())) < 80


def test_version_names_the_engines(run: Run) -> None:
    assert run("--version")[1].endswith("as llama.cpp b11434, transformers 5.24\n")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_pipe_closed_early(tmp_path: Path, unbuffered: str) -> None:
    template = file(tmp_path, "long.jinja", "{% for i in range(90000) %}a long line of text\n{% endfor %}")
    child = process("render", str(template), env={**os.environ, "PYTHONUNBUFFERED": unbuffered})
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.read(10)
    child.stdout.close()
    errors = child.stderr.read()
    child.stderr.close()
    assert (child.wait(), errors) == (141, b"")


def test_interrupted() -> None:
    child = process("render", "family:chatml", "--messages", "-", stdin=subprocess.PIPE)
    assert child.stdin is not None
    child.stdin.write(b" " * 300_000)  # more than a pipe holds: when this returns, the command is reading
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate()
    assert (child.returncode, errors) == (130, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("arguments", [["render", "family:chatml"], ["caps", "family:chatml"], ["--help"]])
def test_a_full_disk(arguments: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "probes.cli", *arguments]
        environment = {**os.environ, "PYTHONUNBUFFERED": ""}
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=environment, check=False)
    assert (done.returncode, done.stderr) == (2, b"jinjarun: cannot write: No space left on device\n")


def test_closed_standard_output(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", None)
        code = cli.main(["render", "family:chatml"])
    assert (code, run("caps", "missing.jinja")[2].splitlines()[0]) == (
        2,
        "jinjarun: cannot write: standard output is closed",
    )


def test_it_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "jinjarun", "caps", "family:chatml"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["supports_system_role"] is True


@pytest.mark.parametrize(
    ("path", "theirs"), [("probes/__init__.py", "__all__ = ['poke']"), ("probes/__init__.py", ""), ("probes.py", "")]
)
def test_another_package_called_probes_is_noticed(path: str, theirs: str, tmp_path: Path) -> None:
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_text(theirs, encoding="utf-8")
    command = [sys.executable, "-m", "jinjarun", "caps", "family:chatml"]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"another package called probes was imported instead of jinjarun's own: {tmp_path}" in done.stderr
    assert "Traceback" not in done.stderr
