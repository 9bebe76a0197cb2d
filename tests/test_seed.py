"""The lesson that the project starts from: each prompt and each figure that it shows, from our own format families.

The real templates give the same prompts as a real llama-server at the end of this file; those tests need ../shared.
"""

from __future__ import annotations

import json
from itertools import takewhile
from typing import Any

import pytest

from jinjarun.serving.caps import chat_template_caps
from tests.conformance.golden import NO_SHARED, SHARED, have_shared, template_source
from tests.families import DIALECTS, family, template

Messages = list[dict[str, Any]]

SYSTEM = {"role": "system", "content": "You are a careful Java assistant."}
QUESTION = {"role": "user", "content": "Reverse a string."}
ANSWER = {"role": "assistant", "content": "Use a StringBuilder."}
NEXT_QUESTION = {"role": "user", "content": "Show code."}
FIRST_REQUEST: Messages = [SYSTEM, QUESTION]
SECOND_REQUEST: Messages = [SYSTEM, QUESTION, ANSWER, NEXT_QUESTION]

CHATML = """\
<|im_start|>system
You are a careful Java assistant.<|im_end|>
<|im_start|>user
Reverse a string.<|im_end|>
<|im_start|>assistant
Use a StringBuilder.<|im_end|>
<|im_start|>user
Show code.<|im_end|>
<|im_start|>assistant
"""

LLAMA3 = """\
{bos}<|start_header_id|>system<|end_header_id|>

Cutting Knowledge Date: December 2023
Today Date: {date}

You are a careful Java assistant.<|eot_id|><|start_header_id|>user<|end_header_id|>

Reverse a string.<|eot_id|><|start_header_id|>assistant<|end_header_id|>

Use a StringBuilder.<|eot_id|><|start_header_id|>user<|end_header_id|>

Show code.<|eot_id|><|start_header_id|>assistant<|end_header_id|>

"""

MISTRAL = """\
{bos}[INST]Reverse a string.[/INST]Use a StringBuilder.{eos}[INST]You are a careful Java assistant.

Show code.[/INST]"""

READ_FILE = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Read a file from the workspace",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}

pytestmark = pytest.mark.parametrize("dialect", DIALECTS)


def read_call(path: str, number: int = 1) -> dict[str, Any]:
    """A call of read_file as the OpenAI API sends it: arguments are a JSON string."""
    function = {"name": "read_file", "arguments": json.dumps({"path": path})}
    return {"id": f"call_{number}", "type": "function", "function": function}


def result(text: str, number: int = 1) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"call_{number}", "content": text}


