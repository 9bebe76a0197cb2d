"""The body of `POST /v1/chat/completions` as SGLang 0.5.23 reads it.

Read is what reaches the prompt or decides a refusal; sampling parameters are not checked. Keys that a model does not
have are dropped. Facts: entrypoints/openai/protocol.py, whose names show in the server's errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    field_validator,
    model_validator,
)

from jinjarun.serving import server_json
from jinjarun.serving.chat_completions.errors import check_size
from jinjarun.serving.sglang.errors import invalid

if TYPE_CHECKING:
    from jinjarun.limits import Limits

ROLES = ("system", "assistant", "tool", "function", "developer", "latest_reminder", "root")
"""Roles of messages that are not the user's, in any letter case."""
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "ultra", "max")
YES = frozenset({"1", "true", "yes", "y", "on"})


class _LateModel(BaseModel):
    """Schemas are built when the first request is read, not at import."""

    model_config = ConfigDict(defer_build=True)


# ---------------------------------------------------------------------------------------------------------------- parts


class ChatCompletionMessageContentTextPart(_LateModel):
    type: Literal["text"]
    text: str


class ChatCompletionMessageContentThinkingPart(_LateModel):
    type: Literal["thinking", "reasoning"]
    thinking: str | None = None
    text: str | None = None

    @model_validator(mode="after")
    def validate_payload(self) -> ChatCompletionMessageContentThinkingPart:
        if (self.thinking is None) == (self.text is None):
            raise ValueError("thinking parts require exactly one of 'thinking' or 'text'")
        return self


class ChatCompletionMessageContentImageURL(_LateModel):
    url: str
    detail: Literal["auto", "low", "high"] | None = "auto"
    max_dynamic_patch: int | None = None
    min_dynamic_patch: int | None = None


class PartURL(_LateModel):
    url: str


class PartAudio(_LateModel):
    data: str
    format: str


class ChatCompletionMessageContentImagePart(_LateModel):
    type: Literal["image_url"]
    image_url: ChatCompletionMessageContentImageURL
    modalities: Literal["image", "multi-images", "video"] | None = "image"


class ChatCompletionMessageContentVideoPart(_LateModel):
    type: Literal["video_url"]
    video_url: PartURL


class ChatCompletionMessageContentAudioPart(_LateModel):
    type: Literal["audio_url"]
    audio_url: PartURL


class ChatCompletionMessageContentInputAudioPart(_LateModel):
    type: Literal["input_audio"]
    input_audio: PartAudio


class ChatCompletionMessageContentToolReferenceBlock(_LateModel):
    type: Literal["tool_reference"]
    name: str


Part = (
    ChatCompletionMessageContentTextPart
    | ChatCompletionMessageContentThinkingPart
    | ChatCompletionMessageContentImagePart
    | ChatCompletionMessageContentVideoPart
    | ChatCompletionMessageContentAudioPart
    | ChatCompletionMessageContentInputAudioPart
    | ChatCompletionMessageContentToolReferenceBlock
)

# ------------------------------------------------------------------------------------------------------ calls and tools


class FunctionResponse(_LateModel):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class CallParam(_LateModel):
    id: str | None = None
    index: int | None = None
    type: Literal["function"] = "function"
    function: FunctionResponse


class ToolFunction(_LateModel):
    description: str | None = None
    name: str
    parameters: Any = None
    strict: bool | None = None
    defer_loading: bool | None = None

    _order: tuple[str, ...] = PrivateAttr(default=())

    @model_validator(mode="wrap")
    @classmethod
    def remember_order(cls, given: Any, handler: ModelWrapValidatorHandler[ToolFunction]) -> ToolFunction:
        read = handler(given)
        if isinstance(given, dict):
            read._order = tuple(key for key in given if key in cls.model_fields)
        return read

    def to_json(self) -> dict[str, Any]:
        """The client's keys in its order, then the others; strict and defer_loading only where they are not null."""
        order = dict.fromkeys((*self._order, "description", "name", "parameters", "strict", "defer_loading"))
        found = {key: getattr(self, key) for key in order}
        return {key: found[key] for key in found if found[key] is not None or key not in ("strict", "defer_loading")}


