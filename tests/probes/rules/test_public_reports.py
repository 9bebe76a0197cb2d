"""Every row of tests/data/public-reports.jsonl is covered: by a rule that finds its defect, by a chapter of the report
that says what it should, or by the dialects and paths that render it as the engines do.

The rows' recorded renders and flags themselves are compared in tests/conformance/test_reports.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jinjarun.errors import JinjarunError
from jinjarun.serving.llama_server import apply_template
from jinjarun.serving.transformers import apply_chat_template, explain_chat_template
from jinjarun.template import Template
from probes import probe
from tests.probes.token_files import model_folder, opened

if TYPE_CHECKING:
    from probes.report import ProbeReport

ROWS: dict[str, dict[str, Any]] = {
    row["id"]: row
    for row in map(
        json.loads,
        (Path(__file__).parents[2] / "data" / "public-reports.jsonl").read_text(encoding="utf-8").splitlines(),
    )
}

FOUND = {
    "unknown-tag-must-fail": "SY001",
    "go-template-in-jinja-slot": "SY002",
    "rejectattr-filter": "PT101",
    "trailing-newline-stripped": "SY005",
    "tools-string-repr": "CT101",
    "stop-token-outside-mask": "TR102",
    "nothink-block-only-in-prefill": "PS103",
    "tool-loop-think-dropped": "PS103",
    "turn-diff-wrong": "PS103",
    "clock-in-prefix": "PS104",
    "date-in-prefix-midnight": "PS104",
    "tools-before-last-user": "PS101",
    "args-string-into-items": "TL102",
    "args-object-into-concat": "TL102 | TL105",
    "args-double-encoded": "TL104",
    "args-string-raw-in-dsl": "TL105",
    "empty-tool-calls-list": "TL112",
    "empty-tools-phantom-preamble": "TL112",
    "tools-null-vs-undefined-guard": "PT101",
    "tool-id-carries-name": "TL107",
    "generation-outside-any-turn": "TL108",
    "schema-type-missing-or-list": "TL113",
    "tools-ignored-silently": "TL101",
    "caps-media-word-substring": "CT104",
    "null-content-prints-none": "CT101",
    "parts-concat-typeerror": "CT104",
    "string-content-silently-lost": "CT106",
    "iterable-is-true-for-strings": "CT106",
    "midway-system-dropped": "RL101",
    "two-users-in-a-row": "RL101",
    "inline-think-stripped-by-split": "RS103",
    "enable-thinking-three-states": "RS104",
    "stale-fallback-date": "PS104",
    "range-bomb": "SC105",
    "macro-recursion": "SC105",
    "ssti-via-string-attr": "SC101",
    "mutating-input": "PT101",
    "control-tokens-in-user-text": "SC104",
}
"""Row -> the rule that finds it (or one of several)."""

SAID: dict[str, Callable[[ProbeReport], object]] = {
    "hardcoded-template-guess": lambda r: turns(r)["assistant"].close.startswith("{{ eos_token }}"),
    "double-bos": lambda r: r.shape is not None and r.shape.bos.written == 1,
    "assistant-turn-never-closed": lambda r: r.stop is not None and r.stop.written == [],
    "eos-when-no-generation-prompt": lambda r: not prompt(r).equals_suffix_difference,
    "replayed-args-key-order": lambda r: law(r, "key-order").holds is True,
    "tool-call-id-nine-chars": lambda r: refusals(r)["call id length must be 9"] is not None,
    "caps-parallel-raises": lambda r: r.observed["parallel_tool_calls"].answer == "no",
    "caps-raw-dump-not-native": lambda r: r.observed["tool_calls"].answer == "no",
    "caps-preserve-reasoning-flag": lambda r: r.observed["preserve_reasoning"].answer == "yes",
    "missing-content-key": lambda r: r.contract is not None and r.contract.content["missing"] != "raises",
    "developer-role-refused": lambda r: r.contract is not None and r.contract.roles["developer"] == "raises",
    "system-role-refused": lambda r: r.contract is not None and r.contract.roles["system"] == "raises",
    "content-and-thinking-exclusive": lambda r: "give content or thinking, not both" in refusals(r),
    "reasoning-field-renamed": lambda r: (
        r.contract is not None and r.contract.reasoning_input.fields == ["reasoning_content"]
    ),
    "generation-prompt-tail-lost": lambda r: prompt(r).text == "<|assistant|><th>\n",
    "think-opened-by-prompt": lambda r: prompt(r).starts_in_reasoning,
    "prefill-with-thinking": lambda r: r.observed["assistant_prefill"].answer == "yes",
}
"""Row -> what the report says of its template."""

RENDERED = {
    "loop-break-tag",
    "generation-tag-plain",
    "generation-tag-dashed",
    "slice-negative-step",
    "call-block",
    "filter-block",
    "is-sequence-test",
    "python-string-methods",
    "dict-items-method",
    "range-countdown",
    "tojson-unicode",
    "tojson-no-html-escape",
    "tojson-separators-arg",
    "tojson-default-spacing",
    "tojson-sortkeys-and-indent",
    "tojson-slash-order-spacing",
    "none-through-string-filter",
    "undefined-as-empty-sequence",
    "undefined-length-zero",
    "comment-dash-control",
    "filter-kwargs-int-max",
    "macro-extra-kwarg",
    "namespace-vs-loop-scope",
    "clock-helper-missing",
    "tool-schema-key-order",
}
"""Rows about an engine that read the language wrongly: rendered right is all there is to them."""

ON_A_PATH = {
    "malformed-args-json",
    "caps-per-named-template",
    "continue-with-trimming-template",
    "continue-empty-or-repeated",
    "null-bos-token",
    "eos-text-empty-in-engine",
}
"""Rows about a request path or the model's files; each has a test of its own below."""


