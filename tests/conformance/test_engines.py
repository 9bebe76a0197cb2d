"""The runner for other engines: what a command says counts, and one that dies or hangs costs its row."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conformance import engines, golden
from tests.conformance.engines import Command, account, compare
from tests.conformance.golden import Case

CASE = Case("id", "group", "llama.cpp", "{{ x }}", {"x": 1}, 0, output="1")


def python(code: str) -> str:
    return shlex.join([sys.executable, "-c", code])


ECHO = python(
    "import json, sys\nfor line in sys.stdin: print(json.dumps({'output': json.loads(line)['template']}), flush=True)"
)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("pass", "no answer"),
        ("print('x', flush=True); input()", "JSONDecodeError"),
        ("print('{}', flush=True); input()", "not an answer"),
        ("print('[]', flush=True); input()", "not an answer"),
        ("import time; time.sleep(60)", "Empty"),
    ],
)
def test_a_command_that_gives_no_answer(code: str, said: str) -> None:
    with Command(python(code), seconds=1) as engine:
        assert said in engine.ask(CASE)["crash"] or "BrokenPipe" in engine.ask(CASE)["crash"]


def test_a_command_that_dies_is_started_again() -> None:
    code = "import json, sys\nline = sys.stdin.readline()\nprint(json.dumps({'output': '1'}), flush=True)"
    with Command(python(code), seconds=10) as engine:
        answers = [engine.ask(CASE) for _ in range(6)]
    assert {"output": "1"} in answers[3:]


def test_agreement_by_group() -> None:
    cases = [replace(CASE, id=str(i), group="ab"[i % 2], output="{{ x }}" if i < 3 else "no") for i in range(4)]
    answers: dict[str, object] = {}
    with Command(ECHO) as engine:
        result = account([*cases, replace(CASE, id="random", deterministic=False)], engine.ask, answers)
    assert (result.checked, result.skipped) == ({"a": 2, "b": 2}, 1)
    assert [case.id for case, _ in result.rows] == ["3"]
    assert set(answers) == {"0", "1", "2", "3", "random"}


@pytest.mark.parametrize(
    ("answer", "case", "agrees"),
    [
        ({"output": "1"}, CASE, True),
        ({"output": "2"}, CASE, False),
        ({"error": "any words"}, replace(CASE, output=None, error="other words"), True),
        ({"error": "x"}, CASE, False),
        ({"output": "1"}, replace(CASE, output=None, error="x"), False),
        ({"output_hex": "ff"}, replace(CASE, output=None, data=b"\xff"), True),
        ({"output": "1", "parts": [[0, 1], [0, 0]]}, replace(CASE, parts=[(False, 1)]), True),
        ({"output": "1", "parts": [[1, 1]]}, replace(CASE, parts=[(False, 1)]), False),
        ({"crash": "x"}, replace(CASE, output=None, error="x"), False),
    ],
)
def test_an_answer_beside_the_recording(answer: dict[str, object], case: Case, agrees: bool) -> None:
    assert (compare(case, answer) is None) == agrees


def test_this_project_is_a_command() -> None:
    command = shlex.join([sys.executable, "-m", "tests.conformance.ours"])
    cases = [case for case in golden.snippets("llama.cpp") if case.id.endswith("7")][:200]
    with Command(command) as engine:
        assert account(cases, engine.ask, {}).rows == []


def test_new_goldens_have_the_form_of_the_old_ones(tmp_path: Path) -> None:
    first = next(golden.snippets("llama.cpp"))
    engines.write_rows(tmp_path / "x.jsonl", engines.snippet_goldens("llama.cpp", {first.id: {"output": "new"}}))
    old = list(golden.lines(golden.DATA / "dialects.jsonl.gz"))
    new = list(golden.lines(tmp_path / "x.jsonl"))
    assert new[0] == old[0] | {"llamacpp": {"output": "new"}}
    assert new[1:] == old[1:]
