"""The syntax of answers derived from templates: each way to write calls on a small template, and recorded answers."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jinjarun import Template
from jinjarun.errors import InputError, JinjarunError
from probes import response_syntax
from probes.chapters.response.checks import TOOLS as TOOLS_OF_CHECKS
from probes.chapters.response.deriving import derived
from probes.chapters.response.law import Meaning, Reading
from probes.chapters.shape.requests import Requests
from probes.rendering.input_form import judged
from probes.rendering.renders import Renders
from tests.bench import responses as bench
from tests.families import family

CALLS = "{{- m.content or '' }}{%- for c in m.tool_calls or [] %}{% set f = c.function %}"
HEAD = "{%- for m in messages %}{{- '<|im_start|>' + m.role + '\\n' }}"
TAIL = "{{- '<|im_end|>\\n' }}{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
THINK = "{%- if m.reasoning_content %}{{- '<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' }}{%- endif %}"
WRITTEN = {
    "json": "{{- '\\n<tool_call>\\n' + {'name': f.name, 'arguments': f.arguments} | tojson + '\\n</tool_call>' }}",
    "name is key": "{{- '<call>' + {f.name: f.arguments} | tojson + '</call>' }}",
    "name then json": "{{- '<|call|>' + f.name + '<|args|>' + f.arguments | tojson + '<|/call|>' }}",
    "counted": "{{- '<|call|>f.' + f.name + ':' + loop.index0 | string + '<|args|>' + f.arguments | tojson }}",
    "with id": "{{- '<|call|>' + c.id + '<|name|>' + f.name + '<|args|>' + f.arguments | tojson + '<|/call|>' }}",
    "tags": (
        "{{- '<tool_call>\\n<function=' + f.name + '>\\n' }}{%- for k, v in f.arguments.items() %}"
        "{{- '<parameter=' + k + '>\\n' + (v if v is string else v | tojson) + '\\n</parameter>\\n' }}{%- endfor %}"
        "{{- '</function>\\n</tool_call>' }}"
    ),
    "keys and values": (
        "{{- '<tool_call>' + f.name + '\\n' }}{%- for k, v in f.arguments.items() %}{{- '<arg_key>' + k"
        " + '</arg_key>\\n<arg_value>' + (v if v is string else v | tojson) + '</arg_value>\\n' }}{%- endfor %}"
        "{{- '</tool_call>' }}"
    ),
    "typed tags": (
        "{{- '<invoke name=\"' + f.name + '\">\\n' }}{%- for k, v in f.arguments.items() %}{{- '<parameter name=\"' + k"
        " + '\" string=\"' + ('true' if v is string else 'false') + '\">' + (v if v is string else v | tojson)"
        " + '</parameter>\\n' }}{%- endfor %}{{- '</invoke>' }}"
    ),
    "python": (
        "{{- '<|calls|>[' if loop.first else ', ' }}{{- f.name + '(' }}{%- for k, v in f.arguments.items() %}"
        "{{- k + '=' + (\"'\" + v + \"'\" if v is string else v | string) }}{{- ', ' if not loop.last }}{%- endfor %}"
        "{{- ')' }}{{- ']<|/calls|>' if loop.last }}"
    ),
    "section": (
        "{{- '<|calls|>' if loop.first }}{{- '<|call|>' + f.name + '<|args|>' + f.arguments | tojson + '<|/call|>' }}"
        "{{- '<|/calls|>' if loop.last }}"
    ),
    "list": (
        "{{- '[CALLS] [' if loop.first else ', ' }}{{- {'name': f.name, 'arguments': f.arguments} | tojson }}"
        "{{- ']' if loop.last }}"
    ),
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Weather of a city",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "days": {"type": "integer"},
                    "dry": {"type": "boolean"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["city"],
            },
        },
    },
    {
        "type": "function",
        "function": {"name": "fs.list-files", "description": "List", "parameters": {"type": "object"}},
    },
]
QUESTION = {"role": "user", "content": "What is the weather like?"}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"id": "call00001", "type": "function", "function": {"name": name, "arguments": arguments}}


MESSAGES: list[dict[str, Any]] = [
    {"content": "It is fine."},
    {"content": '  Edges \n\n and {"name": "get_weather"} in text. \n'},
    {"content": "", "tool_calls": [call("fs.list-files")]},
    {"content": "", "tool_calls": [call("get_weather", city="Zürich & <b>", days=3, dry=True, tags=["a b", ""])]},
    {
        "content": "",
        "tool_calls": [call("get_weather", city="12"), call("fs.list-files"), call("get_weather", city="")],
    },
    {"content": "I look.", "tool_calls": [call("get_weather", city="true", days=-1)]},
    {"content": "Hm.", "reasoning_content": "First\n\nthen."},
    {"content": "", "reasoning_content": "First.", "tool_calls": [call("get_weather", city="Bern")]},
]


def generated(source: str, message: dict[str, Any]) -> tuple[str, str]:
    """The prompt and what a model would write after it."""
    template = Template(source)
    prompt = template.render([QUESTION], tools=TOOLS).text
    whole = template.render([QUESTION, {"role": "assistant", **message}], tools=TOOLS, add_generation_prompt=False).text
    assert whole.startswith(prompt)
    return prompt, whole[len(prompt) :]


@pytest.mark.parametrize("style", WRITTEN)
@pytest.mark.parametrize("message", MESSAGES, ids=str)
def test_what_a_template_writes_is_read_back(style: str, message: dict[str, Any]) -> None:
    source = HEAD + THINK + CALLS + WRITTEN[style] + "{%- endfor %}" + TAIL
    syntax = response_syntax(source)
    prompt, text = generated(source, message)
    assert bench.told(syntax.parse_response(text, prefix=prompt, tools=TOOLS)) == bench.told(message)
    if style == "with id" and message.get("tool_calls"):
        assert syntax.parse_response(text)["tool_calls"][0]["id"] == "call00001"


@pytest.mark.parametrize("name", ["chatml", "hermes-tools", "qwen3", "mistral", "llama3", "glm", "harmony", "granite"])
def test_a_family_is_read_back(name: str) -> None:
    found = family(name)
    syntax = response_syntax(found.source, **found.tokens)
    assert syntax == type(syntax).from_json(syntax.model_dump_json())
    text = "Hello" if syntax.channels is None else "<|channel|>final<|message|>Hello"
    assert bench.told(syntax.parse_response(text))[0] == "Hello"


TEXTS = st.text(st.sampled_from("ab \n<>/=\"'{}[],:|\\é"), max_size=12)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.sampled_from(["", "a b", "true"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["x", "y z"]), inner, max_size=2),
    max_leaves=4,
)


@st.composite
def meanings(draw: st.DrawFn) -> Meaning:
    """Messages of every kind, with markers of the styles in their texts."""
    marks = st.sampled_from(["</parameter>", "<tool_call>", "</tool_call>", "<|call|>", "<think>", "')", ", days="])
    text = TEXTS | st.tuples(TEXTS, marks, TEXTS).map("".join)
    kinds = {
        "text": text,
        "count": st.integers(-9, 9),
        "sure": st.booleans(),
        "words": st.lists(st.sampled_from(["a", "", "null"]), max_size=2),
        "more": st.dictionaries(st.sampled_from(["x", "y"]), VALUES, max_size=2),
    }
    arguments = st.fixed_dictionaries({}, optional=kinds)
    calls = draw(st.lists(st.tuples(st.sampled_from(["look_up", "files.list-all"]), arguments), max_size=3))
    made = tuple((name, given if name == "look_up" else {}) for name, given in calls)
    return draw(text), draw(st.just("") | st.just("First.\n\nThen.")), made


@cache
def reading(style: str) -> Reading:
    source = HEAD + THINK + CALLS + WRITTEN[style] + "{%- endfor %}" + TAIL
    ask = Requests(judged(Renders(source)))
    return Reading(ask, derived(ask), TOOLS_OF_CHECKS)


@pytest.mark.parametrize("style", WRITTEN)
@given(meant=meanings())
@settings(max_examples=40)
def test_every_message_is_read_back_or_has_a_double(style: str, meant: Meaning) -> None:
    """The law: what is read is what was meant, or the template writes both as the same text."""
    back = reading(style).back(meant)
    assert back.verdict != "misread", back


def test_what_is_no_template() -> None:
    with pytest.raises(JinjarunError):
        response_syntax("{% if %}")
    with pytest.raises(InputError, match="a template is a str"):
        response_syntax(3)  # type: ignore[arg-type]


@pytest.mark.skipif(not bench.OUTPUTS.is_file(), reason="../shared with the recorded answers is absent")
def test_recorded_answers_are_read_back() -> None:
    """Every tenth template; `python -m tests.bench.responses` reads all."""
    tally = bench.judge(list(bench.rows())[::10])
    assert tally["plain near"] / tally["plain all"] >= 0.98
    assert tally["calls near"] / tally["calls all"] >= 0.98
    assert tally["streamed near"] == tally["streamed all"]
    assert tally["lost"] == 0
