"""What llama-server changes between a request and its template: each rework a row with a name.

A `Rework` says that a row applied, and where. The reworks of messages are functions here: they change a list of message
objects in place and note what they did. Facts: common/chat.cpp of build b11434.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jinjarun.errors import InputError, quote
from jinjarun.serving import server_json

if TYPE_CHECKING:
    from jinjarun.limits import Limits
    from jinjarun.serving.caps import Caps
    from jinjarun.serving.requests import ChatRequest

REWORKS = {
    # the template itself
    "chatml-assumed": "there is no template, so the server uses its own ChatML one",
    "harmony-check-removed": "the server takes out of the source a check that refuses channel markers in content",
    "mistral-check-removed": "the server takes out of the source a check that refuses assistant turns without content",
    "tool-use-template": "the request offers tools, and the model has a template of its own for that",
    # variables
    "variables-added": "the server gives every template these variables",
    "reasoning-preserved": "the server asks templates by all their names for it to keep reasoning in the history",
    "reasoning-dropped": "the request or the server's flags ask templates to drop reasoning from the history",
    "reasoning-effort-spread": "templates know the effort under two names; the server sets both",
    "thinking-off-by-default": "the server found no reasoning markers in this template, so enable_thinking is false",
    "thinking-off-by-effort": 'reasoning_effort "none" means enable_thinking false',
    "generation-prompt-dropped": "the last message is to be continued, so no new turn is opened",
    # tools
    "tools-rewritten": "of a tool only name, description and parameters are passed on, in that order, all present",
    # messages
    "keys-dropped": "of a message only the keys that the server knows are passed on",
    "null-content-emptied": "a message without content gets the empty string",
    "call-arguments-serialized": "arguments that were an object are turned into JSON text",
    "arguments-parsed": "the template takes the arguments of a call as an object, so their JSON text is parsed",
    "contents-trimmed": "for this family the server strips white space around contents",
    "text-parts-joined": "the template takes content as a string only, so the text parts are joined by line breaks",
    "text-made-a-part": "the template takes content as a list only, so the string becomes a text part",
    "developer-role-renamed": "the server knows the developer role for GPT-OSS only; elsewhere it is system",
    "system-merged": "the template ignores system messages, so this one is put before the next message's content",
    "system-dropped": "the template ignores system messages, and there is no other message to merge this one into",
    "final-message-held-back": "the message is to be continued, so the template does not see it",
    "reasoning-copied-to-thinking": "this family's templates read the reasoning under the name thinking",
    "content-dropped": "this family allows no content beside reasoning and tool calls",
    "reasoning-made-a-part": "this family's templates read the reasoning as a content part",
    "tool-results-folded": "an older template of this family wants the tool results inside the assistant message",
    "tool-results-sorted": "this family reads tool results in the order of the calls",
    "response-format-passed": "this family's templates print the JSON schema of the answer",
    # the text
    "final-message-appended": "the message to be continued is written after the rendered text, in this family's markup",
    "return-token-replaced": "the last <|return|> ends a turn of the history, so it becomes <|end|>",
    "turn-opened": "the template did not open the model's turn, so the server does",
    "bos-trimmed": "the tokenizer adds the BOS token, so the one in the text is taken away",
    "eos-trimmed": "the tokenizer adds the EOS token, so the one in the text is taken away",
}
"""Name of a rework -> why llama-server does it."""

MESSAGE_KEYS = {"role", "content", "reasoning_content", "name", "tool_call_id", "tool_calls"}


@dataclass(frozen=True, slots=True)
class Rework:
    """A row of REWORKS applied at `path`: a place in the body, the name of a variable, "template" or "prompt"."""

    name: str
    path: str

    @property
    def why(self) -> str:
        return REWORKS[self.name]

    def to_dict(self) -> dict[str, str]:
        return {"name": self.name, "path": self.path, "why": self.why}


@dataclass(slots=True)
class Conversation:
    """Messages on their way to a template. `places[i]` is the path in the body that `messages[i]` came from."""

    messages: list[dict[str, Any]]
    places: list[str]
    reworks: list[Rework] = field(default_factory=list)

    def note(self, name: str, path: str) -> None:
        self.reworks.append(Rework(name, path))

    def each(self) -> list[tuple[dict[str, Any], str]]:
        return list(zip(self.messages, self.places, strict=True))

    def replace(self, messages: list[dict[str, Any]], places: list[str]) -> None:
        self.messages, self.places = messages, places


def note_reading(request: ChatRequest, chat: Conversation) -> None:
    """What was lost or changed by reading the body into the server's own structures."""
    for raw, path in zip(request.raw_messages, chat.places, strict=True):
        for key in raw:
            if key not in MESSAGE_KEYS:
                chat.note("keys-dropped", f"{path}.{key}")
        if raw.get("content") is None:
            chat.note("null-content-emptied", f"{path}.content")
        calls = raw.get("tool_calls")
        for j, call in enumerate(calls if isinstance(calls, list) else []):
            if not isinstance(call["function"]["arguments"], str):
                chat.note("call-arguments-serialized", f"{path}.tool_calls[{j}].function.arguments")
    for i, (raw, tool) in enumerate(zip(request.raw_tools, request.tools, strict=True)):
        if raw != tool or list(raw) != list(tool) or list(raw["function"]) != list(tool["function"]):
            chat.note("tools-rewritten", f"tools[{i}]")


