"""What a template can do: a small template for each answer, the corpus families, and real templates where llama.cpp's
own flags are wrong."""

from __future__ import annotations

import io
import json
import shlex
import sys
from typing import Any

import pytest

from jinjarun.limits import Limits
from probes.chapters.observed.questions import QUESTIONS, observe
from probes.chats import canaries as c
from probes.chats.named import CHATS, PROBING, conversation
from probes.cli import main
from probes.rendering.outcomes import argument_style, is_dumped
from probes.rendering.renders import APPLY, LLAMA_RAW, LLAMA_SERVER, RAW, SGLANG, VLLM, EvidenceBook, Renders
from probes.report import Observation
from tests.conformance.golden import NO_SHARED, SHARED, have_shared
from tests.families import family

PROMPT = "{% if add_generation_prompt %}<a>{% endif %}"
PLAIN = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}" + PROMPT
"""Writes every role and any content, and nothing else."""

STRICT = (
    "{% for m in messages %}{% if m.role not in ['user', 'assistant'] %}{{ raise_exception('no ' ~ m.role) }}"
    "{% endif %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('take turns') }}{% endif %}"
    "<{{ m.role }}>{{ m.content }}</{{ m.role }}>{% endfor %}" + PROMPT
)
"""User and assistant in turns, nobody else, each turn closed."""

TOOLS = (
    "{% if tools %}{% for t in tools %}{{ t | tojson }}\n{% endfor %}{% endif %}"
    "{% for m in messages %}<{{ m.role }}>{{ m.content if m.content is string else '' }}"
    "{% for t in m.tool_calls or [] %}<call id={{ t.id }} name={{ t.function.name }}>"
    "{{ t.function.arguments if t.function.arguments is string else t.function.arguments | tojson }}</call>{% endfor %}"
    "{% if m.role == 'tool' %}<from {{ m.name }}>{% endif %}{% endfor %}" + PROMPT
)
"""Everything about tools."""

PARTS = (
    "{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for p in m.content %}{{ p.text if p.type == 'text' else '<' ~ p.type ~ '>' }}{% endfor %}{% endif %}"
    "{% endfor %}" + PROMPT
)
"""Content as a string or as parts."""

REASONING = (
    "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' and m.reasoning_content and KEEP %}"
    "<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}"
    "{% for t in m.tool_calls or [] %}{{ t.function | tojson }}{% endfor %}{% endfor %}" + PROMPT
)
"""Reasoning where KEEP holds."""

FIRST_CALL = TOOLS.replace("m.tool_calls or []", "(m.tool_calls or [])[:1]")


def seen(source: str, **options: Any) -> dict[str, Observation]:
    return observe(Renders(source, **options), EvidenceBook("x.jinja"))


