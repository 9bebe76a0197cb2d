"""The messages of a request as SGLang 0.5.23 hands them to the template."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jinjarun.limits import limit_exceeded
from jinjarun.serving.chat_completions.errors import refused
from jinjarun.serving.sglang.errors import REFUSALS
from jinjarun.serving.sglang.request import ChatCompletionMessageGenericParam

if TYPE_CHECKING:
    from jinjarun.errors import InputError
    from jinjarun.limits import Limits
    from jinjarun.serving.chat_completions.contents import ContentFormat
    from jinjarun.serving.chat_completions.reworks import Changes
    from jinjarun.serving.sglang.request import AnyMessage

USER_KEYS = frozenset({"role", "content"})
MESSAGE_KEYS = frozenset(ChatCompletionMessageGenericParam.model_fields)
MEDIA = {"image_url": "image", "video_url": "video", "audio_url": "audio", "input_audio": "audio"}
"""Types of parts with media -> what a template gets of them."""
MEDIA_NAMES = {"input_audio": "audio_url"}
"""A type of part -> the one that the server makes of it."""


def media_of(content: Any) -> list[str]:
    """The types of media in a message's content, as the server names them."""
    parts = content if isinstance(content, list) else []
    kinds = [part.type if hasattr(part, "type") else part["type"] for part in parts]
    return [MEDIA_NAMES.get(kind, kind) for kind in kinds if kind in MEDIA]


@dataclass(frozen=True, slots=True)
class SglangReader:
    """Makes the template's messages of a request's."""

    content_format: ContentFormat
    sorts_results: bool
    changes: Changes
    limits: Limits

    def messages(self, messages: list[AnyMessage], raw: list[Any]) -> list[dict[str, Any]]:
        dumped = [self.dumped(one, raw[i], f"messages[{i}]") for i, one in enumerate(messages)]
        for i, message in enumerate(dumped):
            self.parse_arguments(message, f"messages[{i}]")
        if self.sorts_results:
            sort_results(dumped, self.changes)
        return [self.message(message, f"messages[{i}]") for i, message in enumerate(dumped)]

    def dumped(self, message: AnyMessage, raw: dict[str, Any], path: str) -> dict[str, Any]:
        """All keys of a message in the server's order, null where the client sent none."""
        read: dict[str, Any] = message.model_dump()
        if isinstance(message, ChatCompletionMessageGenericParam):
            if message.tools is not None:
                read["tools"] = [tool.to_json() for tool in message.tools]
            if raw["role"] != message.role:
                self.changes.note("role-lowered", f"{path}.role")
            for i, call in enumerate(raw.get("tool_calls") or ()):
                if {"id", "index", "type"} - call.keys():
                    self.changes.note("call-keys-added", f"{path}.tool_calls[{i}]")
            known = MESSAGE_KEYS
        else:
            known = USER_KEYS
        for key, value in raw.items():
            if key not in known:
                self.changes.note("keys-dropped", f"{path}.{key}")
            elif value is None and key != "content":
                self.changes.note("null-keys-dropped", f"{path}.{key}")
        return read

    def parse_arguments(self, message: dict[str, Any], path: str) -> None:
        if message["role"] != "assistant":
            return
        for i, call in enumerate(message.get("tool_calls") or ()):
            function = call["function"]
            if isinstance(function["arguments"], str):
                place = f"{path}.tool_calls[{i}].function.arguments"
                function["arguments"] = _parsed(function["arguments"], place, self.limits)
                self.changes.note("arguments-parsed", place)

    def message(self, message: dict[str, Any], path: str) -> dict[str, Any]:
        content = message["content"]
        if content is None:
            content = ""
            self.changes.note("null-content-emptied", f"{path}.content")
        parts = isinstance(content, list)
        if parts:
            content = self.parts(content, f"{path}.content")
        read = {key: value for key, value in {**message, "content": content}.items() if value is not None}
        if parts and isinstance(content, list):
            # The server puts content that it keeps as a list behind the other keys.
            read["content"] = read.pop("content")
        if message["role"] == "tool" and isinstance(content, list) and all(part["type"] == "text" for part in content):
            read["content"] = " ".join(part["text"] for part in content)
            self.changes.note("tool-parts-joined", f"{path}.content")
        return read

    def parts(self, parts: list[dict[str, Any]], path: str) -> Any:
        for i, part in enumerate(parts):
            dropped = part["type"] not in ("text", "tool_reference", *MEDIA)
            if dropped or (self.content_format == "string" and part["type"] != "text"):
                self.changes.note("part-dropped", f"{path}[{i}]")
        if self.content_format == "string":
            self.changes.note("text-parts-joined", path)
            return " ".join(part["text"] for part in parts if part["type"] == "text")
        self.changes.note("parts-simplified", path)
        read = []
        for part in parts:
            kind = part["type"]
            if kind in MEDIA:
                read.append({"type": MEDIA[kind]})
            elif kind == "text":
                read.append({"type": "text", "text": part["text"]})
            elif kind == "tool_reference":
                read.append(part)
        return read


def _parsed(text: str, path: str, limits: Limits) -> dict[str, Any]:
    """The arguments of a call, read as strictly as orjson does."""
    try:
        value = json.loads(text, parse_int=_integer, parse_float=_finite, parse_constant=_finite)
        json.dumps(value, ensure_ascii=False).encode()
    except ValueError:
        raise _other("must be valid JSON.", path, "arguments-no-json") from None
    except RecursionError:
        raise limit_exceeded("data_depth", limits.data_depth) from None
    if not isinstance(value, dict):
        raise _other("must be a JSON object.", path, "arguments-no-object")
    return value


def _other(text: str, path: str, reason: str) -> InputError:
    return refused(f"Assistant tool call function.arguments {text}", path, "other", reason, REFUSALS)


def _integer(digits: str) -> int | float:
    """Beyond 64 bits a number becomes a double."""
    if len(digits) <= 20 and -(1 << 63) <= (number := int(digits)) < 1 << 64:
        return number
    return _finite(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(digits)
    return number


def sort_results(messages: list[dict[str, Any]], changes: Changes) -> None:
    """Runs of tool results after an assistant message, in the order of its calls, where one of them has media."""
    i = 0
    while i < len(messages):
        calls = messages[i].get("tool_calls") if messages[i]["role"] == "assistant" else None
        i += 1
        if not calls:
            continue
        start = i
        while i < len(messages) and messages[i]["role"] == "tool":
            i += 1
        results = messages[start:i]
        if not any(media_of(result["content"]) for result in results):
            continue
        order = {call["id"]: j for j, call in enumerate(calls) if call["id"] is not None}
        wanted = sorted(results, key=lambda result: order.get(result["tool_call_id"], len(order)))
        if wanted != results:
            messages[start:i] = wanted
            changes.note("tool-results-sorted", f"messages[{start}]")
