"""llama-server's path against the answers of a real one, and its rows one by one."""

from __future__ import annotations

import copy
import json
import pickle
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jinjarun.errors import InputError, JinjarunError, RenderError, TemplateRaised, TemplateSyntaxError
from jinjarun.serving.families import FAMILIES
from jinjarun.serving.llama_server import LlamaServer, apply_template
from jinjarun.serving.reworks import REWORKS
from tests.conformance.golden import NO_SHARED, SHARED, have_shared, lines, suite, template_source

TOKEN = "<|endoftext|>"
needs_shared = pytest.mark.skipif(not have_shared(), reason=NO_SHARED)

SHOW = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
"""A template that shows messages whose content is a string."""
ASKED = [{"role": "user", "content": "q"}]
ANSWERED = [*ASKED, {"role": "assistant", "content": "a"}]
NOW = 1764000000
CALL = {"type": "function", "id": "1", "function": {"name": "f", "arguments": '{"k": 1}'}}
CALL_WITH_OBJECT = {"type": "function", "function": {"name": "f", "arguments": {"k": 1}}}
CALLED: list[dict[str, Any]] = [
    *ASKED,
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "1", "content": '{"r": 2}'},
]
TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}


def request_body(conversation: dict[str, Any]) -> dict[str, Any]:
    body = {key: conversation[key] for key in ("messages", "tools", "add_generation_prompt") if key in conversation}
    return {**body, "chat_template_kwargs": conversation["kwargs"]} if "kwargs" in conversation else body


def answer(source: str, body: Any, **settings: Any) -> str | int:
    """The prompt, or the HTTP status of the error."""
    try:
        return apply_template(source, body, **{"bos_token": TOKEN, "eos_token": TOKEN, "now": NOW, **settings})
    except JinjarunError as error:
        return error.status


@needs_shared
def test_agrees_with_every_recorded_answer() -> None:
    differing = []
    conversations = suite()["conversations"]
    for row in lines(SHARED / "golden" / "server.jsonl.gz"):
        source = template_source(row["template"])
        if "refused" in row:
            with pytest.raises(JinjarunError) as caught:
                apply_template(source, {"messages": ASKED}, bos_token=TOKEN, eos_token=TOKEN)
            assert caught.value.details["refused"] is True
            continue
        for name, recorded in row["answers"].items():
            expected = recorded["prompt"] if "prompt" in recorded else recorded["status"]
            if answer(source, request_body(conversations[name]), now=suite()["now"]) != expected:
                differing.append(f"{row['template']}/{name}")
    assert differing == []


@needs_shared
def test_agrees_on_the_caps_of_props() -> None:
    for row in lines(SHARED / "golden" / "server.jsonl.gz"):
        if "caps" in row:
            server = LlamaServer(template_source(row["template"]), bos_token=TOKEN, eos_token=TOKEN)
            assert server.caps.to_dict() == row["caps"], row["template"]


@needs_shared
def test_agrees_with_the_answers_of_the_lesson() -> None:
    recorded = json.loads((SHARED / "golden" / "seed.json").read_text(encoding="utf-8"))
    for row in recorded["answers"]:
        source = row["template_source"] or template_source(row["template"])
        tokens = {name: recorded[name] for name in ("bos_token", "eos_token")}
        now = datetime.fromisoformat(recorded["day"]).replace(tzinfo=UTC)
        assert answer(source, row["body"], now=now, **tokens) == row["prompt"], row["example"]


def rows(source: str, body: dict[str, Any], **settings: Any) -> list[tuple[str, str]]:
    """Name and path of each rework."""
    found = LlamaServer(source, bos_token=TOKEN, eos_token=TOKEN, **settings).answer(body, now=NOW)
    return [(rework.name, rework.path) for rework in found.reworks]


