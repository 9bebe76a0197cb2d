"""The template families that llama-server b11434 treats specially, one row each, known by strings in their source.

For these the server has a parser of its own, so it does not analyse the template; some also get their messages
reworked. The others go through `markers`. Facts: common/chat.cpp (common_chat_try_specialized_template) and
common/parsers/ of that build.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jinjarun.serving import reworks

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinjarun.limits import Limits
    from jinjarun.serving.requests import ChatRequest, Message
    from jinjarun.serving.reworks import Conversation


@dataclass(frozen=True, slots=True)
class Resumption:
    """Where an assistant message is to be continued: what it says, in which part, and what stands before it."""

    message: Message
    content_too: bool
    """Whether the content is continued; the reasoning otherwise."""
    prompt: bytes
    generation_prompt: bytes
    """What the template adds to open the model's turn."""
    source: str


@dataclass(frozen=True, slots=True)
class Family:
    """A row.

    `has`, `has_one_of` and `lacks` are strings in the source. `opening` and `closing` surround the reasoning when an
    assistant message is continued; `resume` says it where that is not all. `adapt` reworks the messages, `finish` the
    text.
    """

    name: str
    has: tuple[str, ...]
    lacks: tuple[str, ...] = ()
    has_one_of: tuple[str, ...] = ("",)
    opening: str = ""
    closing: str = ""
    thinks: bool = True
    """Whether the server takes it for a thinking model, which decides the default of enable_thinking."""
    thinks_if: str = ""
    """The string in the source that decides instead."""
    needs_generation_prompt: bool = True
    """Whether the template is also rendered without and with the opening of the model's turn, and may fail there."""
    schemas: tuple[str, ...] = ("answer", "tools")
    """Whose JSON schemas the server turns into a grammar: those of the first that the request has. "unread tools" stand
    for tools that are offered but whose schemas nobody reads."""
    adds_stops: bool = False
    """Whether the server adds a stop of the model's to those of the client."""
    all_schemas: bool = False
    """Of all that the request has instead."""
    adapt: Callable[[Conversation, str, Limits], None] | None = None
    resume: Callable[[Resumption], str] | None = None
    finish: Callable[[bytes, ChatRequest, Conversation], bytes] | None = None
    variables: Callable[[str, ChatRequest], dict[str, Any]] | None = None

    def matches(self, source: str) -> bool:
        return (
            all(text in source for text in self.has)
            and any(text in source for text in self.has_one_of)
            and not any(text in source for text in self.lacks)
        )

    def is_thinking(self, source: str) -> bool:
        return self.thinks_if in source if self.thinks_if else self.thinks

    def resumed(self, at: Resumption) -> bytes:
        """What is written after the prompt to continue a message."""
        if self.resume is not None:
            return self.resume(at).encode()
        return _resumed(self.opening, self.closing, at).encode()


def _resumed(opening: str, closing: str, at: Resumption) -> str:
    text = opening + at.message.reasoning_content
    return text + closing + at.message.text if at.content_too else text


def _resume_functionary(at: Resumption) -> str:
    return f"<|start_header_id|>assistant<|end_header_id|>\n\n>>>all\n{at.message.text}"


def _resume_gigachat(at: Resumption) -> str:
    return f"assistant<|role_sep|>\n{at.message.text}"


def _resume_minimax(at: Resumption) -> str:
    opened = at.generation_prompt.decode("utf-8", "replace")
    return opened + _resumed("<mm:think>", "</mm:think>", at)


def _resume_deepseek(at: Resumption) -> str:
    if _is_deepseek_v4(at.source) and not at.message.reasoning_content:
        return "<｜Assistant｜></think>" + (at.message.text if at.content_too else "")
    return _resumed("<｜Assistant｜><think>", "</think>", at)


def _resume_gemma(at: Resumption) -> str:
    opened = "<|turn>model\n" if at.prompt.endswith(GEMMA_TURN_END) else ""
    return _resumed(f"{opened}<|channel>thought\n", "<channel|>", at)


def _resume_qwen_coder(at: Resumption) -> str:
    opened = "<|im_start|>assistant\n"
    if "<think>" in at.source:
        return _resumed(f"{opened}<think>\n", "\n</think>\n\n", at)
    return opened + (at.message.text if at.content_too else "")


GEMMA_TURN_END = b"<turn|>\n"


def _open_gemma_turn(prompt: bytes, request: ChatRequest, chat: Conversation) -> bytes:
    if request.add_generation_prompt and prompt.endswith(GEMMA_TURN_END):
        chat.note("turn-opened", "prompt")
        return prompt + b"<|turn>model\n"
    return prompt


def _replace_return_token(prompt: bytes, request: ChatRequest, chat: Conversation) -> bytes:
    at = prompt.rfind(b"<|return|>")
    if request.add_generation_prompt or at < 0:
        return prompt
    chat.note("return-token-replaced", "prompt")
    return prompt[:at] + b"<|end|>" + prompt[at + len(b"<|return|>") :]


def _adapt_harmony(chat: Conversation, _source: str, _limits: Limits) -> None:
    reworks.copy_reasoning_to_thinking(chat, drop_content=True)


def _adapt_lfm2(chat: Conversation, _source: str, _limits: Limits) -> None:
    reworks.copy_reasoning_to_thinking(chat, drop_content=False)


def _adapt_ministral(chat: Conversation, _source: str, _limits: Limits) -> None:
    reworks.make_reasoning_a_part(chat)


