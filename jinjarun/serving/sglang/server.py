"""SGLang 0.5.23's path from a body of `POST /v1/chat/completions` to a prompt, for a model with a template.

Order, as the server has it: the body is read (`request`) and checked, tools and variables are gathered, the messages
are remade in the form that the template takes (`content_format`, `messages`), and the template is rendered as
transformers does; where that fails, once more with flat tools. Facts: entrypoints/openai/serving_chat.py.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from jinjarun.errors import JinjarunError, RenderError
from jinjarun.limits import Limits
from jinjarun.serving.chat_completions.answers import PromptAnswer, TransformersCall, given_twice
from jinjarun.serving.chat_completions.contents import ContentFormat
from jinjarun.serving.chat_completions.errors import (
    engine_text,
    failed,
    is_verdict,
    python_error,
    refused,
)
from jinjarun.serving.chat_completions.reworks import Changes
from jinjarun.serving.chat_completions.server import ChatCompletionsServer
from jinjarun.serving.sglang.content_format import detect_content_format, may_reorder_tool_results
from jinjarun.serving.sglang.errors import REFUSALS
from jinjarun.serving.sglang.low_effort import sets_low_effort
from jinjarun.serving.sglang.messages import SglangReader, media_of
from jinjarun.serving.sglang.request import SglangRequest, ToolChoice, ToolEntry, parse_request
from jinjarun.serving.sglang.reworks import REWORKS
from jinjarun.serving.sglang.schema_types import schema_fault, with_json_types
from jinjarun.serving.transformers import check_version

if TYPE_CHECKING:
    from datetime import datetime

    from jinjarun.errors import InputError
    from jinjarun.serving.transformers import Applied

VERSION = "0.5.23"
TRANSFORMERS = "5.19"
"""The transformers that SGLang 0.5.23 installs with: it asks for 5.19.0."""

OWN_ARGUMENTS = ("tokenize", "add_generation_prompt", "tools", "return_dict")
"""Arguments that the server itself gives to `apply_chat_template`: a variable of the same name is one too many."""
CLIENT_FAULTS = frozenset({None, "TypeError", "ValueError"})
"""Python errors of a template that are 400; None is Jinja2's own. Others are 500."""
UNREAD_KEYS = ("add_generation_prompt", "documents", "chat_template", "enable_thinking", "thinking")


@dataclass(frozen=True, slots=True)
class SglangOptions:
    """What the server was started with, by the names of its flags; the defaults are the server's.

    `multimodal` stands for a model with eyes and ears (`--enable-multimodal` or its kind). `transformers` is the
    version below the server: "5.19" is what an installation has, "5.24" what it would be with the newest. `python` is
    the one that the server runs on: up to 3.11 a keyword given twice raises KeyError inside an except block, a 500,
    from 3.12 on TypeError, a 400.
    """

    default_chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    trust_request_chat_template: bool = False
    multimodal: bool = False
    transformers: str = TRANSFORMERS
    python: tuple[int, int] = (3, 11)

    def __post_init__(self) -> None:
        check_version(self.transformers)


@dataclass(frozen=True, slots=True)
class SglangHanded:
    """What goes to transformers; `appended` goes behind the prompt, `template` is the one that the body brought."""

    template: str | None
    content_format: ContentFormat
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None
    variables: dict[str, Any]
    appended: str
    changes: Changes


