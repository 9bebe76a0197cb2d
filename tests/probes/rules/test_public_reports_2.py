"""Every row of the second file of public reports is answered: by a rule, a chapter of the report, or a command."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from probes import lint, probe
from probes.chapters.prefix import check_prefix_stability
from tests.conformance.golden import NO_SHARED, SHARED, have_shared
from tests.probes.rules.support import model_folder

if TYPE_CHECKING:
    from probes.chapters.prefix import LawResult
    from probes.report import Finding, ProbeReport
    from tests.probes.conftest import Run

pytestmark = pytest.mark.skipif(not have_shared(), reason=NO_SHARED)


@cache
def rows() -> dict[str, dict[str, Any]]:
    text = (SHARED / "cases" / "public-reports-2.jsonl").read_text(encoding="utf-8")
    return {row["id"]: row for row in map(json.loads, text.splitlines())}


@cache
def report(name: str) -> ProbeReport:
    return probe(rows()[name]["template"])


def found(name: str, code: str) -> Finding:
    """The finding of a rule that leads, or that stands under another's `also`."""
    return next(one for one in report(name).findings if code in (one.code, *one.also))


def advice(name: str, engine: str) -> Any:
    return next(one for one in report(name).serving if one.engine == engine)


def law(name: str, law: str) -> LawResult:
    return check_prefix_stability(rows()[name]["template"], laws=[law])[0]


def rendered(run: Run, folder: Path, name: str, *options: object) -> tuple[int, str, str]:
    """The row's request on a path: the prompt, and what is said of it."""
    context = rows()[name]["context"]
    file = folder / "template.jinja"
    file.write_text(rows()[name]["template"], encoding="utf-8")
    body = {key: context[key] for key in ("messages", "tools") if context.get(key) is not None}
    kwargs = context.get("kwargs", {})
    body |= {key: kwargs[key] for key in ("continue_final_message",) if key in kwargs}
    variables = {key: value for key, value in kwargs.items() if key not in {"add_generation_prompt", *body}}
    body |= {"chat_template_kwargs": variables} if variables else {}
    sent = folder / "body.json"
    sent.write_text(json.dumps(context.get("request", body)), encoding="utf-8")
    return run("render", file, "--request", sent, *options)


RULES = {
    "tool-without-description": "TL117",
    "mask-covers-generation-prompt": "TR104",
    "tools-read-from-message": "TL101",
    "reasoning-dropped-behind-switch": "PS103",
    "assistant-turn-not-closed": "ST103",
    "empty-calls-hit-one-call-check": "TL112",
    "calls-never-written": "TL115",
    "parts-into-concat": "CT104",
    "answer-that-quotes-the-tag": "RS103",
    "default-system-of-export": "RL106",
    "tool-result-object-vanishes": "CT108",
}


@pytest.mark.parametrize(("name", "code"), RULES.items(), ids=RULES)
def test_a_rule_finds_it(name: str, code: str) -> None:
    assert found(name, code)


def test_a_missing_description_has_its_line_and_remedy() -> None:
    hit = found("tool-without-description", "TL117")
    assert hit.line == 1
    assert "description" in hit.message


@pytest.mark.parametrize("name", ["calls-never-written", "assistant-turn-not-closed"])
def test_what_breaks_every_request_is_an_error(name: str) -> None:
    assert found(name, RULES[name]).severity == "error"


def test_what_opens_a_turn_is_never_a_stop() -> None:
    stop = report("assistant-turn-not-closed").stop
    assert stop is not None
    assert stop.client_should_set == []
    assert "<|end|>" in found("assistant-turn-not-closed", "ST103").suggestion


def test_a_refusal_is_no_loss() -> None:
    calls = report("parallel-calls-raise").observed["parallel_tool_calls"]
    assert calls.answer == "no"
    assert calls.reason.startswith("refused")
    assert "one call only" in calls.reason
    assert "line 1" in calls.reason
    avoided = advice("parallel-calls-raise", "transformers").avoid
    assert any("several calls" in line and "refused" in line for line in avoided)
    assert not [one for one in report("parallel-calls-raise").findings if one.code == "TL106"]


def test_the_switch_that_keeps_reasoning_is_named() -> None:
    result = law("reasoning-dropped-behind-switch", "as-generated")
    assert (result.cause, result.remedy) == ("reasoning_dropped", {"preserve_thinking": True})
    assert "preserve_thinking" in found("reasoning-dropped-behind-switch", "PS103").suggestion


def test_reasoning_is_dropped_at_a_line() -> None:
    result = law("unstable-prefix-for-masks", "as-generated")
    assert (result.holds, result.cause) == (False, "reasoning_dropped")
    assert result.line is not None


def test_tools_of_a_system_message_are_a_way() -> None:
    assert "json.dumps(tools)" in found("tools-read-from-message", "TL101").suggestion


