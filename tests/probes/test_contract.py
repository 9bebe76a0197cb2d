"""What a template accepts: small templates for each field, the corpus families, real releases."""

from __future__ import annotations

import json
from typing import Any

import pytest

from probes.chapters.contract import contract
from probes.chapters.observed.questions import observe
from probes.prober import probe
from probes.rendering.renders import EvidenceBook, Renders
from probes.rendering.variables import assigned_names, caller_variables, compared_strings
from probes.report import Contract, Variable
from tests.conformance.golden import NO_SHARED, SHARED, have_shared
from tests.families import family
from tests.probes.test_evidence import PARTS, PLAIN, REASONING, STRICT, TOOLS


def of(source: str) -> Contract:
    found = contract(Renders(source))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("source", "roles"),
    [
        (PLAIN, {"system": "anywhere", "developer": "yes", "tool": "yes", "other": "yes"}),
        (STRICT, {"system": "raises", "developer": "raises", "user": "yes", "assistant": "yes", "other": "raises"}),
        (PLAIN.replace("messages %}", "messages if m.role in ['user', 'assistant'] %}"), {"system": "dropped"}),
        (
            PLAIN.replace("messages %}", "messages if m.role != 'system' or m == messages[0] %}"),
            {"system": "first_only"},
        ),
        (
            PLAIN.replace("{{ m.content }}", "{{ m.content if m.role != 'tool' else m }}"),
            {"system": "anywhere", "tool": "printed_raw"},
        ),
    ],
)
def test_roles(source: str, roles: dict[str, str]) -> None:
    assert roles.items() <= of(source).roles.items()


def test_turns() -> None:
    plain, strict = of(PLAIN), of(STRICT)
    assert (plain.alternation_required, strict.alternation_required) == (False, True)
    asking = PLAIN + "{% if messages and messages[-1].role == 'system' %}{{ raise_exception('ask') }}{% endif %}"
    assert (plain.needs_user_turn, of(asking).needs_user_turn, strict.needs_user_turn) == (False, True, None)


def test_the_empty_conversation_by_engine() -> None:
    assert of(PLAIN).empty_conversation == {"transformers": "renders", "llama.cpp": "renders"}
    first = of("{% if messages[0].role == 'system' %}!{% endif %}" + PLAIN)
    assert first.empty_conversation == {"transformers": "raises", "llama.cpp": "renders"}
    sorting = of(PLAIN + "{{ {'b': 1} | tojson(sort_keys=true) }}")
    assert sorting.empty_conversation == {"transformers": "renders", "llama.cpp": "raises"}


@pytest.mark.parametrize(
    ("source", "content"),
    [
        (PARTS, {"string": "yes", "text_parts": "yes", "several_text_parts": "yes", "image_part": "yes"}),
        (PLAIN, {"string": "yes", "null": "printed_as_word", "missing": "yes", "text_parts": "printed_raw"}),
        (PLAIN, {"several_text_parts": "printed_raw", "image_part": "printed_raw"}),
        (PLAIN.replace("m.content", "'' + m.content"), {"null": "raises", "missing": "raises", "text_parts": "raises"}),
        (TOOLS, {"null": "yes", "missing": "yes", "text_parts": "dropped", "image_part": "dropped"}),
    ],
)
def test_contents(source: str, content: dict[str, str]) -> None:
    assert content.items() <= of(source).content.items()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (TOOLS, ("native", "same_text", "object")),
        (
            TOOLS.replace(" if t.function.arguments is string else t.function.arguments | tojson", " | tojson"),
            ("native", "other_text", "object"),
        ),
        (
            TOOLS.replace(" if t.function.arguments is string else t.function.arguments | tojson", ""),
            ("other_text", "native", "json_string"),
        ),
        (
            TOOLS.replace("t.function.arguments | tojson", "'' + t.function.arguments"),
            ("raises", "native", "json_string"),
        ),
        (
            TOOLS.replace("t.function.arguments if", "t.function.arguments.items() | list if"),
            ("native", "raises", "object"),
        ),
        (PLAIN, ("unsupported", "unsupported", "none")),
    ],
)
def test_tool_arguments(change: str, expected: tuple[str, str, str]) -> None:
    found = of(change).tool_arguments
    assert (found.object, found.json_string, found.preferred) == expected


def test_the_length_of_call_ids() -> None:
    check = "{% for t in m.tool_calls or [] if t.id | length != 9 %}{{ raise_exception('nine') }}{% endfor %}"
    assert of(TOOLS).tool_call_id_length is None
    assert of(TOOLS.replace("<{{ m.role }}>", check)).tool_call_id_length == 9
    at_most = check.replace("!= 9", "> 20")
    assert of(TOOLS.replace("<{{ m.role }}>", at_most)).tool_call_id_length is None


def test_the_length_of_ids_where_nothing_else_of_a_call_is_written() -> None:
    check = "{% if t.id | length != 9 %}{{ raise_exception('nine') }}{% endif %}{{ t.id }}"
    source = PLAIN + "{% for m in messages %}{% for t in m.tool_calls or [] %}" + check + "{% endfor %}{% endfor %}"
    assert of(source).tool_call_id_length == 9


