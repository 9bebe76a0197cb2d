"""What the documents show is what happens: examples run, commands exist, paths lead somewhere."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from probes import cli
from probes.commands import program

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "tests/README.md",
    "docs/ci.md",
    "ARCHITECTURE.md",
    "COMPATIBILITY.md",
)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("code", blocks("python"))
def test_python_examples_run(code: str) -> None:
    exec(compile(code, "README.md", "exec"), {})


def sessions() -> list[tuple[str, str]]:
    """Each command of the README that shows what it prints, and that text."""
    shown = []
    for block in blocks("console"):
        for command, output in re.findall(r"^\$ (jinjarun .*?)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            if output:
                shown.append((command, output))
    return shown


@pytest.mark.parametrize(("command", "output"), sessions())
def test_shown_output_is_what_is_printed(
    command: str, output: str, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    cli.main(shlex.split(command)[1:])
    assert capsysbinary.readouterr().out.decode().rstrip("\n") == output.rstrip("\n")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_exist(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    used = set(re.findall(r"`jinjarun ([a-z]+)", text)) | set(re.findall(r"^\$ jinjarun ([a-z]+)", text, re.MULTILINE))
    assert used <= set(program.COMMANDS)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_and_modules_exist(document: str) -> None:
    path = ROOT / document
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert (path.parent / target).exists(), target
    for module in re.findall(r"`python -m (tests\.[a-z_.]+)", text):
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module


def test_ci_runs_the_readme_s_own_lines() -> None:
    first, *_, last = blocks("sh")
    assert first.endswith(".venv/bin/jinjarun probe family:chatml\n")
    assert last.endswith(".venv/bin/python -m pytest -n auto\n")
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "readme_line head" in script
    assert "readme_line tail" in script


def test_ci_s_floors_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    floors = dict(re.findall(r"^([a-z0-9_]+)==([\d.]+)$", (ROOT / ".ci" / "floors.txt").read_text(), re.MULTILINE))
    for dependency in project["dependencies"]:
        name, lowest = re.match(r"([a-z0-9_]+)>=([\d.]+)", dependency).groups()
        assert floors[name].startswith(lowest)
