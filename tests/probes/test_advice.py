"""How to serve a template: exact lines, on small templates and the families that come along."""

from __future__ import annotations

from functools import cache

import pytest

from jinjarun.sources import open_source
from probes import probe
from probes.chats.corpus import corpus_folder
from probes.report import ServingAdvice
from probes.reporters.text import report_text
from tests.families import WITH_TEMPLATE

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def served(template: str) -> dict[str, ServingAdvice]:
    return {advice.engine: advice for advice in probe(template, rules={}).serving}


@cache
def family(name: str) -> dict[str, ServingAdvice]:
    source = open_source(f"family:{name}", corpus=corpus_folder())
    report = probe(source.template(), name=f"family:{name}", tokens=source.tokens, rules={})
    return {advice.engine: advice for advice in report.serving}


def test_a_plain_family() -> None:
    assert family("chatml")["llama-server"] == ServingAdvice(
        engine="llama-server",
        flags=[],
        chat_template_kwargs={},
        content_format="string",
        stop=[],
        send=[],
        avoid=["tools: lost without an error"],
        notes=[],
    )
    assert family("chatml")["transformers"] == ServingAdvice(
        engine="transformers",
        flags=[],
        chat_template_kwargs={},
        content_format="string",
        stop=["<|im_end|>"],
        send=[],
        avoid=["content as a list of parts: fails", "tools: lost without an error"],
        notes=["generate takes stop as stop_strings, beside the tokenizer"],
    )


def test_the_strict_family() -> None:
    assert family("mistral")["vllm"] == ServingAdvice(
        engine="vllm",
        flags=["--chat-template-content-format string"],
        chat_template_kwargs={},
        content_format="string",
        stop=[],
        send=[
            "at most one system message, as the first message",
            "messages of user and assistant in turn",
            "ids of calls with exactly 9 characters",
        ],
        avoid=[
            "text beside tool calls: lost without an error",
        ],
        notes=[
            "this looks like a template of a model whose prompts vllm writes by mistral-common instead",
            "for tool calls: --enable-auto-tool-choice, and a --tool-call-parser for calls after '[TOOL_CALLS]'",
            "the next user message after a tool loop changes the text before it, where cached prefixes end: "
            "the system text moves",
        ],
    )
    assert "the role developer" not in " ".join(family("mistral")["llama-server"].avoid)
    assert "the role developer: refused with an error; send system instead" in family("mistral")["sglang"].avoid


def test_the_thinking_family() -> None:
    advice = family("qwen3")
    assert advice["vllm"].chat_template_kwargs == {"enable_thinking": True}
    assert advice["llama-server"].chat_template_kwargs == {}
    assert "the reasoning before tool calls, while the turn goes on, as reasoning" in advice["vllm"].send
    assert (
        "the reasoning before tool calls, while the turn goes on, as reasoning_content" in advice["llama-server"].send
    )
    assert advice["llama-server"].avoid == ["enable_thinking as a string: llama-server refuses it"]
    assert "enable_thinking as a string: 'false' counts as true" in advice["vllm"].avoid
    assert "a --reasoning-parser for reasoning between '<think>' and '</think>'" in advice["vllm"].notes


def test_a_switch_that_llama_server_sets() -> None:
    advice = family("glm")
    assert "llama-server itself sets clear_thinking, to keep earlier reasoning" in advice["llama-server"].notes
    assert "clear_thinking decides whether earlier reasoning is kept" in advice["vllm"].notes
    dropped = "cached prefixes end: reasoning is dropped"
    assert any(dropped in note for note in advice["vllm"].notes)
    assert not any(dropped in note for note in advice["llama-server"].notes)
    assert "arguments of calls as an object" in advice["transformers"].send
    assert "arguments of calls as JSON text: fails" in advice["transformers"].avoid
    assert not any("arguments" in line for line in (*advice["vllm"].send, *advice["vllm"].avoid))


def test_system_messages_that_only_llama_server_saves() -> None:
    advice = family("gemma")
    assert "system messages: refused with an error" in advice["vllm"].avoid
    assert advice["llama-server"].notes == [
        "llama-server writes a system message into the message after it: the template takes none"
    ]


def test_the_clock_and_what_pins_it() -> None:
    note = (
        "the date in the prompt ends cached prefixes every day; a fixed date_string in chat_template_kwargs prevents it"
    )
    assert family("llama3-today")["vllm"].notes == [note]
    assert "the date in the prompt ends cached prefixes every day" in family("granite")["llama-server"].notes


def test_one_call_a_message() -> None:
    assert '"parallel_tool_calls": false' in family("harmony")["vllm"].send
    assert not any("parallel" in line for line in family("harmony")["transformers"].send)
    assert "several calls in a message: refused with an error" in family("harmony")["transformers"].avoid


@pytest.mark.parametrize("name", WITH_TEMPLATE)
def test_every_family_gets_short_lines_for_each_engine(name: str) -> None:
    advice = family(name)
    assert list(advice) == ["llama-server", "vllm", "sglang", "transformers"]
    for one in advice.values():
        lines = [*one.send, *one.avoid, *one.notes]
        assert len(lines) == len(set(lines))
        assert all(len(line) <= 200 and line[0] != " " and not line.endswith(".") for line in lines)