class SglangServer(ChatCompletionsServer[SglangOptions, SglangHanded]):
    """An SGLang that was started with a template; no weights. Nothing is refused before the first request."""

    default_options = SglangOptions

    @property
    def reads(self) -> Hashable:
        text = self.source if isinstance(self.source, str) else self.source.get("default", "")
        return (
            detect_content_format(text, self.limits),
            may_reorder_tool_results(text, self.limits),
            sets_low_effort(text, self.limits),
            self._tokens.get("bos_token"),
        )

    def hand_over(self, body: Any) -> SglangHanded:
        request = parse_request(body, self.limits)
        changes = Changes(REWORKS)
        request = self._checked(request, changes)
        source = self._source(request, changes)
        text = source if isinstance(source, str) else source.get("default", "")
        variables = self._variables(request, text, changes)
        tools = self._tools(request, changes)
        content_format = detect_content_format(text, self.limits)
        reader = SglangReader(content_format, may_reorder_tool_results(text, self.limits), changes, self.limits)
        messages = reader.messages(request.messages, request.raw["messages"])
        messages, appended = self._finished(messages, request, changes)
        template = source if isinstance(source, str) and source is not self.source else None
        return SglangHanded(template, content_format, messages, tools, variables, appended, changes)

    def rendered(self, handed: SglangHanded, *, now: datetime | float | None, spans: bool) -> PromptAnswer:
        changes = handed.changes.copy()
        source = self.source if handed.template is None else handed.template
        call = TransformersCall(source, self._tokens, self.options.transformers, now, self.limits, spans, self._render)
        context = {"messages": handed.messages, "tools": handed.tools, **handed.variables}
        try:
            applied = self._applied(call, handed.messages, handed.tools, handed.variables, changes)
        except JinjarunError as error:
            if not is_verdict(error):
                raise
            raise self._failed(error) from None
        return PromptAnswer.of(
            applied,
            server="sglang",
            version=VERSION,
            content_format=handed.content_format,
            changes=changes,
            context=context,
            numbers=range(len(handed.messages)),
            appended=handed.appended,
        )

    def content_format(self) -> ContentFormat:
        """The form of content that messages are made for."""
        text = self.source if isinstance(self.source, str) else self.source.get("default", "")
        return detect_content_format(text, self.limits)

    def _checked(self, request: SglangRequest, changes: Changes) -> SglangRequest:
        """The request with the types in its schemas rewritten. Raises for what the server refuses, in its order."""
        if not request.messages:
            raise _refused("Messages cannot be empty.", "messages", "messages-empty")
        if request.chat_template_kwargs.get("chat_template") and not self.options.trust_request_chat_template:
            text = (
                "Request-supplied chat_template is not allowed. Start the server with --trust-request-chat-template to"
            )
            raise _refused(f"{text} permit it.", "chat_template_kwargs.chat_template", "template-untrusted")
        if not self.options.multimodal:
            for i, message in enumerate(request.messages):
                for kind in media_of(message.content)[:1]:
                    text = f"Model only supports text input; received unsupported content type '{kind}'."
                    raise _refused(text, f"messages[{i}].content", "media-refused")
        self._check_choice(request)
        tools = self._with_json_types(request.tools, changes)
        if request.lacks_schema:
            text = "schema_ is required for json_schema response format request."
            raise _refused(text, "response_format", "schema-missing")
        return replace(request, tools=tools)

    def _check_choice(self, request: SglangRequest) -> None:
        choice = request.tool_choice
        if not isinstance(choice, ToolChoice):
            if choice == "required" and not request.tools:
                text = "Tools cannot be empty if tool choice is set to required."
                raise _refused(text, "tool_choice", "tools-needed")
            return
        if not request.tools:
            text = "Tools cannot be empty if tool choice is set to a specific tool."
            raise _refused(text, "tool_choice", "tools-needed")
        name = choice.function.name
        if all(tool.function.name != name for tool in request.tools):
            raise _refused(f"Tool '{name}' not found in tools list.", "tool_choice", "tool-choice-unknown")

    def _with_json_types(self, tools: list[ToolEntry] | None, changes: Changes) -> list[ToolEntry] | None:
        for i, tool in enumerate(tools or ()):
            given = tool.function.parameters
            if given is None:
                continue
            schema = with_json_types(given)
            if schema != given:
                changes.note("types-rewritten", f"tools[{i}].function.parameters")
            fault = schema_fault(schema)
            if fault is not None:
                text = f"Tool {i} function has invalid 'parameters' schema: {fault}"
                raise _refused(text, f"tools[{i}].function.parameters", "schema-invalid")
            tool.function.parameters = schema
        return tools

    def _source(self, request: SglangRequest, changes: Changes) -> str | Mapping[str, str]:
        given = request.chat_template_kwargs.get("chat_template")
        if not given or not isinstance(given, str):
            return self.source
        changes.note("template-given", "template")
        return given

    def _variables(self, request: SglangRequest, source: str, changes: Changes) -> dict[str, Any]:
        """The variables in the server's order of precedence. The effort of a request is taken out of its kwargs before
        the server fills in its defaults, so that a default effort wins over it."""
        for key in UNREAD_KEYS:
            if key in request.raw:
                changes.note("key-ignored", key)
        variables = dict(request.chat_template_kwargs)
        raw = request.raw.get("chat_template_kwargs")
        for name in ("thinking", "enable_thinking"):
            if name in variables and not (isinstance(raw, dict) and name in raw):
                changes.note("thinking-by-effort", name)
        effort = variables.pop("reasoning_effort", None)
        if effort is None:
            effort = request.reasoning_effort
        elif request.reasoning_effort is not None:
            changes.note("effort-from-kwargs", "chat_template_kwargs.reasoning_effort")
        defaults = self.options.default_chat_template_kwargs
        variables = {**defaults, **variables}
        if effort is None:
            effort = defaults.get("reasoning_effort")
        elif "reasoning_effort" in defaults:
            changes.note("effort-from-defaults", "reasoning_effort")
        if effort == "low" and "low_effort" not in variables and sets_low_effort(source, self.limits):
            variables["low_effort"] = True
            changes.note("low-effort-set", "low_effort")
        return variables if effort is None else {"reasoning_effort": effort, **variables}

    def _tools(self, request: SglangRequest, changes: Changes) -> list[dict[str, Any]] | None:
        if not request.tools:
            return None
        choice = request.tool_choice
        if choice == "none":
            changes.note("tools-excluded", "tools")
            return None
        tools = request.tools
        if isinstance(choice, ToolChoice):
            tools = [tool for tool in tools if tool.function.name == choice.function.name]
            if len(tools) < len(request.tools):
                changes.note("tools-chosen", "tools")
        changes.note("tools-rewritten", "tools")
        return [tool.to_json() for tool in tools]

    def _finished(
        self, messages: list[dict[str, Any]], request: SglangRequest, changes: Changes
    ) -> tuple[list[dict[str, Any]], str]:
        """The messages with a final assistant message of text dealt with, and what goes behind the prompt."""
        last = messages[-1]
        if last["role"] != "assistant" or not isinstance(last["content"], str):
            return messages, ""
        path = f"messages[{len(messages) - 1}]"
        if not request.continue_final_message:
            changes.note("final-message-made-user", path)
            return [*messages[:-1], {"role": "user", "content": last["content"]}], ""
        changes.note("final-message-held-back", path)
        changes.note("final-message-appended", "prompt")
        return messages[:-1], last["content"].removeprefix(self._tokens.get("bos_token") or "")

    def _applied(
        self,
        call: TransformersCall,
        messages: list[dict[str, Any]],
        tools: Any,
        variables: dict[str, Any],
        changes: Changes,
    ) -> Applied:
        """What transformers gives; where it fails, what it gives with flat tools."""
        try:
            return self._called(call, messages, tools, variables)
        except JinjarunError as error:
            if not is_verdict(error):
                raise
        flat = [tool["function"] for tool in tools] if tools else None
        applied = self._called(call, messages, flat, variables)
        changes.note("tools-flattened", "tools")
        return applied

    def _called(
        self, call: TransformersCall, messages: list[dict[str, Any]], tools: Any, variables: dict[str, Any]
    ) -> Applied:
        for name in OWN_ARGUMENTS:
            if name in variables:
                raise given_twice(name, "transformers.tokenization_utils_base.apply_chat_template()")
        if "conversation" in variables:
            raise RenderError("apply_chat_template() got multiple values for argument 'conversation'", kind="TypeError")
        rest = {
            name: value for name, value in variables.items() if name not in ("continue_final_message", "chat_template")
        }
        continues = variables.get("continue_final_message", False)
        return call.apply(messages, tools, opens=True, continues=continues, variables=rest)

    def _failed(self, error: JinjarunError) -> JinjarunError:
        text, kind = engine_text(error), python_error(error)
        keyword = error.details.get("keyword")
        if keyword is not None and self.options.python < (3, 12):
            text, kind = f"'{keyword}'", "KeyError"
        if kind in CLIENT_FAULTS:
            return failed(error, 400, text)
        return failed(error, 500, f"Internal server error: {text}")


