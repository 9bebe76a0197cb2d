"""vLLM's and SGLang's paths: what a template sees of a body, row by row, and laws of both."""

from __future__ import annotations

import copy
import json
import pickle
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jinjarun.errors import JinjarunError, LimitExceeded
from jinjarun.limits import Limits
from jinjarun.serving import sglang, vllm
from jinjarun.serving.chat_completions.repairs import NOTHING_HELPS, REPAIRS
from tests.conformance.golden import DATA, ROOT, lines

SHOWN = (
    "{% for message in messages %}{{ message | tojson }}\n{% endfor %}"
    "{{ {'tools': tools, 'documents': documents} | tojson }}\n"
    "{% for name, value in [('enable_thinking', enable_thinking), ('thinking', thinking), "
    "('reasoning_effort', reasoning_effort), ('date_string', date_string), ('bos_token', bos_token)] %}"
    "{% if value is defined %}{{ {'name': name, 'value': value} | tojson }}\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}opens{% endif %}"
)
"""A template that shows all that it is given."""
SHOWN_OF_PARTS = (
    SHOWN + "{% if false %}{% for m in messages %}{% for part in m.content %}{% endfor %}{% endfor %}{% endif %}"
)
"""The same, taken for a template of parts by both servers."""
SOURCES = {"string": SHOWN, "openai": SHOWN_OF_PARTS}
TOKENS = {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}
MODULES: dict[str, Any] = {"vllm": vllm, "sglang": sglang}
NEWEST = {"vllm": vllm.VllmOptions(transformers="5.24"), "sglang": sglang.SglangOptions(transformers="5.24")}
NOW = 1764000000
CUT = 200


def seen(prompt: str) -> dict[str, Any]:
    """What the template showed."""
    *shown, end = prompt.split("\n")
    objects = [json.loads(line) for line in shown]
    at = next(i for i, one in enumerate(objects) if one.keys() == {"tools", "documents"})
    found = {
        "messages": objects[:at],
        **objects[at],
        "variables": {one["name"]: one["value"] for one in objects[at + 1 :]},
        "opens": end.startswith("opens"),
    }
    after = end.removeprefix("opens")
    return {**found, "after": after} if after else found


def recorded() -> list[Any]:
    """Server, form of content, body, and what was recorded of the server: what a template saw, or an error."""
    found = []
    for row in lines(DATA / "chat-completions.jsonl"):
        for server in MODULES.keys() & row.keys():
            answers = row[server]
            forms = dict.fromkeys(SOURCES, answers["any"]) if "any" in answers else answers
            for form, answer in forms.items():
                found.append(pytest.param(server, form, row["body"], answer, id=f"{server}-{form}-{row['name']}"))
    return sorted(found, key=lambda param: str(param.id))


@pytest.mark.parametrize(("server", "form", "body", "expected"), recorded())
def test_recorded(server: str, form: str, body: dict[str, Any], expected: dict[str, Any]) -> None:
    """The recording client sent the name of a model with every body. Keys have to be in the recorded order."""
    sent = {"model": "m", **body}
    before = copy.deepcopy(sent)
    try:
        got = seen(MODULES[server].apply_template(SOURCES[form], sent, now=NOW, options=NEWEST[server], **TOKENS))
    except JinjarunError as error:
        text = error.details.get("server_text", error.message)
        got = {"status": error.status, "stage": error.details["stage"], "error": text[:CUT]}
        if "Failed validating" in expected["error"]:  # only jsonschema's first line is ours, too
            expected = {**expected, "error": expected["error"].partition("\n")[0]}
    assert json.dumps(got) == json.dumps(expected)
    assert sent == before