def test_bos_and_a_tokenizer() -> None:
    line = "add_special_tokens=False to the tokenizer of a rendered prompt: BOS is written already"
    assert line in family("llama3")["transformers"].send
    assert line not in family("chatml")["transformers"].send


def test_content_that_must_be_parts() -> None:
    part = "{% for p in m.content %}{{ p.text }}{% endfor %}"
    parts = "{% for m in messages %}[{{ m.role }}]" + part + "[/{{ m.role }}]{% endfor %}"
    advice = served(parts)
    assert advice["vllm"].flags == ["--chat-template-content-format openai"]
    assert advice["transformers"].content_format == "openai"
    assert "content as a list of text parts" in advice["transformers"].send
    assert "content as a string: lost without an error" in advice["transformers"].avoid
    assert not any("content" in line for line in advice["llama-server"].avoid)


def test_marked_images_are_told_to_vllm_as_parts() -> None:
    images = (
        "{% for m in messages %}<|{{ m.role }}|>{% if m.content is string %}{{ m.content }}{% else %}"
        "{% for p in m.content %}{% if p.type == 'image' %}<image>{% else %}{{ p.text }}{% endif %}{% endfor %}"
        "{% endif %}<|end|>{% endfor %}"
    )
    assert served(images)["vllm"].flags == ["--chat-template-content-format openai"]
    assert served(images)["transformers"].content_format == "string"


CALLS = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content OR }}"
    "{% for c in m.tool_calls or [] %}<call>{{ c.function.name }} ARGUMENTS</call>{% endfor %}<|end|>{% endfor %}"
)


def test_arguments_that_must_be_text() -> None:
    text_only = CALLS.replace("OR", "or ''").replace("ARGUMENTS", "{{ '' + c.function.arguments }}")
    advice = served(text_only)
    assert "arguments of calls as JSON text" in advice["transformers"].send
    assert "arguments of calls as an object: fails" in advice["transformers"].avoid
    assert "tool calls in the history: vLLM makes objects of arguments: fails" in advice["vllm"].avoid
    assert "tool calls in the history: SGLang makes objects of arguments: fails" in advice["sglang"].avoid
    assert not any("arguments" in line for line in advice["llama-server"].avoid)


def test_null_content_by_engine() -> None:
    printed = CALLS.replace("OR", "").replace("ARGUMENTS", "{{ c.function.arguments | tojson }}")
    advice = served(printed)
    beside = "null content beside tool calls"
    assert f"{beside} without apply_chat_template, which drops it: printed as a word" in advice["transformers"].avoid
    for engine in ("vllm", "llama-server"):
        assert not any(beside in line for line in advice[engine].avoid)


def test_a_variable_without_which_nothing_renders() -> None:
    needs = "{% if not city %}{{ raise_exception('where?') }}{% endif %}" + CHATML
    advice = served(needs)
    assert "city in chat_template_kwargs: nothing renders without" in advice["vllm"].send
    assert "city in keyword arguments of apply_chat_template: nothing renders without" in advice["transformers"].send


def test_a_special_token_that_only_llama_server_does_not_give() -> None:
    advice = served("{% if not eot_token %}{{ raise_exception('no token') }}{% endif %}" + CHATML)
    assert "eot_token in chat_template_kwargs: nothing renders without" in advice["llama-server"].send
    assert not any("eot_token" in line for engine in ("vllm", "transformers") for line in advice[engine].send)


def test_nothing_is_said_where_nothing_is_known() -> None:
    assert probe("{% if %}").serving == []
    assert probe(CHATML, depth="quick").serving == []
    refusing = served("{{ raise_exception('closed') }}")
    assert {advice.avoid[0] for advice in refusing.values()} == {"this template: no conversation renders: closed"}
    assert all(not advice.send and not advice.stop and advice.content_format is None for advice in refusing.values())


def test_an_engine_that_does_not_load_it() -> None:
    advice = served("{% block a %}{% endblock %}" + CHATML)
    assert advice["llama-server"].avoid[0].startswith("this template: the template does not load")
    assert advice["vllm"].flags == ["--chat-template-content-format string"]


def test_the_terminal_report_has_a_section_for_each_engine() -> None:
    text = report_text(probe(CHATML, rules={}))
    assert (
        "how to serve it with vllm\n"
        "  flag   --chat-template-content-format string\n"
        "  stop   '<|im_end|>'\n"
        "  avoid  tools: lost without an error\n"
        "  note   stop does not see special tokens: send their ids as stop_token_ids\n"
    ) in text
    assert all(len(line) < 80 for line in text.splitlines())


def test_a_server_that_may_not_use_the_template() -> None:
    """vLLM writes Harmony by code of its own, which a template alone can only hint at."""
    harmony = CHATML.replace("<|im_start|>{{ m.role }}\n", "<|start|>{{ m.role }}<|channel|>final<|message|>")
    told = [name for name, advice in served(harmony).items() if any("by Harmony" in note for note in advice.notes)]
    assert told == ["vllm"]
