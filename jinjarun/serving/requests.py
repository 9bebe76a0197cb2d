"""The body of `POST /apply-template`, checked in the order and with the HTTP statuses of llama-server b11434.

Facts: tools/server/server-common.cpp (oaicompat_chat_params_parse) and common/chat.cpp of that build. The server
answers 400 for what it expects to be wrong and for a JSON type that it did not expect, but 500 for any fault that it
finds while it reads `messages` and `tools` in detail.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from jinjarun.errors import InputError, quote
from jinjarun.serving import server_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jinjarun.limits import Limits

T = TypeVar("T")

MEDIA_PARTS = {"image_url": "image", "input_audio": "audio", "input_video": "video", "video_url": "video"}
"""Types of content parts that need a model with eyes or ears, and what they hold."""

TOOL_CHOICES = ("auto", "none", "required")
REASONING_FORMATS = ("none", "auto", "deepseek", "deepseek-legacy")
ENGINE_TRIMS = " \t\n\v\f\r"
"""What the server's C locale calls white space."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    name: str
    arguments: str
    """JSON text: what the client sent as a string, or its object written compactly."""
    id: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """A message as the server keeps it. Whatever else the client put into it is gone."""

    role: str
    content: str = ""
    parts: tuple[str, ...] = ()
    """Texts of the content parts, where the content was a list."""
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning_content: str = ""
    name: str = ""
    tool_call_id: str = ""

    @property
    def is_empty(self) -> bool:
        """Nothing but a role."""
        return self == Message(self.role)

    @property
    def text(self) -> str:
        """The content as one text, parts after the first set off by an empty line."""
        text = self.content
        for part in self.parts:
            text += f"\n\n{part}" if text else part
        return text

    def trimmed(self) -> Message:
        return replace(
            self,
            content=self.content.strip(ENGINE_TRIMS),
            reasoning_content=self.reasoning_content.strip(ENGINE_TRIMS),
            parts=tuple(part.strip(ENGINE_TRIMS) for part in self.parts),
        )

    def to_json(self) -> dict[str, Any]:
        """The object that reaches the template, keys in the server's order."""
        content: Any = self.content
        if not content and self.parts:
            content = [{"type": "text", "text": text} for text in self.parts]
        message: dict[str, Any] = {"role": self.role, "content": content}
        for key in ("reasoning_content", "name", "tool_call_id"):
            if value := getattr(self, key):
                message[key] = value
        if self.tool_calls:
            message["tool_calls"] = [
                {
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                    **({"id": call.id} if call.id else {}),
                }
                for call in self.tool_calls
            ]
        return message


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What a body asks for. `raw_messages` is what the client sent, for explanations."""

    messages: tuple[Message, ...]
    raw_messages: list[Any]
    raw_tools: list[Any]
    tools: list[dict[str, Any]]
    tool_choice: str
    json_schema: Any
    add_generation_prompt: bool
    continued: str | None
    """Part of the last message that the model is to continue: "content", "reasoning", or None."""
    prefilled: bool
    """Whether that was decided by the last message being the assistant's."""
    enable_thinking: bool | None
    """None: the server's default."""
    variables: dict[str, Any]
    """What goes to the template as it is: `chat_template_kwargs` over the server's own."""
    client_variables: tuple[str, ...] = ()
    stop_fault: InputError | None = None
    """What it finds wrong, when the prompt is there, where the model's template adds a stop to those of the client."""
    late_fault: InputError | None = None
    """What the server finds wrong after that."""

    @property
    def has_schema(self) -> bool:
        return isinstance(self.json_schema, dict)

    @property
    def offers_tools(self) -> bool:
        return bool(self.tools) and self.tool_choice != "none"


