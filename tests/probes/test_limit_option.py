"""`--limit NAME=VALUE`: every command that renders takes it; what cannot be read within a limit is not judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from probes import Limits, probe
from tests.probes.conftest import Run

DEAR = "{% for i in range(300) %}{% endfor %}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
COMMANDS = {
    "render": (),
    "caps": (),
    "probe": ("--json",),
    "lint": ("--json",),
    "prefix": ("--json",),
    "compare": ("--json",),
    "snapshot": ("--dir", "kept", "--json"),
    "response": (),
    "fuzz": ("--max-examples", "3", "--database", "none", "--json"),
    "scan": ("--jobs", "1", "--json"),
}
"""By name, what else is given."""


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_renders_takes_a_limit(
    command: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("dear.jinja").write_text(DEAR)
    _, usual, _ = run(command, "dear.jinja", *COMMANDS[command])
    assert "limit exceeded" not in usual
    _, text, told = run(command, "dear.jinja", *COMMANDS[command], "--limit", "steps=200", "--limit", "items=1000")
    assert "limit exceeded: steps (jinjarun allows 200; to allow more: --limit steps=N" in text + told or (
        command in ("prefix", "response", "snapshot") and text != usual
    )


def test_parse_takes_a_limit(run: Run, tmp_path: Path) -> None:
    (tmp_path / "dear.jinja").write_text(DEAR)
    (tmp_path / "answer.txt").write_text("Yes.")
    code, _, told = run(
        "parse", tmp_path / "dear.jinja", "--response", tmp_path / "answer.txt", "--limit", "source_bytes=9"
    )
    assert code == 1
    assert "limit exceeded: source_bytes" in told


@pytest.mark.parametrize("wrong", ["steps", "steps=", "steps=x", "steps=-1", "depth=10001", "hops=1"])
@pytest.mark.parametrize("command", ["render", "scan", "serve"])
def test_a_wrong_limit_is_wrong_usage(command: str, wrong: str, run: Run) -> None:
    code, text, told = run(command, "family:chatml", "--limit", wrong)
    assert (code, text) == (2, "")
    assert "--limit" in told


def test_a_scan_still_takes_a_number_of_rows(run: Run, tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.jinja").write_text(f"{name}{{{{ messages[0].content }}}}")
    rows = json.loads(run("scan", tmp_path, "--depth", "quick", "--limit", "2", "--limit", "steps=2", "--json")[1])
    rows = rows["rows"] if isinstance(rows, dict) else rows
    assert [row["status"] for row in rows] == ["not_evaluated", "not_evaluated"]


def test_a_server_allows_strangers_only_so_much(run: Run) -> None:
    code, _, told = run("serve", "family:chatml", "--limit", "steps=5000001")
    assert code == 2
    assert "5,000,000 at the most" in told


@pytest.mark.parametrize("limits", [Limits(tokens=3), Limits(source_bytes=3), Limits(steps=0, depth=0)])
def test_a_template_that_no_engine_loads_within_a_limit_is_not_evaluated(limits: Limits) -> None:
    report = probe("{% for m in messages %}{{ m.content }}{% endfor %}", limits=limits)
    assert report.status == "not_evaluated"
    assert {missing.what for missing in report.not_evaluated} >= {"everything on transformers:raw"}


def test_a_template_that_does_not_parse_is_invalid() -> None:
    assert probe("{% for %}").status == "invalid"


def test_a_report_on_a_name_that_is_not_unicode_is_json() -> None:
    report = probe("{% for m in messages %}{{ m.role + m.content }}{% endfor %}", name="a\ud800b", depth="full")
    told = json.loads(report.to_json())
    assert told["template"]["name"] == "a\ud800b"
    assert json.loads(report.to_json(indent=None)) == told