SMALL = [
    ("system_role", PLAIN, "yes"),
    ("system_role", STRICT, "no"),
    ("system_role", PLAIN.replace("messages %}", "messages if m.role != 'system' %}"), "no"),
    (
        "system_role",
        TOOLS.replace("{% for m in messages %}", "{% for m in (messages[1:] if tools else messages) %}"),
        "no",
    ),
    ("system_role", PLAIN.replace("m.content", "m.content[:20]"), "no"),
    ("developer_role", PLAIN, "yes"),
    ("developer_role", STRICT, "no"),
    ("second_system_message", PLAIN, "yes"),
    (
        "second_system_message",
        PLAIN.replace("messages %}", "messages if m.role != 'system' or m == messages[0] %}"),
        "no",
    ),
    ("late_system_message", PLAIN, "yes"),
    ("late_system_message", STRICT, "no"),
    ("several_user_turns_in_a_row", PLAIN, "yes"),
    ("several_user_turns_in_a_row", STRICT, "no"),
    ("tools", TOOLS, "yes"),
    ("tools", PLAIN, "no"),
    ("tools", TOOLS.replace("t | tojson", "t.function.name"), "no"),
    ("tool_calls", TOOLS, "yes"),
    ("tool_calls", PLAIN, "no"),
    ("tool_calls", TOOLS.replace("<call id={{ t.id }} name={{ t.function.name }}>", ""), "no"),
    ("tool_calls", "{% for m in messages %}{{ m | tojson }}{% endfor %}", "no"),
    ("parallel_tool_calls", TOOLS, "yes"),
    ("parallel_tool_calls", FIRST_CALL, "no"),
    ("object_arguments", TOOLS, "yes"),
    ("object_arguments", TOOLS.replace("t.function.arguments | tojson", "t.function.arguments"), "no"),
    (
        "object_arguments",
        TOOLS.replace("t.function.arguments | tojson", "t.function.arguments | tojson | tojson"),
        "no",
    ),
    ("object_arguments", TOOLS.replace("t.function.arguments | tojson", "'' + t.function.arguments"), "no"),
    ("text_beside_calls", TOOLS, "yes"),
    ("text_beside_calls", TOOLS.replace("m.content is string", "m.content is string and not m.tool_calls"), "no"),
    ("empty_content_with_calls", TOOLS, "yes"),
    (
        "empty_content_with_calls",
        TOOLS.replace("m.tool_calls or []", "(m.tool_calls or []) if m.content else []"),
        "no",
    ),
    ("null_content_with_calls", TOOLS, "yes"),
    ("null_content_with_calls", TOOLS.replace("m.content if m.content is string else ''", "m.content"), "no"),
    ("null_content_with_calls", TOOLS.replace("m.content if m.content is string else ''", "m.content | trim"), "no"),
    ("missing_content_with_calls", TOOLS, "yes"),
    ("missing_content_with_calls", TOOLS.replace("m.content if m.content is string else ''", "'' + m.content"), "no"),
    ("several_results_in_a_row", TOOLS, "yes"),
    (
        "several_results_in_a_row",
        TOOLS.replace("m.content is string", "m.content is string and 'herons' not in m.content"),
        "no",
    ),
    ("tool_call_id", TOOLS, "yes"),
    ("tool_call_id", TOOLS.replace(" id={{ t.id }}", ""), "no"),
    ("tool_call_name", TOOLS, "yes"),
    ("tool_call_name", TOOLS.replace(" name={{ t.function.name }}", ""), "no"),
    ("tool_result_name", TOOLS, "yes"),
    ("tool_result_name", TOOLS.replace("{{ m.name }}", ""), "no"),
    ("string_content", PLAIN, "yes"),
    ("string_content", "{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}", "no"),
    ("typed_content", PARTS, "yes"),
    ("typed_content", PLAIN, "no"),
    ("one_text_part", PARTS, "yes"),
    ("one_text_part", "{% for m in messages %}{{ m.content | tojson }}{% endfor %}", "no"),
    ("several_text_parts", PARTS, "yes"),
    ("several_text_parts", PARTS.replace("in m.content", "in m.content[:1]"), "no"),
    ("image_parts", PARTS, "yes"),
    ("image_parts", PARTS.replace("'<' ~ p.type ~ '>'", "''"), "no"),
    ("image_parts", PLAIN, "no"),
    ("audio_parts", PARTS, "yes"),
    ("audio_parts", PARTS.replace("else '<' ~ p.type ~ '>'", "else {'image': '<img>'}.get(p.type, '')"), "no"),
    ("documents", PLAIN + "{% for d in documents or [] %}{{ d.title }}{{ d.text }}{% endfor %}", "yes"),
    ("documents", PLAIN, "no"),
    ("preserve_reasoning", REASONING.replace("KEEP", "true"), "yes"),
    ("preserve_reasoning", REASONING.replace("KEEP", "keep_thinking"), "yes"),
    ("preserve_reasoning", REASONING.replace("KEEP", "loop.last"), "no"),
    ("preserve_reasoning", REASONING.replace("KEEP", "not m.tool_calls"), "no"),
    ("preserve_reasoning", REASONING.replace("KEEP", "true").replace("reasoning_content", "thinking"), "yes"),
    ("reasoning_effort", PLAIN + "{{ reasoning_effort }}", "yes"),
    ("reasoning_effort", PLAIN + "{% if reasoning_effort == 'max' and thinking %}!{% endif %}", "yes"),
    ("reasoning_effort", PLAIN + "{% if reasoning_effort %}{% endif %}", "no"),
    ("assistant_prefill", PLAIN, "yes"),
    ("assistant_prefill", STRICT, "no"),
    ("assistant_prefill", PLAIN.replace("}}{% endfor", "}}{{ '' if m.prefix else '.' }}{% endfor"), "yes"),
    ("generation_mask", PLAIN.replace("{{ m.content }}", "{% generation %}{{ m.content }}{% endgeneration %}"), "yes"),
    ("generation_mask", PLAIN + "{% if false %}{% generation %}{% endgeneration %}{% endif %}", "no"),
    ("generation_mask", PLAIN, "no"),
]