def _is_deepseek_v4(source: str) -> bool:
    return "function_calls" not in source


def _adapt_deepseek(chat: Conversation, source: str, _limits: Limits) -> None:
    if _is_deepseek_v4(source):
        reworks.sort_tool_results(chat)


def _deepseek_variables(source: str, request: ChatRequest) -> dict[str, Any]:
    if _is_deepseek_v4(source) and request.has_schema:
        return {"response_format": request.json_schema}
    return {}


def _adapt_gemma(chat: Conversation, source: str, limits: Limits) -> None:
    if "{#- OpenAI Chat Completions:" not in source:
        reworks.fold_tool_results(chat, limits)


HARMONY_OPENING = "<|start|>assistant<|channel|>analysis<|message|>"
HARMONY_CLOSING = "<|end|><|start|>assistant<|channel|>final<|message|>"
LFM2_OPENING = "<|im_start|>assistant\n<think>"

FAMILIES = (
    Family(
        "ministral-3",
        has=("[SYSTEM_PROMPT]", "[TOOL_CALLS]", "[ARGS]"),
        lacks=("[CALL_ID]",),
        opening="[THINK]",
        closing="[/THINK]",
        adapt=_adapt_ministral,
    ),
    Family(
        "llm-jp-harmony",
        has=("chat_format=llm-jp-harmony-v1",),
        adapt=_adapt_harmony,
        finish=_replace_return_token,
        opening=HARMONY_OPENING,
        closing=HARMONY_CLOSING,
    ),
    Family(
        "gpt-oss",
        has=("<|channel|>",),
        adapt=_adapt_harmony,
        finish=_replace_return_token,
        opening=HARMONY_OPENING,
        closing=HARMONY_CLOSING,
    ),
    Family(
        "muse-glimmer",
        has=("<atem:function_calls>", "<|eom|>"),
        opening="<|start|>assistant to=self<|message|>",
        closing="<|eom|><|start|>assistant to=user<|message|>",
        needs_generation_prompt=False,
    ),
    Family(
        "functionary-v3.2",
        has=(">>>all", ">>>${recipient}"),
        thinks=False,
        schemas=("tools",),
        resume=_resume_functionary,
    ),
    Family(
        "kimi-k2",
        has=("<|tool_calls_section_begin|>", "<|tool_call_begin|>"),
        opening="<|im_assistant|>assistant<|im_middle|><think>",
        closing="</think>",
        schemas=("tools",),
    ),
    Family(
        "kimi-k3",
        has=("<|open|>", "<|close|>", "<|end_of_msg|>"),
        opening='<|open|>message role="assistant"<|sep|><|open|>think<|sep|>',
        closing="<|close|>think<|sep|><|open|>response<|sep|>",
        schemas=(),
    ),
    Family(
        "ling-3",
        has=("<role>ASSISTANT</role>", "<arg_key>"),
        opening="<role>ASSISTANT</role>\n<think>",
        closing="</think>",
        adds_stops=True,
    ),
    Family(
        "cohere2-moe",
        has=("<|START_TEXT|>", "<|START_ACTION|>"),
        opening="<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|><|START_THINKING|>",
        closing="<|END_THINKING|><|START_TEXT|>",
        all_schemas=True,
    ),
    Family(
        "lfm2",
        has=("<|tool_list_start|>", "<|tool_list_end|>"),
        adapt=_adapt_lfm2,
        opening=LFM2_OPENING,
        closing="</think>",
        schemas=("unread tools", "answer"),
    ),
    Family(
        "lfm2.5",
        has=("List of tools: [",),
        lacks=("<|tool_list_start|>",),
        adapt=_adapt_lfm2,
        opening=LFM2_OPENING,
        closing="</think>",
        schemas=("unread tools", "answer"),
    ),
    Family(
        "gigachat-v3",
        has=("<|role_sep|>", "<|message_sep|>"),
        lacks=("<|function_call|>",),
        thinks=False,
        schemas=("tools",),
        resume=_resume_gigachat,
    ),
    Family("minimax-m3", has=("]<]minimax[>[", "<tool_call>", "<invoke name="), resume=_resume_minimax),
    Family(
        "deepseek-v3.2",
        has=("dsml_token", "DSML"),
        has_one_of=("function_calls", "tool_calls"),
        adapt=_adapt_deepseek,
        resume=_resume_deepseek,
        all_schemas=True,
        variables=_deepseek_variables,
    ),
    Family(
        "gemma-4",
        has=("'<|tool_call>call:'",),
        schemas=("answer",),
        adapt=_adapt_gemma,
        resume=_resume_gemma,
        finish=_open_gemma_turn,
    ),
    Family(
        "minicpm-5",
        has=("Tool usage guidelines:", '<function name="', '<param name="'),
        opening="<|im_start|>assistant\n<think>\n",
        closing="\n</think>\n\n",
    ),
    Family(
        "qwen3-coder",
        has=("<tool_call>", "<function=", "<parameter="),
        lacks=("'<tool_call><function=' ~ tool_call.name ~ '>'",),
        thinks_if="<think>",
        resume=_resume_qwen_coder,
    ),
)
"""Asked in this order; the first that matches is it."""


def family_of(source: str) -> Family | None:
    """`source`: as the engine's lexer has it, line ends unified and one at the end dropped."""
    return next((family for family in FAMILIES if family.matches(source)), None)
