"""Answers read back: whole, in pieces, cut, and malformed."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jinjarun.errors import InputError, LimitExceeded
from jinjarun.responses import ParsedMessage, ResponseSyntax
from jinjarun.responses.parts import (
    Calls,
    Channels,
    Content,
    JsonArguments,
    JsonCall,
    Piece,
    PiecesCall,
    Reasoning,
    Region,
    TaggedArguments,
    Value,
)


def pieces(*parts: str) -> tuple[Piece, ...]:
    """`{name}` and the like are slots, everything else is text."""
    slots = {"{name}": "name", "{id}": "id", "{index}": "index", "{arguments}": "arguments", "{key}": "key"}
    return tuple(Piece(slot=slots[part]) if part in slots else Piece(text=part) for part in parts)  # type: ignore[arg-type]


THINK = Reasoning(open="<think>\n", close="\n</think>\n\n")
SYNTAXES = {
    "plain": ResponseSyntax(),
    "json": ResponseSyntax(
        generation_prompt="<|im_start|>assistant\n",
        header="<|im_start|>assistant\n",
        reasoning=THINK,
        content=Content(before_calls="\n"),
        calls=Calls(open="<tool_call>\n", close="\n</tool_call>", call=JsonCall()),
        ends=("<|im_end|>",),
    ),
    "tagged": ResponseSyntax(
        generation_prompt="<|im_start|>assistant\n<think>\n",
        header="<|im_start|>assistant\n",
        reasoning=THINK,
        content=Content(before_calls="\n\n"),
        calls=Calls(
            open="<tool_call>\n<function=",
            close="\n</function>\n</tool_call>",
            call=PiecesCall(
                pieces=pieces("{name}", ">", "{arguments}"),
                arguments=TaggedArguments(
                    open="\n<parameter=", values=(Value(open=">\n", close=pieces("\n</parameter>")),)
                ),
            ),
        ),
        ends=("<|im_end|>",),
    ),
    "section": ResponseSyntax(
        calls=Calls(
            section=Region(open="<|calls|>", close="<|/calls|>"),
            open="<|call|>functions.",
            close="<|/call|>",
            call=PiecesCall(
                pieces=pieces("{name}", ":", "{index}", "<|args|>", "{arguments}"), arguments=JsonArguments()
            ),
        )
    ),
    "python": ResponseSyntax(
        calls=Calls(
            section=Region(open="<|calls|>[", close="]<|/calls|>"),
            between=", ",
            close=")",
            call=PiecesCall(
                pieces=pieces("{name}", "(", "{arguments}"),
                arguments=TaggedArguments(
                    open="",
                    between=", ",
                    values=(
                        Value(kinds=("string",), open="='", close=pieces("'")),
                        Value(kinds=("number", "boolean", "null", "array", "object"), open="="),
                    ),
                ),
            ),
        )
    ),
    "marked": ResponseSyntax(
        calls=Calls(
            open="<|tool_call>call:",
            close="<tool_call|>",
            call=PiecesCall(pieces=pieces("{name}", "{arguments}"), arguments=JsonArguments(string_mark='<|"|>')),
        )
    ),
    "list": ResponseSyntax(calls=Calls(call=JsonCall(arguments="parameters", listed=True))),
    "wrapped": ResponseSyntax(
        content=Content(open="<|text|>", close="<|/text|>", before_calls="<|/text|>"),
        calls=Calls(section=Region(open="<|act|>", close="<|/act|>"), call=JsonCall(listed=True, id="id")),
        ends=("<|end|>",),
    ),
    "channels": ResponseSyntax(
        generation_prompt="<|start|>assistant",
        header="<|start|>assistant",
        channels=Channels(
            start="<|start|>assistant",
            channel="<|channel|>",
            message="<|message|>",
            ends=("<|end|>", "<|call|>", "<|return|>"),
            reasoning=("analysis",),
            recipient="to=functions.",
        ),
    ),
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "f",
            "parameters": {"type": "object", "properties": {"a": {"type": "string"}, "n": {"type": "integer"}}},
        },
    }
]


def calls(*made: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": name, "arguments": arguments}} for name, arguments in made]


READ: list[tuple[str, str, dict[str, Any]]] = [
    ("plain", "  as it is \n", {"content": "  as it is \n"}),
    ("plain", "", {"content": ""}),
    (
        "json",
        '<think>\nhm\n</think>\n\nI look.\n<tool_call>\n{"name": "f", "arguments": {"a": "</tool_call>"}}\n</tool_call>'
        '\n<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call><|im_end|>\n',
        {
            "content": "I look.",
            "reasoning_content": "hm",
            "tool_calls": calls(("f", {"a": "</tool_call>"}), ("g", {})),
        },
    ),
    ("json", "<think>\n\n</think>\n\n  edges \n\n", {"content": "  edges \n\n"}),
    ("json", "Write <think> and </think>.", {"content": "Write <think> and </think>."}),
    ("json", '<tool_call>{"arguments":{},"name":"f"}', {"content": None, "tool_calls": calls(("f", {}))}),
    ("json", '<tool_call>\n{"name": "f", "arguments": "{}"}', {"content": None, "tool_calls": calls(("f", {}))}),
    (
        "tagged",
        "hm\n</think>\n\n<tool_call>\n<function=f>\n<parameter=a>\n12\n</parameter>\n<parameter=n>\n3\n</parameter>\n"
        "</function>\n</tool_call>",
        {"content": None, "reasoning_content": "hm", "tool_calls": calls(("f", {"a": "12", "n": 3}))},
    ),
    (
        "tagged",
        "</think><tool_call><function=f><parameter=a>x </parameter> y</parameter></function></tool_call>",
        {"content": None, "tool_calls": calls(("f", {"a": "x </parameter> y"}))},
    ),
    (
        "section",
        'Well. <|calls|><|call|>functions.a.b:0<|args|>{"x": [1]}<|/call|><|call|>functions.c:1<|args|>{}<|/call|>'
        "<|/calls|>",
        {"content": "Well. ", "tool_calls": calls(("a.b", {"x": [1]}), ("c", {}))},
    ),
    (
        "section",
        "<|calls|><|call|>functions.f:0<|args|>{}<|/call|><|/calls|>Then. <|calls|><|call|>functions.f:0<|args|>{}",
        {"content": "Then. ", "tool_calls": calls(("f", {}), ("f", {}))},
    ),
    (
        "python",
        "<|calls|>[f(a='it's \"x\", b', n=3, l=['y', True]), g()]<|/calls|>",
        {"content": None, "tool_calls": calls(("f", {"a": 'it\'s "x", b', "n": 3, "l": ["y", True]}), ("g", {}))},
    ),
    (
        "marked",
        '<|tool_call>call:f{a:<|"|>}{<tool_call|><|"|>,m:{x:[1,true],none:}}<tool_call|>after',
        {
            "content": "after",
            "tool_calls": calls(("f", {"a": "}{<tool_call|>", "m": {"x": [1, True], "none": None}})),
        },
    ),
    ("list", '[{"name": "f", "parameters": {}}]', {"content": None, "tool_calls": calls(("f", {}))}),
    ("list", 'Such: [{"name": "f", "parameters": {}}]', {"content": 'Such: [{"name": "f", "parameters": {}}]'}),
    ("list", '{"name": "nobody", "parameters": {}}', {"content": '{"name": "nobody", "parameters": {}}'}),
    (
        "wrapped",
        '<|text|>Say <|act|>.<|/text|><|act|>[{"id": "7", "name": "f", "arguments": {}}]<|/act|><|end|>',
        {"content": "Say <|act|>.", "tool_calls": [{"id": "7", **calls(("f", {}))[0]}]},
    ),
    (
        "channels",
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hello.<|return|>",
        {"content": "Hello.", "reasoning_content": "Hm."},
    ),
    (
        "channels",
        '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": "x"}<|call|>',
        {"content": None, "tool_calls": calls(("f", {"a": "x"}))},
    ),
    (
        "channels",
        '<|channel|>commentary to=functions.f<|message|>{"a": "<|end|>"}<|call|>',
        {"content": None, "tool_calls": calls(("f", {"a": "<|end|>"}))},
    ),
    ("channels", "<|message|>Hello.<|end|>", {"content": "Hello."}),
    ("channels", "No header at all.", {"content": "No header at all."}),
    (
        "channels",
        " to=functions.f<|channel|>commentary json<|message|>{}<|end|><|start|>assistant to=functions.g<|message|>{}",
        {"content": None, "tool_calls": calls(("f", {}), ("g", {}))},
    ),
]


@pytest.mark.parametrize(("name", "text", "meant"), READ)
def test_what_an_answer_means(name: str, text: str, meant: dict[str, Any]) -> None:
    assert SYNTAXES[name].parse_response(text, tools=TOOLS) == {"role": "assistant", **meant}
    streamed = in_pieces(SYNTAXES[name], list(text))
    assert streamed == SYNTAXES[name].parse_response(text, tools=TOOLS)


def test_example_10_of_the_lesson() -> None:
    """What a Qwen model writes, as the client of the lesson reads it."""
    call = '{"name": "read_file", "arguments": {"path": "pom.xml"}}'
    text = f"I will read the build file.\n<tool_call>\n{call}\n</tool_call>"
    found = SYNTAXES["json"].parse_response(text)
    assert found["content"] == "I will read the build file."
    assert found["tool_calls"] == calls(("read_file", {"path": "pom.xml"}))
    assert found.complete
    assert not found.problems


def test_example_12_of_the_lesson() -> None:
    """Channels: reasoning, then a call, told apart by the header of each message."""
    text = (
        "<|channel|>analysis<|message|>I need the file.<|end|><|start|>assistant<|channel|>commentary"
        ' to=functions.read_file <|constrain|>json<|message|>{"path": "pom.xml"}<|call|>'
    )
    found = SYNTAXES["channels"].parse_response(text)
    assert found["reasoning_content"] == "I need the file."
    assert found["tool_calls"] == calls(("read_file", {"path": "pom.xml"}))


def in_pieces(syntax: ResponseSyntax, parts: list[str], **options: Any) -> ParsedMessage:
    """The message, after a check that the deltas say the same and only add to it."""
    parser = syntax.parser(tools=TOOLS, **options)
    deltas = [delta for part in parts for delta in parser.feed(part)] + parser.finalize()
    found = parser.message
    assert "".join(delta.get("content", "") for delta in deltas) == (found["content"] or "")
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == found.get("reasoning_content", "")
    told = [call for delta in deltas for call in delta.get("tool_calls", [])]
    assert [call["index"] for call in told] == list(range(len(told)))
    assert [json.loads(call["function"]["arguments"]) for call in told] == [
        call["function"]["arguments"] for call in found.get("tool_calls", [])
    ]
    return found


def fragments(syntax: ResponseSyntax) -> list[str]:
    """Texts of the syntax, whole and cut, and what stands between them."""
    found = [text for _, text, _ in READ]
    words = [word for text in found for word in text.replace(">", "> ").replace("<", " <").split()]
    texts = json.loads(syntax.model_dump_json())
    marks: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)
        elif isinstance(value, str) and value:
            marks.extend((value, value.strip(), value[: len(value) // 2]))

    walk(texts)
    return sorted({*words, *marks, " ", "\n", "{", "}", '"', "x", "1"})


@st.composite
def answers(draw: st.DrawFn) -> tuple[ResponseSyntax, list[str], str]:
    name = draw(st.sampled_from(sorted(SYNTAXES)))
    syntax = SYNTAXES[name]
    own = [text for other, text, _ in READ if other == name]
    part = st.sampled_from([*fragments(syntax), *own])
    text = "".join(draw(st.lists(part, max_size=8)))
    cuts = sorted(draw(st.sets(st.integers(0, max(len(text), 1)), max_size=6)))
    edges = [0, *cuts, len(text)]
    parts = [text[a:b] for a, b in pairwise(edges)]
    return syntax, parts, draw(st.sampled_from(["", syntax.generation_prompt, syntax.header]))


@given(answers())
@settings(max_examples=300)
def test_pieces_are_read_as_the_whole(case: tuple[ResponseSyntax, list[str], str]) -> None:
    syntax, parts, prefix = case
    whole = syntax.parse_response("".join(parts), tools=TOOLS, prefix=prefix)
    streamed = in_pieces(syntax, parts, prefix=prefix)
    assert streamed == whole
    assert (streamed.complete, streamed.problems) == (whole.complete, whole.problems)
    assert in_pieces(syntax, list("".join(parts)), prefix=prefix) == whole


@given(st.sampled_from(sorted(SYNTAXES)), st.text(max_size=40))
def test_any_text_is_read(name: str, text: str) -> None:
    SYNTAXES[name].parse_response(text)


def test_a_call_that_is_cut_stays_content_and_says_so() -> None:
    text = '<tool_call>\n{"name": "f", "arguments": {"a'
    found = SYNTAXES["json"].parse_response(text)
    assert found["content"] == text
    assert not found.complete
    assert found.problems


def test_reasoning_that_is_cut() -> None:
    found = SYNTAXES["tagged"].parse_response("Let me")
    assert found == {"role": "assistant", "content": "", "reasoning_content": "Let me"}
    assert not found.complete


def test_the_prompt_says_where_an_answer_begins() -> None:
    syntax = SYNTAXES["tagged"]
    assert "reasoning_content" not in syntax.parse_response("Hello", prefix="<|im_start|>assistant\n")
    closed = "<|im_start|>assistant\n<think>\n\n</think>\n\n"
    assert "reasoning_content" not in syntax.parse_response("Hello", prefix=closed)
    quoted = "<|im_start|>user\nWrite <think>\n<|im_end|>\n<|im_start|>assistant\n"
    assert "reasoning_content" not in syntax.parse_response("Hello", prefix=quoted)


def test_strict_refuses_what_is_no_call() -> None:
    with pytest.raises(InputError, match="does not write"):
        SYNTAXES["json"].parse_response('<tool_call>{"name"', strict=True)


@pytest.mark.parametrize("name", SYNTAXES)
def test_a_syntax_survives_json(name: str) -> None:
    syntax = SYNTAXES[name]
    assert ResponseSyntax.from_json(syntax.model_dump_json()) == syntax


def test_what_is_no_syntax() -> None:
    with pytest.raises(InputError, match="no response syntax"):
        ResponseSyntax.from_json('{"version": 2}')


def test_an_answer_may_not_be_too_long() -> None:
    with pytest.raises(LimitExceeded):
        SYNTAXES["plain"].parse_response("x" * 4_000_001)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("json", "<tool_call>\n"),
        ("json", '<tool_call>\n{"name": "f", "arguments": {"a": "'),
        ("tagged", "</think><tool_call><function=f><parameter=a>"),
        ("tagged", "</think><tool_call><function=f><parameter=a></parameter> "),
        ("section", "<|calls|><|call|>functions.f:0<|args|>{"),
        ("marked", '<|tool_call>call:f{a:<|"|>'),
        ("python", "<|calls|>[f(a='"),
        ("channels", "<|channel|>x<|message|>"),
        ("list", "["),
    ],
)
def test_what_could_be_a_call_over_and_over(name: str, part: str) -> None:
    """Nothing of it is lost, and trying it costs a bounded amount of text."""
    text = part * (20_000 // len(part))
    found = in_pieces(SYNTAXES[name], [text[at : at + 4] for at in range(0, len(text), 4)])
    kept = (found["content"] or "") + found.get("reasoning_content", "") + json.dumps(found.get("tool_calls", ""))
    assert len(kept) > len(text) / 3
    assert found == SYNTAXES[name].parse_response(text, tools=TOOLS)