PARTS_ONLY = "{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}"
NO_SYSTEM = "{% for m in messages %}{% if m.role != 'system' %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}"
CALLS = (
    "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}[{{ c.function.name }}"
    "{% for k, v in c.function.arguments.items() %} {{ k }}={{ v }}{% endfor %}]{% endfor %}{% endfor %}"
)
GEMMA = f"{SHOW}{{# '<|tool_call>call:' #}}"
EXAMPLES: dict[str, tuple[str, dict[str, Any], str, dict[str, Any]]] = {
    "chatml-assumed": ("", {"messages": ASKED}, "template", {}),
    "harmony-check-removed": (
        SHOW
        + '{%- if "<|channel|>analysis<|message|>" in message.content or '
        + '"<|channel|>final<|message|>" in message.content %}{{ no }}{%- endif %}',
        {"messages": ASKED},
        "template",
        {},
    ),
    "mistral-check-removed": (
        SHOW
        + "{# [TOOL_CALLS] #}{%- if (message['content'] is none or message['content'] == '' or "
        + "message['content']|length == 0) and (message['tool_calls'] is not defined or "
        + "message['tool_calls'] is none or message['tool_calls']|length == 0) %}{{ no }}{%- endif %}",
        {"messages": ASKED},
        "template",
        {},
    ),
    "tool-use-template": (SHOW, {"messages": ASKED, "tools": [TOOL]}, "template", {"tool_use": f"tools {SHOW}"}),
    "variables-added": (SHOW + "{{ date_string }}", {"messages": ASKED}, "date_string", {}),
    "reasoning-preserved": (SHOW + "{{ preserve_thinking }}", {"messages": ASKED}, "preserve_reasoning", {}),
    "reasoning-dropped": (
        SHOW + "{{ clear_thinking }}",
        {"messages": ASKED, "chat_template_kwargs": {"preserve_reasoning": False}},
        "preserve_reasoning",
        {},
    ),
    "reasoning-effort-spread": (
        SHOW + "{{ reasoning_strength }}",
        {"messages": ASKED, "reasoning_effort": "low"},
        "reasoning_effort",
        {},
    ),
    "thinking-off-by-default": (SHOW + "{{ enable_thinking }}", {"messages": ASKED}, "enable_thinking", {}),
    "thinking-off-by-effort": (
        SHOW + "{{ enable_thinking }}",
        {"messages": ASKED, "reasoning_effort": "none"},
        "enable_thinking",
        {},
    ),
    "generation-prompt-dropped": (SHOW, {"messages": ANSWERED}, "add_generation_prompt", {}),
    "tools-rewritten": (
        SHOW,
        {"messages": ASKED, "tools": [{"type": "function", "function": {"name": "f", "strict": True}}]},
        "tools[0]",
        {},
    ),
    "keys-dropped": (SHOW, {"messages": [{**ASKED[0], "id": 7}]}, "messages[0].id", {}),
    "null-content-emptied": (SHOW, {"messages": [{"role": "user", "content": None}]}, "messages[0].content", {}),
    "call-arguments-serialized": (
        SHOW,
        {"messages": [*ASKED, {"role": "assistant", "tool_calls": [CALL_WITH_OBJECT]}, *ASKED]},
        "messages[1].tool_calls[0].function.arguments",
        {},
    ),
    "arguments-parsed": (CALLS, {"messages": CALLED}, "messages[1].tool_calls[0].function.arguments", {}),
    "contents-trimmed": (
        SHOW + "{# You have access to the following functions in JSONSchema format #}",
        {"messages": [{"role": "user", "content": " q "}]},
        "messages[0]",
        {},
    ),
    "text-parts-joined": (
        SHOW,
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]},
        "messages[0].content",
        {},
    ),
    "text-made-a-part": (PARTS_ONLY, {"messages": ASKED}, "messages[0].content", {}),
    "developer-role-renamed": (
        SHOW,
        {"messages": [{"role": "developer", "content": "s"}, *ASKED]},
        "messages[0].role",
        {},
    ),
    "system-merged": (NO_SYSTEM, {"messages": [{"role": "system", "content": "s"}, *ASKED]}, "messages[0]", {}),
    "system-dropped": (NO_SYSTEM, {"messages": [{"role": "system", "content": "s"}]}, "messages[0]", {}),
    "final-message-held-back": (SHOW, {"messages": ANSWERED}, "messages[1]", {}),
    "reasoning-copied-to-thinking": (
        SHOW + "{# <|tool_list_start|> <|tool_list_end|> #}",
        {"messages": [{"role": "assistant", "content": "a", "reasoning_content": "r"}, *ASKED]},
        "messages[0].reasoning_content",
        {},
    ),
    "content-dropped": (
        SHOW + "{# <|channel|> #}",
        {"messages": [*ASKED, {"role": "assistant", "reasoning_content": "r", "tool_calls": [CALL]}, *ASKED]},
        "messages[1].content",
        {},
    ),
    "reasoning-made-a-part": (
        PARTS_ONLY + "{# [SYSTEM_PROMPT] [TOOL_CALLS] [ARGS] #}",
        {"messages": [{"role": "assistant", "content": "a", "reasoning_content": "r"}, *ASKED]},
        "messages[0].reasoning_content",
        {},
    ),
    "tool-results-folded": (GEMMA, {"messages": [*CALLED, *ASKED]}, "messages[1]", {}),
    "tool-results-sorted": (
        SHOW + "{# dsml_token DSML tool_calls #}",
        {
            "messages": [
                *ASKED,
                {"role": "assistant", "tool_calls": [CALL, {**CALL, "id": "2"}]},
                {"role": "tool", "tool_call_id": "2", "content": "second"},
                {"role": "tool", "tool_call_id": "1", "content": "first"},
            ]
        },
        "messages[3]",
        {},
    ),
    "response-format-passed": (
        SHOW + "{# dsml_token DSML tool_calls #}",
        {"messages": ASKED, "response_format": {"type": "json_object"}},
        "response_format",
        {},
    ),
    "final-message-appended": (SHOW, {"messages": ANSWERED}, "prompt", {}),
    "return-token-replaced": (
        SHOW + "<|return|>{# <|channel|> #}",
        {"messages": ASKED, "add_generation_prompt": False},
        "prompt",
        {},
    ),
    "turn-opened": (GEMMA + "<turn|>\n\n", {"messages": ASKED}, "prompt", {}),
    "bos-trimmed": ("{{ bos_token }}" + SHOW, {"messages": ASKED}, "prompt", {"add_bos": True}),
    "eos-trimmed": (SHOW + "{{ eos_token }}", {"messages": ASKED}, "prompt", {"add_eos": True}),
}


