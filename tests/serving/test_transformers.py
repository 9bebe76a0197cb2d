"""The path of transformers by itself; `test_against_transformers` holds it to the real one."""

from __future__ import annotations

import contextlib
import copy
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jinjarun.errors import InputError, JinjarunError, RenderError, SourceError, TemplateRaised, TemplateSyntaxError
from jinjarun.serving import llama_server, reworks
from jinjarun.serving.transformers import REWORKS, apply_chat_template, explain_chat_template
from jinjarun.template import Template
from tests.families import family
from tests.serving import tool_functions

USER = {"role": "user", "content": "Hi"}
ASSISTANT = {"role": "assistant", "content": "Hello there. "}
AS_JSON = "{{ messages | tojson }}"
TURNS = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"
NAMED = {"default": "default", "tool_use": "tools", "rag": "documents"}


def seen(*messages: Any, **call: Any) -> Any:
    """The messages as they reach a template."""
    return json.loads(apply_chat_template(AS_JSON, list(messages), **call))


def noted(source: Any, messages: Any, **call: Any) -> list[tuple[str, str]]:
    return [(rework.name, rework.path) for rework in explain_chat_template(source, messages, **call).reworks]


@pytest.mark.parametrize(
    ("source", "call", "expected"),
    [
        ("one", {}, "one"),
        ("one", {"chat_template": "another"}, "another"),
        ("one", {"chat_template": "tool_use"}, "tool_use"),
        (None, {"chat_template": "another"}, "another"),
        (NAMED, {}, "default"),
        (NAMED, {"tools": []}, "tools"),
        (NAMED, {"tools": [{"name": "f"}]}, "tools"),
        (NAMED, {"chat_template": "rag", "tools": []}, "documents"),
        (NAMED, {"chat_template": "unheard of"}, "unheard of"),
        ({"default": "only"}, {"tools": []}, "only"),
        ({"tool_use": "tools"}, {"tools": []}, "tools"),
    ],
)
def test_the_template_is_chosen(source: Any, call: Any, expected: str) -> None:
    assert apply_chat_template(source, [USER], **call) == expected


@pytest.mark.parametrize(
    ("source", "error"), [({"tool_use": "x", "rag": "y"}, SourceError), ({}, SourceError), (None, InputError)]
)
def test_without_a_default_template_there_is_an_error(source: Any, error: type[JinjarunError]) -> None:
    with pytest.raises(error) as caught:
        apply_chat_template(source, [USER])
    assert caught.value.details["path"] == "source"


def test_null_keys_of_messages_are_dropped_and_those_inside_stay() -> None:
    call = {"id": None, "function": {"name": "f", "arguments": {"x": None}}}
    message = {"role": "assistant", "content": None, "name": None, "tool_calls": [call]}
    assert seen(message) == [{"role": "assistant", "tool_calls": [call]}]


@pytest.mark.parametrize(
    ("given_keys", "expected"),
    [
        ({"reasoning_content": "a"}, {"thinking": "a", "reasoning_content": "a"}),
        ({"thinking": "a"}, {"thinking": "a", "reasoning_content": "a"}),
        ({"reasoning": "a"}, {"thinking": "a", "reasoning": "a", "reasoning_content": "a"}),
        ({"thinking": "a", "reasoning_content": "b"}, {"thinking": "a", "reasoning_content": "b"}),
        (
            {"reasoning": "a", "reasoning_content": "b"},
            {"thinking": "b", "reasoning": "a", "reasoning_content": "b"},
        ),
        ({"reasoning": "a", "thinking": None}, {"thinking": "a", "reasoning": "a", "reasoning_content": "a"}),
        ({"reasoning": ""}, {"thinking": "", "reasoning": "", "reasoning_content": ""}),
        ({"reasoning": None}, {}),
    ],
)
def test_reasoning_gets_its_names(given_keys: dict[str, Any], expected: dict[str, Any]) -> None:
    assert seen({"role": "assistant", **given_keys}) == [{"role": "assistant", **expected}]


