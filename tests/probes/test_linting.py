"""lint as a function and as a command: what is chosen, what is left out and why, and the exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import probes
from jinjarun.errors import InputError, JinjarunError
from probes.linter.lint import (
    LintResult,
    baseline,
    lint,
    read_exemptions,
    without_baseline,
    without_exemptions,
)
from probes.linter.places import find_targets
from probes.linter.targets import Options, lint_all
from probes.rules import rules
from tests.probes.conftest import Run
from tests.probes.token_files import CHATML, gguf_file, model_folder

DOUBLE = rules()["TL104"].triggers
"""Double-encodes arguments, and loses text parts besides."""


def codes(result: LintResult) -> set[str]:
    return {found.code for found in result.findings}


def template(folder: Path, text: str = DOUBLE, name: str = "t.jinja") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


# The function


def test_it_is_public() -> None:
    assert probes.lint is lint


def test_selected_and_ignored() -> None:
    assert {"TL104", "CT104"} <= codes(lint(DOUBLE))
    assert codes(lint(DOUBLE, select=["TL"])) == codes(lint(DOUBLE, select=["TL1"]))
    assert codes(lint(DOUBLE, select=["TL104"])) == {"TL104"}
    assert codes(lint(DOUBLE, select=["double-encoded-arguments"])) == {"TL104"}
    assert "TL104" not in codes(lint(DOUBLE, ignore=["TL104"]))
    assert codes(lint(DOUBLE, select=["TL104", "CT104"], ignore=["CT"])) == {"TL104"}


def test_a_word_that_fits_no_rule() -> None:
    with pytest.raises(InputError, match="XX999"):
        lint(DOUBLE, select=["XX999"])


def test_worst_first_and_with_evidence() -> None:
    result = lint(DOUBLE)
    order = ["error", "warning", "info"]
    ranks = [order.index(found.severity) for found in result.findings]
    assert ranks == sorted(ranks)
    cited = {key for found in result.findings for key in found.evidence}
    assert cited == result.evidence.keys()


def test_one_cause_is_one_finding() -> None:
    groups = [found.group for found in lint(DOUBLE).findings]
    assert len(set(groups)) == len(groups)


def test_what_is_not_evaluated_is_said() -> None:
    said = {missing.what for missing in lint(CHATML).not_evaluated}
    assert {"rule ST201", "rule ST202", "rule ST203", "rule ST204", "rule PK301", "rule PK302"} <= said
    assert lint(CHATML, select=["TL"]).not_evaluated == []
    assert [m.how for m in lint(CHATML, select=["PK301"]).not_evaluated] == ["--upstream TEMPLATE"]


def test_a_template_that_does_not_parse_has_that_finding_alone() -> None:
    result = lint("{% for m in messages %}")
    assert codes(result) == {"SY001"}
    assert any(missing.what == "rule TL104" for missing in result.not_evaluated)


# Exemptions and baselines


def test_an_exemption_by_fingerprint_and_by_path() -> None:
    result = lint(DOUBLE, name="models/t.jinja", select=["TL104"])
    [found] = result.findings
    for line in (f"{found.fingerprint}  trained so", "TL104 models/*.jinja  trained so"):
        [row] = read_exemptions(f"# looked at on Monday\n\n{line}\n")
        left = without_exemptions(result, [row])
        assert left.findings == []
        assert [(one.finding, one.reason) for one in left.exempt] == [(found, "trained so")]
    other = read_exemptions("TL104 other/*.jinja  trained so\nTL102 models/*  trained so")
    assert without_exemptions(result, other).findings == [found]


@pytest.mark.parametrize(
    "line", ["TL104:87a2728c:34", "TL104 models/*.jinja", "TL104", "models/*.jinja because", "TL104 x.jinja   "]
)
def test_a_line_without_reason_or_rule_is_refused(line: str) -> None:
    with pytest.raises(InputError, match="line 2"):
        read_exemptions(f"# x\n{line}\n", "ignore.txt")


def test_a_baseline_holds_what_is_known() -> None:
    result = lint(DOUBLE, name="t.jinja")
    text = baseline([result])
    left = without_baseline(result, text)
    assert left.findings == []
    assert {one.reason for one in left.exempt} == {"in the baseline"}
    assert without_baseline(lint(DOUBLE, name="u.jinja"), text).findings
    edited = lint("{# edited #}" + DOUBLE, name="t.jinja")
    assert without_baseline(edited, text).findings == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"findings": [1]}', '{"findings": [{"code": "TL104"}]}'])
def test_what_is_no_baseline(text: str) -> None:
    with pytest.raises(InputError, match="no baseline"):
        without_baseline(lint(CHATML, select=["TL"]), text)


# Files and folders


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.jinja").write_text("{{ x }}")
    (tmp_path / "found").mkdir()
    (tmp_path / "found" / "a.jinja").symlink_to("../secret.jinja")
    with pytest.raises(JinjarunError, match="leads out of"):
        find_targets(str(tmp_path / "found"))
    assert find_targets(str(tmp_path)), "inside of what was named, it is one of its files"


def test_targets_below_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    first, second = template(tmp_path / "a" / "b"), template(tmp_path / "a", name="u.jinja")
    model = model_folder(tmp_path / "model", CHATML)
    assert find_targets(str(tmp_path)) == sorted(map(str, [first, second, model]))
    assert find_targets(str(model)) == [str(model)]
    with pytest.raises(JinjarunError, match="no template"):
        find_targets(str(tmp_path_of_nothing(tmp_path)))


def tmp_path_of_nothing(folder: Path) -> Path:
    empty = folder / "empty"
    empty.mkdir()
    return empty


def test_several_are_judged_in_workers_as_one_is_here(tmp_path: Path) -> None:
    paths = [str(template(tmp_path, name=f"{i}.jinja")) for i in range(2)]
    options = Options(select=("TL1",))
    [alone] = [found for _, found in lint_all(paths[:1], options)]
    together = dict(lint_all(paths, options))
    assert together[paths[0]] == alone
    assert all(isinstance(found, list) for found in together.values())


# The command


def test_exit_codes(run: Run, tmp_path: Path) -> None:
    path = template(tmp_path, rules()["TL107"].triggers)
    clean = template(tmp_path, CHATML, "clean.jinja")
    assert run("lint", path, "--select", "TL107")[0] == 1
    assert run("lint", path, "--ignore", "TL107,SC,CT,RL")[0] == 0
    assert run("lint", clean, "--select", "CT104")[0] == 0
    assert run("lint", clean, "--select", "CT104", "--fail-on", "warning")[0] == 0
    assert run("lint", clean, "--select", "RL103", "--fail-on", "warning")[0] == 0
    assert run("lint", clean, "--select", "RL103", "--fail-on", "info")[0] == 1
    code, _, errors = run("lint", clean, "--select", "XX1")
    assert (code, "XX1" in errors) == (2, True)
    assert run("lint", tmp_path / "missing.jinja")[0] == 2


def test_probe_fails_on_findings_too(run: Run, tmp_path: Path) -> None:
    bad = template(tmp_path, rules()["TL107"].triggers)
    fine = template(tmp_path, CHATML, "fine.jinja")
    assert run("probe", bad)[0] == 1
    assert run("probe", fine)[0] == 0
    assert run("probe", fine, "--fail-on", "info")[0] == 1


def test_what_is_printed(run: Run, tmp_path: Path) -> None:
    path = template(tmp_path)
    code, text, _ = run("lint", path)
    assert code == 0
    assert max(map(len, text.splitlines())) < 80 or len(str(path)) >= 80
    assert "TL104 double-encoded-arguments" in text
    assert "not evaluated: ST201" in text
    assert text.splitlines()[-1].startswith("1 template: ")
    [answer] = json.loads(run("lint", path, "--json")[1])
    assert answer["template"] == str(path)
    assert {row["code"] for row in answer["findings"]} == codes(lint(DOUBLE))


def test_ignore_file_and_baseline_as_files(run: Run, tmp_path: Path) -> None:
    path = template(tmp_path, rules()["TL107"].triggers)
    ignore = tmp_path / "ignore.txt"
    ignore.write_text("TL107 *.jinja\n", encoding="utf-8")
    code, _, errors = run("lint", path, "--select", "TL107", "--ignore-file", ignore)
    assert code == 2
    assert "reason" in errors
    ignore.write_text("TL107 *.jinja  one call by design\n", encoding="utf-8")
    code, text, _ = run("lint", path, "--select", "TL107", "--ignore-file", ignore)
    assert (code, text) == (0, "1 template: 0 error, 0 warning, 0 info; 1 left out\n")
    known = tmp_path / "baseline.json"
    assert run("lint", path, "--write-baseline", known)[0] == 0
    assert run("lint", path, "--baseline", known)[0] == 0
    assert run("lint", path)[0] == 1


def test_one_unreadable_file_among_others(run: Run, tmp_path: Path) -> None:
    fine = template(tmp_path, CHATML, "fine.jinja")
    code, text, errors = run("lint", fine, tmp_path / "missing.jinja", "--select", "TL107")
    assert code == 2
    assert "missing.jinja: not evaluated" in errors
    assert text.startswith("1 template")


def test_upstream(run: Run, tmp_path: Path) -> None:
    rule = rules()["PK301"]
    ours, theirs = template(tmp_path, rule.triggers), template(tmp_path, rule.repaired, "base.jinja")
    _, text, _ = run("lint", ours, "--select", "PK301", "--upstream", theirs)
    assert "PK301 differs-from-upstream" in text
    assert "not evaluated" not in text


def test_a_model_folder_knows_its_tokens(run: Run, tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model", CHATML, eos="<|endoftext|>", stops=5)
    answer: list[dict[str, Any]] = json.loads(run("lint", folder, "--select", "ST201", "--json")[1])
    assert [row["code"] for row in answer[0]["findings"]] == ["ST201"]
    assert answer[0]["not_evaluated"] == []


def test_a_model_without_a_template(run: Run, tmp_path: Path) -> None:
    """Chat markers or a name make it a finding; without them, or where the rule is not asked, nothing can be judged."""
    plain = ("<unk>", "<s>", "</s>")
    marked = model_folder(tmp_path / "marked", None)
    named = model_folder(tmp_path / "Plover-1B-Instruct", None, special=plain, eos="</s>")
    base = model_folder(tmp_path / "Plover-1B", None, special=plain, eos="</s>")
    gguf = gguf_file(tmp_path / "marked.gguf", None)
    for path, why in (
        (marked, "the vocabulary holds '<|im_start|>'"),
        (gguf, "the vocabulary holds '<|im_start|>'"),
        (named, "the name is 'Plover-1B-Instruct'"),
    ):
        code, out, _ = run("lint", path, "--json", "--fail-on", "warning")
        ((only,),) = [result["findings"] for result in json.loads(out)]
        assert (code, only["code"]) == (1, "PK303")
        assert why in only["message"]
        assert "llama.cpp takes ChatML" in only["message"]
    for arguments in ([base], [marked, "--ignore", "PK303"], [marked, "--select", "TL"]):
        code, out, err = run("lint", *arguments)
        assert code == 2
        assert "holds no chat template" in err
        assert "PK303" not in out


def test_rules_are_listed_and_explained(run: Run) -> None:
    code, text, _ = run("rules")
    assert code == 0
    for rule in rules().values():
        assert f"{rule.code}  {rule.severity}" in text
        assert rule.name in text
    assert max(map(len, text.splitlines())) < 80
    assert len(json.loads(run("rules", "--json")[1])) == len(rules())


@pytest.mark.parametrize("word", ["TL104", "tl104", "double-encoded-arguments"])
def test_one_rule(run: Run, word: str) -> None:
    code, text, _ = run("rules", word)
    assert code == 0
    assert text.startswith("TL104 double-encoded-arguments (error; ")
    for section in ("What it does", "Why it is bad", "Example", "Use instead", "References"):
        assert f"\n{section}: " in text


def test_no_such_rule(run: Run) -> None:
    code, _, errors = run("rules", "TL999")
    assert (code, "TL999" in errors) == (2, True)