def test_every_rework_has_an_example() -> None:
    assert EXAMPLES.keys() == REWORKS.keys()


@pytest.mark.parametrize("name", REWORKS)
def test_rework_is_named_with_its_place(name: str) -> None:
    source, body, path, settings = EXAMPLES[name]
    assert (name, path) in rows(source, body, **settings)


def test_reworks_explain_themselves() -> None:
    explained = LlamaServer(SHOW).answer({"messages": ANSWERED}).to_dict()
    assert explained["build"] == "b11434"
    assert explained["template"] == "default"
    assert explained["family"] is None
    assert explained["prompt"] == "<user>q<assistant>a"
    assert [row["name"] for row in explained["reworks"]] == [
        "final-message-held-back",
        "generation-prompt-dropped",
        "final-message-appended",
    ]
    assert all(row["why"] for row in explained["reworks"])


def test_a_plain_request_is_not_reworked() -> None:
    assert rows(SHOW, {"messages": [{"role": "system", "content": "s"}, *ASKED]}) == []


@pytest.mark.parametrize(
    ("source", "body", "prompt"),
    [
        ("", {"messages": ASKED}, "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n"),
        ("chatml", {"messages": ASKED}, "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n"),
        (SHOW, {"messages": []}, "<assistant>"),
        (SHOW, {"messages": ASKED, "add_generation_prompt": False}, "<user>q"),
        (SHOW, {"messages": ASKED, "add_generation_prompt": "no"}, "<user>q<assistant>"),
        (SHOW, {"messages": ANSWERED}, "<user>q<assistant>a"),
        (SHOW, {"messages": [*ASKED, {"role": "assistant", "content": ""}]}, "<user>q"),
        (
            SHOW,
            {"messages": ASKED, "continue_final_message": True, "add_generation_prompt": False},
            "<assistant>q",
        ),
        (SHOW, {"messages": [], "continue_final_message": True, "add_generation_prompt": False}, ""),
        (NO_SYSTEM, {"messages": [{"role": "system", "content": "s"}, *ASKED]}, "<user>s\nq"),
        (NO_SYSTEM, {"messages": [{"role": "developer", "content": "s"}, *ASKED]}, "<user>s\nq"),
        (CALLS, {"messages": CALLED}, 'q[f k=1]{"r": 2}'),
        ("{{ datetime }}|{{ date_string }}", {"messages": ASKED}, "Nov 24 2025|24 Nov 2025"),
        ("{{ preserve_thinking }}{{ clear_thinking }}", {"messages": ASKED}, "TrueFalse"),
        (
            "{{ preserve_thinking }}{{ clear_thinking }}",
            {"messages": ASKED, "chat_template_kwargs": {"preserve_reasoning": False, "clear_thinking": 3}},
            "False3",
        ),
        ("{{ reasoning_strength }}", {"messages": ASKED, "reasoning_effort": "high"}, "high"),
        (
            "{{ reasoning_effort }}",
            {"messages": ASKED, "reasoning_effort": "none", "chat_template_kwargs": {"reasoning_effort": "low"}},
            "",
        ),
        ("{{ enable_thinking }}", {"messages": ASKED, "chat_template_kwargs": {"enable_thinking": 1}}, "1"),
        ("{{ tools is defined }}", {"messages": ASKED, "tools": []}, "False"),
        ("{{ tools | length }}", {"messages": ASKED, "tools": [TOOL], "tool_choice": "none"}, "1"),
        ("{{ tools | length }}", {"messages": ASKED, "tools": [TOOL], "tool_choice": {"type": "function"}}, "1"),
        ("{{ messages[0].content[-1:] }}", {"messages": [{"role": "user", "content": "é"}]}, "\ufffd"),
    ],
)
def test_prompt(source: str, body: dict[str, Any], prompt: str) -> None:
    assert answer(source, body) == prompt