def test_variables_and_special_tokens() -> None:
    source = "{{ tools is none }} {{ documents is none }} {{ bos_token }} {{ eos_token is defined }} {{ x }}"
    assert apply_chat_template(source, [USER], bos_token="<s>", x=1) == "True True <s> False 1"
    applied = explain_chat_template(
        source, [USER], special_tokens={"bos_token": "<s>"}, variables={"bos_token": "mine"}
    )
    assert applied.text == "True True mine False "


def test_documents_and_functions_reach_the_template() -> None:
    source = "{{ documents[0].title }} {{ tools | map(attribute='function.name') | join(',') }}"
    tools = [tool_functions.weather, tool_functions.Tools().method]
    assert apply_chat_template(source, [USER], tools=tools, documents=[{"title": "T"}]) == "T weather,method"


def test_a_function_becomes_a_schema() -> None:
    source = "{{ tools[0] | tojson }}"
    assert json.loads(apply_chat_template(source, [USER], tools=[tool_functions.celsius])) == {
        "type": "function",
        "function": {
            "name": "celsius",
            "description": "Converts a temperature.\n\nIt is a long story, told\nover several lines.",
            "parameters": {
                "type": "object",
                "properties": {
                    "value": {
                        "type": "number",
                        "description": "The temperature, in the unit that is named by the other argument.",
                    },
                    "unit": {"type": "string", "enum": ["kelvin", "fahrenheit"], "description": "The unit."},
                },
                "required": ["value", "unit"],
            },
            "return": {"type": "number", "description": "The temperature\n    in degrees Celsius."},
        },
    }


@pytest.mark.parametrize(
    ("source", "messages", "wanted", "expected"),
    [
        (TURNS, [USER, ASSISTANT], True, "<user>Hi</><assistant>Hello there. "),
        ("{{ messages[-1].content | trim }}</>", [ASSISTANT], True, "Hello there."),
        ("{{ messages[-1].content | trim }} </>", [ASSISTANT], True, "Hello there. "),
        (TURNS, [USER, {"role": "assistant", "content": ""}], True, "<user>Hi</><assistant>"),
        (TURNS, [USER], "content", "<user>Hi"),
        (
            "{{ messages[-1].content[1].text }}{{ messages[-1].content[0].text }}",
            [{"content": [{"text": "a"}, {"text": "b"}, {"type": "image"}]}],
            True,
            "b",
        ),
        ("<think>{{ messages[-1].thinking }}</think>", [{"reasoning": "so "}], "reasoning_content", "<think>so "),
        ("<think>{{ messages[-1].reasoning_content }}</think>", [{"thinking": "so "}], "thinking", "<think>so "),
    ],
)
def test_the_final_message_is_continued(source: str, messages: Any, wanted: Any, expected: str) -> None:
    assert apply_chat_template(source, messages, continue_final_message=wanted) == expected


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "messages are no list": ("messages", {"messages": "Hi"}),
    "no messages": ("messages", {"messages": []}),
    "a batch": ("messages[0]", {"messages": [[USER]]}),
    "a message that is text": ("messages[1]", {"messages": [USER, "Hi"]}),
    "an object in a message": ("messages[0].content", {"messages": [{"content": object()}]}),
    "not a number": ("messages[0].weight", {"messages": [{"weight": float("nan")}]}),
    "tools are no list": ("tools", {"tools": {"name": "f"}}),
    "a tool that is text": ("tools[1]", {"tools": [{}, "f"]}),
    "a builtin as tool": ("tools[0]", {"tools": [print]}),
    "a class as tool": ("tools[0]", {"tools": [tool_functions.Tools]}),
    "an undescribed function": ("tools[1]", {"tools": [tool_functions.weather, tool_functions.undescribed]}),
    "an object in a tool": ("tools[0].x", {"tools": [{"x": {1}}]}),
    "documents are no list": ("documents", {"documents": "text"}),
    "a document that is text": ("documents[0]", {"documents": ["text"]}),
    "an object as variable": ("x.y", {"variables": {"x": {"y": object()}}}),
    "variables that are parameters": ("documents", {"variables": {"documents": []}}),
    "variables are no object": ("variables", {"variables": ["x"]}),
    "a template that is a number": ("chat_template", {"chat_template": 3}),
    "both endings": ("continue_final_message", {"continue_final_message": True, "add_generation_prompt": True}),
    "continued and masked": (
        "continue_final_message",
        {"continue_final_message": True, "return_assistant_tokens_mask": True},
    ),
    "nothing to continue": ("messages[0].content", {"messages": [{"role": "user"}], "continue_final_message": True}),
    "a key that is not read": ("messages[0].name", {"messages": [{"name": "x"}], "continue_final_message": "name"}),
    "no text to continue": ("messages[0].content", {"messages": [{"content": 3}], "continue_final_message": True}),
    "no text part": ("messages[0].content", {"messages": [{"content": [{}]}], "continue_final_message": True}),
    "a part that is a number": (
        "messages[0].content[0]",
        {"messages": [{"content": [3]}], "continue_final_message": True},
    ),
    "a part whose text is none": (
        "messages[0].content[0]",
        {"messages": [{"content": [{"text": None}]}], "continue_final_message": True},
    ),
}