@pytest.mark.parametrize(("question", "source", "answer"), SMALL)
def test_an_answer(question: str, source: str, answer: str) -> None:
    found = seen(source)[question]
    assert found.answer == answer, found
    assert found.reason
    assert found.evidence


def test_every_question_is_answered_with_yes_and_with_no_here() -> None:
    answers = {(question, answer) for question, _, answer in SMALL}
    assert answers == {(question, answer) for question in QUESTIONS for answer in ("yes", "no")}


def test_what_hits_a_limit_is_unknown() -> None:
    endless = PLAIN + "{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}"
    assert {found.answer for found in seen(endless).values()} == {"unknown"}
    only_parts = PARTS.replace("{% for p in", "{% for i in range(90000) %}{% endfor %}{% for p in")
    limited = seen(only_parts, limits=Limits(steps=50_000))
    assert limited["one_text_part"].answer == "unknown"
    assert limited["system_role"].answer == "yes"


def test_what_no_path_renders_is_unknown() -> None:
    found = seen("{{ raise_exception('no') }}")
    assert {observation.answer for observation in found.values()} == {"unknown"}
    assert all("no" in observation.reason for observation in found.values())


def test_what_does_not_parse_is_unknown() -> None:
    assert {found.answer for found in seen("{% if %}").values()} == {"unknown"}


def test_other_shapes_are_tried_before_the_answer_is_no() -> None:
    """Calls only beside null content, tools always, arguments only as text, content only as parts, a variable."""
    for source in (
        TOOLS.replace("m.tool_calls or []", "(m.tool_calls or []) if m.content is none else []"),
        TOOLS + "{{ tools[0].function.name }}",
        TOOLS.replace("t.function.arguments | tojson", "'' + t.function.arguments"),
        "{% for m in messages %}<{{ m.role }}>{% for p in m.content or [] %}{{ p.text }}{% endfor %}"
        "{% for t in m.tool_calls or [] %}{{ t.function | tojson }}{% endfor %}{% endfor %}",
        TOOLS + "{{ '' + persona }}",
    ):
        found = seen(source)
        assert found["tool_calls"].answer == "yes", source
        assert found["system_role"].answer == "yes", source


def test_paths_that_answer_otherwise() -> None:
    found = seen(STRICT)
    assert found["system_role"].by_path == {LLAMA_SERVER: "yes"}
    assert found["developer_role"].by_path == {LLAMA_SERVER: "yes"}
    assert found["assistant_prefill"].by_path == {LLAMA_SERVER: "yes", APPLY: "yes", VLLM: "yes", SGLANG: "yes"}
    searching = "{% if '<' in m.content %}{% endif %}{{ m.content if m.content is string else '' }}"
    null = seen(TOOLS.replace("{{ m.content if m.content is string else '' }}", searching))["null_content_with_calls"]
    assert null.answer == "no"
    assert null.by_path == {LLAMA_SERVER: "yes", APPLY: "yes", VLLM: "yes", SGLANG: "yes"}
    only_jinja2 = seen(PLAIN + "{{ {'b': 1, 'a': 2} | tojson(sort_keys=true) }}")["string_content"]
    assert only_jinja2.answer == "yes"
    assert only_jinja2.by_path == {LLAMA_RAW: "unknown", LLAMA_SERVER: "unknown"}


def test_the_reason_is_that_of_the_request_of_which_most_is_written() -> None:
    """Only tools without `function` around them are named, and only their parameters are missing then."""
    tools = seen("{% for t in tools or [] %}{{ t.name }}\n{% endfor %}" + PLAIN)["tools"]
    assert (tools.answer, tools.reason) == ("no", "a tool's parameter leaves no trace, without an error")
    nothing = seen(PLAIN)["tools"]
    assert nothing.reason == "the name of a tool leaves no trace, without an error"


