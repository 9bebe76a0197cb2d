"""What a terminal gets, and that nobody else gets it: colours, widths, and the same bytes off a terminal."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.prober import probe
from probes.reporters.document import Document, Part, say, table
from probes.reporters.overview import MOST_LINES, overview_text, verdict
from probes.reporters.screen import NARROWEST, WIDEST, painted, width_of
from tests.families import family
from tests.probes.conftest import Run
from tests.probes.hostile_values import HOSTILE
from tests.probes.test_escaping import harmless, printed, text_functions

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
FINDS = "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}"


@pytest.fixture(autouse=True)
def usual_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("name", [name for name in text_functions() if not name.endswith("_export")])
def test_on_a_terminal_nothing_acts_but_our_colours(name: str) -> None:
    for text in HOSTILE:
        document = printed(name, text, 0)
        if isinstance(document, Document):
            assert harmless(COLOUR.sub("", painted(document.lines, 80))), text[:100]


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200), st.text(max_size=20), st.integers(NARROWEST, WIDEST), st.booleans())
def test_a_paragraph_fits_its_width_and_keeps_its_words(text: str, start: str, width: int, cut: bool) -> None:
    from rich.cells import cell_len  # noqa: PLC0415

    first = " " * (len(start) * 2)
    plain = COLOUR.sub("", painted([say(Part(text, "error"), first=first, indent=first, cut=cut)], width))
    if text.isascii() or cut is False:
        assert all(cell_len(line) <= width for line in plain.splitlines())
    if not cut and text.isprintable():
        assert "".join(plain.split()) == "".join(text.split())


def test_names_stay_in_their_column() -> None:
    document = Document(table([("a", "x " * 60), ("long name", Part("y", "good"))]))
    assert [line[:13] for line in document.splitlines()] == ["  a          ", "             ", "  long name  "]


@pytest.mark.parametrize(("given", "width"), [("1", 40), ("40", 40), ("101", 101), ("999", 200), ("x", 80), ("0", 80)])
def test_columns(given: str, width: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COLUMNS", given)
    with (tmp_path / "f").open("w") as file:
        assert width_of(file) == width


def test_off_a_terminal_the_bytes_are_the_same(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    template = tmp_path / "t.jinja"
    template.write_text(FINDS, encoding="utf-8")
    for command in (["probe"], ["probe", "--all"], ["lint"], ["prefix"], ["compare"]):
        usual = run(*command, template)
        for variables in ({"COLUMNS": "40"}, {"COLUMNS": "200", "TERM": "xterm-256color"}, {"NO_COLOR": "1"}):
            with monkeypatch.context() as there:
                for name, value in variables.items():
                    there.setenv(name, value)
                assert run(*command, template) == usual
        assert all(len(line) < 80 or "/" in line for line in usual[1].splitlines())
        with monkeypatch.context() as there:
            there.setenv("FORCE_COLOR", "1")
            assert COLOUR.search(run(*command, template)[1])
            there.setenv("NO_COLOR", "1")
            assert not COLOUR.search(run(*command, template)[1])


def test_rich_is_loaded_for_terminals_alone() -> None:
    code = "import sys; from probes.cli import main; main(['probe', 'family:chatml']); sys.exit('rich' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("name", ["chatml", "llama3", "qwen3", "mistral", "hermes-tools"])
def test_the_first_page_is_a_page(name: str) -> None:
    text = family(name).config["chat_template"]
    page = overview_text(probe(text, name=name), text, f"family:{name}")
    assert len(page.splitlines()) <= MOST_LINES
    assert len(painted(page.lines, 100).splitlines()) <= MOST_LINES


def said(text: str, **options: Any) -> str:
    return Document(verdict(probe(text, **options)))


def test_the_verdict_says_what_works_where_and_whom_it_hurts() -> None:
    assert said(FINDS).startswith("Works on llama-server, transformers, vLLM and SGLang.\nHurts ")
    assert said("{% if %}").startswith("Does not load on llama-server, transformers, vLLM and SGLang.\n")
    fails = "{% for m in messages %}{{ m.content.nope() }}{% endfor %}"
    assert said(fails).startswith("Fails on llama-server, transformers, vLLM and SGLang.\n")


def test_a_finding_shows_its_place(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.jinja").write_text("{% for m in messages %}\n{{ m.role + m.content }}\n{% endfor %}", encoding="utf-8")
    lines = run("lint", "t.jinja", "--select", "CT104")[1].splitlines()
    assert "  --> t.jinja:2" in lines
    assert "  2 | {{ m.role + m.content }}" in lines
    assert "  mend: loop over the parts where content is no string" in lines
    assert any(line.startswith("  more: jinjarun rule CT104 or jinjarun render t.jinja ") for line in lines)


def test_an_interrupt_at_the_start_shows_no_traceback() -> None:
    code = "import os, jinjarun.__main__; os.kill(os.getpid(), 2)"
    done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (["prob", "x"], "probe"),
        (["render", "family:chatmll"], "chatml"),
        (["render", "family:chatml", "--conversation", "system-usr"], "system-user"),
        (["render", "family:chatml", "--dialect", "lama.cpp"], "llama.cpp"),
        (["rule", "text-beside-call-lost"], "text-beside-calls-lost"),
        (["lint", "family:chatml", "--select", "TL1114"], "TL114"),
        (["conversation", "two-turn"], "two-turns"),
        (["fuzz", "family:chatml", "--law", "text-kept"], "texts-kept"),
    ],
)
def test_a_mistyped_word_is_answered_with_the_nearest(arguments: list[str], near: str, run: Run) -> None:
    code, out, errors = run(*arguments)
    assert (code, out) == (2, "")
    assert f"; did you mean {near}?" in errors


def test_a_scan_of_nothing_is_wrong_usage_and_names_it_once(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.jinja").write_text(FINDS, encoding="utf-8")
    code, out, _ = run("scan", "no/where", tmp_path / "t.jinja", "--jobs", "1")
    assert code == 2
    (line,) = (line for line in out.splitlines() if "no/where" in line and "hf download" in line)
    assert line.startswith("error         no/where: is no file and no repository")
    assert any("t.jinja" in line for line in out.splitlines())


def test_conversations_are_listed_and_shown(run: Run) -> None:
    code, out, _ = run("conversations")
    assert code == 0
    assert "system-user" in out
    assert '"role": "system"' in run("conversations", "system-user")[1]


def test_statistics_count_what_lint_finds(run: Run) -> None:
    found = run("lint", "family:chatml")[1]
    rows = [line.split() for line in run("lint", "family:chatml", "--statistics")[1].splitlines()]
    assert rows
    assert all(found.count(f" {code} ") >= int(count) for count, code, *_ in rows)
