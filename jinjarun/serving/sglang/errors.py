"""Why SGLang 0.5.23 refuses a request, by rows, and how it words what pydantic found wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinjarun.serving.chat_completions.errors import MOST_LINES, Refusal, count_of, place_of, refused, shown_input

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jinjarun.errors import InputError

_PROTOCOL = "entrypoints/openai/protocol.py, ChatCompletionRequest"
_VALIDATE = "entrypoints/openai/serving_chat.py, _validate_request"
_ARGUMENTS = "entrypoints/openai/serving_chat.py, normalize_assistant_tool_call_arguments"

REFUSALS = {
    "body-malformed": Refusal(
        "a field has a type that the server's model of a request does not allow",
        "send the field in the form of OpenAI's API, or leave it out",
        _PROTOCOL,
    ),
    "message-malformed": Refusal(
        "the message fits none of the server's types of messages",
        "send the role user in lower case with content, other roles as system, assistant, tool, developer or function; "
        "content is a string or a list of text and media parts, arguments are a string or an object",
        _PROTOCOL,
    ),
    "messages-empty": Refusal("a request needs messages", "send at least one message", _VALIDATE),
    "template-untrusted": Refusal(
        "a request may bring a template only if the server was told to trust it",
        "start the server with --trust-request-chat-template, or give the template to --chat-template",
        _VALIDATE,
    ),
    "media-refused": Refusal(
        "a text-only model takes no images, audio or video",
        "leave the part out, or describe it in a text part",
        _VALIDATE,
    ),
    "tools-needed": Refusal(
        "tool_choice forces a call, and there are no tools", "leave tool_choice out where there are no tools", _VALIDATE
    ),
    "tool-choice-unknown": Refusal(
        "tool_choice names no tool of the request", "name a tool that is in tools", _VALIDATE
    ),
    "schema-invalid": Refusal(
        "the parameters of a tool are no JSON Schema of draft 2020-12",
        "mend the schema: types are array, boolean, integer, null, number, object and string, or a list of these",
        _VALIDATE,
    ),
    "schema-missing": Refusal(
        "response_format json_schema needs the schema",
        'send {"type": "json_schema", "json_schema": {"name": "...", "schema": {...}}}',
        _VALIDATE,
    ),
    "arguments-no-json": Refusal(
        "arguments that are a string are parsed, strictly, an empty string and NaN refused",
        "send arguments as an object, or as its JSON text; {} for none",
        _ARGUMENTS,
    ),
    "arguments-no-object": Refusal(
        "the arguments of a call are an object by name", "send arguments as an object, or as its JSON text", _ARGUMENTS
    ),
}
"""Name of a refusal -> why, what to send instead, and where the server says so."""

BODY_KEYS = frozenset(
    {
        *(
            "messages",
            "role",
            "content",
            "name",
            "tool_call_id",
            "tool_calls",
            "reasoning_content",
            "id",
            "index",
            "type",
        ),
        *("function", "arguments", "tools", "description", "parameters", "strict", "defer_loading", "tool_choice"),
        *("reasoning_effort", "continue_final_message", "chat_template_kwargs", "response_format", "prefix", "phase"),
    }
)


def invalid(errors: Sequence[Any]) -> InputError:
    """What pydantic found, in the server's words: a line for each error."""
    lines = [f"{count_of(errors)}:"]
    for error in errors[:MOST_LINES]:
        shown = {**error, "loc": ("body", *error["loc"]), "input": shown_input(error["input"])}
        lines.append(f"  {shown}")
    loc = errors[0]["loc"]
    reason = "message-malformed" if loc[:1] == ("messages",) and len(loc) > 1 else "body-malformed"
    return refused("\n".join(lines), place_of(loc, BODY_KEYS), "validation", reason, REFUSALS)
