"""What fuzzing finds in the format families and in planted defects, and what a report is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis.database import InMemoryExampleDatabase

from jinjarun import Template
from jinjarun.limits import Limits
from probes import cli
from probes.fuzzer.fuzz import KINDS_SHOWN, FuzzReport, fuzz
from probes.laws import LAWS
from probes.rules import rules
from tests.bench.planted import ROWS, family, found, planted

PREFIX = ["next-user-turn", "within-tool-loop", "tool-loop-to-next-user", "as-generated", "tool-added", "another-day"]


def fuzzed(name: str, laws: list[str] | None = None, examples: int = 40) -> FuzzReport:
    template, tokens = family(name)
    return fuzz(template, name=f"family:{name}", laws=laws, max_examples=examples, **tokens)


@pytest.mark.parametrize("name", ["chatml", "chatml-default-system", "llama3", "hermes-tools", "flat", "phi"])
def test_families_hold_the_laws_of_prefix(name: str) -> None:
    report = fuzzed(name, PREFIX)
    assert not report.broken
    assert not report.known


def test_todays_date_is_told_and_fails_only_where_wanted() -> None:
    report = fuzzed("llama3-today", PREFIX)
    assert [(example.law, example.found.code) for example in report.known] == [("another-day", "PS104")]
    assert not report.failed()
    assert report.failed(strict=True)


def test_a_system_text_in_the_last_turn_breaks_prefixes_within_four_messages() -> None:
    report = fuzzed("mistral", ["next-user-turn"])
    example = next(example for example in report.broken if example.found.cause == "system_text_moves")
    assert example.found.second is not None
    assert [message["role"] for message in example.found.second["messages"]] == ["system", "user", "assistant", "user"]
    assert example.found.code == "PS101"


def test_reasoning_is_kept_in_a_loop_and_dropped_for_the_next_question() -> None:
    report = fuzzed("qwen3", ["within-tool-loop", "tool-loop-to-next-user", "reasoning-in-loop"])
    assert not report.broken
    assert [(example.law, example.found.cause) for example in report.known] == [
        ("tool-loop-to-next-user", "reasoning_dropped")
    ]


def test_parallel_calls_are_made_up_where_they_are_taken() -> None:
    report = fuzzed("hermes-tools")
    assert not report.broken
    assert all(law.holds for law in report.laws if law.skipped is None)
    assert {law.law for law in report.laws if law.skipped is not None} == {"reasoning-in-loop"}


QUICKLY_FOUND = (
    *("end-missing-after-calls", "second-system-message-lost", "date-in-front", "only-the-first-call"),
    *("arguments-encoded-twice", "no-generation-prompt-after-results", "messages-reversed", "loop-in-a-loop"),
    *("reasoning-only-in-last-answer", "system-text-in-last-turn", "user-text-twice", "only-the-first-tool"),
)
"""The rest, and all of them with 300 examples, is asked by `python -m tests.bench.planted`."""


@pytest.mark.parametrize("name", QUICKLY_FOUND)
def test_planted_defects_are_found(name: str) -> None:
    row = next(row for row in ROWS if row["name"] == name)
    template, tokens = planted(row)
    report = fuzz(template, laws=[row["law"]], max_examples=40, shrink=False, **tokens)
    assert found(row, report)


def test_planted_defects_are_defects_of_templates_that_load() -> None:
    assert len({row["name"] for row in ROWS}) == len(ROWS) >= 60
    for row in ROWS:
        assert row["law"] in LAWS
        assert row["code"] in LAWS[row["law"]].codes
        Template(planted(row)[0], "transformers")


def test_every_code_of_a_law_is_a_rule() -> None:
    assert {code for law in LAWS.values() for code in law.codes} <= rules().keys()


def test_what_is_known_hides_no_failure() -> None:
    """More ways of trimming than are shown of a law, and one failure that only one conversation shows."""
    template = (
        "{% for m in messages %}<|{{ m.role }}|>{{ (m.content or '').split('</think>')[-1] | trim }}"
        "{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}<|end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    report = fuzz(template, max_examples=20, shrink=False)
    assert "cut_at_think assistant" in {example.found.cause for example in report.broken}
    assert sum(example.law == "texts-unaltered" for example in report.known) == KINDS_SHOWN - 1
    assert {law.law for law in report.laws if law.holds is False} == {example.law for example in report.broken}


def test_the_same_seed_gives_the_same_report() -> None:
    row = next(row for row in ROWS if row["name"] == "only-four-messages-kept")
    template, tokens = planted(row)
    first, second = (
        json.dumps(fuzz(template, max_examples=20, seed=5, **tokens).to_dict(), ensure_ascii=False) for _ in range(2)
    )
    assert first == second


def test_what_was_found_is_asked_first_the_next_time() -> None:
    row = next(row for row in ROWS if row["name"] == "texts-cut-at-500")
    template, tokens = planted(row)
    database = InMemoryExampleDatabase()
    laws = ["texts-unaltered"]
    before = fuzz(template, laws=laws, max_examples=60, database=database, **tokens)
    again = fuzz(template, laws=laws, max_examples=1, seed=9, database=database, **tokens)
    assert before.broken
    assert {example.found.key for example in again.broken} == {example.found.key for example in before.broken}
    repaired = fuzz(family("chatml")[0], laws=laws, max_examples=1, database=database)
    assert not repaired.broken
    assert not any(database.data.values())


def test_a_counterexample_breaks_its_law_when_it_is_rendered(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    report = fuzzed("mistral", ["next-user-turn"])
    example = report.broken[0]
    request = tmp_path / "request.json"
    request.write_text(json.dumps(example.request), encoding="utf-8")
    code = cli.main(["render", "family:mistral", "--dialect", "transformers", "--messages", str(request)])
    assert code == 0
    assert capsysbinary.readouterr().out.decode().startswith(example.found.expected)


@pytest.mark.parametrize(("target", "code"), [("family:chatml", 0), ("family:mistral", 1)])
def test_exit_codes(target: str, code: int, capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    database = str(tmp_path / "database")
    assert cli.main(["fuzz", target, "--max-examples", "15", "--database", database]) == code
    captured = capsysbinary.readouterr()
    assert captured.out.decode().startswith(f"{target}: ")
    assert not captured.err


def test_the_command_tells_of_what_cannot_be_read(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert cli.main(["fuzz", "no-such.jinja", "--database", "none"]) == 2
    assert b"no-such.jinja" in capsysbinary.readouterr().err


@pytest.mark.parametrize("source", ["{% if %}", "{{ raise_exception('never') }}", "{{ 1 // 0 }}"])
def test_what_never_renders_is_not_evaluated(source: str) -> None:
    report = fuzz(source)
    assert report.status == "not_evaluated"
    assert report.why
    assert report.failed()


def test_json_and_export(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    export = tmp_path / "report.md"
    arguments = ["--law", "next-user-turn", "--max-examples", "20", "--database", "none", "--json"]
    assert cli.main(["fuzz", "family:mistral", *arguments, "--export", str(export)]) == 1
    (row,) = json.loads(capsysbinary.readouterr().out)
    assert [one["code"] for one in row["broken"]] == ["PS101"] * len(row["broken"])
    text = export.read_text(encoding="utf-8")
    assert "[AVAILABLE_TOOLS]" in text
    assert "jinjarun fuzz family:mistral --seed 0" in text


def test_out_of_time_is_told() -> None:
    report = fuzz(family("chatml")[0], budget=0.0)
    assert report.status == "stopped"
    assert report.examples == 0
    assert {law.holds for law in report.laws} == {None}
    assert report.failed()


def test_a_law_that_a_template_cannot_break_fails_nothing() -> None:
    report = fuzzed("chatml", ["within-tool-loop"], examples=3)
    assert {law.holds for law in report.laws} == {None}
    assert not report.failed()


@pytest.mark.parametrize("budget", ["0", "-1", "soon", "nan"])
def test_a_budget_is_a_time(budget: str, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["fuzz", "family:chatml", "--budget", budget])
    assert left.value.code == 2
    assert b"no positive number of seconds" in capsysbinary.readouterr().err


def test_what_fails_nothing_is_told_apart(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    arguments = ["--max-examples", "30", "--database", "none", "--strict"]
    assert cli.main(["fuzz", "family:chatml", "--law", "forged-turns", *arguments]) == 0
    told = capsysbinary.readouterr().out.decode()
    assert "to know (fails nothing)\n  SC104" in told
    assert "--strict" not in told
    assert cli.main(["fuzz", "family:llama3-today", "--law", "another-day", *arguments]) == 1
    assert "known to do (fails only with --strict)\n  PS104" in capsysbinary.readouterr().out.decode()


def test_a_terminal_of_80_columns_holds_all_but_json_and_commands(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    cli.main(["fuzz", "family:mistral", "--law", "next-user-turn", "--max-examples", "20", "--database", "none"])
    lines = capsysbinary.readouterr().out.decode().splitlines()
    assert lines
    assert not [line for line in lines if len(line) > 80 and not line.lstrip().startswith(("{", "again: "))]


def test_harmony_takes_schemas_of_several_types() -> None:
    report = fuzzed("harmony", ["renders", "tools-read-back"])
    assert not report.broken


def test_why_nothing_could_be_asked() -> None:
    raises = fuzz("{{ raise_exception('no ' ~ messages[0].role) }}")
    assert raises.why is not None
    assert raises.why.startswith("a plain question does not render: no user")
    limited = fuzz("{{ messages }}", limits=Limits(steps=1))
    assert limited.why is not None
    assert "limit exceeded: steps" in limited.why
    assert {law.holds for law in limited.laws} == {None}
