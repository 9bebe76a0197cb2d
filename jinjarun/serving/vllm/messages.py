"""The messages of a request as vLLM 0.33.0 hands them to the template."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from jinjarun.dialects.adopting import EngineFloat
from jinjarun.limits import limit_exceeded
from jinjarun.serving.chat_completions.errors import python_text, refused
from jinjarun.serving.vllm.errors import REFUSALS

if TYPE_CHECKING:
    from jinjarun.errors import InputError
    from jinjarun.limits import Limits
    from jinjarun.serving.chat_completions.contents import ContentFormat
    from jinjarun.serving.chat_completions.reworks import Changes

MESSAGE_KEYS = frozenset(
    {"role", "content", "name", "tool_call_id", "tool_calls", "reasoning", "reasoning_content", "task"}
)
PART_KEYS = frozenset(
    {
        *("audio_embeds", "audio_url", "closed", "data", "file", "image_embeds", "image_pil", "image_url"),
        *("input_audio", "name", "prompt_cache_breakpoint", "refusal", "text", "thinking", "type", "uuid"),
        *("video_embeds", "video_url"),
    }
)
"""Keys of known parts. Others go to the template with the part."""
TEXT_KEYS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal", "thinking": "thinking"}
"""Type of a part that becomes text -> the key that holds it."""
MEDIA_PARTS = (
    *("image_url", "input_image", "image_pil", "image_embeds", "audio_url", "input_audio", "audio_embeds"),
    *("video_url", "video_embeds"),
)
PART_TYPES = sorted({*TEXT_KEYS, *MEDIA_PARTS, "prompt_embeds", "tool_reference"})
BILLING_HEADER = "x-anthropic-billing-header"


@dataclass(frozen=True, slots=True)
class VllmReader:
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
        for key in raw:
            if key not in kept:
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
            raise limit_exceeded("data_depth", self.limits.data_depth) from None
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


def names_developer(source: str) -> bool:
    """Whether the server takes the template for one that knows the developer role."""
    return '"developer"' in source or "'developer'" in source


def make_system(
    messages: list[dict[str, Any]], source: str, changes: Changes
) -> tuple[list[dict[str, Any]], list[int]]:
    """Developer messages as system messages, where the template does not name that role; then all of them as one.

    With the messages come the numbers that they had; a merged one has that of the first.
    """
    numbers = list(range(len(messages)))
    if names_developer(source) or all(message["role"] != "developer" for message in messages):
        return messages, numbers
    renamed = []
    for i, message in enumerate(messages):
        if message["role"] == "developer":
            message = {"role": "system", **{key: message[key] for key in message if key not in ("role", "tools")}}
            changes.note("developer-made-system", f"messages[{i}].role")
        renamed.append(message)
    places = [i for i, message in enumerate(renamed) if message["role"] == "system"]
    if places == [0]:
        return renamed, numbers
    for i in places:
        changes.note("system-merged", f"messages[{i}]")
    texts = [_text_of(renamed[i]["content"]) for i in places]
    first = {"role": "system", "content": "\n\n".join(text for text in texts if text)}
    others = [number for number in numbers if number not in places]
    return [first, *(renamed[number] for number in others)], [places[0], *others]


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part.get("type") == "text")