def _refused(text: str, path: str, reason: str) -> InputError:
    return refused(text, path, "validation", reason, REFUSALS)


def apply_template(
    source: str | Mapping[str, str],
    body: Any,
    *,
    bos_token: str | None = None,
    eos_token: str | None = None,
    now: datetime | float | None = None,
    options: SglangOptions | None = None,
    limits: Limits | None = None,
) -> str:
    """The prompt that SGLang 0.5.23 makes of a template and the body of `POST /v1/chat/completions`.

    `source` is the model's template, or its templates by name; `body` the request's JSON. Where the server answers with
    an error, a JinjarunError is raised: its message is the server's, `status` its HTTP status, and `details` say at
    which `stage` it was refused and what to send instead (`hint`). `now` is an aware datetime, a naive one (the wall
    clock), a Unix timestamp (read as UTC) or None for this moment. See SglangServer and SglangOptions for the rest.
    """
    tokens = {"bos_token": bos_token, "eos_token": eos_token}
    return SglangServer(source, special_tokens=tokens, options=options, limits=limits).apply(body, now=now)


def content_format(source: str, *, limits: Limits | None = None) -> ContentFormat:
    """The form of message content that SGLang 0.5.23 finds in a template: "openai" (a list of parts) or "string"."""
    return detect_content_format(source, limits if limits is not None else Limits())
