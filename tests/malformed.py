"""Bodies of requests that are wrong in all the ways that clients get them wrong, as a Hypothesis strategy."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from probes.chats.named import CHATS

BODIES: list[dict[str, Any]] = [
    {"chat_template_kwargs" if key == "variables" else key: value for key, value in build().items()}
    for build in CHATS.values()
]
EXTRAS: list[dict[str, Any]] = [
    {},
    {"tool_choice": "required"},
    {"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}},
    {"continue_final_message": True, "add_generation_prompt": False},
    {"reasoning_effort": "none", "reasoning_format": "auto", "stream": True, "logprobs": True},
    {"model": "x", "temperature": 0.5, "stop": ["</s>"], "n": 2, "grammar": "root ::= .*"},
]
WRONG: list[Any] = [
    *(None, True, False, 0, -1, 1.5, 1e308, 2**63, 2**64, 10**400, "", "x", "\ud800", "\x00", "{", "<|im_end|>"),
    *([], {}, [[]], [None], {"": {}}, {"type": "text"}, [{"type": "image_url"}], [{"type": "text", "text": 1}]),
    *({"type": "json_object", "schema": 1}, {"role": "user"}, [{"role": 1}], {"enable_thinking": "no"}),
]
KEYS = [
    "role",
    "content",
    "messages",
    "tools",
    "tool_calls",
    "type",
    "function",
    "arguments",
    "name",
    "id",
    "text",
    "x",
]


def _places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value inside, the whole first."""
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [at, *(place for key, item in inner for place in _places(item, (*at, key)))]


def _changed(body: Any, place: tuple[Any, ...], change: Callable[[Any, Any], None], whole: Any) -> Any:
    if not place:
        return whole
    parent = body
    for key in place[:-1]:
        parent = parent[key]
    change(parent, place[-1])
    return body


@st.composite
def _mutated(draw: st.DrawFn) -> Any:
    """A good request with one to three values replaced, removed or added."""
    body: Any = copy.deepcopy(draw(st.sampled_from(BODIES)) | draw(st.sampled_from(EXTRAS)))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from(_places(body)))
        wrong = copy.deepcopy(draw(st.sampled_from(WRONG)))
        what = draw(st.sampled_from(["replace", "replace", "remove", "add"]))
        if what == "replace":
            body = _changed(body, place, lambda parent, key, wrong=wrong: parent.__setitem__(key, wrong), wrong)
        elif what == "remove":
            body = _changed(body, place, lambda parent, key: parent.__delitem__(key), {})
        else:
            added = draw(st.sampled_from(KEYS))

            def add(parent: Any, key: Any, added: str = added, wrong: Any = wrong) -> None:
                if isinstance(parent[key], dict):
                    parent[key][added] = wrong
                elif isinstance(parent[key], list):
                    parent[key].append(wrong)

            body = _changed(body, place, add, body)
    return body


@st.composite
def _broken_text(draw: st.DrawFn) -> bytes:
    """The text of a request with bytes cut, replaced, doubled or put in."""
    data = bytearray(json.dumps(draw(st.sampled_from(BODIES)), ensure_ascii=draw(st.booleans())).encode())
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 8)))
        data[start:end] = draw(
            st.sampled_from([b"", b"\xff", b"\xc3", b'"', b"{", b"]", b",", b"NaN", b"\\ud800", b"\0"])
        )
        if draw(st.booleans()) and draw(st.booleans()):
            del data[start:]
    return bytes(data)


DEEP = [b"[" * 50_000, b'{"messages":' * 3000, b'{"messages":' + b"[" * 150 + b"]" * 150 + b"}", b'[{"a":' * 90]
ODD = [
    b"",
    b" ",
    b"\xef\xbb\xbf{}",
    b"null",
    b"[]",
    b'"x"',
    b"1",
    b"{}",
    b'{"messages":1e999}',
    b"\x00",
    b"{}{}",
    b"'{}'",
]
LARGE = [
    json.dumps({"messages": [{"role": "user", "content": "x" * 2_000_000}]}).encode(),
    json.dumps({"messages": [{"role": "user", "content": "x"}] * 3_000}).encode(),
    json.dumps({"messages": [{"role": "user", "content": "x", "é" * 10_000: 1}]}).encode(),
    b'{"messages":[' + b"9" * 5000 + b"]}",
]


def malformed_bodies(*, large: bool = True) -> st.SearchStrategy[bytes]:
    """Bytes that a client may send; a few of them are good requests after all."""
    as_json = _mutated().map(lambda body: json.dumps(body).encode())
    return st.one_of(
        *[as_json] * 6,
        *[_broken_text()] * 3,
        st.sampled_from(ODD + DEEP + (LARGE if large else [])),
        st.binary(max_size=200),
    )