THINK = (
    "{% for m in messages %}<{{ m.role }}>{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>"
    "{% endif %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.mark.parametrize(
    ("message", "continued", "end"),
    [
        ({"content": "a"}, True, "<assistant><think></think>a"),
        ({"content": "a", "reasoning_content": "r"}, True, "<assistant><think>r</think>a"),
        ({"content": "", "reasoning_content": "r"}, True, "<assistant><think>r"),
        ({"content": "a", "reasoning_content": "r"}, "reasoning_content", "<assistant><think>r"),
        ({"content": "", "reasoning_content": "r"}, "content", "<assistant><think>r</think>"),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, True, "<think></think>a\n\nb"),
    ],
)
def test_continued_message(message: dict[str, Any], continued: Any, end: str) -> None:
    messages = [*ASKED, {"role": "assistant", **message}]
    body = {"messages": messages, "continue_final_message": continued, "add_generation_prompt": False}
    prompt = answer(THINK, body)
    assert isinstance(prompt, str)
    assert prompt.endswith(end)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_family_is_known_and_fails_with_500(family: Any) -> None:
    signs = " ".join([*family.has, family.has_one_of[-1]])
    source = SHOW + "{% if messages[1] is defined %}{{ raise_exception('no') }}{% endif %}{# " + signs + " #}"
    server = LlamaServer(source)
    prepared = server.prepare({"messages": ASKED})
    assert prepared.family == family.name
    assert answer(source, {"messages": [*ASKED, *ASKED]}) == 500
    assert isinstance(answer(source, {"messages": ANSWERED}), str)


def test_failure_of_any_other_template_is_400() -> None:
    source = "{% if messages[1] is defined %}{{ raise_exception('no') }}{% endif %}{{ messages[0].content }}"
    with pytest.raises(TemplateRaised) as caught:
        apply_template(source, {"messages": [*ASKED, *ASKED]}, bos_token="", eos_token="")
    assert caught.value.status == 400
    source = "{% if messages[1] is defined %}{{ 1 | no_filter }}{% endif %}{{ messages[0].content }}"
    with pytest.raises(RenderError) as failed:
        apply_template(source, {"messages": [*ASKED, *ASKED]}, bos_token="", eos_token="")
    assert failed.value.status == 400


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("{% if %}", TemplateSyntaxError),
        ("{{ raise_exception('never') }}", TemplateRaised),
        ("{{ 1 | no_filter }}", RenderError),
        (
            "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}"
            '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}{oops}'
            "{% endfor %}{% endfor %}",
            RenderError,
        ),
    ],
)
def test_server_does_not_start(source: str, kind: type[JinjarunError]) -> None:
    with pytest.raises(kind) as caught:
        LlamaServer(source)
    assert caught.value.details["refused"] is True
    assert pickle.loads(pickle.dumps(caught.value)).to_dict() == caught.value.to_dict()


def test_template_for_tools_that_does_not_parse_is_ignored() -> None:
    assert answer(SHOW, {"messages": ASKED, "tools": [TOOL]}, tool_use="{% if %}") == "<user>q<assistant>"


def test_default_kwargs_are_overridden_by_the_request() -> None:
    source = "{{ a }}{{ b }}"
    body = {"messages": ASKED, "chat_template_kwargs": {"b": 3}}
    assert answer(source, body, default_kwargs={"a": 1, "b": 2}) == "13"
    with pytest.raises(InputError):
        apply_template(source, body, bos_token="", eos_token="", default_kwargs={"a": object()})


