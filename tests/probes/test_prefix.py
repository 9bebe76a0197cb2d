"""The laws of prefix stability: held and broken, with the cause and the line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from probes import check_prefix_stability, probe
from probes.chapters.prefix import LAWS
from probes.rendering.counting import counter
from tests.conformance.golden import SHARED

CORPUS = Path(__file__).parents[2] / "corpus"

CALLS = """\
{%- for m in messages -%}
<{{ m.role }}>{% if m.reasoning_content %}({{ m.reasoning_content }}){% endif %}{{ m.content }}
{%- for c in m.tool_calls or [] %}[{{ c.function.name }} {{ c.function.arguments|tojson }}]{% endfor %}</>
{%- endfor -%}
{%- if add_generation_prompt %}<assistant>{% endif -%}
"""


def verdicts(template: str) -> dict[str, tuple[bool | None, str | None]]:
    return {result.law: (result.holds, result.cause) for result in check_prefix_stability(template)}


def of_family(name: str) -> dict[str, tuple[bool | None, str | None]]:
    config = json.loads((CORPUS / name / "tokenizer_config.json").read_text(encoding="utf-8"))
    return verdicts(config["chat_template"])


def test_a_plain_loop_holds_every_law() -> None:
    held = verdicts(CALLS)
    assert {law for law, (holds, _) in held.items() if holds} == set(LAWS) - {"tool-added"}
    assert held["tool-added"] == (None, None), "no tools are written"


@pytest.mark.parametrize(
    ("change", "law", "cause"),
    [
        (("{% if m.reasoning_content %}", "{% if m.reasoning_content and loop.last %}"), "as-generated", "reasoning"),
        (("{{ m.role }}", "{{ m.role }}{{ '*' if loop.last }}"), "next-user-turn", "last_turn_differs"),
        (("{%- endfor -%}", "{{ '.' if loop.last }}{%- endfor -%}"), "next-user-turn", "end_differs"),
        (("{%- for m", "{{ strftime_now('%d %b') }}{%- for m"), "another-day", "clock"),
        (("c.function.arguments|tojson", "c.function.arguments|dictsort"), "key-order", "keys_sorted"),
        (
            ("messages -%}", "(messages[-2:] if messages|length > 2 else messages) -%}"),
            "within-tool-loop",
            "history_trimmed",
        ),
        (
            ("{{ m.content }}", "{{ messages[0].content if loop.last }}{{ m.content if m.role != 'system' }}"),
            "next-user-turn",
            "system_text_moves",
        ),
        (("<assistant>", "<assistant>(thinking: "), "as-generated", "generation_prompt_differs"),
    ],
)
def test_each_cause(change: tuple[str, str], law: str, cause: str) -> None:
    assert change[0] in CALLS
    holds, found = verdicts(CALLS.replace(*change))[law]
    assert holds is False
    assert found is not None
    assert found.startswith(cause)


def test_the_line_and_the_texts_of_a_divergence() -> None:
    template = "a\n{% for m in messages %}\n{{ m.content }}\n{{ 'last' if loop.last else 'more' }}{% endfor %}"
    result = next(r for r in check_prefix_stability(template) if r.law == "next-user-turn")
    assert result.growth is not None
    assert (result.holds, result.line) == (False, 4)
    at = result.growth.at
    assert result.growth.expected[at:].startswith("last")
    assert result.growth.actual[at:].startswith("more")


@pytest.mark.parametrize("name", ["chatml", "llama3", "hermes-tools"])
def test_families_that_hold_every_law_that_they_can(name: str) -> None:
    assert [law for law, (holds, _) in of_family(name).items() if holds is False] == []


def test_what_other_families_break() -> None:
    assert of_family("mistral")["next-user-turn"] == (False, "system_text_moves")
    assert of_family("llama3-today")["another-day"] == (False, "clock")
    assert of_family("granite")["another-day"] == (False, "clock"), "in the system text that it writes of its own"
    qwen = of_family("qwen3")
    assert qwen["within-tool-loop"] == (True, None)
    assert qwen["tool-loop-to-next-user"] == (False, "reasoning_dropped")


def test_the_chapter_in_the_report() -> None:
    config = json.loads((CORPUS / "qwen3" / "tokenizer_config.json").read_text(encoding="utf-8"))
    report = probe(config["chat_template"], name="family:qwen3")
    assert report.prefix is not None
    law = next(law for law in report.prefix.laws if law.law == "tool-loop-to-next-user")
    assert law.shared is not None
    assert law.of is not None
    assert law.shared < law.of
    evidence = report.evidence[law.evidence[0]]
    assert evidence.repeat == "jinjarun prefix family:qwen3 --law tool-loop-to-next-user"
    assert report.prefix.tool_loop_20_rounds.recomputed == 0


def test_a_loop_that_is_rewritten_costs_every_round() -> None:
    template = CALLS.replace("<{{ m.role }}>", "<{{ m.role }}{{ messages|length }}>")
    report = probe(template)
    assert report.prefix is not None
    assert (report.prefix.tool_loop_20_rounds.recomputed or 0) > 20 * 20


@pytest.mark.skipif(not SHARED.exists(), reason="needs ../shared/corpus")
def test_no_real_template_is_too_much() -> None:
    judged = 0
    for path in sorted((SHARED / "corpus" / "templates").glob("*.jinja"))[::8]:
        source = path.read_bytes().decode("utf-8")
        results = check_prefix_stability(source, bos_token="<s>", eos_token="</s>")
        assert len(results) == len(LAWS)
        judged += sum(result.holds is not None for result in results)
    assert judged > 200


def test_figures_in_tokens(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    encoder = tokenizers.Tokenizer(tokenizers.models.BPE(byte_fallback=False))
    encoder.add_tokens([*"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .?<>/\n()"])
    encoder.save(str(tmp_path / "tokenizer.json"))
    result = next(r for r in check_prefix_stability(CALLS.replace("{{ m.content }}", "{{ m.content|length }}")))
    figures = result.to_dict(counter(tmp_path))
    assert figures["unit"] == "tokens"
    assert figures["of"] == len(result.growth.expected) if result.growth is not None else False