def fit_content(chat: Conversation, caps: Caps) -> None:
    """Content as the template takes it: a string, a list of parts, or as it came where it takes both or neither."""
    if caps.supports_string_content == caps.supports_typed_content:
        return
    for message, path in chat.each():
        content = message["content"]
        if caps.supports_typed_content and isinstance(content, str):
            message["content"] = [{"type": "text", "text": content}]
            chat.note("text-made-a-part", f"{path}.content")
        elif caps.supports_string_content and isinstance(content, list):
            text = ""
            for part in content:
                text += f"\n{part['text']}" if text else part["text"]
            message["content"] = text
            chat.note("text-parts-joined", f"{path}.content")


def rename_developer(chat: Conversation) -> None:
    for message, path in chat.each():
        if message["role"] == "developer":
            message["role"] = "system"
            chat.note("developer-role-renamed", f"{path}.role")


def merge_system(chat: Conversation) -> None:
    """A leading system message goes into the next one, whatever that one's role."""
    if not chat.messages or chat.messages[0]["role"] != "system":
        return
    system, place = chat.messages.pop(0), chat.places.pop(0)
    if not chat.messages:
        chat.note("system-dropped", place)
        return
    following = chat.messages[0]
    for content, path in ((system["content"], place), (following["content"], chat.places[0])):
        if not isinstance(content, str):
            raise InputError(
                f"{path}.content must be a string: the template ignores system messages, and merging needs strings",
                path=f"{path}.content",
                status=400,
            )
    following["content"] = f"{system['content']}\n{following['content']}"
    chat.note("system-merged", place)


def parse_arguments(chat: Conversation, limits: Limits) -> None:
    for message, path in chat.each():
        for j, call in enumerate(message.get("tool_calls", ())):
            function = call["function"]
            place = f"{path}.tool_calls[{j}].function.arguments"
            try:
                function["arguments"] = server_json.parse(function["arguments"], limits)
            except ValueError as error:
                raise InputError(f"{place} is not JSON: {quote(str(error))}", path=place, status=500) from None
            chat.note("arguments-parsed", place)


def copy_reasoning_to_thinking(chat: Conversation, *, drop_content: bool) -> None:
    for message, path in chat.each():
        if "reasoning_content" not in message:
            continue
        message["thinking"] = message["reasoning_content"]
        chat.note("reasoning-copied-to-thinking", f"{path}.reasoning_content")
        if drop_content and message.get("tool_calls"):
            del message["content"]
            chat.note("content-dropped", f"{path}.content")