class ToolEntry(_LateModel):
    type: str = "function"
    function: ToolFunction
    defer_loading: bool | None = None

    @model_validator(mode="after")
    def propagate(self) -> ToolEntry:
        if self.defer_loading is not None and self.function.defer_loading is None:
            self.function.defer_loading = self.defer_loading
        return self

    def to_json(self) -> dict[str, Any]:
        """The object that reaches the template; `defer_loading` is there in any case."""
        return {"type": self.type, "function": self.function.to_json(), "defer_loading": self.defer_loading}


class ToolChoiceFuncName(_LateModel):
    name: str | None = None


class ToolChoice(_LateModel):
    function: ToolChoiceFuncName
    type: Literal["function"] = "function"


# ------------------------------------------------------------------------------------------------------------- messages


def _check_thinking(role: str, content: Any) -> None:
    parts = content if isinstance(content, list) else []
    if role != "assistant" and any(isinstance(part, ChatCompletionMessageContentThinkingPart) for part in parts):
        raise ValueError("thinking content parts are only valid in assistant messages")


class ChatCompletionMessageGenericParam(_LateModel):
    role: Literal["system", "assistant", "tool", "function", "developer", "latest_reminder", "root"]
    content: str | list[Part] | None = None
    tool_call_id: str | None = None
    name: str | None = None
    phase: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[CallParam] | None = None
    tools: list[ToolEntry] | None = None
    prefix: bool | None = None

    @field_validator("role", mode="before")
    @classmethod
    def lower_case(cls, role: Any) -> str:
        if not isinstance(role, str):
            raise ValueError("'role' must be a string")
        if role.lower() not in ROLES:
            raise ValueError(f"'role' must be one of {', '.join(map(repr, ROLES))} (case-insensitive).")
        return role.lower()

    @model_validator(mode="after")
    def validate_thinking_parts_role(self) -> ChatCompletionMessageGenericParam:
        _check_thinking(self.role, self.content)
        return self


class ChatCompletionMessageUserParam(_LateModel):
    role: Literal["user"]
    content: str | list[Part]

    @model_validator(mode="after")
    def validate_thinking_parts_role(self) -> ChatCompletionMessageUserParam:
        _check_thinking(self.role, self.content)
        return self


AnyMessage = ChatCompletionMessageGenericParam | ChatCompletionMessageUserParam

# ----------------------------------------------------------------------------------------------------------------- body


class JsonSchemaResponseFormat(_LateModel):
    name: str
    schema_: dict[str, Any] | None = Field(alias="schema", default=None)


class ResponseFormat(_LateModel):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchemaResponseFormat | None = None


class StructuralTagResponseFormat(_LateModel):
    model_config = ConfigDict(extra="allow", defer_build=True)

    type: Literal["structural_tag"]


Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "ultra", "max"]


class _SglangBody(_LateModel):
    messages: list[AnyMessage]
    model: str = "default"
    response_format: ResponseFormat | StructuralTagResponseFormat | None = None
    tools: list[ToolEntry] | None = None
    tool_choice: ToolChoice | Literal["auto", "required", "none"] = "auto"
    reasoning_effort: Effort | Annotated[float, Field(ge=0.0, le=0.99, allow_inf_nan=False)] | None = None
    continue_final_message: bool = False
    chat_template_kwargs: dict[Any, Any] | None = None

    @field_validator("reasoning_effort", mode="before")
    @classmethod
    def no_boolean(cls, effort: Any) -> Any:
        if isinstance(effort, bool):
            raise ValueError("reasoning_effort must not be a boolean")
        return effort

    @model_validator(mode="before")
    @classmethod
    def with_defaults(cls, body: dict[str, Any]) -> dict[str, Any]:
        """A copy with what the server fills in before it looks at the fields."""
        given = dict(body)
        if "response_format" in given:
            given["response_format"] = _response_format(given["response_format"])
        _set_thinking(given)
        if given.get("tool_choice") is None:
            offers = given.get("tools") is not None or _has_message_tools(given.get("messages"))
            given["tool_choice"] = "auto" if offers else "none"
        return given