def parse_request(body: Any, default_variables: Mapping[str, Any], limits: Limits) -> ChatRequest:
    """What `body` asks for. Raises InputError with `path` and the server's HTTP status."""
    copy = server_json.plain(body, "", limits)
    fields: dict[str, Any] = copy if isinstance(copy, dict) else {}

    tools = fields.get("tools")
    tool_choice = _typed(fields, "tool_choice", str, "auto")
    json_schema = _json_schema(fields)
    _check_messages(fields)
    messages = tuple(_message(raw, f"messages[{i}]") for i, raw in enumerate(fields["messages"]))
    read_tools = _tools(tools)
    if tool_choice not in TOOL_CHOICES:
        raise _bad(f"invalid tool_choice: {quote(tool_choice)}", "tool_choice")

    add_generation_prompt = _typed(fields, "add_generation_prompt", bool, True)
    continued = _continuation(fields.get("continue_final_message"))
    prefilled = False
    if continued is None and messages and messages[-1].role == "assistant":
        if len(messages) > 1 and messages[-2].role == "assistant":
            raise _bad("the last two messages are both the assistant's", f"messages[{len(messages) - 1}]")
        continued, add_generation_prompt, prefilled = "auto", False, True
    if continued is not None:
        if add_generation_prompt:
            raise _bad("add_generation_prompt and continue_final_message exclude each other", "continue_final_message")
        if messages and messages[-1].role == "assistant" and messages[-1].tool_calls:
            raise _bad("a message with tool calls cannot be continued", f"messages[{len(messages) - 1}]")
        continued = _resolve(continued, messages)
    _check_reasoning_format(fields)
    if read_tools and tool_choice != "none" and "grammar" in fields:
        raise _bad("a grammar cannot be combined with tools", "grammar")

    variables = dict(default_variables)
    client_variables = _items(fields.get("chat_template_kwargs"))
    variables.update(client_variables)
    thinking = variables.get("enable_thinking")
    if isinstance(thinking, str):
        raise _bad("enable_thinking must be a boolean, not a string", "chat_template_kwargs.enable_thinking")
    enable_thinking = thinking if isinstance(thinking, bool) else None
    effort = _typed(fields, "reasoning_effort", str, "")
    if effort == "none":
        enable_thinking = False
        variables.pop("reasoning_effort", None)
    elif effort:
        variables["reasoning_effort"] = effort
    return ChatRequest(
        messages=messages,
        raw_messages=fields["messages"],
        raw_tools=tools if isinstance(tools, list) else [],
        tools=read_tools,
        tool_choice=tool_choice,
        json_schema=json_schema,
        add_generation_prompt=add_generation_prompt,
        continued=continued,
        prefilled=prefilled,
        enable_thinking=enable_thinking,
        variables=variables,
        client_variables=tuple(client_variables),
        stop_fault=_stop_fault(fields.get("stop")),
        late_fault=_late_fault(fields),
    )


def _stop_fault(stop: Any) -> InputError | None:
    if stop is None or isinstance(stop, (str, list)):
        return None
    return _bad("stop must be a string or a list where the server adds a stop of the model's", "stop")


def _late_fault(fields: dict[str, Any]) -> InputError | None:
    if _typed(fields, "logprobs", bool, False):
        if isinstance(fields.get("tools"), list) and fields["tools"] and _typed(fields, "stream", bool, False):
            return _bad("logprobs cannot be combined with tools and stream", "logprobs")
    elif fields.get("top_logprobs") is not None:
        return _bad("top_logprobs requires logprobs", "top_logprobs")
    return None


def _bad(message: str, path: str) -> InputError:
    return InputError(message, path=path, status=400)


def _broken(message: str, path: str) -> InputError:
    """A fault for which the server blames itself."""
    return InputError(message, path=path, status=500)


def _typed(fields: Any, key: str, kind: type[T], default: T) -> T:
    """The value where it has that type; anything else is ignored, as the server ignores it."""
    value = fields.get(key) if isinstance(fields, dict) else None
    return value if isinstance(value, kind) else default


def _present(fields: Any, key: str, default: Any) -> Any:
    value = fields.get(key) if isinstance(fields, dict) else None
    return default if value is None else value


def _items(value: Any) -> dict[str, Any]:
    """The entries of an object; of anything else what the server's iteration makes of it."""
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, list):
        return {str(i): item for i, item in enumerate(value)}
    return {} if value is None else {"": value}


def _json_schema(fields: dict[str, Any]) -> Any:
    schema = fields.get("json_schema")
    if schema is not None and _typed(fields, "grammar", str, ""):
        raise _broken("json_schema and grammar exclude each other", "json_schema")
    if "response_format" in fields:
        response_format = _present(fields, "response_format", {})
        kind = _typed(response_format, "type", str, "")
        if kind == "json_object":
            if "schema" in response_format or schema is None or schema in ({}, []):
                schema = _present(response_format, "schema", {})
        elif kind == "json_schema":
            schema = _present(_present(response_format, "json_schema", {}), "schema", {})
        elif kind not in {"", "text"}:
            raise _bad(f"unknown response_format type: {quote(kind)}", "response_format.type")
    return {"type": "object"} if schema == {} else schema


