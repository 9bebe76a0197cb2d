"""What vLLM 0.33.0 changes between a request and its template, by rows."""

from __future__ import annotations

from jinjarun.serving.chat_completions.reworks import ReworkRow

_PROTOCOL = "entrypoints/openai/chat_completion/protocol.py"
_MESSAGES = "renderers/chat_utils/chat_message.py"
_HF = "renderers/hf.py"
_PARAMS = "renderers/params.py, merge_kwargs"

REWORKS = {
    # the template itself
    "template-given": ReworkRow(
        "the request brings a template, and the server trusts it", f"{_HF}, resolve_chat_template"
    ),
    "tool-use-template": ReworkRow(
        "the request has tools, and the model has a template of its own for that", f"{_HF}, resolve_chat_template"
    ),
    # tools
    "tool-flags-needed": ReworkRow(
        "only a server started with --enable-auto-tool-choice and --tool-call-parser takes a request with tools; "
        "this one is taken for such",
        "renderers/online_renderer.py, render_chat",
    ),
    "tools-rewritten": ReworkRow(
        "of a tool only the known keys are passed on, in the server's order, description and parameters null where "
        "they are missing",
        f"{_PROTOCOL}, ChatCompletionToolsParam",
    ),
    "tools-excluded": ReworkRow(
        "tool_choice is none and the server was told to leave tools out then", "renderers/online_renderer.py"
    ),
    # variables
    "variable-over-kwargs": ReworkRow(
        "the body's field, or its default, wins over the entry of chat_template_kwargs",
        f"{_PROTOCOL}, build_chat_params",
    ),
    "null-or-auto-dropped": ReworkRow("an entry that is null or the string auto is left out", _PARAMS),
    "variable-unread": ReworkRow(
        "the template does not read this variable, so the server drops it", f"{_HF}, resolve_chat_template_kwargs"
    ),
    "tools-from-kwargs": ReworkRow("tools in chat_template_kwargs replace the request's", _PARAMS),
    "thinking-by-effort": ReworkRow(
        "reasoning_effort sets enable_thinking, false for none", f"{_PROTOCOL}, build_chat_params"
    ),
    "key-ignored": ReworkRow("the server reads no such key of a request", f"{_PROTOCOL}, ChatCompletionRequest"),
    # messages
    "keys-dropped": ReworkRow("of a message only the keys that the server knows are passed on", f"{_MESSAGES}"),
    "reasoning-renamed": ReworkRow(
        "reasoning_content is reasoning to the server, which gives it to the template under both names",
        f"{_PROTOCOL}, _normalize_messages_before",
    ),
    "reasoning-names-filled": ReworkRow("the template gets reasoning as reasoning and reasoning_content", _MESSAGES),
    "reasoning-dropped": ReworkRow("only an assistant's message keeps its reasoning", _MESSAGES),
    "call-keys-reordered": ReworkRow(
        "the keys of a call come out in the order of the server's types: id, function (arguments, name), type",
        _PROTOCOL,
    ),
    "calls-emptied": ReworkRow("an empty list of calls is taken out", f"{_MESSAGES}, _postprocess_messages"),
    "arguments-parsed": ReworkRow(
        "arguments are JSON text, and the template gets the object", f"{_MESSAGES}, _postprocess_messages"
    ),
    "arguments-emptied": ReworkRow(
        "arguments that are no JSON object become an empty one, without an error", f"{_MESSAGES}, _postprocess_messages"
    ),
    "null-content-emptied": ReworkRow("a message without content gets empty content", _MESSAGES),
    "text-made-a-part": ReworkRow(
        "the template loops over content, so the server gives every content as a list of parts",
        f"{_HF}, content format",
    ),
    "text-parts-joined": ReworkRow(
        "the template takes content as a string, so the texts of the parts are joined by line breaks", _MESSAGES
    ),
    "tool-parts-joined": ReworkRow("the text parts of a tool result are joined by line breaks in any case", _MESSAGES),
    "part-made-text": ReworkRow("a part of this type becomes visible text", _MESSAGES),
    "part-skipped": ReworkRow("a part without text is left out", _MESSAGES),
    "billing-header-cut": ReworkRow("a first line x-anthropic-billing-header is cut off a system text", _MESSAGES),
    "developer-made-system": ReworkRow(
        "the template does not name the developer role, so it becomes system", f"{_HF}, safe_apply_chat_template"
    ),
    "system-merged": ReworkRow(
        "with a developer message among them, all system texts become one first message",
        f"{_HF}, safe_apply_chat_template",
    ),
}
"""Name of a rework -> why vLLM does it, and the file that says so."""
