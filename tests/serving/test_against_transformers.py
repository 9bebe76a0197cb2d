"""Our `apply_chat_template` beside the real one, on generated requests over our families and real templates."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from jinjarun.errors import JinjarunError
from jinjarun.serving.transformers import apply_chat_template, explain_chat_template
from probes.chats.named import CHATS, conversation
from tests.conformance.golden import NO_SHARED, SHARED, have_shared
from tests.families import NOW, WITH_TEMPLATE, family
from tests.serving import tool_functions
from tests.serving.real_transformers import real_mask, real_prompt, real_spans

SETTINGS = settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])

INLINE = {
    "plain": "{% for m in messages %}<{{ m.role }}>{{ m.content }}</{{ m.role }}>\n{% endfor %}",
    "trimming": "{% for m in messages %}[{{ m.role }}] {{ m.content | trim }}{{ eos_token }} {% endfor %}",
    "keys": "{% for m in messages %}{{ m | tojson }}{{ m.items() | list | length }}\n{% endfor %}",
    "parts": "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}<end>{% endfor %}",
    "thinking": "{% for m in messages %}{{ m.role }}:{% if m.thinking %}({{ m.thinking }}){% endif %}"
    "{{ m.content }};{% endfor %}",
    "reasoning": "{% for m in messages %}{{ m.role }}:{% if m.reasoning_content is defined %}"
    "({{ m.reasoning_content }}){% endif %}{{ m.get('content', '') }};{% endfor %}",
    "context": "{{ tools is none }}{{ documents is defined }}{{ bos_token is defined }}{{ pad_token }}"
    "{{ tools | tojson }}{{ documents | tojson }}{{ enable_thinking }}{{ add_generation_prompt }}"
    "{% for m in messages %}{{ m.content }}{% endfor %}",
    "loud": "{{ raise_exception('no') if messages[0].role == 'system' }}{{ messages[-1].content | upper }}",
    "broken": "{% for m in messages %}",
    "generation": "{% macro turn(m) %}<{% generation %}{{ m.content }}{% endgeneration %}>{% endmacro %}"
    "{% for m in messages %}{{ m.role }}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}"
    "{% generation %}!{% endgeneration %}{% endgeneration %}{% else %}{{ turn(m) }}{% endif %}\n{% endfor %}",
}
"""Templates that show what reached them."""


def real_templates() -> dict[str, str]:
    """Releases by their publishers, and the templates with generation blocks; none where ../shared is absent."""
    if not have_shared():
        return {}
    found = {}
    for line in (SHARED / "corpus" / "manifest.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        text = (SHARED / "corpus" / "templates" / f"{row['slug']}.jinja").read_bytes().decode()
        if row["official"] or "endgeneration" in text:
            found[row["slug"]] = text
    return found


FAMILIES = {name: family(name).source for name in WITH_TEMPLATE}
REAL = real_templates()
TEMPLATES = {**FAMILIES, **INLINE, **REAL}
needs_shared = pytest.mark.skipif(not have_shared(), reason=NO_SHARED)


def mostly(usual: st.SearchStrategy[Any], *rare: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Nine times out of ten `usual`, which `one_of` does not give (and Hypothesis likes the ends of a range)."""
    return st.integers(0, 9).flatmap(lambda roll: st.one_of(*rare) if roll == 6 else usual)