def _check_messages(fields: dict[str, Any]) -> None:
    """The first look at `messages`: their shape, and content that is not text."""
    if "messages" not in fields:
        raise _bad("'messages' is required", "messages")
    if not isinstance(fields["messages"], list):
        raise _bad("'messages' must be an array", "messages")
    for i, message in enumerate(fields["messages"]):
        path = f"messages[{i}]"
        keys = message if isinstance(message, dict) else {}
        if "content" not in keys:
            if _typed(keys, "role", str, "") != "assistant":
                raise _bad("a message that is not the assistant's must have content", path)
            if "tool_calls" not in keys:
                raise _bad("an assistant message must have content or tool_calls", path)
            continue
        content = keys["content"]
        if content is None or isinstance(content, str):
            continue
        if not isinstance(content, list):
            raise _bad("content must be a string or an array", f"{path}.content")
        for j, part in enumerate(content):
            kind = _typed(part, "type", str, "")
            if kind in MEDIA_PARTS:
                raise _broken(f"{MEDIA_PARTS[kind]} input needs a multimodal model", f"{path}.content[{j}]")
            if kind != "text":
                raise _bad(f"unsupported type of content part: {quote(kind)}", f"{path}.content[{j}].type")


def _message(raw: dict[str, Any], path: str) -> Message:
    role = _string(raw, "role", path)
    content = raw.get("content")
    listed = content if isinstance(content, list) else []
    parts = tuple(_string(part, "text", f"{path}.content[{j}]") for j, part in enumerate(listed))
    return Message(
        role=role,
        content=content if isinstance(content, str) else "",
        parts=parts,
        tool_calls=tuple(
            _tool_call(call, f"{path}.tool_calls[{j}]") for j, call in enumerate(_items(raw.get("tool_calls")).values())
        ),
        reasoning_content=_optional_string(raw, "reasoning_content", path),
        name=_optional_string(raw, "name", path),
        tool_call_id=_optional_string(raw, "tool_call_id", path),
    )


def _string(fields: Any, key: str, path: str) -> str:
    if not isinstance(fields, dict) or key not in fields:
        raise _broken(f"{path} has no {key}", path)
    value = fields[key]
    if not isinstance(value, str):
        raise _broken(f"{path}.{key} must be a string", f"{path}.{key}")
    return value


def _optional_string(fields: dict[str, Any], key: str, path: str) -> str:
    return _string(fields, key, path) if key in fields else ""


def _function(call: Any, path: str) -> dict[str, Any]:
    """The `function` of a tool or of a tool call."""
    if not isinstance(call, dict) or "type" not in call:
        raise _broken(f"{path} has no type", path)
    if call["type"] != "function":
        raise _broken(f'{path}.type must be "function"', f"{path}.type")
    if "function" not in call:
        raise _broken(f"{path} has no function", path)
    function = call["function"]
    return function if isinstance(function, dict) else {}


def _tool_call(raw: Any, path: str) -> ToolCall:
    function = _function(raw, path)
    name = _string(function, "name", f"{path}.function")
    if "arguments" not in function:
        raise _broken(f"{path}.function has no arguments", f"{path}.function")
    arguments = function["arguments"]
    return ToolCall(
        name=name,
        arguments=arguments if isinstance(arguments, str) else server_json.dump(arguments),
        id=_optional_string(raw, "id", path),
    )


def _tools(tools: Any) -> list[dict[str, Any]]:
    """The tools as they reach the template: three keys, in the server's order, whatever the client sent."""
    if tools is None:
        return []
    if not isinstance(tools, list):
        raise _broken("tools must be an array", "tools")
    read = []
    for i, tool in enumerate(tools):
        path = f"tools[{i}]"
        function = _function(tool, path)
        name = _string(function, "name", f"{path}.function")
        description = _optional_string(function, "description", f"{path}.function")
        parameters = function.get("parameters", {})
        read.append(
            {
                "type": "function",
                "function": {"name": name, "description": description, "parameters": parameters},
            }
        )
    return read


def _continuation(value: Any) -> str | None:
    if value is True:
        return "auto"
    return {"content": "content", "reasoning_content": "reasoning"}.get(value) if isinstance(value, str) else None


def _resolve(continued: str, messages: tuple[Message, ...]) -> str:
    """ "auto" continues the reasoning where the last message has nothing else."""
    if continued != "auto" or not messages:
        return continued
    last = messages[-1]
    return "reasoning" if last.reasoning_content and not last.content and not last.parts else "content"


def _check_reasoning_format(fields: dict[str, Any]) -> None:
    if "reasoning_format" not in fields:
        return
    value = fields["reasoning_format"]
    if not isinstance(value, str):
        raise _bad("reasoning_format must be a string", "reasoning_format")
    if value not in REASONING_FORMATS:
        raise _broken(f"unknown reasoning format: {quote(value)}", "reasoning_format")
