"""The messages of OpenAI's chat API as the `openai` package (3.57) declares them and vLLM 0.33.0 adds to them.

vLLM gives a message to a union of these types. pydantic tries them all and keeps the one that takes most of the given
keys, so names, order and required keys decide what is left of a message; the names show in the server's errors. An
`Iterable` is validated only when somebody reads it, a `list` at once. Facts: openai/types/chat, and vLLM's
renderers/chat_utils.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Required

from pydantic import BaseModel, ConfigDict
from typing_extensions import TypedDict

# -------------------------------------------------------------------------------------------------------- content parts


class PromptCacheBreakpoint(TypedDict, total=False):
    mode: Required[Literal["explicit"]]
    ttl: Literal["30m", "12h"]


class ChatCompletionContentPartTextParam(TypedDict, total=False):
    text: Required[str]
    type: Required[Literal["text"]]
    prompt_cache_breakpoint: PromptCacheBreakpoint


class ImageURL(TypedDict, total=False):
    url: Required[str]
    detail: Literal["auto", "low", "high", "original"]


class ChatCompletionContentPartImageParam(TypedDict, total=False):
    image_url: Required[ImageURL]
    type: Required[Literal["image_url"]]
    prompt_cache_breakpoint: PromptCacheBreakpoint


class InputAudio(TypedDict, total=False):
    data: Required[str]
    format: Required[Literal["wav", "mp3"]]


class ChatCompletionContentPartInputAudioParam(TypedDict, total=False):
    input_audio: Required[InputAudio]
    type: Required[Literal["input_audio"]]
    prompt_cache_breakpoint: PromptCacheBreakpoint


class FileFile(TypedDict, total=False):
    file_data: str
    file_id: str
    filename: str


class File(TypedDict, total=False):
    file: Required[FileFile]
    type: Required[Literal["file"]]
    prompt_cache_breakpoint: PromptCacheBreakpoint


class ChatCompletionContentPartRefusalParam(TypedDict, total=False):
    refusal: Required[str]
    type: Required[Literal["refusal"]]


class MediaURL(TypedDict, total=False):
    url: Required[str]


class ChatCompletionContentPartAudioParam(TypedDict, total=False):
    audio_url: Required[MediaURL]
    type: Required[Literal["audio_url"]]


class ChatCompletionContentPartVideoParam(TypedDict, total=False):
    video_url: Required[MediaURL]
    type: Required[Literal["video_url"]]


class CustomChatCompletionContentPILImageParam(TypedDict, total=False):
    image_pil: None
    uuid: str | None


class CustomChatCompletionContentSimpleImageParam(TypedDict, total=False):
    image_url: str | None
    uuid: str | None


Embeds = str | dict[str, str | list[int | float]]


class ChatCompletionContentPartImageEmbedsParam(TypedDict, total=False):
    image_embeds: Embeds | None
    type: Required[Literal["image_embeds"]]
    uuid: str | None


class ChatCompletionContentPartAudioEmbedsParam(TypedDict, total=False):
    audio_embeds: Embeds | None
    type: Required[Literal["audio_embeds"]]
    uuid: str | None


class ChatCompletionContentPartVideoEmbedsParam(TypedDict, total=False):
    video_embeds: Embeds | None
    type: Required[Literal["video_embeds"]]
    uuid: str | None


class ChatCompletionContentPartPromptEmbedsParam(TypedDict, total=False):
    data: Required[str]
    type: Required[Literal["prompt_embeds"]]


class CustomChatCompletionContentSimpleAudioParam(TypedDict, total=False):
    audio_url: str | None


class CustomChatCompletionContentSimpleVideoParam(TypedDict, total=False):
    video_url: str | None
    uuid: str | None


class CustomChatCompletionContentToolReferenceParam(TypedDict, total=False):
    name: str
    type: Literal["tool_reference"]


class CustomThinkCompletionContentParam(TypedDict, total=False):
    thinking: Required[str]
    closed: bool
    type: Required[Literal["thinking"]]


OpenAIPart = (
    ChatCompletionContentPartTextParam
    | ChatCompletionContentPartImageParam
    | ChatCompletionContentPartInputAudioParam
    | File
)
AnyPart = (
    OpenAIPart
    | ChatCompletionContentPartAudioParam
    | ChatCompletionContentPartVideoParam
    | ChatCompletionContentPartRefusalParam
    | CustomChatCompletionContentPILImageParam
    | CustomChatCompletionContentSimpleImageParam
    | ChatCompletionContentPartImageEmbedsParam
    | ChatCompletionContentPartAudioEmbedsParam
    | ChatCompletionContentPartVideoEmbedsParam
    | ChatCompletionContentPartPromptEmbedsParam
    | CustomChatCompletionContentSimpleAudioParam
    | CustomChatCompletionContentSimpleVideoParam
    | CustomChatCompletionContentToolReferenceParam
    | CustomThinkCompletionContentParam
    | str
)

# ------------------------------------------------------------------------------------------------------ calls and tools


class Function(TypedDict, total=False):
    arguments: Required[str]
    name: Required[str]


class ChatCompletionMessageFunctionToolCallParam(TypedDict, total=False):
    id: Required[str]
    function: Required[Function]
    type: Required[Literal["function"]]


class Custom(TypedDict, total=False):
    input: Required[str]
    name: Required[str]


class ChatCompletionMessageCustomToolCallParam(TypedDict, total=False):
    id: Required[str]
    custom: Required[Custom]
    type: Required[Literal["custom"]]


class FunctionDefinition(TypedDict, total=False):
    name: Required[str]
    description: str
    parameters: dict[str, object]
    strict: bool | None


class ChatCompletionFunctionToolParam(TypedDict, total=False):
    function: Required[FunctionDefinition]
    type: Required[Literal["function"]]


# ------------------------------------------------------------------------------------------------------------- messages


class ChatCompletionDeveloperMessageParam(TypedDict, total=False):
    content: Required[str | Iterable[ChatCompletionContentPartTextParam]]
    role: Required[Literal["developer"]]
    name: str


class ChatCompletionSystemMessageParam(TypedDict, total=False):
    content: Required[str | Iterable[ChatCompletionContentPartTextParam]]
    role: Required[Literal["system"]]
    name: str


class ChatCompletionUserMessageParam(TypedDict, total=False):
    content: Required[str | Iterable[OpenAIPart]]
    role: Required[Literal["user"]]
    name: str


class Audio(TypedDict, total=False):
    id: Required[str]


class FunctionCall(TypedDict, total=False):
    arguments: Required[str]
    name: Required[str]


class ChatCompletionAssistantMessageParam(TypedDict, total=False):
    role: Required[Literal["assistant"]]
    audio: Audio | None
    content: str | Iterable[ChatCompletionContentPartTextParam | ChatCompletionContentPartRefusalParam] | None
    function_call: FunctionCall | None
    name: str
    refusal: str | None
    tool_calls: Iterable[ChatCompletionMessageFunctionToolCallParam | ChatCompletionMessageCustomToolCallParam]


class ChatCompletionToolMessageParam(TypedDict, total=False):
    content: Required[str | Iterable[ChatCompletionContentPartTextParam]]
    role: Required[Literal["tool"]]
    tool_call_id: Required[str]


class ChatCompletionFunctionMessageParam(TypedDict, total=False):
    content: Required[str | None]
    name: Required[str]
    role: Required[Literal["function"]]


class CustomChatCompletionMessageParam(TypedDict, total=False):
    """Any role, with the keys that vLLM adds."""

    role: Required[str]
    content: str | list[AnyPart]
    name: str
    tool_call_id: str | None
    tool_calls: list[ChatCompletionMessageFunctionToolCallParam] | None
    reasoning: str | None
    tools: list[ChatCompletionFunctionToolParam] | None
    task: str | None


class Author(BaseModel):
    model_config = ConfigDict(defer_build=True)

    role: Literal["user", "assistant", "system", "developer", "tool"]
    name: str | None = None


class Message(BaseModel):
    """A message of OpenAI's Harmony format. It has an author and no role, so it never reaches a template."""

    model_config = ConfigDict(defer_build=True)

    author: Author
    content: list[dict[str, Any]] = []
    channel: str | None = None
    recipient: str | None = None
    content_type: str | None = None


AnyMessage = (
    ChatCompletionDeveloperMessageParam
    | ChatCompletionSystemMessageParam
    | ChatCompletionUserMessageParam
    | ChatCompletionAssistantMessageParam
    | ChatCompletionToolMessageParam
    | ChatCompletionFunctionMessageParam
    | CustomChatCompletionMessageParam
    | Message
)