texts = st.sampled_from(
    [
        "",
        " ",
        "Hi",
        "  padded \n",
        "two\nlines",
        "é 漢 🙂",
        "<think>hm</think>yes",
        '"q" <b> & \\n',
        "{{ x }}",
        "text",
        "1",
    ]
)
PART_TEXTS = [{"type": "text", "text": "part one "}, {"type": "text", "text": "part two"}, {"type": "image"}, "loose"]
contents = mostly(texts, st.none(), st.lists(st.sampled_from(PART_TEXTS), max_size=3), st.sampled_from([0, {"a": 1}]))
CALLS = [
    {"type": "function", "function": {"name": "weather", "arguments": {"city": "Łódź", "days": 2}}},
    {"id": "call_123456", "type": "function", "function": {"name": "f", "arguments": '{"x": null}'}},
]
reasoning = st.fixed_dictionaries({}, optional=dict.fromkeys(("reasoning_content", "thinking", "reasoning"), texts))
message = st.builds(
    lambda role, content, thoughts, extra: {"role": role, **content, **thoughts, **extra},
    st.sampled_from(["user", "assistant", "assistant", "system", "tool", "developer"]),
    mostly(contents.map(lambda content: {"content": content}), st.just({})),
    st.one_of(st.just({}), reasoning, st.sampled_from([{"reasoning": None}, {"thinking": None}])),
    st.one_of(
        st.just({}),
        st.sampled_from(
            [
                {"tool_calls": CALLS},
                {"tool_calls": CALLS[:1], "content": None},
                {"tool_calls": None},
                {"name": None, "tool_call_id": "call_123456"},
                {"name": "weather"},
                {"weight": 1.5},
            ]
        ),
    ),
)


@st.composite
def dialogues(draw: st.DrawFn) -> list[Any]:
    """Turns as chats have them, strings for contents."""
    turns: list[Any] = [{"role": "system", "content": draw(texts)}] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(1, 2))):
        turns.append({"role": "user", "content": draw(texts)})
        turns.append({"role": "assistant", "content": draw(texts), **draw(reasoning)})
    return turns[: len(turns) - (len(turns) > 1 and draw(st.integers(0, 1)))]


synthetic = st.sampled_from(sorted(CHATS)).map(lambda name: conversation(name)["messages"] or [{"role": "user"}])
conversations = mostly(
    st.one_of(dialogues(), synthetic, st.lists(message, min_size=1, max_size=4)),
    st.sampled_from([[], "hello", {"role": "user"}, [["nested"]], [{"role": "user", "content": "Hi"}, "loose"]]),
)
SCHEMAS = [
    {"type": "function", "function": {"name": "g", "description": None, "parameters": {"type": "object"}}},
    {
        "type": "function",
        "function": {
            "name": "h",
            "description": "Höhe",
            "parameters": {"type": "object", "properties": {"x": {"type": "integer", "enum": [1, 2]}}},
        },
    },
    {"name": "no function at all"},
]
tools = mostly(
    st.one_of(st.none(), st.lists(st.sampled_from([*SCHEMAS, *tool_functions.GOOD]), max_size=3)),
    st.sampled_from([["weather"], {"name": "x"}, [print], [tool_functions.Tools], [tool_functions.undescribed]]),
)
documents = mostly(
    st.one_of(st.none(), st.lists(st.fixed_dictionaries({"title": texts, "text": texts}), max_size=2)),
    st.sampled_from([["loose"], {"title": "x"}]),
)
special_tokens = st.fixed_dictionaries(
    {}, optional={"bos_token": st.just("<s>"), "eos_token": st.just("</s>"), "pad_token": st.just("<pad>")}
)
variables = st.fixed_dictionaries(
    {}, optional={"enable_thinking": st.booleans(), "eos_token": st.just("<mine>"), "custom": texts}
)
names = st.sampled_from(sorted(TEMPLATES))
text_by_name = names.map(TEMPLATES.__getitem__)
named = mostly(
    st.fixed_dictionaries({"default": text_by_name}, optional={"tool_use": text_by_name, "rag": text_by_name}),
    st.dictionaries(st.sampled_from(["tool_use", "rag"]), text_by_name),
)
sources = st.one_of(text_by_name, named)
endings = mostly(
    st.sampled_from([{}, {"add_generation_prompt": True}, {"continue_final_message": True}]),
    st.sampled_from(["content", "reasoning_content", "thinking", "name", ""]).map(
        lambda wanted: {"continue_final_message": wanted}
    ),
    st.just({"add_generation_prompt": True, "continue_final_message": True}),
)
chosen = mostly(st.none(), st.sampled_from(["default", "tool_use", "rag", "{{ messages[0].content }}"]))