def shared_prefix(first: str, second: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


def test_example_1_flat(dialect: str) -> None:
    text = family("flat").render(dialect, FIRST_REQUEST)
    assert text == "system: You are a careful Java assistant.\nuser: Reverse a string.\nassistant:"
    assert (len(text), len(text.encode())) == (76, 76)


def test_example_2_chatml(dialect: str) -> None:
    text = family("chatml").render(dialect, SECOND_REQUEST)
    assert text == CHATML
    assert text.count("<|im_start|>") == len(SECOND_REQUEST) + 1


def test_example_3_generation_prompt(dialect: str) -> None:
    chat = SECOND_REQUEST[1:]
    with_prompt = family("chatml").render(dialect, chat)
    without = family("chatml").render(dialect, chat, add_generation_prompt=False)
    assert with_prompt[-30:] == "m_end|>\n<|im_start|>assistant\n"
    assert without[-30:] == "rt|>user\nShow code.<|im_end|>\n"
    assert with_prompt == without + "<|im_start|>assistant\n"


def test_example_4_llama3(dialect: str) -> None:
    llama3 = family("llama3")
    text = llama3.render(dialect, SECOND_REQUEST)
    assert text == LLAMA3.format(bos="<|begin_of_text|>", date="26 Jul 2024")
    other_day = {"bos_token": "<|endoftext|>", "variables": {"date_string": "03 Oct 2026"}}
    text = llama3.render(dialect, SECOND_REQUEST, **other_day)
    assert text == LLAMA3.format(bos="<|endoftext|>", date="03 Oct 2026")
    assert llama3.render(dialect, [QUESTION], bos_token="").startswith("<|start_header_id|>system")


def test_example_4_the_date_is_the_day_of_the_run(dialect: str) -> None:
    text = family("llama3-today").render(dialect, SECOND_REQUEST, now=1790985600)
    assert text == LLAMA3.format(bos="<|begin_of_text|>", date="03 Oct 2026")


def test_example_5_mistral(dialect: str) -> None:
    mistral = family("mistral")
    assert mistral.render(dialect, SECOND_REQUEST) == MISTRAL.format(bos="<s>", eos="</s>")
    host = {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}
    assert mistral.render(dialect, SECOND_REQUEST, **host) == MISTRAL.format(bos="<|endoftext|>", eos="<|endoftext|>")


@pytest.mark.parametrize(
    ("name", "added"),
    [
        ("chatml-default-system", "<|im_start|>system\nYou are a helpful assistant<|im_end|>\n"),
        (
            "llama3",
            "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\n",
        ),
        ("mistral", "<s>[INST]Reverse a string."),
        ("qwen3", "<|im_start|>user\nReverse a string."),
        ("harmony", "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\n"),
    ],
)
def test_example_6_default_system_prompts(dialect: str, name: str, added: str) -> None:
    """What stands at the start where no system message was sent, and where the system text goes."""
    assert family(name).render(dialect, [QUESTION]).startswith(added)
    assert family(name).render(dialect, FIRST_REQUEST).count("You are a careful Java assistant.") == 1


def test_example_6_harmony_puts_the_system_text_into_a_developer_message(dialect: str) -> None:
    text = family("harmony").render(dialect, FIRST_REQUEST)
    assert "<|start|>developer<|message|># Instructions\n\nYou are a careful Java assistant.\n\n<|end|>" in text


def test_example_7_default_system_message(dialect: str) -> None:
    chatml = family("chatml-default-system")
    assert chatml.render(dialect, SECOND_REQUEST) == CHATML
    assert chatml.render(dialect, [QUESTION]) == (
        "<|im_start|>system\nYou are a helpful assistant<|im_end|>\n"
        "<|im_start|>user\nReverse a string.<|im_end|>\n<|im_start|>assistant\n"
    )


@pytest.mark.parametrize(("name", "first", "shared"), [("chatml", 130, 130), ("mistral", 68, 9)])
def test_example_8_prefix(dialect: str, name: str, first: int, shared: int) -> None:
    prompts = [family(name).render(dialect, chat) for chat in (FIRST_REQUEST, SECOND_REQUEST)]
    assert (len(prompts[0]), shared_prefix(*prompts)) == (first, shared)


def test_example_9_reasoning_is_dropped_from_history(dialect: str) -> None:
    thought = "<think>\nAdd the numbers.\n</think>\n\nThe answer is 4."
    chat = [
        {"role": "user", "content": "2+2?"},
        {"role": "assistant", "content": thought},
        {"role": "user", "content": "And times 3?"},
    ]
    assert family("qwen3").render(dialect, chat) == (
        "<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\nThe answer is 4.<|im_end|>\n"
        "<|im_start|>user\nAnd times 3?<|im_end|>\n<|im_start|>assistant\n"
    )
    assert (len(thought), len("The answer is 4.")) == (51, 16)
    assert family("deepseek-r1").render(dialect, chat, bos_token="<|endoftext|>") == (
        "<|endoftext|><｜User｜>2+2?<｜Assistant｜>\n\nThe answer is 4.<｜end▁of▁sentence｜>"
        "<｜User｜>And times 3?<｜Assistant｜><think>\n"
    )


def test_example_9_reasoning_is_kept_in_a_tool_turn(dialect: str) -> None:
    chat = [
        {"role": "user", "content": "What is in pom.xml?"},
        {
            "role": "assistant",
            "content": "",
            "reasoning_content": "I need the file contents.",
            "tool_calls": [read_call("pom.xml")],
        },
        result("<project/>"),
    ]
    assert (
        family("qwen3")
        .render(dialect, chat)
        .endswith(
            """\
<|im_start|>assistant
<think>
I need the file contents.
</think>

<tool_call>
{"name": "read_file", "arguments": {"path": "pom.xml"}}
</tool_call><|im_end|>
<|im_start|>user
<tool_response>
<project/>
</tool_response><|im_end|>
<|im_start|>assistant
"""
        )
    )


def test_example_9_thinking_off(dialect: str) -> None:
    text = family("qwen3").render(dialect, [QUESTION], variables={"enable_thinking": False})
    assert text.endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")


def test_example_10_tools(dialect: str) -> None:
    """Qwen2.5's prompt; its default system message is given here, because our family has none."""
    identity = {"role": "system", "content": "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."}
    chat = [identity, {"role": "user", "content": "What is in pom.xml?"}]
    assert family("hermes-tools").render(dialect, chat, tools=[READ_FILE]) == (
        """\
<|im_start|>system
You are Qwen, created by Alibaba Cloud. You are a helpful assistant.

# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{"type": "function", "function": {"name": "read_file", "description": "Read a file from the workspace", \
"parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}}
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call><|im_end|>
<|im_start|>user
What is in pom.xml?<|im_end|>
<|im_start|>assistant
"""
    )


def test_example_11_tool_results(dialect: str) -> None:
    chat = [
        SYSTEM,
        {"role": "user", "content": "Compare pom.xml and README.md."},
        {"role": "assistant", "content": "", "tool_calls": [read_call("pom.xml"), read_call("README.md", 2)]},
        result("<project>...</project>"),
        result("# Demo", 2),
    ]
    text = family("hermes-tools").render(dialect, chat)
    assert text == (
        """\
<|im_start|>system
You are a careful Java assistant.<|im_end|>
<|im_start|>user
Compare pom.xml and README.md.<|im_end|>
<|im_start|>assistant
<tool_call>
{"name": "read_file", "arguments": {"path": "pom.xml"}}
</tool_call>
<tool_call>
{"name": "read_file", "arguments": {"path": "README.md"}}
</tool_call><|im_end|>
<|im_start|>user
<tool_response>
<project>...</project>
</tool_response>
<tool_response>
# Demo
</tool_response><|im_end|>
<|im_start|>assistant
"""
    )
    assert "call_1" not in text
    assert "call_2" not in text
    assert text.count("<|im_start|>user") == 2


def test_example_12_harmony(dialect: str) -> None:
    chat = [
        {"role": "user", "content": "What is in pom.xml?"},
        {"role": "assistant", "content": "", "tool_calls": [read_call("pom.xml")]},
        result("<project>...</project>"),
    ]
    assert family("harmony").render(dialect, chat, tools=[READ_FILE], now=1790985600) == (
        """\
<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.
Knowledge cutoff: 2024-06
Current date: 2026-10-03

Reasoning: medium

# Valid channels: analysis, commentary, final. Channel must be included for every message.
Calls to these tools must go to the commentary channel: 'functions'.<|end|><|start|>developer<|message|># Tools

## functions

namespace functions {

// Read a file from the workspace
type read_file = (_: {
path: string,
}) => any;

} // namespace functions<|end|><|start|>user<|message|>What is in pom.xml?<|end|>\
<|start|>assistant to=functions.read_file<|channel|>commentary json<|message|>{"path": "pom.xml"}<|call|>\
<|start|>functions.read_file to=assistant<|channel|>commentary<|message|>"<project>...</project>"<|end|>\
<|start|>assistant"""
    )


@pytest.mark.parametrize(("name", "stop"), [("chatml", "<|im_end|>"), ("llama3", "<|eot_id|>"), ("mistral", "</s>")])
def test_example_13_the_turn_ends_with_the_stop_token(dialect: str, name: str, stop: str) -> None:
    """A model stops only at the token that its template writes after an answer."""
    found = family(name)
    text = found.render(dialect, [QUESTION, ANSWER], add_generation_prompt=False)
    assert text.split(ANSWER["content"])[1].strip() == stop == found.config["eos_token"]


def test_example_14_caps(dialect: str) -> None:
    """The flags of the tiny model's template: it can hold a system message, and no tools."""
    caps = chat_template_caps(family("chatml-default-system").source).to_dict()
    assert {flag for flag, value in caps.items() if value} == {"supports_system_role", "supports_string_content"}


@pytest.mark.parametrize(
    ("name", "stop", "characters"),
    [("chatml", "<|im_end|>", 221), ("llama3", "<|eot_id|>", 422), ("mistral", "</s>", 115)],
)
def test_example_15_three_formats(dialect: str, name: str, stop: str, characters: int) -> None:
    assert len(family(name).render(dialect, SECOND_REQUEST)) == characters
    assert family(name).config["eos_token"] == stop


REWORKED = {
    ("example-9", "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B"),
    ("example-11", "Qwen-Qwen2.5-7B-Instruct"),
    ("example-12", "openai-gpt-oss-120b"),
}
"""Requests that llama-server changes before the template sees them: the prompt is not that of a raw render."""


def recorded() -> list[dict[str, Any]]:
    if not have_shared():
        return []
    seed = json.loads((SHARED / "golden" / "seed.json").read_text(encoding="utf-8"))
    answers: list[dict[str, Any]] = seed["answers"]
    return [
        {**answer, "tokens": {key: seed[key] for key in ("bos_token", "eos_token")}}
        for answer in answers
        if "Llama-3.1" not in answer["template"] and (answer["example"], answer["template"]) not in REWORKED
    ]


@pytest.mark.skipif(not have_shared(), reason=NO_SHARED)
@pytest.mark.parametrize("answer", recorded(), ids=lambda answer: f"{answer['template']}-{answer['example']}")
def test_real_templates(dialect: str, answer: dict[str, Any]) -> None:
    """The prompt of a real llama-server, from a raw render of the real template."""
    source = answer["template_source"] or template_source(answer["template"])
    body = answer["body"]
    text = template(source, dialect).render(
        body["messages"],
        tools=body.get("tools"),
        variables=body.get("chat_template_kwargs"),
        now=1790985600,
        **answer["tokens"],
    )
    assert text.text == answer["prompt"]
