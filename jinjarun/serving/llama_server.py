"""What llama-server b11434 answers to `POST /apply-template`, for a template and the body of a request.

The server reads the body (`requests`), reworks the conversation (`reworks`), renders, and builds a parser for the
model's answer; each of these may refuse the request. Templates of known `families` have a parser of their own. For the
others the server derives one from the template (`markers`), and then every failure of the template is the client's
fault: 400, where a family's template that fails is the server's: 500.

Not covered: models that take images, audio or video (`mmproj`), and regular expressions in tool schemas that the server
cannot turn into a grammar.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jinjarun.errors import InputError, JinjarunError, RenderError, TemplateRaised, TemplateSyntaxError, quote
from jinjarun.limits import Limits
from jinjarun.sequences import common_prefix
from jinjarun.serving import reworks, server_json
from jinjarun.serving.caps import BUILD
from jinjarun.serving.families import Resumption
from jinjarun.serving.loaded import EXAMPLE, Loaded, load_default
from jinjarun.serving.requests import ChatRequest, parse_request
from jinjarun.serving.reworks import Conversation, Rework
from jinjarun.serving.schemas import SchemaFault, check_parameters, check_schema
from jinjarun.serving.variables import given_variables, note_variables
from jinjarun.template import Template

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from jinjarun.serving.cache import Renderer
    from jinjarun.serving.caps import Caps
    from jinjarun.serving.markers import Analysis
    from jinjarun.template import Rendered

__all__ = ["BUILD", "Answer", "LlamaServer", "Prepared", "apply_template"]

TRIMMED_FAMILY = "You have access to the following functions in JSONSchema format"
"""A string by which the server knows the templates (StepFun's) whose contents it trims."""

CHANNEL = "<|channel|>"
"""A string by which it knows GPT-OSS, the only one that keeps the developer role."""

SERVERS_KEPT = 32


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request when everything has been done to it but rendering.

    `context` holds the variables for the template, the opening of the model's turn included or not as asked for.
    """

    request: ChatRequest
    context: dict[str, Any]
    chat: Conversation
    loaded: Loaded
    template: str
    """Which of the model's templates: "default" or "tool_use"."""

    @property
    def reworks(self) -> tuple[Rework, ...]:
        return tuple(self.chat.reworks)

    @property
    def family(self) -> str | None:
        """The family that the server knows the template for, None if it analyses it."""
        return None if self.loaded.family is None else self.loaded.family.name


@dataclass(frozen=True, slots=True)
class Answer:
    """A prompt and how it came about. `rendered` is the template's own text, before the reworks of the text."""

    prompt: str
    data: bytes
    prepared: Prepared
    rendered: Rendered

    @property
    def reworks(self) -> tuple[Rework, ...]:
        return self.prepared.reworks

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON: what `--explain` lists."""
        return {
            "build": BUILD,
            "prompt": self.prompt,
            "template": self.prepared.template,
            "family": self.prepared.family,
            "reworks": [rework.to_dict() for rework in self.reworks],
        }


class LlamaServer:
    """A llama-server that was started with a template; no weights.

    `source` is the model's default template and `tool_use` the one for requests with tools, if it has one. The tokens
    are the texts of BOS and EOS, empty if there are none; `add_bos` and `add_eos` say whether the tokenizer adds them
    itself. `default_kwargs` are the variables of `--chat-template-kwargs`. `render` renders the template for requests.
    Raises JinjarunError, with `refused` among its details, if the server does not start with this template. May be used
    from many threads.
    """

    def __init__(
        self,
        source: str,
        *,
        bos_token: str = "",
        eos_token: str = "",
        tool_use: str | None = None,
        default_kwargs: Mapping[str, Any] | None = None,
        add_bos: bool = False,
        add_eos: bool = False,
        limits: Limits | None = None,
        render: Renderer = Template.render_context,
    ) -> None:
        self._render = render
        self.limits = limits if limits is not None else Limits()
        self.add_bos, self.add_eos = add_bos, add_eos
        self._tokens = {"bos_token": bos_token, "eos_token": eos_token}
        kwargs = server_json.plain(dict(default_kwargs or {}), "default_kwargs", self.limits)
        self._variables = {"preserve_reasoning": True, **kwargs}
        self._thinks = True
        try:
            self._default = load_default(source, tool_use, self._tokens, self.limits)
            self._tool_use = self._load_tool_use(tool_use) if tool_use else None
            self._complete(self._prepare(parse_request({"messages": EXAMPLE}, {}, self.limits), 0), 0)
        except JinjarunError as error:
            raise error.answered_with(error.status, refused=True) from None
        self._thinks = self._default.thinks

    @property
    def caps(self) -> Caps:
        """`chat_template_caps` of `/props`."""
        return (self._tool_use or self._default).caps

    def apply(self, body: Any, *, now: datetime | float | None = None) -> str:
        """The prompt. Raises JinjarunError with the server's HTTP `status` where the server answers with an error."""
        return self.answer(body, now=now).prompt

    def answer(self, body: Any, *, now: datetime | float | None = None, spans: bool = False) -> Answer:
        """The prompt with its explanation. `spans` asks for the origins of the rendered text."""
        return self._complete(self.prepare(body, now=now), now, spans=spans)

    def prepare(self, body: Any, *, now: datetime | float | None = None) -> Prepared:
        """The variables that the template gets for this body, and what was changed on the way."""
        return self._prepare(parse_request(body, self._variables, self.limits), now)

    def _load_tool_use(self, source: str) -> Loaded | None:
        """A template for tools that does not parse is ignored by the server."""
        try:
            loaded = Loaded(source, self._tokens, self.limits)
        except TemplateSyntaxError:
            return None
        loaded.reworks = (Rework("tool-use-template", "template"),)
        return loaded

    def _prepare(self, request: ChatRequest, now: datetime | float | None) -> Prepared:
        loaded, template = self._default, "default"
        if request.tools and self._tool_use is not None:
            loaded, template = self._tool_use, "tool_use"
        messages = request.messages
        trims = TRIMMED_FAMILY in loaded.source
        places = [f"messages[{i}]" for i in range(len(messages))]
        chat = Conversation(
            [(message.trimmed() if trims else message).to_json() for message in messages],
            places,
            list(loaded.reworks),
        )
        reworks.note_reading(request, chat)
        if trims:
            for message, place in zip(messages, places, strict=True):
                if message != message.trimmed():
                    chat.note("contents-trimmed", place)
        self._rework(chat, request, loaded)
        extra: dict[str, Any] = {}
        if loaded.family is not None and loaded.family.variables is not None:
            extra = loaded.family.variables(loaded.source, request)
            for name in extra:
                chat.note("response-format-passed", name)
        given = given_variables(request, chat, self._tokens, now, thinks=self._thinks, extra=extra)
        note_variables(given, request, chat, loaded.template.names)
        return Prepared(request, given, chat, loaded, template)

    def _rework(self, chat: Conversation, request: ChatRequest, loaded: Loaded) -> None:
        """The messages, in the order of the server."""
        caps = loaded.caps
        reworks.fit_content(chat, caps)
        if request.continued is not None and chat.messages:
            chat.messages.pop()
            chat.note("final-message-held-back", chat.places.pop())
        if request.prefilled:
            chat.note("generation-prompt-dropped", "add_generation_prompt")
        if CHANNEL not in loaded.source:
            reworks.rename_developer(chat)
        if not caps.supports_system_role:
            reworks.merge_system(chat)
        if caps.supports_object_arguments:
            reworks.parse_arguments(chat, self.limits)
        if loaded.family is not None and loaded.family.adapt is not None:
            loaded.family.adapt(chat, loaded.source, self.limits)

    def _complete(self, prepared: Prepared, now: datetime | float | None, *, spans: bool = False) -> Answer:
        request, loaded, chat = prepared.request, prepared.loaded, prepared.chat
        family = loaded.family
        if family is None and loaded.analysis.fault is not None:
            raise RenderError(f"llama-server cannot analyse this template: {loaded.analysis.fault}", status=400)
        try:
            rendered = self._render(loaded.template, prepared.context, now=now, spans=spans)
            prompt = self._without_tokens(rendered.data, chat)
            opening = b""
            if family is None or family.needs_generation_prompt:
                opening = self._generation_prompt(prepared, prompt, now)
        except (RenderError, TemplateRaised) as error:
            raise error.answered_with(loaded.failure_status) from None
        if family is not None and family.finish is not None:
            prompt = family.finish(prompt, request, chat)
        if request.continued is not None and request.messages and not request.messages[-1].is_empty:
            chat.note("final-message-appended", "prompt")
            content_too = request.continued == "content"
            resumption = Resumption(request.messages[-1], content_too, prompt, opening, loaded.source)
            prompt += _resumed(resumption, loaded.analysis) if family is None else family.resumed(resumption)
        self._check_parser(prepared, opening)
        adds_stops = loaded.analysis.adds_stops if family is None else family.adds_stops
        if adds_stops and request.stop_fault is not None:
            raise request.stop_fault
        if request.late_fault is not None:
            raise request.late_fault
        return Answer(prompt.decode("utf-8", "replace"), prompt, prepared, rendered)

    def _without_tokens(self, text: bytes, chat: Conversation | None = None) -> bytes:
        """The text without the tokens that the tokenizer adds."""
        bos, eos = (self._tokens[name].encode() for name in ("bos_token", "eos_token"))
        if self.add_bos and bos and text.startswith(bos):
            text = text[len(bos) :]
            if chat is not None:
                chat.note("bos-trimmed", "prompt")
        if self.add_eos and eos and text.endswith(eos):
            text = text[: -len(eos)]
            if chat is not None:
                chat.note("eos-trimmed", "prompt")
        return text

    def _generation_prompt(self, prepared: Prepared, prompt: bytes, now: datetime | float | None) -> bytes:
        """What opens the model's turn: the end that the text with it has over the text without it."""
        other = dict(prepared.context)
        opens = prepared.request.add_generation_prompt
        other.pop("add_generation_prompt", None)
        if not opens:
            other["add_generation_prompt"] = True
        elif "add_generation_prompt" in prepared.request.variables:
            other["add_generation_prompt"] = prepared.request.variables["add_generation_prompt"]
        text = self._without_tokens(self._render(prepared.loaded.template, other, now=now).data)
        without, opened = (text, prompt) if opens else (prompt, text)
        return opened[common_prefix(without, opened) :]

    def _check_parser(self, prepared: Prepared, opening: bytes) -> None:
        """What makes the server fail to build a parser and a grammar for the model's answer."""
        request, loaded = prepared.request, prepared.loaded
        family = loaded.family
        if family is None:
            markers = loaded.analysis.markers
            tag = markers.start.strip()
            expected = opening.partition(tag)[0] if tag else opening
            if not _is_utf8(expected) or (markers.thinks and not (_is_utf8(markers.start) and _is_utf8(markers.end))):
                raise RenderError("llama-server cuts this template's text inside a character", status=400)
        schemas = loaded.analysis.schemas if family is None else family.schemas
        tools = request.offers_tools
        has = {"answer": request.has_schema, "tools": tools, "unread tools": tools}
        wanted = [kind for kind in schemas if has[kind]]
        if family is None or not family.all_schemas:
            wanted = wanted[:1]
        path = "json_schema"
        try:
            if "answer" in wanted:
                check_schema(request.json_schema, self.limits)
            for i, tool in enumerate(request.tools if "tools" in wanted else []):
                path = f"tools[{i}].function.parameters"
                check_parameters(tool["function"]["parameters"], self.limits)
        except SchemaFault as fault:
            message = f"{path} cannot become a grammar: {quote(str(fault))}"
            raise InputError(message, path=path, status=loaded.failure_status) from None


def apply_template(
    source: str,
    body: Any,
    *,
    bos_token: str = "",
    eos_token: str = "",
    now: datetime | float | None = None,
    default_kwargs: Mapping[str, Any] | None = None,
    tool_use: str | None = None,
    add_bos: bool = False,
    add_eos: bool = False,
    limits: Limits | None = None,
) -> str:
    """The prompt that llama-server b11434 gives for a template and the body of `POST /apply-template`.

    `body` is the request's JSON: `messages` and whatever else OpenAI's chat API has. Where the server answers with an
    error, or does not start with this template, a JinjarunError is raised whose `status` is the server's HTTP status.
    `now` is an aware datetime, a naive one (the wall clock), a Unix timestamp (read as UTC) or None for this moment.
    See LlamaServer for the rest. A server is kept for the next call with the same template.
    """
    kwargs = server_json.plain(dict(default_kwargs or {}), "default_kwargs", limits or Limits())
    server = _server(
        source,
        bos_token=bos_token,
        eos_token=eos_token,
        tool_use=tool_use,
        default_kwargs=json.dumps(kwargs),
        add_bos=add_bos,
        add_eos=add_eos,
        limits=limits,
    )
    return server.apply(body, now=now)


@lru_cache(maxsize=SERVERS_KEPT)
def _server(source: str, *, default_kwargs: str, **settings: Any) -> LlamaServer:
    return LlamaServer(source, default_kwargs=json.loads(default_kwargs), **settings)


def _resumed(at: Resumption, analysis: Analysis) -> bytes:
    """What continues a message in the markup that the analysis found."""
    markers = analysis.markers
    text = at.generation_prompt
    if markers.start:
        text = text.partition(markers.start)[0] + markers.start + at.message.reasoning_content.encode()
        if at.content_too:
            text += markers.end
    return text + at.message.text.encode() if at.content_too else text


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
