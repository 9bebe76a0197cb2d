"""The shape of what templates write: each fact on a small template, our families, real templates read by hand."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from probes import probe
from probes.chapters.family import FORMATS, family_of
from probes.chapters.shape import shape
from probes.chapters.shape.requests import UNKNOWN_BOS, UNKNOWN_EOS
from probes.rendering.renders import EvidenceBook, Renders
from probes.rendering.texts import closing, common_end, common_start, document
from probes.report import Shape
from tests.families import family

TEMPLATES = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "templates"
HERE = Path(__file__).parent
BY_HAND: dict[str, Any] = json.loads((HERE / "shapes_by_hand.json").read_text(encoding="utf-8"))["templates"]
FAMILIES: dict[str, Any] = json.loads((HERE / "shapes_of_families.json").read_text(encoding="utf-8"))

real_templates = pytest.mark.skipif(not TEMPLATES.is_dir(), reason="../shared with the real templates is absent")


def shape_of(source: str, bos: str = "", eos: str = "") -> Shape:
    return shape(Renders(source, bos_token=bos, eos_token=eos), EvidenceBook(None))


@cache
def real(slug: str) -> Shape:
    return shape_of((TEMPLATES / f"{slug}.jinja").read_text(encoding="utf-8"))


def chatml(
    *, content: str = "m.content", before: str = "", after: str = "", calls: str = "", end: str = "<|im_end|>\\n"
) -> str:
    """A template in the manner of ChatML with something of its own."""
    return (
        before
        + "{%- for m in messages %}{{- '<|im_start|>' + m.role + '\\n' }}"
        + (calls or "{{- " + content + " }}")
        + "{{- '"
        + end
        + "' }}{%- endfor %}"
        + "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
        + after
    )


CALLS = "{{- m.content or '' }}{%- for c in m.tool_calls or [] %}{% set f = c.function %}"
END_CALLS = "{%- endfor %}"


# Turns


def test_turns_are_the_text_around_contents() -> None:
    found = shape_of(chatml())
    for role in ("system", "user", "assistant"):
        assert found.turns[role].open == f"<|im_start|>{role}\n"
        assert found.turns[role].close == "<|im_end|>\n"
        assert found.turns[role].trims_content is False
    assert found.end_of_turn.text == "<|im_end|>"
    assert found.end_of_turn.after_plain_answer is True


def test_trimming_is_told_by_role() -> None:
    found = shape_of(chatml(content="m.content | trim if m.role == 'user' else m.content"))
    assert found.turns["user"].trims_content is True
    assert found.turns["assistant"].trims_content is False


def test_what_a_last_message_lacks_is_found_in_the_middle() -> None:
    source = (
        "{%- for m in messages %}{{- '<' + m.role + '>' + m.content }}"
        "{%- if not loop.last %}{{- '</' + m.role + '>\\n' }}{%- endif %}{%- endfor %}"
        "{%- if add_generation_prompt %}{{- '</user>\\n<assistant>' }}{%- endif %}"
    )
    found = shape_of(source)
    assert found.turns["assistant"].close == "</assistant>\n"
    assert found.turns["user"].open == "<user>"
    assert found.end_of_turn.text == "</assistant>"


def test_a_special_token_without_a_text_stands_as_its_variable() -> None:
    source = "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}\n{% endfor %}"
    found = shape_of(source)
    assert (found.bos.written, found.bos.at) == (1, 0)
    assert found.turns["assistant"].close == UNKNOWN_EOS + "\n"
    assert UNKNOWN_BOS not in found.turns["user"].open
    known = shape_of(source, bos="<s>", eos="</s>")
    assert known.end_of_turn.text == "</s>"
    assert known.bos.written == 1


def test_bos_is_counted_where_the_template_writes_its_text() -> None:
    source = "{{ bos_token }}<s>{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}"
    assert shape_of(source, bos="<s>", eos="</s>").bos.written == 2


def test_bos_that_is_eos_too_is_counted_by_its_variable_only() -> None:
    assert shape_of(chatml(end="<end>\\n"), bos="<end>", eos="<end>").bos.written == 0


# The generation prompt


def test_no_generation_prompt_is_an_empty_one() -> None:
    source = "{%- for m in messages %}{{- '[' + m.role + ']' + m.content }}{%- endfor %}"
    prompt = shape_of(source).generation_prompt
    assert prompt is not None
    assert (prompt.text, prompt.equals_suffix_difference) == ("", True)


def test_a_prompt_instead_of_an_end_is_no_suffix() -> None:
    source = chatml().replace("{%- endif %}", "{%- else %}{{- '<eos>' }}{%- endif %}")
    prompt = shape_of(source).generation_prompt
    assert prompt is not None
    assert (prompt.text, prompt.equals_suffix_difference) == ("<|im_start|>assistant\n", False)


def test_switches_vary_the_generation_prompt() -> None:
    after = "{%- if add_generation_prompt and deep %}{{- '<think>\\n' }}{%- endif %}"
    prompt = shape_of(chatml(after=after)).generation_prompt
    assert prompt is not None
    assert prompt.starts_in_reasoning is False
    [variant] = prompt.variants
    assert variant.kwargs == {"deep": True}
    assert variant.text == "<|im_start|>assistant\n<think>\n"
    assert variant.starts_in_reasoning is True


def test_switches_are_set_to_the_texts_they_are_compared_with() -> None:
    after = "{%- if add_generation_prompt and effort == 'high' %}{{- '<hard>' }}{%- endif %}"
    prompt = shape_of(chatml(after=after)).generation_prompt
    assert prompt is not None
    assert [variant.kwargs for variant in prompt.variants] == [{"effort": "high"}]


# System


def test_a_default_system_text_is_given_exactly() -> None:
    before = (
        "{%- if messages[0].role != 'system' %}{{- '<|im_start|>system\\nYou are  Bo.\\n<|im_end|>\\n' }}{%- endif %}"
    )
    system = shape_of(chatml(before=before)).system
    assert system is not None
    assert system.default_text == "You are  Bo.\n"
    assert system.header_without_system is True
    assert system.placement == "start"


def test_a_header_that_is_always_written_is_no_default() -> None:
    source = (
        "{%- set s = messages[0].content if messages[0].role == 'system' else '' %}"
        "{{- '<sys>Cutoff: 2023\\n\\n' + s + '</sys>\\n' }}"
        "{%- for m in messages if m.role != 'system' %}{{- '<' + m.role + '>' + m.content + '</m>\\n' }}{%- endfor %}"
        "{%- if add_generation_prompt %}{{- '<assistant>' }}{%- endif %}"
    )
    found = shape_of(source)
    assert found.system is not None
    assert (found.system.default_text, found.system.header_without_system) == (None, True)
    assert found.turns["system"].open == "<sys>Cutoff: 2023\n\n"


@pytest.mark.parametrize(
    ("condition", "placement"), [("loop.last", "last_user_turn"), ("loop.first", "first_user_turn")]
)
def test_system_text_inside_a_user_turn(condition: str, placement: str) -> None:
    source = (
        "{%- set s = messages[0].content + '\\n\\n' if messages[0].role == 'system' else '' %}"
        "{%- for m in messages if m.role != 'system' %}{%- if m.role == 'user' %}"
        f"{{{{- '[INST]' + (s if {condition} else '') + m.content + '[/INST]' }}}}"
        "{%- else %}{{- m.content + '</s>' }}{%- endif %}{%- endfor %}"
    )
    found = shape_of(source)
    assert found.system is not None
    assert found.system.placement == placement
    assert found.turns["system"].rendered_as == "user"
    assert found.turns["system"].close == "\n\n"
    assert (found.turns["user"].open, found.turns["user"].close) == ("[INST]", "[/INST]")


def test_a_refused_system_message() -> None:
    before = "{%- if messages[0].role == 'system' %}{{- raise_exception('no system') }}{%- endif %}"
    found = shape_of(chatml(before=before))
    assert found.system is not None
    assert found.system.placement == "refused"
    assert "system" not in found.turns
    assert found.turns["user"].trims_content is False


def test_a_lost_system_message() -> None:
    found = shape_of(chatml().replace("for m in messages", "for m in messages if m.role != 'system'"))
    assert found.system is not None
    assert found.system.placement == "lost"


# Calls and results


def test_json_in_tags() -> None:
    body = "{{- '\\n<call>\\n{\"name\": \"' + f.name + '\", \"args\": ' + (f.arguments | tojson) + '}\\n</call>' }}"
    found = shape_of(chatml(calls=CALLS + body + END_CALLS))
    call = found.tool_call
    assert call is not None
    assert (call.style, call.open, call.between, call.close) == ("json_in_tags", "<call>\n", "\n", "\n</call>")
    assert (call.name_key, call.arguments_key, call.arguments_encoding) == ("name", "args", "json")
    assert call.id_written is False
    assert found.end_of_turn.after_tool_calls is True
    assert found.turns["tool"].open == "<|im_start|>tool\n"
    assert found.turns["tool"].between == "<|im_end|>\n<|im_start|>tool\n"
    assert found.turns["tool"].rendered_as is None


def test_a_list_of_calls_with_ids() -> None:
    item = '\'{"id": "\' + c.id + \'", "function": \' + (c.function | tojson) + "}"'
    body = "{{- ('<calls>[' if loop.first else ', ') + " + item + " + (']</calls>' if loop.last else '') }}"
    call = shape_of(chatml(calls=CALLS + body + END_CALLS)).tool_call
    assert call is not None
    assert (call.style, call.open, call.between, call.close) == ("json_list", "<calls>", ", ", "</calls>")
    assert (call.name_key, call.arguments_key) == ("function.name", "function.arguments")
    assert call.id_written is True


def test_a_section_around_the_calls() -> None:
    body = (
        "{{- ('<calls>' if loop.first else '') + '<c>' + f.name + '<sep>' + (f.arguments | tojson) + '</c>' "
        "+ ('</calls>' if loop.last else '') }}"
    )
    call = shape_of(chatml(calls=CALLS + body + END_CALLS)).tool_call
    assert call is not None
    assert call.style == "name_then_json"
    assert (call.open, call.between, call.close) == ("<calls><c>", "</c><c>", "</c></calls>")


def test_arguments_in_tags() -> None:
    body = (
        "{{- '<call=' + f.name + '>\\n' }}{%- for k, v in f.arguments.items() %}"
        "{{- '<p=' + k + '>\\n' + v + '\\n</p>\\n' }}{%- endfor %}{{- '</call>' }}"
    )
    call = shape_of(chatml(calls=CALLS + body + END_CALLS)).tool_call
    assert call is not None
    assert (call.style, call.arguments_encoding) == ("tagged_arguments", "xml_like")
    assert (call.open, call.close) == ("<call=", "</call>")


@pytest.mark.parametrize(
    ("written", "encoding"),
    [
        ("f.arguments | tojson", "json"),
        ("f.arguments", "json"),  # of arguments that are JSON text, as the contract prefers them then
        ("f.arguments if f.arguments is mapping else none", "python_repr"),
        ("(f.arguments | tojson) | tojson", "double_encoded"),
    ],
)
def test_encodings_of_arguments(written: str, encoding: str) -> None:
    body = '{{- \'<call>{"name": "\' ~ f.name ~ \'", "arguments": \' ~ (' + written + ") ~ '}</call>' }}"
    call = shape_of(chatml(calls=CALLS + body + END_CALLS)).tool_call
    assert call is not None
    assert call.arguments_encoding == encoding
    assert (call.open, call.close) == ("<call>", "</call>")


def test_calls_as_python() -> None:
    body = (
        "{{- ('<calls>[' if loop.first else ', ') + f.name + '(' }}{%- for k, v in f.arguments.items() %}"
        "{{- k + '=\"' + v + '\"' + ('' if loop.last else ', ') }}{%- endfor %}{{- ')' + (']</calls>' if loop.last "
        "else '') }}"
    )
    call = shape_of(chatml(calls=CALLS + body + END_CALLS)).tool_call
    assert call is not None
    assert (call.style, call.arguments_encoding) == ("python_calls", "python_arguments")
    assert (call.open, call.close) == ("<calls>", "</calls>")


def test_arguments_that_must_be_text() -> None:
    body = "{{- '<call>' + f.name + '\\n' + f.arguments + '</call>' }}"
    call = shape_of(chatml(calls=CALLS + body + END_CALLS)).tool_call
    assert call is not None
    assert call.arguments_encoding == "json"
    assert (call.open, call.close) == ("<call>", "</call>")


def test_one_call_only() -> None:
    once = "{%- if (m.tool_calls or []) | length > 1 %}{{- raise_exception('one call') }}{%- endif %}"
    body = "{{- '<call>' + (f | tojson) + '</call>' }}"
    call = shape_of(chatml(calls=once + CALLS + body + END_CALLS)).tool_call
    assert call is not None
    assert (call.open, call.between, call.close) == ("<call>", None, "</call>")


def test_another_end_after_calls() -> None:
    body = "{{- '<call>' + (f | tojson) + '</call>' }}"
    source = chatml(calls=CALLS + body + END_CALLS, end="").replace(
        "{{- '' }}", "{{- '<eom>' if m.tool_calls else '<eot>' }}"
    )
    found = shape_of(source)
    assert found.end_of_turn.text == "<eot>"
    assert found.end_of_turn.after_tool_calls is False
    assert found.tool_call is not None
    assert found.tool_call.close == "</call>"


def test_results_in_a_user_turn() -> None:
    source = (
        "{%- for m in messages %}{%- if m.role == 'tool' %}"
        "{%- if messages[loop.index0 - 1].role != 'tool' %}{{- '<|im_start|>user' }}{%- endif %}"
        "{{- '\\n<r>' + m.content | trim + '</r>' }}"
        "{%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{- '<|im_end|>\\n' }}{%- endif %}"
        "{%- else %}{{- '<|im_start|>' + m.role + '\\n' + m.content }}"
        "{%- for c in m.tool_calls or [] %}{{- '<call>' + (c.function | tojson) + '</call>' }}{%- endfor %}"
        "{{- '<|im_end|>\\n' }}{%- endif %}{%- endfor %}"
    )
    tool = shape_of(source).turns["tool"]
    assert (tool.open, tool.between, tool.close) == ("<|im_start|>user\n<r>", "</r>\n<r>", "</r><|im_end|>\n")
    assert (tool.rendered_as, tool.trims_content) == ("user", True)


def test_no_calls_no_shape_of_them() -> None:
    found = shape_of(chatml())
    assert found.tool_call is None
    assert found.tools is None
    assert found.end_of_turn.after_tool_calls is None


# Schemas


@pytest.mark.parametrize(
    ("body", "encoding", "opening", "close"),
    [
        (
            "{%- for t in tools %}{{- t | tojson + '\\n' }}{%- endfor %}{{- '</tools>' }}",
            "json_per_line",
            "<tools>\n",
            "",
        ),
        ("{{- tools | tojson }}{{- '</tools>' }}", "json_list", "<tools>\n", "</tools>"),
        ("{{- tools | string }}{{- '</tools>' }}", "python_repr", "<tools>\n", "</tools>"),
        (
            "{%- for t in tools %}{{- 'type ' + t.function.name + ' = () => any;\\n' }}{%- endfor %}{{- '</tools>' }}",
            "typescript",
            "<tools>\n",
            "",
        ),
        (
            "{%- for t in tools %}{{- '<f>\\n<name>' + t.function.name + '</name>\\n</f>\\n' }}{%- endfor %}"
            "{{- '</tools>' }}",
            "xml_like",
            "<tools>\n",
            "",
        ),
    ],
)
def test_encodings_of_schemas(body: str, encoding: str, opening: str, close: str) -> None:
    tools = "{%- if tools and m.role == 'system' %}{{- '\\n<tools>\\n' }}" + body + "{%- endif %}"
    found = shape_of(chatml(calls="{{- m.content }}" + tools))
    assert found.tools is not None
    assert (found.tools.encoding, found.tools.open) == (encoding, opening)
    assert found.tools.close == (close or "\n</tools>")
    assert found.tools.placement == "system"
    assert found.system is not None
    assert found.system.with_tools == "text before the tool section"


# Reasoning

THINKS = "{{- ('<think>' + m.reasoning + '</think>' if CONDITION else '') + m.content }}"


@pytest.mark.parametrize(
    ("condition", "history", "switches"),
    [
        ("m.reasoning", "kept", []),
        ("m.reasoning and loop.index0 > last.at", "kept_after_last_user", []),
        ("m.reasoning and loop.last", "kept_in_last_answer", []),
        ("m.reasoning and m.tool_calls and loop.index0 > last.at", "kept_in_tool_turn", []),
        ("m.reasoning and (keep or loop.index0 > last.at)", "kept_after_last_user", ["keep"]),
    ],
)
def test_policies_of_reasoning(condition: str, history: str, switches: list[str]) -> None:
    last = (
        "{%- set last = namespace(at=0) %}{%- for m in messages %}{%- if m.role == 'user' %}"
        "{%- set last.at = loop.index0 %}{%- endif %}{%- endfor %}"
    )
    reasoning = shape_of(chatml(before=last, calls=THINKS.replace("CONDITION", condition))).reasoning
    assert reasoning is not None
    assert reasoning.history == history
    assert reasoning.switches == switches
    assert reasoning.open == "<think>"
    if history != "kept_in_tool_turn":
        assert reasoning.close == "</think>"


def test_reasoning_that_a_switch_lets_in() -> None:
    source = chatml(calls=THINKS.replace("CONDITION", "m.reasoning and show"))
    reasoning = shape_of(source).reasoning
    assert reasoning is not None
    assert (reasoning.open, reasoning.close, reasoning.history) == ("<think>", "</think>", "dropped")
    assert reasoning.switches == ["show"]


def test_reasoning_cut_from_the_text() -> None:
    cut = "(m.content.split('</think>')[-1] if m.role == 'assistant' else m.content)"
    after = "{%- if add_generation_prompt %}{{- '<think>\\n' }}{%- endif %}"
    found = shape_of(chatml(content=cut, after=after))
    assert found.reasoning is not None
    assert (found.reasoning.open, found.reasoning.close) == ("<think>\n", "</think>")
    assert found.reasoning.history == "dropped"
    assert found.generation_prompt is not None
    assert found.generation_prompt.starts_in_reasoning is True


def test_an_empty_block_is_told() -> None:
    block = "('<think>\\n\\n</think>\\n\\n' if m.role == 'assistant' and not m.reasoning else '')"
    thought = "('<think>\\n' + m.reasoning + '\\n</think>\\n\\n' if m.reasoning else '')"
    found = shape_of(chatml(content=f"{block} + {thought} + m.content"))
    assert found.reasoning is not None
    assert found.reasoning.empty_block_written == "every assistant turn without reasoning"
    assert (found.reasoning.open, found.reasoning.close) == ("<think>\n", "\n</think>\n\n")
    assert found.turns["assistant"].open == "<|im_start|>assistant\n"


def test_reasoning_nobody_reads() -> None:
    assert shape_of(chatml()).reasoning is None


# Channels and clock


def test_channels_and_recipients() -> None:
    source = (
        "{%- for m in messages %}{%- if m.tool_calls %}{%- for c in m.tool_calls %}"
        "{{- '<|start|>assistant to=functions.' + c.function.name + '<|channel|>commentary<|message|>' }}"
        "{{- (c.function.arguments | tojson) + '<|call|>' }}{%- endfor %}"
        "{%- elif m.role == 'assistant' %}"
        "{{- '<|start|>assistant<|channel|>final<|message|>' + m.content + '<|end|>' }}"
        "{%- else %}{{- '<|start|>' + m.role + '<|message|>' + m.content + '<|end|>' }}{%- endif %}{%- endfor %}"
        "{%- if add_generation_prompt %}{{- '<|start|>assistant' }}{%- endif %}"
    )
    found = shape_of(source)
    assert found.channels == ["commentary", "final"]
    assert found.recipients == ["functions.{name}"]
    assert found.tool_call is not None
    assert (found.tool_call.open, found.tool_call.close) == ("to=functions.", "<|call|>")
    assert found.end_of_turn.after_tool_calls is False


@pytest.mark.parametrize(
    ("form", "resolution"), [("%d %b %Y", "day"), ("%Y-%m-%d %H", "hour"), ("%H:%M", "minute"), ("%H:%M:%S", "second")]
)
def test_clocks(form: str, resolution: str) -> None:
    before = (
        "{%- set today = today if today is defined else strftime_now('" + form + "') %}\n{{- 'Today: ' + today }}\n"
    )
    clock = shape_of(chatml(before=before)).clock
    assert clock is not None
    assert clock.resolution == resolution
    assert clock.pinned_by == "today"
    assert clock.line in (1, 2)
    assert clock.at == len("Today: ")


def test_no_clock() -> None:
    assert shape_of(chatml()).clock is None


# Edges


@pytest.mark.parametrize(
    "source",
    [
        "",
        "constant",
        "{{ messages }}",
        "{{ raise_exception('never') }}",
        "{{ missing.attribute }}",
        "{% for m in messages %}{{ m.content.missing.more }}{% endfor %}",
        "{% for m in messages",
        "{% for m in messages %}{{ m.content | upper }}{% endfor %}",
    ],
)
def test_nothing_is_guessed_and_nothing_raised(source: str) -> None:
    found = shape_of(source)
    assert found.tool_call is None
    assert found.reasoning is None
    assert found.clock is None


def test_parts_are_sent_where_only_parts_come_through() -> None:
    body = "{%- for p in m.content %}{%- if p.type == 'text' %}{{- p.text }}{%- endif %}{%- endfor %}"
    found = shape_of(chatml(calls=body))
    assert found.turns["user"].open == "<|im_start|>user\n"
    assert found.turns["assistant"].close == "<|im_end|>\n"


def test_a_template_that_demands_a_system_message() -> None:
    before = "{%- if messages[0].role != 'system' %}{{- raise_exception('system first') }}{%- endif %}"
    found = shape_of(chatml(before=before))
    assert found.turns["user"].open == "<|im_start|>user\n"
    assert found.system is not None
    assert found.system.default_text is None


# Helpers


def test_common_ends_cut_neither_markers_nor_words() -> None:
    assert common_start("<a><bc>x", "<a><bd>x") == "<a>"
    assert common_start("one two", "one twofold") == "one "
    assert common_end("x<ab><c>", "x<db><c>") == "<c>"
    assert common_end("left end", "rend end") == " end"


def test_documents_are_found_with_their_brackets() -> None:
    text = 'say [this]: {"a": ["}", {"b": "seek"}]} end'
    found = document(text, 0, len(text), "seek")
    assert found is not None
    start, end, value, is_json = found
    assert text[start:end] == '{"a": ["}", {"b": "seek"}]}'
    assert value == {"a": ["}", {"b": "seek"}]}
    assert is_json
    assert closing("(unclosed", 0) is None


# Our families, exactly


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_shapes_of_our_families(name: str) -> None:
    found = family(name)
    got = shape_of(found.source, found.tokens["bos_token"], found.tokens["eos_token"])
    kind = family_of(got)
    assert {"family": kind.name if kind is not None else None, **got.model_dump(mode="json")} == FAMILIES[name]


def test_a_report_holds_shape_and_family() -> None:
    report = probe(family("qwen3").source)
    assert report.shape is not None
    assert report.template.family is not None
    assert report.template.family.name == "chatml+hermes-tools"
    assert probe(family("qwen3").source, depth="quick").shape is None
    assert probe("{% broken").shape is None


def test_every_format_has_its_markers_once() -> None:
    assert len(set(FORMATS)) == len(FORMATS)


# Real templates


def same(expected: str, got: str) -> bool:
    """`…` in the file stands for any text."""
    if expected.endswith("…"):
        return got.startswith(expected[:-1])
    return got.endswith(expected[1:]) if expected.startswith("…") else got == expected


@real_templates
def test_delimiters_read_by_hand() -> None:
    """At least 95 % of the delimiters that a person read from the sources."""
    wrong = []
    total = 0
    for slug, expected in BY_HAND.items():
        found = real(slug)
        parts = {"call": found.tool_call, "result": found.turns.get("tool"), "reasoning": found.reasoning}
        for kind, pair in expected.items():
            total += 1
            got = parts[kind]
            if got is None or not (same(pair["open"], got.open) and same(pair["close"], got.close)):
                wrong.append((slug, kind))
    assert len(BY_HAND) >= 40
    assert len(wrong) <= total * 0.05, wrong


@real_templates
@pytest.mark.parametrize("part", range(8))
def test_every_real_template_has_a_shape(part: int) -> None:
    for path in sorted(TEMPLATES.glob("*.jinja"))[part::8]:
        found = shape_of(path.read_text(encoding="utf-8"))
        written = found.model_dump_json()
        for canary in ("48170", "48174", "48177", "48187", "48191"):
            assert canary not in written, (path.name, canary)