USER = {"role": "user", "content": "q"}
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"k": 1}'}}
TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
KEPT_TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {}}}
ASSISTANT = {"role": "assistant", "content": "a"}
CALLED = [USER, {**ASSISTANT, "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "1", "content": "r"}]
PARTS = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
FAILS_ON_WRAPPED = "{% for t in tools %}{{ t.parameters.type }}{% endfor %}{{ messages[0].content }}"
LOW_EFFORT = SHOWN + "{{ low_effort }}{{ truncate_history_thinking }}"
BY_CALLS = SHOWN_OF_PARTS + "{% if false %}{{ m.tool_call_id }}{% endif %}"


def messages(*given: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"messages": list(given), **more}


VLLM_REWORKS: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "template-given": (messages(USER, chat_template=SHOWN), SHOWN, {"trust_request_chat_template": True}),
    "tool-use-template": (messages(USER, tools=[TOOL]), "named", {}),
    "tool-flags-needed": (messages(USER, tools=[TOOL]), SHOWN, {}),
    "tools-rewritten": (messages(USER, tools=[{"function": {"name": "f"}}]), SHOWN, {}),
    "tools-excluded": (
        messages(USER, tools=[TOOL], tool_choice="none"),
        SHOWN,
        {"exclude_tools_when_tool_choice_none": True},
    ),
    "variable-over-kwargs": (messages(USER, chat_template_kwargs={"add_generation_prompt": False}), SHOWN, {}),
    "null-or-auto-dropped": (messages(USER, chat_template_kwargs={"thinking": None}), SHOWN, {}),
    "variable-unread": (messages(USER, chat_template_kwargs={"nobody": 1}), SHOWN, {}),
    "tools-from-kwargs": (messages(USER, tools=[TOOL], chat_template_kwargs={"tools": []}), SHOWN, {}),
    "thinking-by-effort": (messages(USER, reasoning_effort="low"), SHOWN, {}),
    "key-ignored": (messages(USER, enable_thinking=False), SHOWN, {}),
    "keys-dropped": (messages({**USER, "mood": "calm"}), SHOWN, {}),
    "reasoning-renamed": (messages(USER, {**ASSISTANT, "reasoning_content": "r"}, USER), SHOWN, {}),
    "reasoning-names-filled": (messages(USER, {**ASSISTANT, "reasoning": "r"}, USER), SHOWN, {}),
    "reasoning-dropped": (messages({**USER, "reasoning": "r"}), SHOWN, {}),
    "call-keys-reordered": (messages(*CALLED), SHOWN, {}),
    "calls-emptied": (messages(USER, {**ASSISTANT, "tool_calls": []}, USER), SHOWN, {}),
    "arguments-parsed": (messages(*CALLED), SHOWN, {}),
    "arguments-emptied": (
        messages(USER, {**ASSISTANT, "tool_calls": [{**CALL, "function": {"name": "f", "arguments": "["}}]}),
        SHOWN,
        {},
    ),
    "null-content-emptied": (messages(USER, {"role": "assistant", "content": None}, USER), SHOWN, {}),
    "text-made-a-part": (messages(USER), SHOWN_OF_PARTS, {}),
    "text-parts-joined": (messages({"role": "user", "content": PARTS}), SHOWN, {}),
    "tool-parts-joined": (messages(*CALLED[:2], {**CALLED[2], "content": PARTS}), SHOWN_OF_PARTS, {}),
    "part-made-text": (messages({"role": "user", "content": ["bare", *PARTS]}), SHOWN, {}),
    "part-skipped": (messages({"role": "user", "content": [{"type": "text", "text": None}, *PARTS]}), SHOWN, {}),
    "billing-header-cut": (messages({"role": "system", "content": "x-anthropic-billing-header: 1\nrest"}), SHOWN, {}),
    "developer-made-system": (messages({"role": "developer", "content": "d"}, USER), SHOWN, {}),
    "system-merged": (
        messages({"role": "system", "content": "s"}, {"role": "developer", "content": "d"}, USER),
        SHOWN,
        {},
    ),
}
SGLANG_REWORKS: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "template-given": (
        messages(USER, chat_template_kwargs={"chat_template": SHOWN}),
        SHOWN,
        {"trust_request_chat_template": True},
    ),
    "tool-use-template": (messages(USER, tools=[TOOL]), "named", {}),
    "tools-rewritten": (messages(USER, tools=[TOOL]), SHOWN, {}),
    "tools-excluded": (messages(USER, tools=[TOOL], tool_choice="none"), SHOWN, {}),
    "tools-chosen": (
        messages(
            USER,
            tools=[TOOL, {"function": {"name": "g"}}],
            tool_choice={"type": "function", "function": {"name": "f"}},
        ),
        SHOWN,
        {},
    ),
    "types-rewritten": (
        messages(USER, tools=[{"function": {"name": "f", "parameters": {"type": "dict"}}}]),
        SHOWN,
        {},
    ),
    "tools-flattened": (messages(USER, tools=[TOOL]), FAILS_ON_WRAPPED, {}),
    "thinking-by-effort": (messages(USER, reasoning_effort="low"), SHOWN, {}),
    "effort-from-kwargs": (
        messages(USER, reasoning_effort="low", chat_template_kwargs={"reasoning_effort": "high"}),
        SHOWN,
        {},
    ),
    "effort-from-defaults": (
        messages(USER, reasoning_effort="low"),
        SHOWN,
        {"default_chat_template_kwargs": {"reasoning_effort": "high"}},
    ),
    "low-effort-set": (messages(USER, reasoning_effort="low"), LOW_EFFORT, {}),
    "key-ignored": (messages(USER, add_generation_prompt=False), SHOWN, {}),
    "keys-dropped": (messages({**USER, "name": "ann"}), SHOWN, {}),
    "role-lowered": (messages({"role": "System", "content": "s"}, USER), SHOWN, {}),
    "null-content-emptied": (messages(USER, {"role": "assistant", "content": None}, USER), SHOWN, {}),
    "null-keys-dropped": (messages(USER, {**ASSISTANT, "name": None}, USER), SHOWN, {}),
    "call-keys-added": (messages(*CALLED), SHOWN, {}),
    "arguments-parsed": (messages(*CALLED), SHOWN, {}),
    "text-parts-joined": (messages({"role": "user", "content": PARTS}), SHOWN, {}),
    "parts-simplified": (messages({"role": "user", "content": PARTS}), SHOWN_OF_PARTS, {}),
    "part-dropped": (messages({"role": "user", "content": [IMAGE, *PARTS]}), SHOWN, {"multimodal": True}),
    "tool-parts-joined": (messages(*CALLED[:2], {**CALLED[2], "content": PARTS}), SHOWN_OF_PARTS, {}),
    "tool-results-sorted": (
        messages(
            USER,
            {**ASSISTANT, "tool_calls": [CALL, {**CALL, "id": "2"}]},
            {"role": "tool", "tool_call_id": "2", "content": [IMAGE]},
            {"role": "tool", "tool_call_id": "1", "content": "first"},
        ),
        BY_CALLS,
        {"multimodal": True},
    ),
    "final-message-made-user": (messages(USER, ASSISTANT), SHOWN, {}),
    "final-message-held-back": (messages(USER, ASSISTANT, continue_final_message=True), SHOWN, {}),
    "final-message-appended": (messages(USER, ASSISTANT, continue_final_message=True), SHOWN, {}),
}