def test_what_fails_on_one_path_and_is_lost_on_another_has_two_reasons() -> None:
    """Macros of llama.cpp see the names of their caller."""
    name = "{% macro name() %}{{ tool.function.name }}{% endmacro %}"
    tools = seen(name + "{% for tool in tools or [] %}{{ name() }}\n{% endfor %}" + PLAIN)["tools"]
    assert (tools.answer, tools.by_path) == ("no", {})
    assert tools.reason == (
        "fails: 'tool' is undefined (line 1); "
        f"{LLAMA_RAW} and {LLAMA_SERVER}: a tool's parameter leaves no trace, without an error"
    )


def test_a_dump_of_a_message_is_known_as_such() -> None:
    message = {"role": "user", "content": c.USER}
    assert is_dumped(f"<s>{message}", c.USER)
    assert is_dumped(json.dumps([message], indent=2), c.USER)
    assert is_dumped(json.dumps({"tool_calls": [{"arguments": c.USER}], "role": "assistant"}), c.USER)
    assert is_dumped(json.dumps([c.text_part(c.USER)]), c.USER)
    assert not is_dumped(f"{message} {c.USER}", c.USER)
    assert not is_dumped(json.dumps({"content": c.USER, "call_id": "1"}), c.USER)
    assert not is_dumped(json.dumps(c.tool()) + c.USER, c.USER)


@pytest.mark.parametrize(
    ("text", "style"),
    [
        (json.dumps({c.PARAMETER: c.VALUE}), "json"),
        (str({c.PARAMETER: c.VALUE}), "repr"),
        (json.dumps(json.dumps({c.PARAMETER: c.VALUE})), "escaped"),
        (f"{c.PARAMETER}={c.VALUE}", "own"),
    ],
)
def test_styles_of_arguments(text: str, style: str) -> None:
    assert argument_style(text) == style


# The command of every piece of evidence repeats it


@pytest.mark.parametrize("source", [STRICT, TOOLS, PARTS + "{{ '' + persona }}"], ids=["strict", "tools", "persona"])
def test_evidence_is_repeated_by_its_command(
    source: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    file = tmp_path / "x.jinja"
    file.write_text(source, encoding="utf-8")
    book = EvidenceBook(str(file))
    observe(Renders(source), book)
    for evidence in book.entries.values():
        sent, bar, command = evidence.repeat.rpartition(" | ")
        if bar:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(shlex.split(sent)[2].encode())))
        code = main(shlex.split(command)[1:])
        out, err = capfdbinary.readouterr()
        codes = {"raised": (1,), "refused": (1, 2)}
        assert code in codes.get(evidence.outcome, (0,)), evidence
        if evidence.span is not None:
            start, end = evidence.span
            assert out.decode()[start:end] in evidence.excerpt.encode().decode("unicode_escape"), evidence
        elif evidence.outcome in {"raised", "refused"}:
            assert evidence.excerpt.partition("\\n")[0][:40] in err.decode(), evidence


def test_conversations_of_probing_have_names() -> None:
    assert not CHATS.keys() & PROBING.keys()
    for name, build in PROBING.items():
        assert conversation(name) == build()
        assert json.loads(json.dumps(build())) == build()
        assert (build.__doc__ or "").endswith("."), name


# The corpus families