@pytest.mark.parametrize(
    ("source", "status"),
    [(SHOW, 200), (CALLS, 400), (SHOW + "{# <|channel|> #}", 500), (GEMMA, 200)],
)
def test_schema_that_cannot_become_a_grammar(source: str, status: int) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "thing"}}}
    got = answer(source, {"messages": ASKED, "tools": [tool]})
    assert (got if isinstance(got, int) else 200) == status


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
ROLES = st.sampled_from(["user", "assistant", "system", "tool", "developer"]) | JSON
PART = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image_url"]) | JSON}, optional={"text": st.text() | JSON}
)
A_CALL = st.fixed_dictionaries(
    {},
    optional={
        "type": st.just("function") | JSON,
        "id": st.text(max_size=3) | JSON,
        "function": JSON
        | st.fixed_dictionaries({"name": st.just("f") | JSON}, optional={"arguments": st.just('{"a": 1}') | JSON}),
    },
)
MESSAGE = JSON | st.fixed_dictionaries(
    {},
    optional={
        "role": ROLES,
        "content": st.text(max_size=5) | st.lists(PART, max_size=2) | JSON,
        "tool_calls": st.lists(A_CALL, max_size=2) | JSON,
        "reasoning_content": st.text(max_size=5) | JSON,
        "name": JSON,
        "tool_call_id": JSON,
    },
)
BODY = JSON | st.fixed_dictionaries(
    {},
    optional={
        "messages": st.lists(MESSAGE, max_size=3) | JSON,
        "tools": st.lists(A_CALL, max_size=2) | JSON,
        "tool_choice": st.sampled_from(["auto", "none", "required"]) | JSON,
        "add_generation_prompt": JSON,
        "continue_final_message": JSON,
        "chat_template_kwargs": JSON,
        "reasoning_effort": JSON,
        "response_format": JSON | st.fixed_dictionaries({"type": st.just("json_object"), "schema": JSON}),
        "grammar": JSON,
        "logprobs": JSON,
        "top_logprobs": JSON,
    },
)


LAGUNA = SHOW + "{# laguna_glm_thinking #}"
LING_3 = SHOW + "{# <role>ASSISTANT</role> <arg_key> #}"


@pytest.mark.parametrize("stop", [5, True, {}, 1.5])
@pytest.mark.parametrize("source", [LAGUNA, LING_3])
def test_stop_that_takes_no_other_beside_it(source: str, stop: Any) -> None:
    """Read in the server's source: it adds a stop of its own for these templates (server-common.cpp, b11434)."""
    body = {"messages": [{"role": "user", "content": "Hi"}], "stop": stop}
    assert answer(source, body) == 400
    assert isinstance(answer(SHOW, body), str)


@pytest.mark.parametrize("stop", [None, "a", ["a"], [5]])
def test_stop_that_takes_another(stop: Any) -> None:
    assert isinstance(answer(LAGUNA, {"messages": [{"role": "user", "content": "Hi"}], "stop": stop}), str)


def test_large_arguments() -> None:
    """An object becomes text with its numbers as they are; a template that reads it as an object has 64 bits."""
    call = {"type": "function", "function": {"name": "f", "arguments": {"a": 2**64 - 1, "b": 2**63, "c": -(2**63)}}}
    body = {"messages": [{"role": "assistant", "content": "", "tool_calls": [call]}, {"role": "user", "content": ""}]}
    as_text = (
        "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.function.arguments }}{% endfor %}{% endfor %}"
    )
    assert answer(as_text, body) == '{"a":18446744073709551615,"b":9223372036854775808,"c":-9223372036854775808}'
    each = "{% for k, v in c.function.arguments.items() %}{{ v }},{% endfor %}"
    as_object = as_text.replace("{{ c.function.arguments }}", each)
    assert answer(as_object, body) == "-1,-9223372036854775808,-9223372036854775808,"


@settings(max_examples=300, deadline=None)
@given(BODY, st.sampled_from([SHOW, PARTS_ONLY, NO_SYSTEM, CALLS, GEMMA, THINK + "{# <|channel|> #}"]))
def test_any_body_gives_a_prompt_or_a_status(body: Any, source: str) -> None:
    before = copy.deepcopy(body)
    assert answer(source, body) in {400, 500} or isinstance(answer(source, body), str)
    assert repr(body) == repr(before)