@pytest.mark.parametrize(("path", "call"), REFUSED.values(), ids=REFUSED)
def test_bad_data_is_refused_with_its_place(path: str, call: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        explain_chat_template("{{ messages[-1].content }}", **{"messages": [USER], **call})
    assert caught.value.details["path"] == path
    assert caught.value.status == 400


def test_conversation_objects_are_refused() -> None:
    class Conversation:
        messages = (USER,)

    for messages in (Conversation(), [Conversation()]):
        with pytest.raises(InputError, match=r"must be a list|call once for each"):
            apply_chat_template(TURNS, messages)  # type: ignore[arg-type]


def test_a_template_that_drops_the_final_message_cannot_be_continued() -> None:
    with pytest.raises(RenderError, match="does not write the final message"):
        apply_chat_template("{{ messages[0].content }}", [USER, ASSISTANT], continue_final_message=True)


def test_errors_of_the_template_are_its_own() -> None:
    with pytest.raises(TemplateRaised, match="no"):
        apply_chat_template("{{ raise_exception('no') }}", [USER])
    with pytest.raises(TemplateSyntaxError):
        apply_chat_template("{% if %}", [USER])


def test_reworks_are_named_and_placed() -> None:
    messages = [{"role": "user", "name": None, "content": "Hi"}, {"role": "assistant", "content": "", "thinking": "x"}]
    assert noted(TURNS, messages, tools=[tool_functions.weather], continue_final_message=True) == [
        ("none-keys-dropped", "messages[0].name"),
        ("reasoning-names-filled", "messages[1].reasoning_content"),
        ("function-described", "tools[0]"),
        ("null-passed", "documents"),
        ("final-message-marked", "messages[1].content"),
        ("final-message-continued", "prompt"),
    ]
    nothing = [("null-passed", "tools"), ("null-passed", "documents")]
    assert noted(TURNS, [USER]) == nothing
    assert noted(NAMED, [USER], chat_template="rag") == [("template-named", "template"), *nothing]
    assert noted(NAMED, [USER], chat_template="x") == [("template-given", "template"), *nothing]
    assert noted(NAMED, [USER], tools=[]) == [("tool-use-template", "template"), nothing[1]]


def test_every_rework_is_noted_somewhere_and_explained() -> None:
    assert all(re.fullmatch("[a-z]+(-[a-z]+)*", name) and why for name, why in REWORKS.items())
    applied = explain_chat_template(NAMED, [USER], tools=[])
    explained = applied.to_dict()
    assert json.loads(json.dumps(explained)) == explained
    assert explained["template"] == "tool_use"
    assert explained["reworks"][0] == {
        "name": "tool-use-template",
        "path": "template",
        "why": REWORKS["tool-use-template"],
    }
    assert all(isinstance(rework, reworks.Rework) for rework in applied.reworks)


def test_both_paths_explain_with_the_same_keys() -> None:
    ours = explain_chat_template(TURNS, [USER]).to_dict()
    server = llama_server.LlamaServer(TURNS).answer({"messages": [USER]}).to_dict()
    assert {"prompt", "template", "reworks"} <= ours.keys() & server.keys()


GENERATION: dict[str, tuple[str, list[tuple[int, int]]]] = {
    "in a loop": ("{% for m in messages %}{{ m.role }}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}",
        [(4, 6), (15, 28)]),
    "trimmed": ("a \n{%- generation -%} b {%- endgeneration -%} c", [(1, 2)]),
    "empty": ("ab{% generation %}{% endgeneration %}", [(2, 2)]),
    "code points": ("é漢🙂{% generation %}🙂{% endgeneration %}", [(3, 4)]),
    "nested: from the start of the outer": (
        "ab{% generation %}x{% generation %}y{% endgeneration %}z{% endgeneration %}", [(2, 3), (2, 5)]),
    "in a macro: where its text begins": (
        "{% macro m() %}qq{% generation %}x{% endgeneration %}{% endmacro %}ab{{ m() }}cde{{ m() }}",
        [(2, 3), (8, 9)]),
    "in a set block": ("ab{% set z %}qq{% generation %}x{% endgeneration %}{% endset %}{{ z }}", [(2, 3)]),
    "in a filter block": (
        "ab{% filter upper %}qq{% generation %}x{% endgeneration %}{% endfilter %}{% generation %}{% endgeneration %}",
        [(2, 3), (5, 5)]),
    "in a recursive loop": (
        "ab{% for i in [1, 2] recursive %}{{ i }}{% generation %}x{% endgeneration %}{% endfor %}", [(2, 3), (2, 3)]),
    "in a block": ("{% block b %}cd{% generation %}x{% endgeneration %}{% endblock %}e", [(2, 3)]),
    "nowhere": ("ab", []),
}  # fmt: skip
"""Templates and the spans that transformers 5.24 finds."""


@pytest.mark.parametrize(("source", "expected"), GENERATION.values(), ids=GENERATION)
def test_generation_blocks_are_found(source: str, expected: list[tuple[int, int]]) -> None:
    applied = explain_chat_template(source, [USER, ASSISTANT], return_assistant_tokens_mask=True)
    assert applied.assistant_spans == tuple(expected)
    assert applied.text == apply_chat_template(source, [USER, ASSISTANT])


def test_generation_blocks_are_not_looked_for_unasked() -> None:
    source = GENERATION["in a loop"][0]
    applied = explain_chat_template(source, [USER])
    assert applied.assistant_spans is None
    context = {"messages": [USER]}
    template = Template(source, "transformers")
    assert template.render_context(context).cost == template.render_context(context, spans=True).cost
    assert template.render_context(context).generations is None


def test_break_cannot_leave_a_generation_block() -> None:
    with pytest.raises(TemplateSyntaxError):
        apply_chat_template("{% for x in [1] %}{% generation %}{% break %}{% endgeneration %}{% endfor %}", [USER])


def test_spans_end_with_the_text() -> None:
    applied = explain_chat_template(TURNS, [USER, ASSISTANT], continue_final_message=True, spans=True)
    assert "".join(span.text for span in applied.spans) == applied.text
    assert [(span.origin, span.is_input) for span in applied.spans][-2:] == [
        ("line 1", False),
        ("messages[1].content", True),
    ]
    assert explain_chat_template(TURNS, [USER]).spans == ()


@pytest.mark.parametrize("name", ["chatml", "qwen3", "harmony"])
def test_the_callers_data_stays_as_it_is(name: str) -> None:
    parts = [{"type": "text", "text": "x"}]
    messages = [
        {"role": "user", "content": "Hi", "name": None},
        {"role": "assistant", "content": parts, "reasoning": "y"},
    ]
    tools: list[Any] = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    before = copy.deepcopy((messages, tools))
    with contextlib.suppress(RenderError):
        apply_chat_template(family(name).source, messages, tools=tools, continue_final_message=True)
    assert (messages, tools) == before


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.builds(object),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3),
    max_leaves=6,
)
fields = st.dictionaries(st.sampled_from(["role", "content", "thinking", "reasoning", "reasoning_content"]), anything)


@given(st.lists(fields, max_size=3) | anything, anything, anything, anything, st.booleans() | anything)
def test_nothing_but_our_errors_leaves(messages: Any, tools: Any, documents: Any, variables: Any, ending: Any) -> None:
    with contextlib.suppress(JinjarunError):
        explain_chat_template(
            "{{ messages[-1].content }}{{ messages[-1].thinking }}",
            messages,
            tools=tools,
            documents=documents,
            variables=variables,
            continue_final_message=ending,
        )
