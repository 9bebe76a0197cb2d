"""What SGLang 0.5.23 changes between a request and its template, by rows."""

from __future__ import annotations

from jinjarun.serving.chat_completions.reworks import ReworkRow

_PROTOCOL = "entrypoints/openai/protocol.py"
_CHAT = "entrypoints/openai/serving_chat.py"
_TEMPLATE = "parser/jinja_template_utils.py, process_content_for_template_format"

REWORKS = {
    # the template itself
    "template-given": ReworkRow("the request brings a template, and the server trusts it", _CHAT),
    "tool-use-template": ReworkRow("the request has tools, and the model has a template of its own for that", _CHAT),
    # tools
    "tools-rewritten": ReworkRow(
        "of a tool only the known keys are passed on, missing ones as null, and defer_loading is always there",
        f"{_PROTOCOL}, Tool",
    ),
    "tools-excluded": ReworkRow("tool_choice none takes the tools out", f"{_CHAT}, _process_messages"),
    "tools-chosen": ReworkRow("a tool that tool_choice names is the only one left", f"{_CHAT}, _process_messages"),
    "types-rewritten": ReworkRow(
        "types of databases and languages inside a schema become types of JSON, in the prompt too",
        "function_call/utils.py, normalize_json_schema_types",
    ),
    "tools-flattened": ReworkRow(
        "the template failed, so the server tried again with each tool's function alone",
        f"{_CHAT}, _apply_jinja_template",
    ),
    # variables
    "thinking-by-effort": ReworkRow(
        "reasoning_effort, or reasoning, sets thinking and enable_thinking where the request does not",
        f"{_PROTOCOL}, normalize_reasoning_inputs",
    ),
    "effort-from-kwargs": ReworkRow(
        "reasoning_effort in chat_template_kwargs wins over the body's", f"{_CHAT}, _convert_to_internal_request"
    ),
    "effort-from-defaults": ReworkRow(
        "reasoning_effort in --default-chat-template-kwargs wins over the request's", f"{_CHAT}, _process_messages"
    ),
    "low-effort-set": ReworkRow(
        "the template knows low_effort, so the effort low sets it", "parser/template_detection.py"
    ),
    "key-ignored": ReworkRow("the server reads no such key of a request", f"{_PROTOCOL}, ChatCompletionRequest"),
    # messages
    "keys-dropped": ReworkRow("of a message only the keys that the server knows are passed on", _PROTOCOL),
    "role-lowered": ReworkRow("the server writes this role in lower case", _PROTOCOL),
    "null-content-emptied": ReworkRow(
        "a message without content gets the empty string", f"{_CHAT}, _apply_jinja_template"
    ),
    "null-keys-dropped": ReworkRow("a null key of a message is left out", _TEMPLATE),
    "call-keys-added": ReworkRow(
        "a call has id, index, type and function in any case, null where the client sent none",
        f"{_PROTOCOL}, ToolCall",
    ),
    "arguments-parsed": ReworkRow(
        "arguments that are JSON text become the object", f"{_CHAT}, normalize_assistant_tool_call_arguments"
    ),
    "text-parts-joined": ReworkRow(
        "the template takes content as a string, so the texts of the parts are joined by blanks", _TEMPLATE
    ),
    "parts-simplified": ReworkRow("of a part only its type and text are passed on, of media the type", _TEMPLATE),
    "part-dropped": ReworkRow("a part that is no text does not reach this template", _TEMPLATE),
    "tool-parts-joined": ReworkRow(
        "the text parts of a tool result are joined by blanks in any case", f"{_CHAT}, normalize_tool_content"
    ),
    "tool-results-sorted": ReworkRow(
        "the template looks results up by their calls, and one has media, so they get the order of the calls", _CHAT
    ),
    "final-message-made-user": ReworkRow(
        "a prompt has to end with a user message, so a final assistant message becomes one, without its calls and "
        "reasoning",
        f"{_CHAT}, _handle_last_assistant_message",
    ),
    # the text
    "final-message-held-back": ReworkRow(
        "the message is to be continued, so the template does not see it", f"{_CHAT}, _handle_last_assistant_message"
    ),
    "final-message-appended": ReworkRow(
        "the message to be continued is written after the prompt", f"{_CHAT}, _append_assistant_prefix_to_prompt_ids"
    ),
}
"""Name of a rework -> why SGLang does it, and the file that says so."""
