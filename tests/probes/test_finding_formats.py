"""`lint`, `snapshot --check` and `fuzz` in the formats of CI: what fails the command fails there too."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from probes.fuzzer.fuzz import fuzz
from probes.laws import LAWS
from probes.prober import template_info
from probes.reporters.registry import FINDING_FORMATS, FORMATS
from probes.reporters.rows import fuzz_row
from probes.rules import rules
from tests.bench.planted import family
from tests.probes.conftest import Run
from tests.probes.token_files import CHATML

FORGETFUL = CHATML.replace("in messages", "in messages[-3:]")
COMMANDS = {
    "lint": ["lint", "--select", "PS101,SY001", "--fail-on", "warning"],
    "snapshot": ["snapshot", "--check"],
    "fuzz": ["fuzz", "--law", "texts-kept", "--max-examples", "10", "--database", "none"],
}
FOUND = {"lint": "PS101 earlier-turns-rewritten", "snapshot": "snapshot differs", "fuzz": "CT106 content-altered"}


@pytest.fixture
def templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Path:
    """`t/bad.jinja`, which was healthy when its snapshot was taken, and `t/good.jinja`."""
    monkeypatch.chdir(tmp_path)
    Path("t").mkdir()
    for name in ("bad", "good"):
        Path(f"t/{name}.jinja").write_text(CHATML, encoding="utf-8")
    assert run("snapshot", "t")[0] == 0
    Path("t/bad.jinja").write_text(FORGETFUL, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_annotations(command: str, run: Run, templates: Path) -> None:
    code, text, errors = run(*COMMANDS[command], "t", "--format", "github")
    assert (code, errors) == (1, "")
    failing = [line for line in text.splitlines() if not line.startswith("::notice")]
    assert failing
    assert all(line.split(",")[0].endswith(" file=t/bad.jinja") for line in failing)
    assert any(f",title={FOUND[command]}" in line for line in failing)
    assert run(*COMMANDS[command], "t/good.jinja", "--format", "github") == (0, "", "")


@pytest.mark.parametrize("command", COMMANDS)
def test_sarif(command: str, run: Run, templates: Path) -> None:
    code, text, said = run(*COMMANDS[command], "t", "--out", "x.sarif")
    assert (code, text) == (1, "")
    assert re.fullmatch(r"jinjarun: x.sarif: \d error, \d warning, \d info\n", said)
    (log,) = json.loads(Path("x.sarif").read_text(encoding="utf-8"))["runs"]
    assert log["automationDetails"] == {"id": f"jinjarun {command}/"}
    uris = {result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in log["results"]}
    assert uris == {"t/bad.jinja"}
    codes = {result["ruleId"] for result in log["results"]}
    assert FOUND[command].split()[0] in codes == {rule["id"] for rule in log["tool"]["driver"]["rules"]}


@pytest.mark.parametrize("command", ["snapshot", "fuzz"])
def test_junit(command: str, run: Run, templates: Path) -> None:
    code, text, _ = run(*COMMANDS[command], "t", "--format", "junit")
    assert code == 1
    cases = {case.get("name"): case.find("failure") for case in ElementTree.fromstring(text).iter("testcase")}
    assert list(cases) == ["t/bad.jinja", "t/good.jinja"]
    assert cases["t/good.jinja"] is None
    assert cases["t/bad.jinja"] is not None


@pytest.mark.parametrize("command", COMMANDS)
def test_what_cannot_be_judged_is_an_error(command: str, run: Run, templates: Path) -> None:
    code, text, errors = run(*COMMANDS[command], "t/absent.jinja", "--format", "github")
    assert code == 2
    assert "t/absent.jinja" in errors
    assert text.startswith("::error file=t/absent.jinja,title=SourceError::")


def test_a_missing_snapshot_and_a_template_that_never_renders(run: Run, templates: Path) -> None:
    Path("t/new.jinja").write_text("{{ 1 // 0 }}", encoding="utf-8")
    code, text, _ = run("snapshot", "--check", "t/new.jinja", "--format", "github")
    assert code == 2
    assert text == "::error file=t/new.jinja,title=no snapshot::t/new.jinja.snapshot.json is missing\n"
    code, text, _ = run("fuzz", "t/new.jinja", "--database", "none", "--format", "github")
    assert code == 1
    assert text.startswith("::error file=t/new.jinja,title=not evaluated::")


def test_a_finding_in_a_model_names_the_file_and_the_place_in_it(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    config = folder / "tokenizer_config.json"
    config.write_text(json.dumps({"chat_template": FORGETFUL}), encoding="utf-8")
    for command in ("lint", "fuzz"):
        code, text, _ = run(*COMMANDS[command], folder, "--format", "github")
        assert code == 1
        assert f"file={config}," in text
        assert "::chat_template: " in text


def test_a_broken_law_shows_its_conversation_and_the_command_that_repeats_it(run: Run, templates: Path) -> None:
    _, text, _ = run(*COMMANDS["fuzz"], "t/bad.jinja", "--format", "github")
    line = text.splitlines()[0].replace("%25", "%")
    request = line.partition("; the smallest: ")[2].partition("; again: ")[0]
    assert [message["role"] for message in json.loads(request)["messages"]] == ["user", "assistant"] * 2 + ["user"]
    assert line.endswith("; again: jinjarun fuzz t/bad.jinja --seed 0 --law texts-kept --max-examples 10")


def test_what_a_template_is_known_to_do_fails_only_where_that_is_wanted() -> None:
    text, tokens = family("llama3-today")
    report = fuzz(text, laws=["another-day"], max_examples=2, **tokens)
    info = template_info(text, "t.jinja", "default", None)
    for strict, severity in ((False, "info"), (True, "error")):
        row = fuzz_row(info, report, strict=strict)
        assert row.summary is not None
        assert [found.severity for found in row.summary.findings] == [severity]
        assert row.id == "t.jinja"


def test_every_code_of_a_law_has_a_rule_that_tells_how_to_repair() -> None:
    assert {code for law in LAWS.values() for code in law.codes} <= rules().keys()


def test_only_formats_of_findings(run: Run, templates: Path) -> None:
    assert set(FINDING_FORMATS) < set(FORMATS)
    code, text, errors = run("lint", "t", "--out", "x.csv")
    assert (code, text) == (2, "")
    assert "csv is for scans" in errors
    assert run("lint", "t", "--format", "csv")[0] == 2
    said = "jinjarun: x.txt: 0 error, 0 warning, 0 info\n"
    assert run("lint", "t/good.jinja", "--out", "x.txt", "--select", "PS101") == (0, "", said)
    assert Path("x.txt").read_text(encoding="utf-8") == "1 template: 0 error, 0 warning, 0 info\n"