def test_the_flag_of_vllm() -> None:
    assert found("parts-into-concat", "CT104").line is not None
    assert "--chat-template-content-format string" in advice("parts-into-concat", "vllm").flags


def test_a_user_turn_is_needed() -> None:
    contract = report("needs-user-turn").contract
    assert contract is not None
    assert contract.needs_user_turn
    assert any("user" in one.message and one.line for one in contract.raises)


def test_the_default_system_text() -> None:
    shape = report("default-system-of-export").shape
    assert shape is not None
    assert shape.system is not None
    assert shape.system.default_text == "You are a helpful assistant."


def test_no_effort_is_read(run: Run, tmp_path: Path) -> None:
    assert report("effort-not-read").caps.flags["supports_reasoning_effort"] is False
    _, _, errors = rendered(run, tmp_path, "effort-not-read", "--as", "llama-server", "--explain")
    assert "chat_template_kwargs.reasoning_effort" in errors
    assert "reads no such variable" in errors


def test_a_switch_at_the_top_level(run: Run, tmp_path: Path) -> None:
    _, _, errors = rendered(run, tmp_path, "switch-at-top-level-ignored", "--as", "llama-server", "--explain")
    said = " ".join(errors.partition("the request:")[2].split())
    assert "enable_thinking ignored at the top level, and this template reads it" in said
    assert "chat_template_kwargs" in said


def test_tools_stay_for_no_choice(run: Run, tmp_path: Path) -> None:
    name = "tool-choice-none-keeps-tools"
    _, text, errors = rendered(run, tmp_path, name, "--as", "llama-server", "--explain")
    assert '"name": "f"' in text
    assert "the tools stay in the prompt" in " ".join(errors.split())


def test_an_empty_list_of_calls_is_named(run: Run, tmp_path: Path) -> None:
    code, _, errors = rendered(run, tmp_path, "empty-calls-hit-one-call-check", "--as", "transformers")
    assert code == 1
    assert "messages[1].tool_calls is []: leave the key out" in errors


def test_a_mask_of_zeros_says_why(run: Run, tmp_path: Path) -> None:
    _, _, errors = rendered(run, tmp_path, "mask-without-generation-block", "--as", "transformers", "--mask")
    assert "no {% generation %} block" in " ".join(errors.split())


def test_the_cut_of_a_final_message(run: Run, tmp_path: Path) -> None:
    code, _, errors = rendered(run, tmp_path, "final-message-cut-by-template", "--as", "transformers")
    assert code == 1
    assert "final message" in errors
    assert "line " in errors


def test_a_long_loop_hits_a_limit_of_ours_and_says_so(run: Run, tmp_path: Path) -> None:
    """It renders, or the message says that the limit is this tool's own."""
    name = "long-tool-loop-within-limit"
    code, text, errors = rendered(run, tmp_path, name, "--as", "transformers")
    whole = (code, text) == (0, rows()[name]["transformers_answers"]["base"]["out"])
    assert whole or ("limit exceeded" in errors and "line 1" in errors)


def test_a_folder_whose_template_only_processors_read(run: Run, tmp_path: Path) -> None:
    template = rows()["only-chat-template-json"]["template"]
    model_folder(tmp_path, None)
    (tmp_path / "chat_template.json").write_text(json.dumps({"chat_template": template}), encoding="utf-8")
    _, text, _ = run("lint", tmp_path, "--select", "PK302")
    assert "transformers tokenizer: none" in " ".join(text.split())
    assert "chat_template.jinja" in " ".join(text.split())
    _, _, errors = run("render", tmp_path, "--as", "transformers", "--conversation", "user")
    assert "tokenizer" in errors


def test_a_folder_without_a_template(run: Run, tmp_path: Path) -> None:
    assert rows()["no-template-at-all"]["template"] == ""
    model_folder(tmp_path, None)
    _, text, _ = run("lint", tmp_path, "--select", "PK303")
    assert "PK303" in text


def test_a_fork_shows_its_first_difference() -> None:
    row = rows()["fork-differs-from-upstream"]
    upstream = (SHARED / "corpus" / "templates" / row["context"]["upstream"]).read_text(encoding="utf-8")
    hit = next(one for one in lint(row["template"], select=["PK301"], upstream=upstream).findings)
    assert "the smallest is" in hit.message
    assert "here" in hit.message
    assert "upstream" in hit.message


def test_the_name_of_a_format_is_text_for_jinja(run: Run, tmp_path: Path) -> None:
    name = "built-in-name-as-template"
    _, text, errors = rendered(run, tmp_path, name, "--as", "llama-server", "--chat-template", "gemma")
    assert text.startswith("gemma")
    assert "gemma" in errors
    _, text, errors = rendered(run, tmp_path, name, "--as", "llama-server", "--chat-template", "gemma", "--no-jinja")
    assert "<start_of_turn>" in text
    assert "<start_of_turn>" in errors


def test_every_row_has_a_test() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert not [name for name in rows() if f'"{name}"' not in text]
