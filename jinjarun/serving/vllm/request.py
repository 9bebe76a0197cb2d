"""The body of `POST /v1/chat/completions` as vLLM 0.33.0 reads it.

Read is what reaches the prompt or decides a refusal; sampling parameters are not checked. Facts:
entrypoints/openai/chat_completion/protocol.py, ChatCompletionRequest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from jinjarun.serving import server_json
from jinjarun.serving.chat_completions.errors import check_size, refused
from jinjarun.serving.vllm.errors import REFUSALS, invalid
from jinjarun.serving.vllm.message_types import AnyMessage

if TYPE_CHECKING:
    from jinjarun.errors import InputError
    from jinjarun.limits import Limits


class _OpenModel(BaseModel):
    """The server keeps keys that it does not know, in the typed dictionaries below a model, too. Schemas are built when
    the first request is read, not at import."""

    model_config = ConfigDict(extra="allow", defer_build=True)


class FunctionDefinition(_OpenModel):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    defer_loading: bool | None = None


class ToolParam(_OpenModel):
    type: Literal["function"] = "function"
    function: FunctionDefinition
    defer_loading: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """The object that reaches the template: description and parameters in any case, the rest only where given."""
        function = self.function
        deferred = self.defer_loading if function.defer_loading is None else function.defer_loading
        described: dict[str, Any] = {
            "name": function.name,
            "description": function.description,
            "parameters": function.parameters,
        }
        if function.strict is not None:
            described["strict"] = function.strict
        if deferred is not None:
            described["defer_loading"] = deferred
        tool: dict[str, Any] = {"type": self.type, "function": described}
        return tool if self.defer_loading is None else {**tool, "defer_loading": self.defer_loading}


class NamedFunction(_OpenModel):
    name: str


class NamedToolChoice(_OpenModel):
    function: NamedFunction
    type: Literal["function"] = "function"


class _VllmBody(_OpenModel):
    messages: list[AnyMessage]
    tools: list[ToolParam] | None = None
    tool_choice: Literal["none"] | Literal["auto"] | Literal["required"] | NamedToolChoice | None = "none"
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    documents: list[dict[str, str]] | None = None
    chat_template: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class VllmRequest:
    """A request that the server's model accepts. `raw` is what the client sent, for explanations.

    `messages` are typed dictionaries of `message_types`; content lists among them are still to be validated.
    """

    raw: dict[str, Any]
    messages: list[Any]
    tools: list[ToolParam] | None
    tool_choice: str | NamedToolChoice | None
    reasoning_effort: str | None
    add_generation_prompt: bool
    continue_final_message: bool
    documents: list[dict[str, str]] | None
    chat_template: str | None
    chat_template_kwargs: dict[str, Any]
    model: str
    """The model's name, which one refusal quotes."""


def parse_request(body: Any, limits: Limits) -> VllmRequest:
    """What `body` asks for. Raises InputError with the server's text and status, `stage` "validation"."""
    raw = server_json.plain(body, "", limits, integer=server_json.python_integer)
    if not isinstance(raw, dict):
        # The framework's own check, before the server's model.
        error = {"type": "model_attributes_type", "loc": (), "input": raw}
        error["msg"] = "Input should be a valid dictionary or object to extract fields from"
        raise invalid([error], "body-malformed", "")
    check_size(raw)
    given = dict(raw)
    _check_continuation(given)
    _check_tools(given)
    _check_response_format(given)
    if isinstance(given.get("messages"), list):
        given["messages"] = [_with_reasoning(message) for message in given["messages"]]
    try:
        read = _VllmBody.model_validate(given)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        reason = "message-malformed" if errors[0]["loc"][:1] == ("messages",) and len(errors[0]["loc"]) > 1 else None
        raise invalid(errors, reason or "body-malformed") from None
    messages = [_with_calls(message, i) for i, message in enumerate(read.messages)]
    model = raw.get("model")
    return VllmRequest(
        raw=raw,
        messages=messages,
        tools=read.tools,
        tool_choice=read.tool_choice,
        reasoning_effort=read.reasoning_effort,
        add_generation_prompt=read.add_generation_prompt,
        continue_final_message=read.continue_final_message,
        documents=read.documents,
        chat_template=read.chat_template,
        chat_template_kwargs=read.chat_template_kwargs or {},
        model=model if isinstance(model, str) else "the model",
    )


