"""docs/fuzzing.md shows what happens: its examples run, and its table holds every law."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from probes.laws import LAWS
from tests.bench.planted import family
from tests.probes.outer_pytest import run_pytest

DOCUMENT = Path(__file__).parents[2] / "docs" / "fuzzing.md"
TEXT = DOCUMENT.read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_the_table_holds_every_law() -> None:
    rows = [f"| `{law.name}` | {law.says} | {', '.join(law.codes)} |" for law in LAWS.values()]
    table = re.search(r"^\| law \|.*\n\|---.*\n((?:\|.*\n)*)", TEXT, re.MULTILINE)
    assert table is not None
    assert table[1].splitlines() == rows


@pytest.mark.parametrize("code", [code for code in blocks("python") if "chat_template" not in code])
def test_python_examples_run(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, str(DOCUMENT), "exec"), {})


def test_the_projects_example_runs(tmp_path: Path) -> None:
    """The table of pyproject.toml and the test with a law of its own, as they stand there."""
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "chatml.jinja").write_text(family("chatml")[0], encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(blocks("toml")[0].replace("30", "10"), encoding="utf-8")
    own = next(code for code in blocks("python") if "chat_template" in code)
    (tmp_path / "test_own.py").write_text(own, encoding="utf-8")
    done = run_pytest(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    skipped = 8
    assert re.search(rf"{1 + len(LAWS) - skipped} passed, {skipped} skipped", done.stdout), done.stdout
