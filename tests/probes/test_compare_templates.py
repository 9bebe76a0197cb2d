"""Two templates: twins that differ in one thing, what is said of it, and the command."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest

import probes
from jinjarun.limits import Limits
from jinjarun.sources import Token, TokenData
from probes.comparison.engines import AS_SENT, EXAMPLES, TemplateComparison, compare_templates
from probes.comparison.reports import TemplateChange, flat
from probes.rendering.renders import BARE_PATHS, PATHS
from tests.probes.conftest import Run

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TOOLS = (
    "{% if tools %}<tools>{% for t in tools %}{{ t | tojson }}\n{% endfor %}</tools>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}"
    "{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
Told = dict[tuple[str, str], TemplateChange]


def told(comparison: TemplateComparison) -> Told:
    """The gravest change of each name."""
    return {(change.chapter, change.name): change for change in reversed(comparison.changes)}


def impacts(old: str, new: str) -> dict[tuple[str, str], str]:
    return {key: change.impact for key, change in told(compare_templates(old, new, rules={}, max_examples=0)).items()}


def test_it_is_public() -> None:
    assert probes.compare_templates is compare_templates
    assert probes.TemplateComparison is TemplateComparison


def test_the_same_template_and_one_of_another_layout() -> None:
    for other in (TOOLS, TOOLS.replace("{% endfor %}", "{# end #}{%  endfor  %}")):
        found = compare_templates(TOOLS, other, max_examples=8)
        assert found.outcome == "same"
        assert found.changes == []
    assert found.old_sha256 != found.new_sha256


def test_a_lost_capability_is_broken_and_the_way_back_improved() -> None:
    without = TOOLS.partition("{% if tools %}")[2].partition("{% endif %}")[2]
    worse, better = impacts(TOOLS, without), impacts(without, TOOLS)
    assert worse["observed", "tools"] == "broken"
    assert better["observed", "tools"] == "improved"
    assert worse["caps", "supports_tools"] == better["caps", "supports_tools"] == "changed"
    assert worse["shape", "tools.placement"] == "changed"
    assert compare_templates(TOOLS, without, rules={}, max_examples=0).outcome == "broken"


def test_a_system_message_that_is_lost_breaks_the_prompts_that_have_one() -> None:
    lost = TOOLS.replace("{% for m in messages %}", "{% for m in messages if m.role != 'system' %}")
    found = told(compare_templates(TOOLS, lost, rules={}, max_examples=0))
    change = found["prompts", "system-user"]
    assert change.impact == "broken"
    assert "llama.cpp:llama-server" not in change.paths
    assert ("prompts", "user") not in found
    assert found["observed", "system_role"].impact == "broken"


def test_other_markers_are_a_change_and_no_verdict() -> None:
    found = compare_templates(CHATML, CHATML.replace("im_end", "end"), rules={}, max_examples=0)
    assert found.outcome == "changed"
    changes = told(found)
    assert (changes["shape", "end_of_turn.text"].old, changes["shape", "end_of_turn.text"].new) == (
        "<|im_end|>",
        "<|end|>",
    )
    change = changes["prompts", "user"]
    assert change.at == len("<|im_start|>user\nReverse a string.<|")
    assert (change.old or "").endswith("<|im_end|>\n<|im_start|>assistant\n")
    assert (change.new or "").endswith("<|end|>\n<|im_start|>assistant\n")


def test_an_error_instead_of_a_prompt() -> None:
    strict = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" + CHATML
    worse, better = told(compare_templates(CHATML, strict, rules={}, max_examples=0)), impacts(strict, CHATML)
    assert worse["prompts", "system-user"].impact == "broken"
    assert worse["prompts", "system-user"].new == "error: TemplateRaised: no system"
    assert worse["contract", "raises"].new == '["no system"]'
    assert better["prompts", "system-user"] == "changed", "a refusal that is gone says nothing of what is written now"


def test_a_crash_that_is_gone_counts_only_if_nothing_is_lost() -> None:
    crashing = CHATML.replace("{{ m.content }}", "{{ '' + m.content }}")
    joined = "{{ m.content if m.content is string else m.content | map(attribute='text') | join(' ') }}"
    dropped = "{{ m.content if m.content is string else '' }}"
    for written, impact in ((joined, "improved"), (dropped, "changed")):
        found = compare_templates(crashing, CHATML.replace("{{ m.content }}", written), rules={}, max_examples=0)
        change = next(c for c in found.changes if c.name == "typed-two-parts" and "transformers:raw" in c.paths)
        assert (change.impact, (change.old or "")[:18]) == (impact, "error: RenderError")


def test_text_inside_json_is_not_lost() -> None:
    quoted = CHATML.replace("{{ m.content }}", "{{ m.content | tojson }}")
    assert impacts(CHATML, quoted)["prompts", "unicode"] == "changed"


def test_a_limit_is_no_verdict() -> None:
    endless = CHATML + "{% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}{% endfor %}"
    found = compare_templates(CHATML, endless, rules={}, limits=Limits(steps=20_000))
    assert told(found)["prompts", "user"].impact == "changed"
    assert not made_up(found)


def test_laws_and_rules() -> None:
    counting = CHATML.replace("{% for m in messages %}", "[{{ messages | length }}]{% for m in messages %}")
    found = told(compare_templates(CHATML, counting, max_examples=0))
    law = found["prefix", "next-user-turn"]
    assert (law.impact, law.old, (law.new or "").partition(":")[0]) == ("broken", "holds", "broken")
    rule = found["findings", "PS101 earlier-turns-rewritten"]
    assert (rule.impact, rule.old) == ("changed", None)
    assert (rule.new or "").startswith("warning: ")
    back = told(compare_templates(counting, CHATML, max_examples=0))
    assert back["prefix", "next-user-turn"].impact == "improved"
    assert back["findings", "PS101 earlier-turns-rewritten"].impact == "improved"


def test_a_rule_that_finds_an_error() -> None:
    silent = TOOLS.replace("{{ m.content or '' }}", "{{ '' if m.tool_calls else m.content or '' }}")
    found = told(compare_templates(TOOLS, silent, max_examples=0))
    change = found["findings", "TL114 text-beside-calls-lost"]
    assert (change.impact, change.old) == ("changed", None)
    assert (change.new or "").startswith("warning: ")
    assert found["prompts", "call-with-text"].impact == "broken"
    escaped = TOOLS.replace("{{ m.content or '' }}", "{{ (m.content or '') | e }}")
    change = told(compare_templates(TOOLS, escaped, max_examples=0))["findings", "CT106 content-altered"]
    assert (change.impact, change.old) == ("broken", None)
    assert (change.new or "").startswith("error: ")
    assert impacts(silent, TOOLS)["observed", "text_beside_calls"] == "improved"


def test_the_contract() -> None:
    needing = "{% if not city %}{{ raise_exception('where?') }}{% endif %}" + CHATML
    found = told(compare_templates(CHATML, needing, rules={}, max_examples=0))
    assert found["contract", "required_variables"].impact == "broken"
    assert found["contract", "required_variables"].new == '["city"]'
    assert "city" in found["contract", "variables.city"].name
    assert impacts(needing, CHATML)["contract", "required_variables"] == "improved"


def test_policies_are_changes_in_both_directions() -> None:
    ids = TOOLS.replace("<call>", "<call {{ c.id }}>")
    assert impacts(TOOLS, ids)["observed", "tool_call_id"] == "changed"
    assert impacts(ids, TOOLS)["observed", "tool_call_id"] == "changed"


def test_stops_where_there_is_token_data() -> None:
    tokens = TokenData(special={"eos": Token("<|im_end|>", 2, "control")})
    found = told(compare_templates(CHATML, CHATML.replace("im_end", "over"), old_tokens=tokens, new_tokens=tokens))
    assert found["stop", "written"].new == '["<|over|>"]'
    assert found["stop", "vllm"].old == "stops"
    assert found["stop", "vllm"].impact in {"changed", "broken"}


def test_a_template_that_no_longer_loads() -> None:
    found = compare_templates(CHATML, "{% if %}")
    assert found.outcome == "broken"
    engines = [change for change in found.changes if change.chapter == "engines"]
    assert [(change.name, change.impact) for change in engines] == [(path, "broken") for path in PATHS]
    assert not [change for change in found.changes if change.chapter == "prompts"]
    assert compare_templates("{% if %}", CHATML, rules={}, max_examples=0).changes[-1].impact == "improved"


def test_one_dialect_less() -> None:
    found = told(compare_templates(CHATML, "{% block a %}{% endblock %}" + CHATML, rules={}, max_examples=0))
    assert found["engines", "llama.cpp:llama-server"].impact == "broken"
    assert ("engines", "transformers:raw") not in found
    assert not any(chapter == "prompts" for chapter, _ in found)


def test_the_gravest_come_first() -> None:
    order = [change.impact for change in compare_templates(TOOLS, CHATML, rules={}, max_examples=0).changes]
    assert order == sorted(order, key=["broken", "changed", "improved"].index)


# Made-up conversations


def made_up(comparison: TemplateComparison) -> dict[str, TemplateChange]:
    """The changes that only made-up conversations show, by chapter and impact."""
    return {f"{c.chapter} {c.name} {c.impact}": c for c in comparison.changes if c.made_up is not None}


THIRD = "messages[:loop.index] | selectattr('role', 'equalto', 'user') | list | length == 3"
FORGETFUL = CHATML.replace("m.content", f"('' if m.role == 'user' and {THIRD} else m.content)")
"""Loses what a user says the third time: no conversation of the set has so many turns."""


def test_what_only_a_long_conversation_shows() -> None:
    without = compare_templates(CHATML, FORGETFUL, rules={}, max_examples=0)
    assert not [change for change in without.changes if change.chapter == "prompts"]
    found = made_up(compare_templates(CHATML, FORGETFUL, rules={}))
    law, prompt = found["laws texts-kept broken"], found["prompts made-up broken"]
    assert (law.old, law.new) == ("holds", "broken by error CT106 user")
    assert prompt.paths == [path for path in PATHS if path in BARE_PATHS or path in AS_SENT]
    assert prompt.made_up is not None
    messages = prompt.made_up.request["messages"]
    assert [message["role"] for message in messages].count("user") == 3
    assert messages[-1]["content"] in (prompt.old or "")
    assert messages[-1]["content"] not in (prompt.new or "")
    assert 0 < prompt.made_up.count < prompt.made_up.of == EXAMPLES
    back = made_up(compare_templates(FORGETFUL, CHATML, rules={}))
    assert back["laws texts-kept improved"].new == "holds"
    assert "prompts made-up broken" not in back


def test_the_same_seed_gives_the_same_comparison() -> None:
    first, second = (
        compare_templates(CHATML, FORGETFUL, rules={}, max_examples=12, seed=3).model_dump_json() for _ in range(2)
    )
    assert first == second


def test_laws_that_the_prefix_chapter_tells_are_told_once() -> None:
    counting = CHATML.replace("{% for m in messages %}", "[{{ messages | length }}]{% for m in messages %}")
    changes = compare_templates(CHATML, counting, rules={}, max_examples=5).changes
    names = [change.name for change in changes if change.chapter in {"prefix", "laws"}]
    assert "next-user-turn" in names
    assert len(set(names)) == len(names)


def test_engines_that_differ_are_told_apart() -> None:
    """Texts have a length in bytes for llama.cpp."""
    short = CHATML.replace("m.content", "(m.content if m.content | length < 9 else '')")
    found = compare_templates(CHATML, short, rules={}, max_examples=150).changes
    engines = [{path.partition(":")[0] for path in c.paths} for c in found if c.made_up and c.chapter == "prompts"]
    assert {"llama.cpp", "transformers"} in engines
    assert {"llama.cpp"} in engines


def test_both_are_asked_what_the_older_one_takes() -> None:
    """A newer template that takes less fails where it renders no more; one that takes more is asked nothing new."""
    fewer = (
        "{% for m in messages %}{{ raise_exception('no tools') if m.tool_calls or m.role == 'tool' }}{% endfor %}"
        + CHATML
    )
    found = made_up(compare_templates(TOOLS, fewer, rules={}, max_examples=15))
    assert found["prompts made-up broken"].new == "error: TemplateRaised: no tools"
    back = made_up(compare_templates(fewer, TOOLS, rules={}, max_examples=15))
    assert not [key for key in back if key.endswith("broken")]
    assert not any(
        message.get("tool_calls") for c in back.values() if c.made_up for message in c.made_up.request["messages"]
    )


def test_nothing_is_made_up_for_what_answers_no_question() -> None:
    refusing = "{{ raise_exception('never') }}"
    assert not made_up(compare_templates(CHATML, refusing, rules={}))
    assert not made_up(compare_templates(refusing, CHATML, rules={}))


def test_nested_objects_become_dotted_names() -> None:
    assert flat({"a": {"b": 1, "c": None}, "d": []}) == {"a.b": 1, "d": []}


@pytest.fixture
def run(run: Run) -> Run:
    return partial(run, "compare")


@pytest.fixture
def twins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = {"old": CHATML, "same": CHATML, "new": CHATML.replace("im_end", "end"), "forgetful": FORGETFUL}
    for name, text in rows.items():
        Path(f"{name}.jinja").write_text(text, encoding="utf-8")
    Path("strict.jinja").write_text("{{ raise_exception('no') if messages | length == 2 }}" + CHATML, encoding="utf-8")
    return tmp_path


def test_the_command_and_its_exit_codes(run: Run, twins: Path) -> None:
    assert run("old.jinja", "same.jinja") == (0, "old.jinja and same.jinja: no difference was found\n", "")
    code, text, _ = run("old.jinja", "new.jinja")
    assert code == 0
    assert "\nchanged\n" in text
    assert "  shape end_of_turn.text: <|im_end|> became <|end|>\n" in text
    assert "  and the prompts " in text
    assert run("old.jinja", "new.jinja", "--fail-on", "changed")[0] == 1
    code, text, _ = run("old.jinja", "strict.jinja")
    assert code == 1
    assert text.splitlines()[2] == "broken"
    assert "    + error: TemplateRaised: no\n" in text
    assert all(len(line) < 80 for line in text.splitlines())


def test_what_made_up_conversations_show_is_printed(run: Run, twins: Path) -> None:
    code, text, _ = run("old.jinja", "forgetful.jinja", "--max-examples", "20")
    assert code == 1
    assert "  laws texts-kept: holds became broken by error CT106 " in text
    assert re.search(r"^    in \d+ of 20 made-up conversations; the smallest:\n    \{\"messages\": \[$", text, re.M)
    assert run("old.jinja", "forgetful.jinja", "--max-examples", "20")[1] == text
    assert run("old.jinja", "forgetful.jinja", "--max-examples", "20", "--seed", "1")[1] != text


def test_as_json(run: Run, twins: Path) -> None:
    code, text, _ = run("old.jinja", "new.jinja", "--json")
    data = json.loads(text)
    assert (code, data["outcome"], data["old"], data["new"]) == (0, "changed", "old.jinja", "new.jinja")
    assert TemplateComparison.model_validate(data).changes


def test_wrong_usage(run: Run, twins: Path) -> None:
    for options in (["--conversation", "user"], ["--no-generation-prompt"], ["--bos-token", "x"]):
        code, _, complaint = run("old.jinja", "new.jinja", *options)
        assert code == 2
        assert "no request fits" in complaint
    assert run("old.jinja", "absent.jinja")[0] == 2
    assert run("old.jinja", "new.jinja", "--fail-on", "improved")[0] == 2
    assert run("-", "-")[0] == 2
    assert run("old.jinja", "new.jinja", "same.jinja")[0] == 2
    assert run("old.jinja")[0] in {0, 1}
