"""vLLM 0.33.0's path from a body of `POST /v1/chat/completions` to a prompt, for a text-only model with a template.

Order, as the server has it: the body is read (`request`), refused for what the server was not started for, its messages
are remade in the form that the template takes (`content_format`, `messages`), its variables are gathered, and the
template is rendered as transformers does. Facts: renderers/online_renderer.py and renderers/hf.py.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from jinjarun.errors import JinjarunError
from jinjarun.limits import Limits
from jinjarun.serving.cache import cached_template
from jinjarun.serving.chat_completions.answers import CALL_PARAMETERS, PromptAnswer, TransformersCall, given_twice
from jinjarun.serving.chat_completions.contents import ContentFormat
from jinjarun.serving.chat_completions.errors import engine_text, failed, is_verdict, refused
from jinjarun.serving.chat_completions.repairs import REPAIRS
from jinjarun.serving.chat_completions.reworks import Changes
from jinjarun.serving.chat_completions.server import ChatCompletionsServer
from jinjarun.serving.transformers import check_version
from jinjarun.serving.vllm.content_format import detect_content_format
from jinjarun.serving.vllm.errors import REFUSALS
from jinjarun.serving.vllm.messages import VllmReader, make_system, names_developer
from jinjarun.serving.vllm.request import VllmRequest, parse_request
from jinjarun.serving.vllm.reworks import REWORKS

if TYPE_CHECKING:
    from datetime import datetime

VERSION = "0.33.0"
TRANSFORMERS = "5.20"
"""The newest transformers that vLLM 0.33.0 installs with: it asks for less than 5.21."""

DROPPED_GLOBALS = frozenset({"range", "dict", "lipsum", "cycler", "joiner", "namespace"})
"""Names that Jinja2 itself defines: the server takes them for nothing that a template asks of a request."""
EMPTY_TOOLS = "send an empty list of tools in chat_template_kwargs: the template loops over tools without asking"
REPAIRS_HERE = (*REPAIRS, (lambda body: {**body, "chat_template_kwargs": {"tools": []}}, EMPTY_TOOLS))
UNREAD_KEYS = ("enable_thinking", "thinking", "reasoning", "preserve_thinking", "date_string")
"""Keys that other servers read at the top of a body, or that users take for variables."""


@dataclass(frozen=True, slots=True)
class VllmOptions:
    """What the server was started with, by the names of its flags.

    The defaults are the server's, but for the two flags without which it refuses every request with tools: they stand
    for a server that was set up for tools. `enable_auto_tool_choice=False, tool_call_parser=None` is one that was not;
    which parser it is does not matter, for it reads what the model wrote. `transformers` is the version below it:
    "5.20" is what an installation has, "5.24" what it would be with the newest.
    """

    chat_template_content_format: Literal["auto", "string", "openai"] = "auto"
    enable_auto_tool_choice: bool = True
    tool_call_parser: str | None = "any"
    exclude_tools_when_tool_choice_none: bool = False
    default_chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    trust_request_chat_template: bool = False
    transformers: str = TRANSFORMERS

    def __post_init__(self) -> None:
        check_version(self.transformers)


@dataclass(frozen=True, slots=True)
class VllmHanded:
    """What goes to transformers; `numbers` are those that the messages had in the body, `template` is the one that the
    body brought."""

    template: str | None
    content_format: ContentFormat
    messages: list[dict[str, Any]]
    numbers: list[int]
    variables: dict[str, Any]
    changes: Changes


class VllmServer(ChatCompletionsServer[VllmOptions, VllmHanded]):
    """A vLLM that was started with a template; no weights. Nothing is refused before the first request."""

    default_options = VllmOptions
    repairs = REPAIRS_HERE

    @property
    def reads(self) -> Hashable:
        return self.content_format(), names_developer(self._chosen(self.source, None))

    def hand_over(self, body: Any) -> VllmHanded:
        request = parse_request(body, self.limits)
        changes = Changes(REWORKS)
        self._check(request)
        variables = self._variables(request, changes)
        source = self._source(request, changes)
        text = self._chosen(source, variables.get("tools"))
        content_format = self._content_format(text)
        reader = VllmReader(content_format, request.model, changes, self.limits)
        messages = reader.messages(request.messages, request.raw["messages"])
        messages, numbers = make_system(messages, text, changes)
        template = source if isinstance(source, str) and source is not self.source else None
        return VllmHanded(template, content_format, messages, numbers, variables, changes)

    def rendered(self, handed: VllmHanded, *, now: datetime | float | None, spans: bool) -> PromptAnswer:
        changes = handed.changes.copy()
        source = self.source if handed.template is None else handed.template
        try:
            text = self._chosen(source, handed.variables.get("tools"))
            kept = self._read_variables(handed.variables, text, changes)
            if "conversation" in kept:
                raise given_twice("conversation", "PreTrainedTokenizerBase.apply_chat_template()")
            call = TransformersCall(
                source, self._tokens, self.options.transformers, now, self.limits, spans, self._render
            )
            applied = call.apply(
                handed.messages,
                kept.pop("tools", None),
                opens=kept.pop("add_generation_prompt", False),
                continues=kept.pop("continue_final_message", False),
                variables=kept,
            )
        except JinjarunError as error:
            if not is_verdict(error):
                raise
            raise failed(error, 400, engine_text(error)) from None
        if applied.template == "tool_use":
            changes.note("tool-use-template", "template")
        context = {"messages": handed.messages, **handed.variables}
        return PromptAnswer.of(
            applied,
            server="vllm",
            version=VERSION,
            content_format=handed.content_format,
            changes=changes,
            context=context,
            numbers=handed.numbers,
        )

    def content_format(self, *, has_tools: bool = False) -> ContentFormat:
        """The form of content that messages are made for. `has_tools` chooses among several templates."""
        return self._content_format(self._chosen(self.source, [] if has_tools else None))

    def _content_format(self, source: str) -> ContentFormat:
        given = self.options.chat_template_content_format
        return detect_content_format(source, self.limits) if given == "auto" else given

    def _check(self, request: VllmRequest) -> None:
        """What the server was not started for."""
        choice = request.tool_choice
        if self.options.tool_call_parser is None or (choice == "auto" and not self.options.enable_auto_tool_choice):
            if choice == "auto":
                text = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
                raise refused(text, "tools", "validation", "auto-tools-off", REFUSALS)
            if choice not in ("none", None):
                named = f'"{choice}"' if isinstance(choice, str) else f'function "{choice.function.name}"'
                text = f"tool_choice={named} requires --tool-call-parser to be set"
                raise refused(text, "tool_choice", "validation", "tool-parser-missing", REFUSALS)
        brought = request.chat_template is not None or request.chat_template_kwargs.get("chat_template") is not None
        if brought and not self.options.trust_request_chat_template:
            text = (
                "Chat template is passed with request, but --trust-request-chat-template is not set. "
                "Refused request with untrusted chat template."
            )
            raise refused(text, "chat_template", "validation", "template-untrusted", REFUSALS)

    def _source(self, request: VllmRequest, changes: Changes) -> str | Mapping[str, str]:
        given = request.chat_template or request.chat_template_kwargs.get("chat_template")
        if not isinstance(given, str):
            return self.source
        changes.note("template-given", "template")
        return given

    def _chosen(self, source: str | Mapping[str, str], tools: Any) -> str:
        """The text of the template that transformers chooses, empty where it finds none."""
        if isinstance(source, str):
            return source
        name = "tool_use" if tools is not None and "tool_use" in source else "default"
        return source.get(name, "")

    def _tools(self, request: VllmRequest, changes: Changes) -> list[dict[str, Any]] | None:
        if not request.tools:
            return None
        if request.tool_choice == "none" and self.options.exclude_tools_when_tool_choice_none:
            changes.note("tools-excluded", "tools")
            return None
        if request.tool_choice != "none":
            changes.note("tool-flags-needed", "tools")
        read = [tool.to_json() for tool in request.tools]
        for i, (raw, tool) in enumerate(zip(request.raw["tools"], read, strict=True)):
            if raw != tool or list(raw) != list(tool) or list(raw["function"]) != list(tool["function"]):
                changes.note("tools-rewritten", f"tools[{i}]")
        return read

    def _variables(self, request: VllmRequest, changes: Changes) -> dict[str, Any]:
        """All that the server would give to transformers, in its order of precedence."""
        for key in UNREAD_KEYS:
            if key in request.raw:
                changes.note("key-ignored", key)
        given = request.chat_template_kwargs
        fields: dict[str, Any] = {
            "add_generation_prompt": request.add_generation_prompt,
            "continue_final_message": request.continue_final_message,
            "documents": request.documents,
            "reasoning_effort": request.reasoning_effort,
        }
        if request.reasoning_effort is not None and "enable_thinking" not in given:
            fields["enable_thinking"] = request.reasoning_effort != "none"
            changes.note("thinking-by-effort", "enable_thinking")
        for name, value in fields.items():
            if name in given and not _is_left_out(value) and given[name] != value:
                changes.note("variable-over-kwargs", f"chat_template_kwargs.{name}")
        tools = self._tools(request, changes)
        if tools is not None and not _is_left_out(given.get("tools")):
            changes.note("tools-from-kwargs", "chat_template_kwargs.tools")
        for name, value in given.items():
            if _is_left_out(value) and name not in fields:
                changes.note("null-or-auto-dropped", f"chat_template_kwargs.{name}")
        defaults = _overlaid(self.options.default_chat_template_kwargs, {"tools": tools})
        return _overlaid(defaults, _overlaid(given, fields))

    def _read_variables(self, variables: dict[str, Any], source: str, changes: Changes) -> dict[str, Any]:
        """Those that transformers or the template know. Raises as `Template` does."""
        names = cached_template(source, "transformers", self.limits).names - DROPPED_GLOBALS
        kept = {}
        for name, value in variables.items():
            if name in ("chat_template", "tokenize"):
                continue
            if name in CALL_PARAMETERS or name in names:
                kept[name] = value
            else:
                changes.note("variable-unread", name)
        return kept


def _is_left_out(value: Any) -> bool:
    return value is None or value == "auto"


def _overlaid(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`below` with the entries of `above`, but for those that are null or "auto"."""
    return {**below, **{name: value for name, value in above.items() if not _is_left_out(value)}}


def apply_template(
    source: str | Mapping[str, str],
    body: Any,
    *,
    bos_token: str | None = None,
    eos_token: str | None = None,
    now: datetime | float | None = None,
    options: VllmOptions | None = None,
    limits: Limits | None = None,
) -> str:
    """The prompt that vLLM 0.33.0 makes of a template and the body of `POST /v1/chat/completions`.

    `source` is the model's template, or its templates by name; `body` the request's JSON. Where the server answers with
    an error, a JinjarunError is raised: its message is the server's, `status` its HTTP status, and `details` say at
    which `stage` it was refused and what to send instead (`hint`). `now` is an aware datetime, a naive one (the wall
    clock), a Unix timestamp (read as UTC) or None for this moment. See VllmServer and VllmOptions for the rest.
    """
    tokens = {"bos_token": bos_token, "eos_token": eos_token}
    return VllmServer(source, special_tokens=tokens, options=options, limits=limits).apply(body, now=now)


def content_format(source: str, *, limits: Limits | None = None) -> ContentFormat:
    """The form of message content that vLLM 0.33.0 finds in a template: "openai" (a list of parts) or "string"."""
    return detect_content_format(source, limits if limits is not None else Limits())