def _refused(text: str, path: str, reason: str) -> InputError:
    return refused(text, path, "validation", reason, REFUSALS)


def _check_continuation(given: dict[str, Any]) -> None:
    if given.get("continue_final_message") and given.get("add_generation_prompt"):
        text = "Cannot set both `continue_final_message` and `add_generation_prompt` to True."
        raise _refused(text, "continue_final_message", "continue-and-open")


def _check_tools(given: dict[str, Any]) -> None:
    """Sets the default of tool_choice, and refuses what does not fit together."""
    tools = given.get("tools")
    if tools == []:
        text = "`tools` must not be an empty array. Either provide at least one tool or omit the field entirely."
        raise _refused(f"{text} (parameter=tools)", "tools", "tools-empty")
    if "tool_choice" not in given and tools:
        given["tool_choice"] = "auto"
    choice = given.get("tool_choice")
    if choice is None or choice == "none":
        return
    if tools is None:
        text = "When using `tool_choice`, `tools` must be set. (parameter=tool_choice)"
        raise _refused(text, "tool_choice", "tool-choice-without-tools")
    if isinstance(choice, dict):
        _check_named_choice(choice, tools)
    elif choice not in ("auto", "required"):
        text = f'Invalid value for `tool_choice`: {choice}! Only named tools, "none", "auto" or "required" are'
        raise _refused(f"{text} supported. (parameter=tool_choice)", "tool_choice", "tool-choice-unknown")


def _check_named_choice(choice: dict[str, Any], tools: Any) -> None:
    usage = 'Correct usage: `{"type": "function", "function": {"name": "my_function"}}`'
    function = choice.get("function")
    if not isinstance(function, dict):
        wrong, path = f"Invalid value for `function`: `{function}` in", "tool_choice.function"
    elif "name" not in function:
        wrong, path = "Expected field `name` in `function` in", "tool_choice.function.name"
    elif not isinstance(function["name"], str) or not function["name"]:
        wrong, path = f"Invalid `name` in `function`: `{function['name']}` in", "tool_choice.function.name"
    elif function["name"] not in _names(tools):
        text = "The tool specified in `tool_choice` does not match any of the specified `tools` (parameter=tool_choice)"
        raise _refused(text, "tool_choice", "tool-choice-unknown")
    else:
        return
    raise _refused(f"{wrong} `tool_choice`! {usage} (parameter={path})", path, "tool-choice-unknown")


def _names(tools: Any) -> list[Any]:
    offered = tools if isinstance(tools, list) else []
    functions = [tool.get("function") for tool in offered if isinstance(tool, dict)]
    return [function.get("name") for function in functions if isinstance(function, dict)]


def _check_response_format(given: dict[str, Any]) -> None:
    wanted = given.get("response_format")
    if isinstance(wanted, dict) and wanted.get("type") == "json_schema" and wanted.get("json_schema") is None:
        text = "When response_format type is 'json_schema', the 'json_schema' field must be provided."
        raise _refused(f"{text} (parameter=response_format)", "response_format", "schema-missing")


def _with_reasoning(message: Any) -> Any:
    """`reasoning_content` under the name that the server knows; where both are given `reasoning` wins."""
    if not isinstance(message, dict) or "reasoning_content" not in message:
        return message
    read = dict(message)
    old = read.pop("reasoning_content")
    if old is not None and read.get("reasoning") is None:
        read["reasoning"] = old
    return read


def _with_calls(message: Any, number: int) -> Any:
    """The message with its calls validated; no earlier step has looked into an `Iterable`."""
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    if calls is None or isinstance(calls, list):
        return message
    try:
        return {**message, "tool_calls": list(calls)}
    except ValidationError as error:
        errors = error.errors(include_url=False)
        path = f"messages[{number}].tool_calls[{errors[0]['loc'][0]}]"
        raise invalid(errors, "call-malformed", path) from None