def test_empty_lists() -> None:
    assert of(TOOLS).empty_tools_list == of(TOOLS).empty_tool_calls_list == "same_as_absent"
    header = of("{% if tools is not none %}Tools:{% endif %}" + TOOLS)
    assert header.empty_tools_list == "differs"
    defined = of(TOOLS.replace("<{{ m.role }}>", "{% if m.tool_calls is defined %}calls{% endif %}"))
    assert defined.empty_tool_calls_list == "differs"


def test_reasoning_fields() -> None:
    assert of(REASONING.replace("KEEP", "true")).reasoning_input.fields == ["reasoning_content"]
    either = REASONING.replace("KEEP", "true").replace("m.reasoning_content", "(m.thinking or m.reasoning)")
    assert of(either).reasoning_input.fields == ["thinking", "reasoning"]
    assert of(REASONING.replace("KEEP", "loop.index0 > 4")).reasoning_input.fields == []
    assert of(REASONING.replace("KEEP", "enable_thinking")).reasoning_input.fields == ["reasoning_content"]


def test_inline_tags() -> None:
    assert of(PLAIN).reasoning_input.inline_tags_in_content == "plain_text"
    cut = PLAIN.replace("{{ m.content }}", "{{ m.content.split('[/THINK]')[-1] }}")
    assert of(cut).reasoning_input.inline_tags_in_content == "recognised"
    assert of("{{ messages | length }}").reasoning_input.inline_tags_in_content == "unknown"


# Variables


def only(source: str) -> Variable:
    (variable,) = of(source).variables
    return variable


SWITCH = PLAIN + "{% if thinking %}<on>{% endif %}"


@pytest.mark.parametrize(
    ("source", "kind", "when_absent", "effect", "note"),
    [
        (SWITCH, "boolean", "same as false", "true adds '<on>' at the end", "the string 'false' counts as true"),
        (
            SWITCH.replace("if thinking", "if thinking is not defined or thinking"),
            "boolean",
            "same as true",
            "false removes '<on>' at the end",
            "the string 'false' counts as true",
        ),
        (
            SWITCH.replace("if thinking", "if thinking == true"),
            "boolean",
            "same as false",
            "true adds '<on>' at the end",
            None,
        ),
        (
            PLAIN.replace("<a>", "{{ '<think>' if thinking else '</think>' }}"),
            "boolean",
            "same as false",
            "true writes '<think>' for '</think>' at the end",
            "the string 'false' counts as true",
        ),
        (
            PLAIN + "{{ date or 'today' }}",
            "string",
            "unlike all values tested",
            "a text is written at the end",
            None,
        ),
        (
            PLAIN + "{% if mode == 'fast' %}!{% elif mode == 'slow' %}?{% endif %}",
            "string",
            "unlike all values tested",
            "'fast' adds '!' at the end; 'slow' adds '?' at the end",
            None,
        ),
        (
            PLAIN + "Effort: {{ reasoning_effort | default('medium') }}",
            "string",
            "same as 'medium'",
            "'low' writes 'low' for 'medium' at the end; 'high' writes 'high' for 'medium' at the end",
            None,
        ),
        (
            PLAIN + "{% if budget is defined and budget > 100 %}long{% elif budget == 0 %}none{% endif %}",
            "number",
            "unlike all values tested",
            "0 adds 'none' at the end; 512 adds 'long' at the end",
            None,
        ),
        (
            "{% for t in custom_tools or [] %}{{ t.function.name }}{% endfor %}" + PLAIN,
            "object",
            "unlike all values tested",
            "a list of tools adds 'count_wrens_48181' at the start",
            None,
        ),
        (PLAIN + "{% if deep %}{% endif %}", "unknown", "renders", "none was seen in the conversations tried", None),
    ],
)
def test_a_variable(source: str, kind: str, when_absent: str, effect: str, note: str | None) -> None:
    found = only(source)
    assert (found.kind, found.when_absent, found.effect, found.note) == (kind, when_absent, effect, note)
    assert {json.dumps(value) for value in found.tested} >= {"true", "false"}


def test_a_variable_that_matters_only_beside_another() -> None:
    source = PLAIN + "{% if enable_thinking %}on{% if reasoning_effort == 'max' %}!{% endif %}{% endif %}"
    found = {variable.name: variable.effect for variable in of(source).variables}
    assert found == {"enable_thinking": "true adds 'on' at the end", "reasoning_effort": "'max' adds '!' at the end"}


def test_required_variables() -> None:
    found = of(PLAIN + "{{ '' + persona }}{{ '' + place }}")
    assert found.required_variables == ["persona", "place"]
    assert {variable.name: variable.when_absent for variable in found.variables} == {
        "persona": "fails",
        "place": "fails",
    }
    assert "makes it render" in found.variables[0].effect
    assert found.roles["user"] == "yes"


