"""One request as a client sends it, on one path: the prompt, where its characters come from, what was changed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jinjarun.errors import InputError
from jinjarun.limits import Limits
from jinjarun.sequences import common_prefix
from jinjarun.serving.builtin_formats import FormatServer
from jinjarun.serving.caps import BUILD
from jinjarun.serving.llama_server import LlamaServer
from jinjarun.serving.sglang import SglangOptions, SglangServer
from jinjarun.serving.transformers import VERSION, explain_chat_template
from jinjarun.serving.vllm import VllmOptions, VllmServer
from jinjarun.template import Span, Template
from probes.rendering.renders import APPLY, LLAMA_SERVER, PATHS, SGLANG, VLLM, dialect_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from jinjarun.serving.llama_server import Answer

SERVER_ORIGIN = "llama-server"
"""The origin of text that no template wrote."""

KEPT = 8
"""Templates that are kept compiled; a server's worker meets its own one and those that were posted last."""


@dataclass(frozen=True, slots=True)
class PathAnswer:
    """What a path made of a request.

    `data` is the prompt's bytes, `text` the same with U+FFFD for what is not UTF-8; `spans` cover the text, empty
    unless asked for; `reworks` are rows of `name`, `path` and `why`, in the order in which they were applied;
    `template` is the name of the template that was taken, `family` what llama-server took it for, None for neither.
    `content_format` is what vLLM or SGLang found the template to take, "string" or "openai", None elsewhere.
    `assistant_spans`: what transformers' `return_assistant_tokens_mask` covers, as places (start, end) in code points;
    None unless the request asks for it.
    """

    path: str
    version: str
    text: str
    data: bytes
    spans: tuple[Span, ...]
    reworks: tuple[dict[str, str], ...]
    template: str | None = "default"
    family: str | None = None
    content_format: str | None = None
    assistant_spans: tuple[tuple[int, int], ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; `content_format` and `assistant_spans` only where there are any."""
        engine, _, way = self.path.partition(":")
        asked: dict[str, Any] = {}
        if self.content_format is not None:
            asked["content_format"] = self.content_format
        if self.assistant_spans is not None:
            asked["assistant_spans"] = [list(one) for one in self.assistant_spans]
        return {
            "engine": {"id": engine, "version": self.version, "path": way},
            "template": self.template,
            "family": self.family,
            "text": self.text,
            "spans": [asdict(span) for span in self.spans],
            "reworks": list(self.reworks),
            **asked,
        }


@dataclass(frozen=True, slots=True)
class Setting:
    """What an engine was started with.

    `templates` are the model's, by name: "default", "tool_use". The tokens are the texts of BOS and EOS, empty where
    there are none; `add_bos` and `add_eos` say whether the tokenizer adds them itself. `default_kwargs` are the
    variables of `--chat-template-kwargs`. `now` is an aware datetime, a naive one (the wall clock), a Unix timestamp
    (read as UTC) or None for the moment of each request. `format` is the name of a format that is compiled into
    llama.cpp, for a llama-server with `--no-jinja`, which runs no template. `flags` are those of vLLM or SGLang, by the
    names of the fields of its Options.
    """

    templates: Mapping[str, str]
    bos_token: str = ""
    eos_token: str = ""
    add_bos: bool = False
    add_eos: bool = False
    default_kwargs: Mapping[str, Any] = field(default_factory=dict)
    now: datetime | float | None = None
    format: str | None = None
    flags: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)


def answer_on_path(path: str, setting: Setting, body: Any, *, spans: bool = False) -> PathAnswer:
    """The prompt of a request on `path`, one of `PATHS`.

    `body` is that of OpenAI's chat API with what servers added: `messages`, `tools`, `documents`,
    `chat_template_kwargs`, `add_generation_prompt`, `continue_final_message`. llama-server reads all of it; the other
    paths read these keys, and open the model's turn unless told otherwise. transformers reads its own
    `return_assistant_tokens_mask` besides. Raises InputError for a body that the path refuses, and what templates fail
    with.
    """
    if path == LLAMA_SERVER and setting.format is not None:
        written = FormatServer(setting.format, limits=setting.limits).answer(body, spans=spans)
        return PathAnswer(path, BUILD, written.prompt, written.data, written.rendered.spans, (), None, setting.format)
    if path == LLAMA_SERVER:
        return _served(llama_server(setting).answer(body, now=setting.now, spans=spans))
    if path in (VLLM, SGLANG):
        return _completed(path, setting, body, spans=spans)
    if path not in PATHS:
        raise InputError(f"there is no such path; there are {', '.join(PATHS)}", path="path")
    if not isinstance(body, dict):
        raise InputError(f"a request is an object, not {type(body).__name__}", path="body")
    if "messages" not in body:
        raise InputError("'messages' is required", path="messages")
    given = body.get("chat_template_kwargs")
    if given is not None and not isinstance(given, dict):
        raise InputError("chat_template_kwargs must be an object", path="chat_template_kwargs")
    variables = {**setting.default_kwargs, **(given or {})}
    if path == APPLY:
        return _applied(setting, body, variables, spans=spans)
    template = _template(setting.templates.get("default", ""), dialect_of(path), setting.limits)
    rendered = template.render(
        body["messages"],
        tools=body.get("tools"),
        add_generation_prompt=body.get("add_generation_prompt", True),
        bos_token=setting.bos_token,
        eos_token=setting.eos_token,
        variables=variables,
        now=setting.now,
        spans=spans,
    )
    version = BUILD if template.dialect == "llama.cpp" else VERSION
    return PathAnswer(path, version, rendered.text, rendered.data, rendered.spans, ())


def llama_server(setting: Setting) -> LlamaServer:
    """The server that was started so; the last few are kept. Raises JinjarunError where it does not start."""
    return _server(
        setting.templates.get("default", ""),
        tool_use=setting.templates.get("tool_use"),
        bos_token=setting.bos_token,
        eos_token=setting.eos_token,
        add_bos=setting.add_bos,
        add_eos=setting.add_eos,
        default_kwargs=json.dumps(setting.default_kwargs),
        limits=setting.limits,
    )


def _applied(setting: Setting, body: Mapping[str, Any], variables: Mapping[str, Any], *, spans: bool) -> PathAnswer:
    continued = body.get("continue_final_message") or False
    applied = explain_chat_template(
        setting.templates,
        body["messages"],
        tools=body.get("tools"),
        documents=body.get("documents"),
        add_generation_prompt=body.get("add_generation_prompt", not continued),
        continue_final_message=continued,
        return_assistant_tokens_mask=bool(body.get("return_assistant_tokens_mask")),
        special_tokens={"bos_token": setting.bos_token or None, "eos_token": setting.eos_token or None},
        variables=variables,
        now=setting.now,
        limits=setting.limits,
        spans=spans,
    )
    data = applied.text.encode("utf-8", "replace")
    rows = tuple(rework.to_dict() for rework in applied.reworks)
    answers = applied.assistant_spans
    return PathAnswer(
        APPLY, VERSION, applied.text, data, applied.spans, rows, applied.template, assistant_spans=answers
    )


def _completed(path: str, setting: Setting, body: Any, *, spans: bool) -> PathAnswer:
    """What vLLM or SGLang gives. Their default variables are `default_kwargs` unless a flag says otherwise."""
    flags = {"default_chat_template_kwargs": setting.default_kwargs, **setting.flags}
    tokens = {"bos_token": setting.bos_token or None, "eos_token": setting.eos_token or None}
    server: VllmServer | SglangServer
    if path == VLLM:
        started = VllmOptions(**flags)
        server = VllmServer(setting.templates, special_tokens=tokens, options=started, limits=setting.limits)
    else:
        options = SglangOptions(**flags)
        server = SglangServer(setting.templates, special_tokens=tokens, options=options, limits=setting.limits)
    answer = server.answer(body, now=setting.now, spans=spans)
    return PathAnswer(
        path,
        answer.version,
        answer.prompt,
        answer.prompt.encode("utf-8", "replace"),
        answer.spans,
        tuple(rework.to_dict() for rework in answer.reworks),
        answer.template,
        content_format=answer.content_format,
    )


def _served(answer: Answer) -> PathAnswer:
    prepared = answer.prepared
    return PathAnswer(
        LLAMA_SERVER,
        BUILD,
        answer.prompt,
        answer.data,
        _spans_of_prompt(answer),
        tuple(rework.to_dict() for rework in answer.reworks),
        prepared.template,
        prepared.family,
    )


def _spans_of_prompt(answer: Answer) -> tuple[Span, ...]:
    """The spans of the template's text carried over to the prompt: what the server put in is of the server, and
    messages have the numbers that they have in the request, as far as the server's reworks let them be told."""
    rendered, prompt = answer.rendered, answer.prompt
    if not rendered.spans:
        return ()
    text = rendered.text
    head = common_prefix(text, prompt)
    tail = min(common_prefix(text[::-1], prompt[::-1]), min(len(text), len(prompt)) - head)
    places = answer.prepared.chat.places
    found = [
        *_cut(rendered.spans, 0, head, 0, places),
        Span(head, len(prompt) - tail, prompt[head : len(prompt) - tail], False, SERVER_ORIGIN),
        *_cut(rendered.spans, len(text) - tail, len(text), len(prompt) - len(text), places),
    ]
    return tuple(span for span in found if span.text)


def _cut(spans: tuple[Span, ...], start: int, end: int, shift: int, places: list[str]) -> list[Span]:
    """The part of `spans` between two places of the text, moved by `shift`."""
    found = []
    for span in spans:
        first, last = max(span.start, start), min(span.end, end)
        if first < last:
            text = span.text[first - span.start : last - span.start]
            found.append(Span(first + shift, last + shift, text, span.is_input, _origin(span.origin, places)))
    return found


def _origin(origin: str, places: list[str]) -> str:
    """ "messages[0].content" of the template's messages -> the same in the request's."""
    head, bracket, rest = origin.partition("]")
    number = head.removeprefix("messages[")
    if not bracket or number == head or not number.isdigit() or int(number) >= len(places):
        return origin
    return places[int(number)] + rest


@lru_cache(maxsize=KEPT)
def _server(source: str, *, default_kwargs: str, **settings: Any) -> LlamaServer:
    return LlamaServer(source, default_kwargs=json.loads(default_kwargs), **settings)


@lru_cache(maxsize=KEPT)
def _template(source: str, dialect: str, limits: Limits) -> Template:
    return Template(source, dialect, limits)