def turns(report: ProbeReport) -> Any:
    assert report.shape is not None
    return report.shape.turns


def prompt(report: ProbeReport) -> Any:
    assert report.shape is not None
    return report.shape.generation_prompt


def refusals(report: ProbeReport) -> dict[str, str | None]:
    """The template's own messages, each with the conversation that triggers it."""
    assert report.contract is not None
    return {one.message: one.triggered_by for one in report.contract.raises}


def law(report: ProbeReport, name: str) -> Any:
    assert report.prefix is not None
    return next(one for one in report.prefix.laws if one.law == name)


@cache
def report_on(template: str) -> ProbeReport:
    return probe(template)


def codes(report: ProbeReport) -> set[str]:
    return {code for found in report.findings for code in (found.code, *found.also)}


def test_every_row_is_covered_once() -> None:
    groups = [set(FOUND), set(SAID), RENDERED, ON_A_PATH]
    assert set().union(*groups) == ROWS.keys()
    assert sum(map(len, groups)) == len(ROWS)


@pytest.mark.parametrize(("name", "rule"), FOUND.items(), ids=FOUND)
def test_a_rule_finds_it(name: str, rule: str) -> None:
    assert codes(report_on(ROWS[name]["template"])) & set(rule.split(" | "))


@pytest.mark.parametrize(("name", "holds"), SAID.items(), ids=SAID)
def test_the_report_says_it(name: str, holds: Callable[[ProbeReport], object]) -> None:
    assert holds(report_on(ROWS[name]["template"]))


@pytest.mark.parametrize("name", sorted(RENDERED))
def test_it_renders_as_expected(name: str) -> None:
    """What transformers answered, where the row has a text for it (see tests/conformance for all of them)."""
    row = ROWS[name]
    answer = row["transformers_answers"].get("base")
    context = {**row["context"], **row["context"].get("kwargs", {})}
    context = {key: value for key, value in context.items() if key not in {"kwargs", "variants", "now"}}
    template = Template(row["template"], "transformers")
    if answer is None or "tools" not in row["context"]:
        context.setdefault("tools", None)
    try:
        text = template.render_context(context, now=ROW_NOW).text
    except JinjarunError:
        assert answer is not None
        assert not answer["ok"]
    else:
        assert answer is None or (answer["ok"] and text == answer["out"])


ROW_NOW = 1927886400
"""3 February 2031, the clock of the recordings."""


def test_no_row_makes_the_probe_raise() -> None:
    for row in ROWS.values():
        assert report_on(row["template"]).status in {"complete", "partial", "invalid"}


# Paths


def test_malformed_arguments_are_the_callers_fault() -> None:
    row = ROWS["malformed-args-json"]
    with pytest.raises(JinjarunError) as caught:
        apply_template(row["template"], {"messages": [*row["context"]["messages"], {"role": "tool", "content": "x"}]})
    assert "messages[1].tool_calls[0].function.arguments" in str(caught.value)


def test_the_template_is_chosen_by_name() -> None:
    plain = ROWS["caps-per-named-template"]["template"]
    templates = {"default": plain, "tool_use": plain.replace("<|end|>", "<|tool|>")}
    messages = [{"role": "user", "content": "q"}]
    tools = [{"type": "function", "function": {"name": "f"}}]
    assert explain_chat_template(templates, messages, tools=tools).template == "tool_use"
    assert explain_chat_template(templates, messages).template == "default"
    with pytest.raises(JinjarunError):
        explain_chat_template({"other": plain}, messages)


def test_a_trimmed_message_is_continued() -> None:
    row = ROWS["continue-with-trimming-template"]
    text = apply_chat_template(row["template"], row["context"]["messages"], continue_final_message=True)
    assert text == "<user>q<e><assistant>The answer is"


@pytest.mark.parametrize("empty", [False, True])
def test_a_message_is_continued_where_it_ends(empty: bool) -> None:
    row = ROWS["continue-empty-or-repeated"]
    messages = row["context"]["variants"][0]["messages"] if empty else row["context"]["messages"]
    expected = "<user>q<e><assistant>" if empty else "<user>e<e><assistant>e"
    assert apply_chat_template(row["template"], messages, continue_final_message=True) == expected


@pytest.mark.parametrize(("name", "eos"), [("null-bos-token", "</s>"), ("eos-text-empty-in-engine", None)])
def test_a_token_that_is_null(name: str, eos: str | None, tmp_path: Path) -> None:
    template = ROWS[name]["template"]
    _, tokens = opened(model_folder(tmp_path, template, bos=None, eos=eos))
    assert "ST204" in codes(probe(template, tokens=tokens))