def make_reasoning_a_part(chat: Conversation) -> None:
    """System and assistant content becomes a list, the reasoning its first part."""
    for message, path in chat.each():
        if message["role"] not in {"system", "assistant"}:
            continue
        parts: list[dict[str, Any]] = []
        reasoning = message.pop("reasoning_content", None)
        if reasoning is not None:
            parts.append({"type": "thinking", "thinking": reasoning})
            chat.note("reasoning-made-a-part", f"{path}.reasoning_content")
        content = message["content"]
        if isinstance(content, str):
            parts.append({"type": "text", "text": content})
            chat.note("text-made-a-part", f"{path}.content")
        else:
            parts += content
        message["content"] = parts


def fold_tool_results(chat: Conversation, limits: Limits) -> None:
    """An assistant message with calls, the results after it and the answer after those become one message."""
    messages: list[dict[str, Any]] = []
    places: list[str] = []
    i = 0
    while i < len(chat.messages):
        message = chat.messages[i]
        places.append(chat.places[i])
        i += 1
        if message["role"] != "assistant" or not message.get("tool_calls"):
            messages.append(message)
            continue
        calls = message["tool_calls"]
        folded: dict[str, Any] = {"role": "assistant", "tool_calls": calls}
        responses: list[dict[str, Any]] = []
        while i < len(chat.messages) and chat.messages[i]["role"] == "tool":
            name = calls[len(responses)]["function"]["name"] if len(responses) < len(calls) else ""
            responses.append(_tool_response(chat.messages[i], name, limits))
            i += 1
        if responses:
            folded["tool_responses"] = responses
        if i < len(chat.messages):
            answer = chat.messages[i]
            if answer["role"] == "assistant" and not answer.get("tool_calls") and answer["content"]:
                folded["content"] = answer["content"]
                i += 1
        if "reasoning_content" in message:
            folded["reasoning_content"] = message["reasoning_content"]
        messages.append(folded)
        chat.note("tool-results-folded", places[-1])
    chat.replace(messages, places)


def _tool_response(message: dict[str, Any], name: str, limits: Limits) -> dict[str, Any]:
    response = message["content"]
    if isinstance(response, str):
        try:
            response = server_json.parse(response, limits)
        except ValueError:
            response = message["content"]
    return {"name": name or message.get("tool_call_id", ""), "response": response}


def sort_tool_results(chat: Conversation) -> None:
    """Within a run of user and tool messages, the tool results in the order of the last calls, by their ids."""
    order: dict[str, int] = {}
    i = 0
    while i < len(chat.messages):
        message = chat.messages[i]
        if message["role"] not in {"user", "tool"}:
            if message["role"] == "assistant" and message.get("tool_calls"):
                order = {call["id"]: j for j, call in enumerate(message["tool_calls"]) if call.get("id")}
            i += 1
            continue
        results = []
        while i < len(chat.messages) and chat.messages[i]["role"] in {"user", "tool"}:
            if chat.messages[i]["role"] == "tool":
                results.append(i)
            i += 1
        wanted = sorted(results, key=lambda at: order.get(chat.messages[at].get("tool_call_id", ""), 0))
        if order and wanted != results:
            moved = [(chat.messages[at], chat.places[at]) for at in wanted]
            for at, (result, place) in zip(results, moved, strict=True):
                chat.messages[at], chat.places[at] = result, place
            chat.note("tool-results-sorted", chat.places[results[0]])


def patched_source(source: str) -> tuple[str, tuple[str, ...]]:
    """The source as llama-server loads it, and the names of the patches that changed it."""
    applied = []
    for name, marker, sign, check in SOURCE_PATCHES:
        if marker in source and sign in source and check in source:
            source = source.replace(check, "{%- if false %}")
            applied.append(name)
    return source, tuple(applied)


SOURCE_PATCHES = (
    (
        "harmony-check-removed",
        "<|channel|>",
        "in message.content or",
        '{%- if "<|channel|>analysis<|message|>" in message.content or '
        '"<|channel|>final<|message|>" in message.content %}',
    ),
    (
        "mistral-check-removed",
        "[TOOL_CALLS]",
        "if (message['content'] is none or",
        "{%- if (message['content'] is none or message['content'] == '' or message['content']|length == 0) "
        "and (message['tool_calls'] is not defined or message['tool_calls'] is none or "
        "message['tool_calls']|length == 0) %}",
    ),
)
"""Name, two strings by which the server knows the template, and the tag that it makes always false."""