def test_which_names_are_the_callers() -> None:
    source = (
        "{% set ns = namespace(a=1) %}{% set x, y = 1, 2 %}{% macro show(item, depth=0) %}{{ item }}{{ free }}"
        "{% endmacro %}{% for k, v in {}.items() %}{{ k }}{{ loop.index }}{% endfor %}"
        "{% if date is not defined %}{% set date = 'now' %}{% endif %}{% with w = 1 %}{{ w }}{% endwith %}"
        "{% set mode = mode | default('slow') %}{% if kind in ['a', \"b\"] or 'c' != kind %}{% endif %}"
    )
    own = {"ns", "x", "y", "show", "item", "depth", "k", "v", "date", "w", "mode"}
    assert assigned_names(source) == own
    read = frozenset(own | {"free", "kind", "loop", "namespace", "messages"})
    assert caller_variables(source, read) == ["date", "free", "kind", "mode"]
    assert compared_strings(source, "kind") == ["a", "b", "c"]


# Refusals


def test_refusals_and_what_triggers_them() -> None:
    source = STRICT + "{% if messages | length > 40 %}{{ raise_exception('too long') }}{% endif %}"
    found = {refusal.message: refusal.triggered_by for refusal in of(source).raises}
    assert found.keys() == {"no narrator", "take turns", "too long"} or found.keys() >= {"take turns", "too long"}
    assert found["too long"] is None
    assert all(name is not None for message, name in found.items() if message != "too long")
    assert of(PLAIN).raises == []


@pytest.mark.parametrize(
    ("refusal", "conversation"),
    [
        ("{% if m.role == 'tool' and loop.first %}", "malformed-result-first"),
        ("{% if m.role not in ['system', 'developer', 'user', 'assistant', 'tool'] %}", "malformed-role"),
        ("{% if m.content is number %}", "malformed-number-content"),
        ("{% if m.tool_calls and m.tool_calls[0].id | length > 20 %}", "malformed-call-id"),
    ],
)
def test_malformed_conversations(refusal: str, conversation: str) -> None:
    source = PLAIN.replace("<{{ m.role }}>", refusal + "{{ raise_exception('so not') }}{% endif %}")
    (found,) = of(source).raises
    assert (found.message, found.line, found.triggered_by) == ("so not", 1, conversation)


# Families and releases


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gemma", {"alternation_required": True, "needs_user_turn": None, "tool_call_id_length": None}),
        ("mistral", {"alternation_required": True, "tool_call_id_length": 9}),
        ("chatml", {"alternation_required": False, "needs_user_turn": False, "required_variables": [], "raises": []}),
    ],
)
def test_a_family(name: str, expected: dict[str, Any]) -> None:
    found = of(family(name).source).model_dump()
    assert expected.items() <= found.items()


def test_switches_of_the_families() -> None:
    def switches(name: str) -> dict[str, str]:
        return {variable.name: variable.when_absent for variable in of(family(name).source).variables}

    assert switches("qwen3") == {"enable_thinking": "same as true"}
    assert switches("glm") == {"clear_thinking": "same as true", "enable_thinking": "same as true"}
    assert switches("harmony")["reasoning_effort"] == "same as 'medium'"
    assert "date_string" in switches("llama3")


@pytest.mark.skipif(not have_shared(), reason=NO_SHARED)
def test_a_release_as_the_design_shows_it() -> None:
    source = (SHARED / "corpus" / "templates" / "Qwen-Qwen3-0.6B.jinja").read_bytes().decode()
    shown = json.loads((SHARED / "report-shape.json").read_text(encoding="utf-8"))["contract"]
    found = of(source).model_dump()
    same = {"alternation_required", "needs_user_turn", "empty_conversation", "content", "tool_arguments"}
    same |= {"tool_call_id_length", "empty_tools_list", "empty_tool_calls_list", "reasoning_input", "raises"}
    assert {key: found[key] for key in same} == {key: shown[key] for key in same}
    assert shown["roles"].items() <= found["roles"].items()
    (switch,) = found["variables"]
    assert (switch["name"], switch["kind"], switch["when_absent"]) == ("enable_thinking", "boolean", "same as true")


@pytest.mark.skipif(not have_shared(), reason=NO_SHARED)
@pytest.mark.parametrize("start", range(0, 520, 52))
def test_no_template_of_the_corpus_breaks_the_probe(start: int) -> None:
    """Two of each ten are probed in full; the others only observed, which takes long enough."""
    files = sorted((SHARED / "corpus" / "templates").glob("*.jinja"))
    probe(files[start].read_bytes().decode("utf-8", "replace"), name="x.jinja")
    for file in files[start + 1 : start + 52 : 17]:
        renders = Renders(file.read_bytes().decode("utf-8", "replace"))
        observe(renders, EvidenceBook(None))
        contract(renders)


def test_nothing_that_loads_has_no_contract() -> None:
    assert contract(Renders("{% if %}")) is None
