"""Other engines against the recordings: a command that renders, and a running llama-server.

The command reads a JSON object a line, `{"id", "template", "context", "now"}` (`now`: Unix time, UTC, or null), and
answers each with a line: `{"output": TEXT}`, `{"output_hex": BYTES}` where the output is not UTF-8, or
`{"error": MESSAGE}`. llama.cpp's authors may add `"parts": [[is_input, bytes], ...]`. A command that dies or does not
answer in time is started again; the row counts as differing.
"""

from __future__ import annotations

import contextlib
import json
import queue
import shlex
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from jinjarun.errors import JinjarunError
from jinjarun.serving.llama_server import LlamaServer
from jinjarun.sources.server import RunningServer
from tests.conformance import golden
from tests.conformance.compare import Account
from tests.conformance.golden import ENGINES, Case

ROW_SECONDS = 30.0
BOM = b"\xef\xbb\xbf"


class Command:
    """An engine behind a pipe; a context manager."""

    def __init__(self, command: str, *, seconds: float = ROW_SECONDS) -> None:
        self._command, self._seconds = shlex.split(command), seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def ask(self, case: Case) -> dict[str, Any]:
        """The answer, or `{"crash": WHY}`."""
        request = {"id": case.id, "template": case.source, "context": case.context, "now": case.now}
        if self._process is None:
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            line = self._lines.get(timeout=self._seconds)
            answer = json.loads(line) if line else None
        except (OSError, ValueError, queue.Empty) as error:
            self._stop()
            return {"crash": f"{type(error).__name__}: {error}"}
        if not isinstance(answer, dict) or not answer.keys() & {"output", "output_hex", "error"}:
            self._stop()
            return {"crash": "no answer" if answer is None else f"not an answer: {str(answer)[:100]}"}
        return answer

    def _start(self) -> None:
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._lines = queue.SimpleQueue()
        threading.Thread(target=_read, args=(self._process, self._lines), daemon=True).start()

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                assert pipe is not None
                with contextlib.suppress(OSError):  # what was not yet written cannot be written any more
                    pipe.close()
        self._process = None


def _read(process: subprocess.Popen[bytes], lines: queue.SimpleQueue[bytes]) -> None:
    assert process.stdout is not None
    with contextlib.suppress(ValueError):  # it was closed
        while line := process.stdout.readline():
            lines.put(line)
    lines.put(b"")


def compare(case: Case, answer: dict[str, Any]) -> str | None:
    """How an answer differs from the recording, None where it does not. Messages of errors are free."""
    if "crash" in answer:
        return f"no answer: {answer['crash']}"
    if "error" in answer:
        return None if case.error is not None else f"failed: {answer['error']}"
    data = (
        bytes.fromhex(answer["output_hex"]) if "output_hex" in answer else answer["output"].encode("utf-8", "replace")
    )
    expected = case.data if case.data is not None else None if case.output is None else case.output.encode()
    if data != expected:
        return f"rendered {data.decode('utf-8', 'backslashreplace')!r}"
    if case.parts is not None and "parts" in answer and golden.merged(answer["parts"]) != case.parts:
        return f"parts {answer['parts']}"
    return None


def account(cases: Iterable[Case], ask: Callable[[Case], dict[str, Any]], answers: dict[str, Any]) -> Account:
    """Agreement by group; `answers` is filled with every answer, by the id of its case."""
    result = Account()
    for case in cases:
        answers[case.id] = ask(case)
        if not case.deterministic:
            result.skipped += 1
            continue
        result.checked[case.group] = result.checked.get(case.group, 0) + 1
        got = compare(case, answers[case.id])
        if got is not None:
            result.differing.setdefault(case.group, []).append((case, got))
    return result


def snippet_goldens(dialect: str, answers: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of the snippets with the new answers of this dialect."""
    for row in golden.lines(golden.DATA / "dialects.jsonl.gz"):
        yield row | ({ENGINES[dialect]: answers[row["id"]]} if row["id"] in answers else {})


def template_goldens(dialect: str, answers: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The same for whole templates."""
    for row in golden.template_rows():
        renders = {
            name: old | ({ENGINES[dialect]: answers[key]} if (key := f"{row['template']}/{name}") in answers else {})
            for name, old in row["renders"].items()
        }
        yield {**row, "renders": renders}


def write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


# A running server


def request_body(conversation: dict[str, Any]) -> dict[str, Any]:
    body = {key: conversation[key] for key in ("messages", "tools", "add_generation_prompt") if key in conversation}
    return {**body, "chat_template_kwargs": conversation["kwargs"]} if "kwargs" in conversation else body


def server_row(server: RunningServer) -> dict[str, Any]:
    """What the server answers to every conversation of the suite, as `server.jsonl.gz` has it."""
    answers: dict[str, Any] = {}
    for name, chat in golden.suite()["conversations"].items():
        prompt = server.apply_template(request_body(chat))
        answers[name] = (
            {"status": prompt.status, "error": prompt.error} if prompt.text is None else {"prompt": prompt.text}
        )
    return {"template": recorded_name(server), "caps": server.caps, "answers": answers}


def recorded_name(server: RunningServer) -> str:
    """The name of the recorded template that the server was started with, or what it calls its model."""
    source = server.source().template().encode()
    for path in sorted((golden.SHARED / "corpus" / "templates").glob("*.jinja")):
        if path.read_bytes().removeprefix(BOM).rstrip(b"\n") == source.rstrip(b"\n"):
            return path.stem
    return server.source().name


def recorded_row(row: dict[str, Any]) -> dict[str, Any] | None:
    """The recorded row of the same template."""
    recorded = golden.lines(golden.SHARED / "golden" / "server.jsonl.gz")
    return next((old for old in recorded if old["template"] == row["template"] and "answers" in old), None)


def ours(server: RunningServer, now: float | None) -> dict[str, Any]:
    """Our path's answers to the same, at the server's moment or at that of the recordings."""
    tokens = {which: server.props.get(which) or "" for which in ("bos_token", "eos_token")}
    source = server.source()
    answers = {}
    path = LlamaServer(source.templates["default"], tool_use=source.templates.get("tool_use"), **tokens)
    for name, chat in golden.suite()["conversations"].items():
        try:
            answers[name] = {"prompt": path.apply(request_body(chat), now=now)}
        except JinjarunError as error:
            answers[name] = {"status": error.status, "error": error.message}
    return answers


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """The same prompt, or an error of the same status."""
    if "prompt" in one or "prompt" in other:
        return one.get("prompt") == other.get("prompt")
    return bool(one.get("status") == other.get("status"))
