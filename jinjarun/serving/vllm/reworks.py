"""What vLLM 0.33.0 changes between a request and its template: the table, and the messages as the template gets them."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from jinjarun.dialects.adopting import EngineFloat
from jinjarun.errors import LimitExceeded
from jinjarun.serving.chat_completions.errors import python_text, refused
from jinjarun.serving.chat_completions.reworks import Row
from jinjarun.serving.vllm.errors import REFUSALS

if TYPE_CHECKING:
    from jinjarun.errors import InputError
    from jinjarun.limits import Limits
    from jinjarun.serving.chat_completions.contents import ContentFormat
    from jinjarun.serving.chat_completions.reworks import Changes

_PROTOCOL = "entrypoints/openai/chat_completion/protocol.py"
_MESSAGES = "renderers/chat_utils/chat_message.py"
_HF = "renderers/hf.py"
_PARAMS = "renderers/params.py, merge_kwargs"

REWORKS = {
    # the template itself
    "template-given": Row("the request brings a template, and the server trusts it", f"{_HF}, resolve_chat_template"),
    "tool-use-template": Row(
        "the request has tools, and the model has a template of its own for that", f"{_HF}, resolve_chat_template"
    ),
    # tools
    "tool-flags-needed": Row(
        "only a server started with --enable-auto-tool-choice and --tool-call-parser takes a request with tools; "
        "this one is taken for such",
        "renderers/online_renderer.py, render_chat",
    ),
    "tools-rewritten": Row(
        "of a tool only the known keys are passed on, in the server's order, description and parameters null where "
        "they are missing",
        f"{_PROTOCOL}, ChatCompletionToolsParam",
    ),
    "tools-excluded": Row(
        "tool_choice is none and the server was told to leave tools out then", "renderers/online_renderer.py"
    ),
    # variables
    "variable-over-kwargs": Row(
        "the body's field, or its default, wins over the entry of chat_template_kwargs", f"{_PROTOCOL}, build_chat_params"
    ),
    "null-or-auto-dropped": Row("an entry that is null or the string auto is left out", _PARAMS),
    "variable-unread": Row(
        "the template does not read this variable, so the server drops it", f"{_HF}, resolve_chat_template_kwargs"
    ),
    "tools-from-kwargs": Row("tools in chat_template_kwargs replace the request's", _PARAMS),
    "thinking-by-effort": Row(
        "reasoning_effort sets enable_thinking, false for none", f"{_PROTOCOL}, build_chat_params"
    ),
    "key-ignored": Row("the server reads no such key of a request", f"{_PROTOCOL}, ChatCompletionRequest"),
    # messages
    "keys-dropped": Row("of a message only the keys that the server knows are passed on", f"{_MESSAGES}"),
    "reasoning-renamed": Row(
        "reasoning_content is reasoning to the server, which gives it to the template under both names",
        f"{_PROTOCOL}, _normalize_messages_before",
    ),
    "reasoning-names-filled": Row("the template gets reasoning as reasoning and reasoning_content", _MESSAGES),
    "reasoning-dropped": Row("only an assistant's message keeps its reasoning", _MESSAGES),
    "call-keys-reordered": Row(
        "the keys of a call come out in the order of the server's types: id, function (arguments, name), type", _PROTOCOL
    ),
    "calls-emptied": Row("an empty list of calls is taken out", f"{_MESSAGES}, _postprocess_messages"),
    "arguments-parsed": Row("arguments are JSON text, and the template gets the object", f"{_MESSAGES}, _postprocess_messages"),
    "arguments-emptied": Row(
        "arguments that are no JSON object become an empty one, without an error", f"{_MESSAGES}, _postprocess_messages"
    ),
    "null-content-emptied": Row("a message without content gets empty content", _MESSAGES),
    "text-made-a-part": Row(
        "the template loops over content, so the server gives every content as a list of parts", f"{_HF}, content format"
    ),
    "text-parts-joined": Row(
        "the template takes content as a string, so the texts of the parts are joined by line breaks", _MESSAGES
    ),
    "tool-parts-joined": Row("the text parts of a tool result are joined by line breaks in any case", _MESSAGES),
    "part-made-text": Row("a part of this type becomes visible text", _MESSAGES),
    "part-skipped": Row("a part without text is left out", _MESSAGES),
    "billing-header-cut": Row("a first line x-anthropic-billing-header is cut off a system text", _MESSAGES),
    "developer-made-system": Row(
        "the template does not name the developer role, so it becomes system", f"{_HF}, safe_apply_chat_template"
    ),
    "system-merged": Row(
        "with a developer message among them, all system texts become one first message",
        f"{_HF}, safe_apply_chat_template",
    ),
}
"""Name of a rework -> why vLLM does it, and the file that says so."""

MESSAGE_KEYS = frozenset({"role", "content", "name", "tool_call_id", "tool_calls", "reasoning", "reasoning_content", "task"})
PART_KEYS = frozenset(
    {
        *("audio_embeds", "audio_url", "closed", "data", "file", "image_embeds", "image_pil", "image_url", "input_audio"),
        *("name", "prompt_cache_breakpoint", "refusal", "text", "thinking", "type", "uuid", "video_embeds", "video_url"),
    }
)
"""Keys of known parts. Others go to the template with the part."""
TEXT_KEYS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal", "thinking": "thinking"}
"""Type of a part that becomes text -> the key that holds it."""
MEDIA_PARTS = ("image_url", "input_image", "image_pil", "image_embeds", "audio_url", "input_audio", "audio_embeds")
MEDIA_PARTS += ("video_url", "video_embeds")
PART_TYPES = sorted({*TEXT_KEYS, *MEDIA_PARTS, "prompt_embeds", "tool_reference"})
BILLING_HEADER = "x-anthropic-billing-header"


@dataclass(frozen=True, slots=True)
class Reader:
    """Makes the template's messages of a request's. `model` is the name that a refusal quotes."""

    content_format: ContentFormat
    model: str
    changes: Changes
    limits: Limits

    def messages(self, messages: list[Any], raw: list[Any]) -> list[dict[str, Any]]:
        return [self.message(one, raw[i], f"messages[{i}]") for i, one in enumerate(messages)]

    def message(self, message: Any, raw: dict[str, Any], path: str) -> dict[str, Any]:
        if not isinstance(message, dict):
            raise _other("'Message' object is not subscriptable", path, "message-malformed")
        role = message["role"]
        read: dict[str, Any] = {"role": role, "content": self.content(message, f"{path}.content")}
        kept = set(MESSAGE_KEYS)
        if role == "assistant":
            if message.get("tool_calls") is not None:
                self.calls(read, message["tool_calls"], raw["tool_calls"], path)
            if message.get("reasoning") is not None:
                read["reasoning"] = read["reasoning_content"] = message["reasoning"]
                renamed = "reasoning" not in raw
                place = f"{path}.{'reasoning_content' if renamed else 'reasoning'}"
                self.changes.note("reasoning-renamed" if renamed else "reasoning-names-filled", place)
        else:
            kept -= {"tool_calls"}
            for key in ("reasoning", "reasoning_content"):
                if raw.get(key) is not None:
                    self.changes.note("reasoning-dropped", f"{path}.{key}")
        if role == "tool":
            if "tool_call_id" in message:
                read["tool_call_id"] = message["tool_call_id"]
            self.join_tool_parts(read, path)
        else:
            kept -= {"tool_call_id"}
        for key in ("name", "task"):
            if isinstance(message.get(key), str):
                read[key] = message[key]
        if role == "developer":
            read["tools"] = message.get("tools")
            kept |= {"tools"}
        for key in raw.keys() - kept:
            self.changes.note("keys-dropped", f"{path}.{key}")
        return read

    def content(self, message: dict[str, Any], path: str) -> Any:
        given = message.get("content")
        is_system = message["role"] == "system"
        whole = isinstance(given, str)
        if given is None:
            self.changes.note("null-content-emptied", path)
            given = []
        elif isinstance(given, str):
            given = [{"type": "text", "text": given}]
            if self.content_format == "openai":
                self.changes.note("text-made-a-part", path)
        elif self.content_format == "string":
            self.changes.note("text-parts-joined", path)
        parts = []
        try:
            for i, part in enumerate(given):
                read = self.part(part, is_system=is_system, path=path if whole else f"{path}[{i}]")
                if read:
                    parts.append(read)
        except ValidationError as error:
            raise _other(python_text(error), path, "part-malformed") from None
        if self.content_format == "openai":
            return parts
        try:
            return "\n".join(parts)
        except TypeError as error:
            raise _other(str(error), path, "part-malformed") from None

    def part(self, part: Any, *, is_system: bool, path: str) -> Any:
        """A part of the template's content, or its text where content is a string; falsy for one that is left out."""
        if isinstance(part, str):
            part = {"type": "text", "text": part}
            self.changes.note("part-made-text", path)
        kind = part.get("type")
        if kind is None or part.get("uuid") is not None:
            if kind is not None and kind not in MEDIA_PARTS and not any(key in part for key in MEDIA_PARTS):
                raise _other("Missing 'type' field in multimodal part.", path, "part-malformed")
            kind = next((key for key in MEDIA_PARTS if key in part), None)
            if kind is None:
                raise _other("Missing 'type' field in multimodal part.", path, "part-malformed")
        if not isinstance(kind, str):
            raise _other("Invalid 'type' field in multimodal part.", path, "part-malformed")
        if kind in MEDIA_PARTS:
            raise _other(f"{self.model} is not a multimodal model", path, "media-refused")
        if kind == "prompt_embeds":
            text = "You must set `--enable-prompt-embeds` to input `prompt_embeds`"
            raise _other(text, path, "media-refused")
        if kind == "tool_reference":
            name = part.get("name")
            return {"type": kind, "name": name} if self.content_format == "openai" else name
        if kind not in TEXT_KEYS:
            text = f"Unsupported chat content part type: {kind!r}. Supported types: {', '.join(PART_TYPES)}."
            raise _other(text, path, "part-unknown")
        return self.text_part(part, kind, is_system=is_system, path=path)

    def text_part(self, part: dict[str, Any], kind: str, *, is_system: bool, path: str) -> Any:
        text = part.get(TEXT_KEYS[kind])
        if kind in ("text", "refusal") and text is None:
            self.changes.note("part-skipped", path)
            return None
        if kind != "text":
            self.changes.note("part-made-text", path)
        if is_system and isinstance(text, str) and text.startswith(BILLING_HEADER):
            self.changes.note("billing-header-cut", path)
            text = text.partition("\n")[2]
            if not text:
                return None
        if self.content_format == "string":
            return text
        return {"type": "text", "text": text, **{key: part[key] for key in part if key not in PART_KEYS}}

    def calls(self, read: dict[str, Any], calls: list[Any], raw: Any, path: str) -> None:
        if not calls:
            self.changes.note("calls-emptied", f"{path}.tool_calls")
            return
        read["tool_calls"] = [self.call(call, f"{path}.tool_calls[{i}]") for i, call in enumerate(calls)]
        for i, (call, given) in enumerate(zip(read["tool_calls"], raw, strict=False)):
            if list(call) != list(given) or list(call["function"]) != list(given["function"]):
                self.changes.note("call-keys-reordered", f"{path}.tool_calls[{i}]")

    def call(self, call: dict[str, Any], path: str) -> dict[str, Any]:
        if "function" not in call:
            raise refused("'function'", path, "other", "call-malformed", REFUSALS, status=500)
        place = f"{path}.function.arguments"
        arguments = self.arguments(call["function"].get("arguments"), place)
        return {**call, "function": {**call["function"], "arguments": arguments}}

    def arguments(self, text: Any, path: str) -> dict[str, Any]:
        try:
            value = json.loads(text, parse_constant=EngineFloat, parse_float=_float)
        except (TypeError, ValueError):
            value = None
        except RecursionError:
            allowed = self.limits.data_depth
            message = f"limit exceeded: data_depth (allowed {allowed})"
            raise LimitExceeded(message, limit="data_depth", allowed=allowed) from None
        self.changes.note("arguments-parsed" if isinstance(value, dict) else "arguments-emptied", path)
        return value if isinstance(value, dict) else {}

    def join_tool_parts(self, read: dict[str, Any], path: str) -> None:
        content = read["content"]
        if isinstance(content, list) and all(part["type"] == "text" for part in content):
            read["content"] = "\n".join(part["text"] for part in content)
            self.changes.note("tool-parts-joined", f"{path}.content")


def _float(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else EngineFloat(number)


def _other(text: str, path: str, reason: str) -> InputError:
    return refused(text, path, "other", reason, REFUSALS)


def make_system(messages: list[dict[str, Any]], source: str, changes: Changes) -> list[dict[str, Any]]:
    """Developer messages as system messages, where the template does not name that role; then all of them as one."""
    named = '"developer"' in source or "'developer'" in source
    if named or all(message["role"] != "developer" for message in messages):
        return messages
    renamed = []
    for i, message in enumerate(messages):
        if message["role"] == "developer":
            message = {"role": "system", **{key: message[key] for key in message if key not in ("role", "tools")}}
            changes.note("developer-made-system", f"messages[{i}].role")
        renamed.append(message)
    places = [i for i, message in enumerate(renamed) if message["role"] == "system"]
    if places == [0]:
        return renamed
    for i in places:
        changes.note("system-merged", f"messages[{i}]")
    texts = [_text_of(renamed[i]["content"]) for i in places]
    first = {"role": "system", "content": "\n\n".join(text for text in texts if text)}
    return [first, *(message for message in renamed if message["role"] != "system")]


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part.get("type") == "text")