def server_for(name: str, source: str, flags: dict[str, Any], *, advises: bool = True) -> Any:
    module = MODULES[name]
    kind, options = (
        (module.VllmServer, module.VllmOptions) if name == "vllm" else (module.SglangServer, module.SglangOptions)
    )
    sources: Any = {"default": SHOWN, "tool_use": SHOWN} if source == "named" else source
    return kind(sources, special_tokens=TOKENS, options=options(**flags), advises=advises)


EXAMPLES = [("vllm", row) for row in vllm.REWORKS] + [("sglang", row) for row in sglang.REWORKS]


@pytest.mark.parametrize(("server", "row"), EXAMPLES)
def test_every_rework_has_an_example(server: str, row: str) -> None:
    body, source, flags = (VLLM_REWORKS if server == "vllm" else SGLANG_REWORKS)[row]
    answer = server_for(server, source, flags).answer(body, now=NOW)
    assert row in {rework.name for rework in answer.reworks}
    assert all(rework["why"] and rework["source"] for rework in answer.to_dict()["reworks"])


def test_no_example_of_a_rework_that_is_not_there() -> None:
    assert VLLM_REWORKS.keys() == vllm.REWORKS.keys()
    assert SGLANG_REWORKS.keys() == sglang.REWORKS.keys()


def test_what_is_not_changed_is_not_told() -> None:
    for server in MODULES:
        names = {rework.name for rework in server_for(server, SHOWN, {}).answer(messages(USER), now=NOW).reworks}
        assert names <= {"null-passed"}


def test_spans_name_the_messages_of_the_body() -> None:
    """Though vLLM merges messages before the template sees them, and SGLang writes behind it."""
    source = "{% for m in messages %}<{{ m.content }}>{% endfor %}"
    given_body = messages(USER, {"role": "developer", "content": "d"}, {"role": "user", "content": "last"})
    answer = server_for("vllm", source, {}).answer(given_body, now=NOW, spans=True)
    shown = [(span.text, span.origin) for span in answer.spans if span.is_input]
    assert ("".join(span.text for span in answer.spans), shown[-1]) == (answer.prompt, ("last", "messages[2].content"))
    given_body = messages(USER, ASSISTANT, continue_final_message=True)
    answer = server_for("sglang", source, {}).answer(given_body, now=NOW, spans=True)
    assert answer.prompt == "<q>a"
    assert [(span.text, span.origin) for span in answer.spans if span.is_input] == [
        ("q", "messages[0].content"),
        ("a", "messages[1].content"),
    ]