def _response_format(wanted: Any) -> Any:
    """A schema that lies beside the type goes where OpenAI's API has it."""
    if not isinstance(wanted, dict) or wanted.get("type") != "json_schema":
        return wanted
    schema = wanted.get("schema")
    if wanted.get("json_schema") or not isinstance(schema, dict) or not schema:
        return wanted
    return {"type": "json_schema", "json_schema": {"name": schema.get("title", "Schema"), "schema": schema}}


def _set_thinking(given: dict[str, Any]) -> None:
    """`reasoning` sets the effort or thinking, and the effort the two variables by which templates know thinking."""
    thinking = None
    reasoning = given.get("reasoning")
    if isinstance(reasoning, dict):
        effort = _effort(reasoning)
        if effort is not None:
            given["reasoning_effort"] = effort
        enabled = reasoning.get("enabled")
        enabled = reasoning.get("enable", False) if enabled is None else enabled
        enabled = enabled.strip().lower() in YES if isinstance(enabled, str) else enabled
        thinking = True if enabled else None
    effort = given.get("reasoning_effort")
    if effort is not None:
        thinking = effort != "none"
    if thinking is not None:
        kwargs = given.get("chat_template_kwargs")
        filled = {"thinking": thinking, "enable_thinking": thinking}
        own = kwargs if isinstance(kwargs, dict) else {}
        given["chat_template_kwargs"] = {**own, **{name: filled[name] for name in filled if name not in own}}


def _effort(reasoning: dict[str, Any]) -> Any:
    effort = reasoning.get("effort")
    effort = reasoning.get("reasoning_effort") if effort is None else effort
    if effort is None or effort in EFFORTS:
        return effort
    if not isinstance(effort, (int, float, str)) or isinstance(effort, bool):
        raise ValueError(f"invalid reasoning effort: {effort!r}")
    try:
        return float(effort)
    except ValueError:
        raise ValueError(f"invalid reasoning effort: {effort!r}") from None


def _has_message_tools(messages: Any) -> bool:
    return isinstance(messages, list) and any(
        isinstance(message, dict)
        and str(message.get("role")).lower() in ("system", "developer")
        and bool(message.get("tools"))
        for message in messages
    )


@dataclass(frozen=True, slots=True)
class SglangRequest:
    """A request that the server's model accepts. `raw` is what the client sent, for explanations."""

    raw: dict[str, Any]
    messages: list[AnyMessage]
    tools: list[ToolEntry] | None
    tool_choice: ToolChoice | str
    reasoning_effort: Any
    continue_final_message: bool
    chat_template_kwargs: dict[str, Any]
    lacks_schema: bool
    """Whether the answer is to fit a JSON schema that is not there."""


def parse_request(body: Any, limits: Limits) -> SglangRequest:
    """What `body` asks for. Raises InputError with the server's text and status, `stage` "validation"."""
    raw = server_json.plain(body, "", limits, integer=server_json.python_integer)
    if not isinstance(raw, dict):
        # The framework's own check, before the server's model.
        message = "Input should be a valid dictionary or object to extract fields from"
        raise invalid([{"type": "model_attributes_type", "loc": (), "msg": message, "input": raw}])
    check_size(raw)
    try:
        read = _SglangBody.model_validate(raw)
    except ValidationError as error:
        raise invalid(error.errors(include_url=False)) from None
    wanted = read.response_format
    return SglangRequest(
        raw=raw,
        messages=read.messages,
        tools=read.tools,
        tool_choice=read.tool_choice,
        reasoning_effort=read.reasoning_effort,
        continue_final_message=read.continue_final_message,
        chat_template_kwargs=read.chat_template_kwargs or {},
        lacks_schema=isinstance(wanted, ResponseFormat)
        and wanted.type == "json_schema"
        and (wanted.json_schema is None or wanted.json_schema.schema_ is None),
    )