calls = st.builds(
    lambda ending, others: {**others, **ending},
    endings,
    st.fixed_dictionaries({"tools": tools, "documents": documents, "chat_template": chosen}),
)


@SETTINGS
@given(sources, conversations, calls, special_tokens, variables)
def test_any_request_gets_the_same_prompt_or_an_error(
    source: Any, messages: Any, call: Any, tokens: Any, variables: Any
) -> None:
    before = repr((source, messages, call))
    try:
        expected = real_prompt(source, messages, special_tokens=tokens, **call, **variables)
    except Exception as error:
        event(f"{type(error).__name__}")
        with pytest.raises(JinjarunError):
            apply_chat_template(source, messages, now=NOW, **call, **{**tokens, **variables})
    else:
        event("a prompt that is continued" if call.get("continue_final_message") else "a prompt")
        assert apply_chat_template(source, messages, now=NOW, **call, **{**tokens, **variables}) == expected
    assert repr((source, messages, call)) == before


continued = st.sampled_from([True, True, "content", "reasoning_content", "thinking", "reasoning"])


@SETTINGS
@given(sources, dialogues(), continued, special_tokens)
def test_final_messages_are_continued_alike(source: Any, messages: Any, wanted: Any, tokens: Any) -> None:
    try:
        expected = real_prompt(source, messages, special_tokens=tokens, continue_final_message=wanted)
    except Exception as error:
        event(type(error).__name__)
        with pytest.raises(JinjarunError):
            apply_chat_template(source, messages, continue_final_message=wanted, now=NOW, **tokens)
    else:
        event("a prompt")
        assert apply_chat_template(source, messages, continue_final_message=wanted, now=NOW, **tokens) == expected


tracked = [text for text in TEMPLATES.values() if "endgeneration" in text]


@SETTINGS
@given(st.sampled_from(tracked), st.one_of(dialogues(), synthetic), special_tokens, st.booleans())
def test_generation_blocks_are_found_alike(source: str, messages: Any, tokens: Any, opened: bool) -> None:
    def spans() -> tuple[str, list[tuple[int, int]]]:
        applied = explain_chat_template(
            source,
            messages,
            special_tokens=tokens,
            add_generation_prompt=opened,
            return_assistant_tokens_mask=True,
            now=NOW,
        )
        return applied.text, list(applied.assistant_spans or ())

    kept = [{key: value for key, value in message.items() if value is not None} for message in messages]
    try:
        expected = real_spans(source, kept, special_tokens=tokens, add_generation_prompt=opened)
    except Exception as error:
        event(type(error).__name__)
        with pytest.raises(JinjarunError):
            spans()
    else:
        event(f"{len(expected[1])} spans")
        assert spans() == expected


@SETTINGS
@given(st.sampled_from(tracked), dialogues())
def test_spans_cover_the_tokens_of_the_mask(source: str, messages: Any) -> None:
    """Where blocks are not inside one another: else transformers' single pass over tokens misses some."""
    try:
        mask = real_mask(source, messages)
    except Exception:
        event("an error")
        return
    applied = explain_chat_template(source, messages, return_assistant_tokens_mask=True, now=NOW)
    spans = applied.assistant_spans or ()
    if list(spans) != sorted(spans) or any(a[1] > b[0] for a, b in pairwise(spans)):
        event("blocks inside one another")
        return
    assert mask == [int(any(start <= i < end for start, end in spans)) for i in range(len(applied.text))]


@needs_shared
def test_the_mask_of_real_templates_is_not_empty() -> None:
    chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello there."}]
    found = {}
    for name, source in REAL.items():
        if "endgeneration" not in source:
            continue
        try:
            applied = explain_chat_template(source, chat, return_assistant_tokens_mask=True, now=NOW)
        except JinjarunError:
            continue
        found[name] = [applied.text[start:end] for start, end in applied.assistant_spans or ()]
    assert len(found) > 30
    assert sum(any("Hello there." in text for text in written) for written in found.values()) > 30