def test_the_document_lists_every_refusal() -> None:
    document = (ROOT / "docs" / "paths.md").read_text(encoding="utf-8")
    listed = [line for line in document.splitlines() if re.match(r"\| `[a-z-]+` \|", line)]
    rows = [*vllm.REFUSALS.items(), *sglang.REFUSALS.items()]
    assert listed == [f"| `{name}` | {row.why} | {row.hint} |" for name, row in rows]


NAMED = {"type": "function", "function": {"name": "g"}}
SCHEMA = {"type": "json_schema"}
VLLM_REFUSALS: dict[str, tuple[Any, dict[str, Any]]] = {
    "body-malformed": (messages(USER, reasoning_effort="huge"), {}),
    "message-malformed": (messages({"role": "user", "content": None}), {}),
    "call-malformed": (
        messages(USER, {**ASSISTANT, "tool_calls": [{**CALL, "function": {"name": "f", "arguments": {}}}]}),
        {},
    ),
    "tools-empty": (messages(USER, tools=[]), {}),
    "tool-choice-without-tools": (messages(USER, tool_choice="auto"), {}),
    "tool-choice-unknown": (messages(USER, tools=[TOOL], tool_choice=NAMED), {}),
    "schema-missing": (messages(USER, response_format=SCHEMA), {}),
    "continue-and-open": (messages(USER, continue_final_message=True, add_generation_prompt=True), {}),
    "auto-tools-off": (messages(USER, tools=[TOOL]), {"enable_auto_tool_choice": False, "tool_call_parser": None}),
    "tool-parser-missing": (messages(USER, tools=[TOOL], tool_choice="required"), {"tool_call_parser": None}),
    "template-untrusted": (messages(USER, chat_template="x"), {}),
    "media-refused": (messages({"role": "user", "content": [IMAGE]}), {}),
    "part-unknown": (messages({"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}), {}),
    "part-malformed": (messages(*CALLED[:2], {**CALLED[2], "content": {"ok": True}}), {}),
}
SGLANG_REFUSALS: dict[str, tuple[Any, dict[str, Any]]] = {
    "body-malformed": (messages(USER, reasoning_effort="huge"), {}),
    "message-malformed": (messages({"role": "User", "content": "q"}), {}),
    "messages-empty": (messages(), {}),
    "template-untrusted": (messages(USER, chat_template_kwargs={"chat_template": "x"}), {}),
    "media-refused": (messages({"role": "user", "content": [IMAGE]}), {}),
    "tools-needed": (messages(USER, tool_choice="required"), {}),
    "tool-choice-unknown": (messages(USER, tools=[TOOL], tool_choice=NAMED), {}),
    "schema-invalid": (messages(USER, tools=[{"function": {"name": "f", "parameters": {"type": 3}}}]), {}),
    "schema-missing": (messages(USER, response_format=SCHEMA), {}),
    "arguments-no-json": (
        messages(USER, {**ASSISTANT, "tool_calls": [{**CALL, "function": {"name": "f", "arguments": ""}}]}, USER),
        {},
    ),
    "arguments-no-object": (
        messages(USER, {**ASSISTANT, "tool_calls": [{**CALL, "function": {"name": "f", "arguments": "[]"}}]}, USER),
        {},
    ),
}


@pytest.mark.parametrize(
    ("server", "row"), [("vllm", row) for row in vllm.REFUSALS] + [("sglang", row) for row in sglang.REFUSALS]
)
def test_every_refusal_has_an_example(server: str, row: str) -> None:
    body, flags = (VLLM_REFUSALS if server == "vllm" else SGLANG_REFUSALS)[row]
    with pytest.raises(JinjarunError) as caught:
        server_for(server, SHOWN, flags).apply(body, now=NOW)
    error = caught.value
    assert (error.details["reason"], error.status) == (row, 400)
    assert error.details["why"]
    assert error.details["hint"]
    assert pickle.loads(pickle.dumps(error)).to_dict() == error.to_dict()


EACH = "{% for m in messages %}"
END = "{% endfor %}"
ONLY_STRINGS = EACH + "{{ m.content + '' }}" + END
ALTERNATES = EACH + (
    "{% if not loop.first and m.role == messages[loop.index0 - 1].role %}{{ raise_exception('roles') }}{% endif %}"
    + END
)
NO_ROLE = EACH + "{% if m.role ROLE %}{{ raise_exception('role') }}{% endif %}" + END
LATE_SYSTEM = EACH + (
    "{% if m.role == 'system' and not loop.first %}{{ raise_exception('late') }}{% endif %}{{ m.content }}" + END
)
SYSTEM = {"role": "system", "content": "s"}
TWO_CALLS = [CALL, {**CALL, "id": "2"}]
HELPS: dict[str, tuple[str, dict[str, Any], str]] = {
    "add_a_message": (SHOWN, messages(), "vllm"),
    "take_reserved_out": (SHOWN, messages(USER, chat_template_kwargs={"messages": []}), "vllm"),
    "continue_at_the_top": (SHOWN_OF_PARTS, messages(USER, ASSISTANT, continue_final_message=True), "vllm"),
    "do_not_continue": (
        "{{ messages[0].content }}",
        messages(USER, ASSISTANT, continue_final_message=True, add_generation_prompt=False),
        "vllm",
    ),
    "system_first": (LATE_SYSTEM, messages(USER, SYSTEM, USER), "vllm"),
    "known_roles": (NO_ROLE.replace("ROLE", "== 'critic'"), messages(USER, {"role": "critic", "content": "c"}), "vllm"),
    "content_as_text": (ONLY_STRINGS + "{# image #}", messages({"role": "user", "content": PARTS}), "sglang"),
    "content_everywhere": (
        EACH + "{{ m.content[0].text }}" + END + SHOWN_OF_PARTS.partition("opens{% endif %}")[2],
        messages(USER, {"role": "assistant", "content": None}, USER),
        "vllm",
    ),
    "join_neighbours": (ALTERNATES, messages(USER, USER), "vllm"),
    "system_in_user": (NO_ROLE.replace("ROLE", "== 'system'"), messages(SYSTEM, USER), "vllm"),
    "user_last": ("{{ messages[-1].role == 'user' or raise_exception('last') }}", messages(USER, ASSISTANT), "vllm"),
    "fill_tools": (
        "{% for t in tools %}{{ t.function.description + '' }}{% endfor %}",
        messages(USER, tools=[{"function": {"name": "f"}}]),
        "vllm",
    ),
    "one_call_a_message": (
        EACH + "{% if m.tool_calls and m.tool_calls | length > 1 %}{{ raise_exception('one') }}{% endif %}" + END,
        messages(USER, {**ASSISTANT, "tool_calls": TWO_CALLS}, CALLED[2], {**CALLED[2], "tool_call_id": "2"}),
        "vllm",
    ),
    "no_tools": ("{{ tools is none or raise_exception('no') }}", messages(USER, tools=[TOOL]), "vllm"),
    "calls_as_text": (NO_ROLE.replace("ROLE", "== 'tool'"), messages(*CALLED), "vllm"),
}
HINTS = {repair.__name__: hint for repair, hint in REPAIRS}


def hint_of(server: str, source: str, body: dict[str, Any]) -> str:
    with pytest.raises(JinjarunError) as caught:
        MODULES[server].apply_template(source, body)
    hint: str = caught.value.details["hint"]
    return hint


@pytest.mark.parametrize("repair", HINTS)
def test_every_repair_helps_somewhere(repair: str) -> None:
    source, body, server = HELPS[repair]
    assert hint_of(server, source, body) == HINTS[repair]


def test_repairs_are_put_together_where_one_is_not_enough() -> None:
    source = LATE_SYSTEM + ALTERNATES
    hint = hint_of("vllm", source, messages(USER, USER, SYSTEM))
    assert hint == f"{HINTS['system_first']}; {HINTS['join_neighbours']}"


def test_a_template_that_needs_a_variable_or_fails_on_everything() -> None:
    assert hint_of("vllm", "{{ eot_token + '' }}", messages(USER)).startswith("give eot_token in chat_template_kwargs")
    assert hint_of("sglang", "{{ raise_exception('no') }}", messages(USER)) == NOTHING_HELPS
    with pytest.raises(JinjarunError) as caught:
        server_for("vllm", "{{ eot_token + '' }}", {}, advises=False).apply(messages(USER))
    assert "hint" not in caught.value.details


@pytest.mark.parametrize("server", MODULES)
def test_a_failed_template_says_what_to_send(server: str) -> None:
    source = (
        "{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('late') }}{% endif %}"
    )
    with pytest.raises(JinjarunError) as caught:
        MODULES[server].apply_template(
            source + "{% endfor %}", messages(USER, {"role": "system", "content": "s"}, USER)
        )
    assert (caught.value.status, caught.value.details["stage"]) == (400, "template")
    assert caught.value.details["hint"] == "put all system texts into one message, the first"


@pytest.mark.parametrize(
    ("source", "status"),
    [
        ("{{ nobody.x }}", 400),
        ("{{ raise_exception('no') }}", 400),
        ("{% set x = {} %}{% set x.y = 1 %}", 400),
        ("{{ messages[0] + 1 }}", 400),
        ("{{ 'a'.index('b') }}", 400),
        ("{{ 1 // 0 }}", 500),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", 500),
    ],
)
def test_sglang_tells_python_errors_from_those_of_jinja(source: str, status: int) -> None:
    """What is neither Jinja2's nor a type or value error is the server's fault; vLLM blames the client in any case."""
    for server, expected in (("sglang", status), ("vllm", 400)):
        with pytest.raises(JinjarunError) as caught:
            MODULES[server].apply_template(source, messages(USER))
        assert (caught.value.status, caught.value.details["stage"]) == (expected, "template")
        text = caught.value.details["server_text"]
        assert text.startswith("Internal server error: ") == (expected == 500)


def test_a_keyword_given_twice_depends_on_python() -> None:
    body = messages(USER, chat_template_kwargs={"tools": []})
    for python, status in (((3, 11), 500), ((3, 12), 400)):
        with pytest.raises(JinjarunError) as caught:
            sglang.apply_template(SHOWN, body, options=sglang.SglangOptions(python=python))
        assert caught.value.status == status


@pytest.mark.parametrize("server", MODULES)
def test_pinned_transformers_keeps_one_name_of_reasoning(server: str) -> None:
    body = messages(USER, {**ASSISTANT, "reasoning_content": "r"}, USER)
    old = seen(MODULES[server].apply_template(SHOWN, body, **TOKENS))["messages"][1]
    new = seen(MODULES[server].apply_template(SHOWN, body, options=NEWEST[server], **TOKENS))["messages"][1]
    assert "thinking" not in old
    assert new["thinking"] == "r"


@pytest.mark.parametrize("server", MODULES)
def test_errors_of_large_bodies_stay_small(server: str) -> None:
    large = {"role": "user", "content": [{"type": "nobody", "x": "y" * 1_000_000}] * 3_000}
    wide = Limits(input_bytes=10**12)
    for body in ({"messages": [5] * 15_000}, messages(large, large)):
        with pytest.raises(JinjarunError) as caught:
            MODULES[server].apply_template(SHOWN, body, limits=wide)
        assert len(caught.value.message) < 500_000
    with pytest.raises(LimitExceeded) as limited:
        MODULES[server].apply_template(SHOWN, {"messages": [5] * 30_000})
    assert limited.value.limit == "items"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.text(max_size=5)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = [
    "role",
    "content",
    "name",
    "tool_calls",
    "tool_call_id",
    "reasoning",
    "reasoning_content",
    "tools",
    "id",
    "type",
]
KEYS += [
    "function",
    "arguments",
    "text",
    "parameters",
    "image_url",
    "thinking",
    "prefix",
    "author",
    "uuid",
    "description",
]
TEXTS = [
    "user",
    "assistant",
    "system",
    "tool",
    "developer",
    "function",
    "text",
    "thinking",
    "refusal",
    "none",
    "{}",
    "[1]",
]
PLAUSIBLE = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 1) | st.sampled_from(TEXTS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=12,
)
FIELDS = ["tools", "tool_choice", "reasoning_effort", "chat_template_kwargs", "continue_final_message", "documents"]
FIELDS += ["response_format", "reasoning", "chat_template", "add_generation_prompt"]
BODIES = st.fixed_dictionaries(
    {"messages": st.lists(st.dictionaries(st.sampled_from(KEYS), PLAUSIBLE, max_size=5), max_size=3) | JSON},
    optional=dict.fromkeys(FIELDS, PLAUSIBLE),
)


@settings(max_examples=80, deadline=None)
@given(body=BODIES | JSON, server=st.sampled_from(sorted(MODULES)), form=st.sampled_from(sorted(SOURCES)))
def test_any_body_gives_a_prompt_or_an_error_of_the_tree(body: Any, server: str, form: str) -> None:
    before = copy.deepcopy(body)
    failure = None
    try:
        MODULES[server].apply_template(SOURCES[form], body, limits=Limits())
    except JinjarunError as error:
        failure = error
    assert body == before
    if failure is not None:
        assert failure.status in (400, 500)
        json.dumps(failure.to_dict())