FAMILIES = {
    "chatml": ({"system_role", "several_user_turns_in_a_row"}, {"tools", "tool_calls", "typed_content"}),
    "gemma": ({"string_content"}, {"system_role", "several_user_turns_in_a_row", "developer_role"}),
    "granite": ({"tools", "documents", "parallel_tool_calls"}, {"tool_call_id", "typed_content"}),
    "glm": ({"preserve_reasoning", "typed_content", "object_arguments"}, {"tool_call_id", "image_parts"}),
    "harmony": ({"reasoning_effort", "tool_calls", "developer_role"}, {"parallel_tool_calls"}),
    "llama2": ({"system_role"}, {"late_system_message", "second_system_message"}),
    "llama3": ({"tools", "tool_calls"}, {"parallel_tool_calls", "text_beside_calls"}),
    "mistral": ({"tool_call_id", "parallel_tool_calls"}, {"late_system_message", "text_beside_calls"}),
    "qwen3": ({"tools", "several_results_in_a_row", "null_content_with_calls"}, {"preserve_reasoning", "tool_call_id"}),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family(name: str) -> None:
    expected = family(name)
    found = seen(expected.source, **expected.tokens)
    yes, no = FAMILIES[name]
    assert {question: found[question].answer for question in yes | no} == dict.fromkeys(yes, "yes") | dict.fromkeys(
        no, "no"
    )
    assert not [observation for observation in found.values() if observation.differs_from_caps]


# Real templates where llama.cpp's flags and the output disagree: each was read to see who is right

DISAGREEMENTS = [
    # Calls are written only `if message['content'] is none`; llama.cpp's conversation has an empty string there.
    ("deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "tool_calls", "yes", "its content beside a call is an empty text"),
    ("swift-jinja--ChatTemplateTests--deepSeekR1chatTemplate", "parallel_tool_calls", "yes", "second call is not read"),
    # Ids of calls are collected with `.append`, which Jinja2's immutable sandbox refuses and llama.cpp allows.
    ("Kimi-K2-Instruct", "tool_calls", "no", "the engines differ"),
    # A macro loops over a list of parts, behind `if message.get("content")`: llama.cpp tries an empty list.
    ("LFM2.5-8B-A1B", "typed_content", "yes", "an empty list"),
    # `preserve_thinking` keeps the reasoning, but the field is read as `thinking`; llama.cpp sends reasoning_content.
    ("LFM2.5-8B-A1B", "preserve_reasoning", "yes", "reasoning_content"),
    # An empty list of parts is refused with a message of the template's own.
    ("mistralai-Ministral-3-14B-Reasoning-2512", "typed_content", "yes", "an empty list, and that fails"),
    # The switch is called `preserved_thinking`, which llama.cpp does not know; without tools its default is off.
    ("tencent-Hy3", "preserve_reasoning", "yes", "with preserved_thinking=true"),
    # The system text is put before the first content in a variable, and then `message['content']` is printed instead.
    ("chat_templates--gemma-it--9028c079", "system_role", "no", "not whether it is written"),
    # Results without a `name` are refused, and llama.cpp's conversation sends one without.
    ("xinference--qwen1.5-chat", "tool_calls", "yes", "require a 'name' key"),
    # from_json is a filter of the server that the template was patched for; in llama.cpp the conversations with a call
    # fail there, which denies the tools too.
    ("model_server--chat_template_qwen35", "tools", "yes", "from_json"),
    # `"%s" | format(x)` leaves %s in llama.cpp: the calls are read, their values never written.
    ("vllm--tool_chat_template_llama4_pythonic--e030e206", "tool_calls", "yes", "not what is written of it"),
]


@pytest.mark.skipif(not have_shared(), reason=NO_SHARED)
@pytest.mark.parametrize(("slug", "question", "answer", "why"), DISAGREEMENTS)
def test_where_the_flags_are_wrong(slug: str, question: str, answer: str, why: str) -> None:
    source = (SHARED / "corpus" / "templates" / f"{slug}.jinja").read_bytes().decode()
    found = seen(source)[question]
    assert found.answer == answer, found
    assert found.differs_from_caps is not None
    assert why in found.differs_from_caps


@pytest.mark.skipif(not have_shared(), reason=NO_SHARED)
def test_all_disagreements_of_the_releases_are_explained() -> None:
    rows = [
        json.loads(line) for line in (SHARED / "corpus" / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    for row in rows:
        if not row["official"]:
            continue
        renders = Renders((SHARED / "corpus" / "templates" / f"{row['slug']}.jinja").read_bytes().decode())
        flags: dict[str, bool] = renders.caps.to_dict()  # type: ignore[union-attr]  # every release has caps
        found = observe(renders, EvidenceBook(None))
        for name, flag in flags.items():
            observation = found[name.removeprefix("supports_")]
            agree = observation.answer == ("yes" if flag else "no")
            assert agree or observation.differs_from_caps, (row["slug"], name)
        assert all(observation.evidence for observation in found.values())
        assert all(RAW not in observation.by_path for observation in found.values())
