"""Why vLLM 0.33.0 refuses a request, by rows, and how it words what pydantic found wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinjarun.serving.chat_completions.errors import MOST_LINES, Refusal, count_of, place_of, refused, shown_input

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jinjarun.errors import InputError

_PROTOCOL = "entrypoints/openai/chat_completion/protocol.py, ChatCompletionRequest"
_RENDER_CHAT = "renderers/online_renderer.py, render_chat"
_PARTS = "renderers/chat_utils/chat_message.py, parse_chat_message_content"

REFUSALS = {
    "body-malformed": Refusal(
        "a field has a type that the server's model of a request does not allow",
        "send the field in the form of OpenAI's API, or leave it out",
        _PROTOCOL,
    ),
    "message-malformed": Refusal(
        "the message fits none of the server's types of messages",
        "send content as a string or a list of parts (null only from the assistant), and leave a key out "
        "rather than null",
        _PROTOCOL,
    ),
    "call-malformed": Refusal(
        "a tool call needs an id, the type function, and arguments as a string of JSON; an object is refused",
        'send {"id": "...", "type": "function", "function": {"name": "...", "arguments": "{...}"}}, '
        "the arguments written as JSON text",
        f"{_PROTOCOL}, _materialize_tool_calls_after",
    ),
    "tools-empty": Refusal(
        "an empty list of tools is refused", "leave tools out where there are none", f"{_PROTOCOL}, check_tool_usage"
    ),
    "tool-choice-without-tools": Refusal(
        "tool_choice other than none needs tools",
        "leave tool_choice out where there are no tools",
        f"{_PROTOCOL}, check_tool_usage",
    ),
    "tool-choice-unknown": Refusal(
        "tool_choice names no tool of the request",
        'send "auto", "required", "none" or the name of a tool that is in tools',
        f"{_PROTOCOL}, check_tool_usage",
    ),
    "schema-missing": Refusal(
        "response_format json_schema needs the schema",
        'send {"type": "json_schema", "json_schema": {"name": "...", "schema": {...}}}',
        f"{_PROTOCOL}, validate_response_format",
    ),
    "continue-and-open": Refusal(
        "a message cannot be continued and a new turn opened at once",
        "send add_generation_prompt false with continue_final_message true",
        f"{_PROTOCOL}, check_generation_prompt",
    ),
    "auto-tools-off": Refusal(
        "the server was not started for tools, and tools without tool_choice none ask for it",
        'start it with --enable-auto-tool-choice and --tool-call-parser, or send tool_choice "none"',
        _RENDER_CHAT,
    ),
    "tool-parser-missing": Refusal(
        "the server was started without --tool-call-parser, and tool_choice forces a call",
        'start it with --tool-call-parser, or send tool_choice "none"',
        _RENDER_CHAT,
    ),
    "template-untrusted": Refusal(
        "a request may bring a template only if the server was told to trust it",
        "start the server with --trust-request-chat-template, or give the template to --chat-template",
        _RENDER_CHAT,
    ),
    "media-refused": Refusal(
        "a text-only model takes no images, audio or video",
        "leave the part out, or describe it in a text part; a multimodal model's placeholder is not known here",
        _PARTS,
    ),
    "part-unknown": Refusal(
        "the server knows no content part of this type",
        'send the text in a part {"type": "text", "text": "..."}',
        _PARTS,
    ),
    "part-malformed": Refusal(
        "a content part is neither text nor an object of a known type; a tool result that is an object is none",
        "send content as a string (an object as JSON text) or as a list of text parts",
        _PARTS,
    ),
}
"""Name of a refusal -> why, what to send instead, and where the server says so."""

BODY_KEYS = frozenset(
    {
        *("messages", "role", "content", "name", "tool_call_id", "tool_calls", "reasoning", "task", "id", "type"),
        *("function", "arguments", "tools", "description", "parameters", "strict", "defer_loading", "tool_choice"),
        *("reasoning_effort", "add_generation_prompt", "continue_final_message", "documents", "chat_template"),
        *("chat_template_kwargs", "response_format", "author"),
    }
)


def invalid(errors: Sequence[Any], reason: str, path: str | None = None) -> InputError:
    """What pydantic found, in the server's words: a line for each error, its place joined by dots, its input summed up.

    A place ends with the first key behind the name of a type.
    """
    lines = [f"{count_of(errors)}:"]
    for error in errors[:MOST_LINES]:
        shown = {"type": error["type"], "loc": _place(error["loc"]), "msg": error["msg"]}
        shown["input"] = _summary(error["input"])
        if "ctx" in error:
            shown["ctx"] = error["ctx"]
        lines.append(f"  {shown}")
    place = place_of(errors[0]["loc"], BODY_KEYS) if path is None else path
    return refused("\n".join(lines), place, "validation", reason, REFUSALS)


def _place(loc: Sequence[str | int]) -> str:
    steps = ["body"]
    for i, step in enumerate(loc):
        steps.append(str(step))
        if i and isinstance(loc[i - 1], str) and loc[i - 1] not in BODY_KEYS:
            break
    return ".".join(steps)


def _summary(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return f"<{type(value).__name__} of {len(value)} items>"
    return str(shown_input(value))
