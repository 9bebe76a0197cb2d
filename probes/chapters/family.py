"""The name of a known format whose shape a template has.

A family is a row: what begins and ends turns, and how calls are written where it has them. The first row that fits is
the answer, so what is more particular stands first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from probes.report import Family

if TYPE_CHECKING:
    from probes.report import Shape


@dataclass(frozen=True, slots=True)
class Format:
    """`user` begins a user's turn and `assistant` one of the assistant's; `end` ends it, None for any text. `call`
    begins a call; None: calls play no part. `system` begins the system's turn, None for any."""

    name: str
    user: str
    assistant: str
    end: str | None = None
    call: str | None = None
    system: str | None = None


FIRST_MARKER = re.compile(r"\A(?:<[^<>]+>|\{\{ \w+ \}\})\s*")

IM_USER, IM_ASSISTANT = "<|im_start|>user\n", "<|im_start|>assistant\n"
HEADER_USER = "<|start_header_id|>user<|end_header_id|>\n\n"
HEADER_ASSISTANT = "<|start_header_id|>assistant<|end_header_id|>\n\n"

FORMATS = (
    Format("chatml+hermes-tools", IM_USER, IM_ASSISTANT, "<|im_end|>", "<tool_call>\n"),
    Format("chatml+xml-tools", IM_USER, IM_ASSISTANT, "<|im_end|>", "<tool_call>\n<function="),
    Format("chatml+python-tools", IM_USER, IM_ASSISTANT, "<|im_end|>", "<|tool_call_start|>"),
    Format("chatml", IM_USER, IM_ASSISTANT, "<|im_end|>"),
    Format("llama3+json-tools", HEADER_USER, HEADER_ASSISTANT, "<|eot_id|>", ""),
    Format("functionary", HEADER_USER, HEADER_ASSISTANT, "<|eot_id|>", "<function="),
    Format("functionary", HEADER_USER, HEADER_ASSISTANT, "<|eot_id|>", ">>>"),
    Format("llama3", HEADER_USER, HEADER_ASSISTANT, "<|eot_id|>"),
    Format(
        "llama4", "<|header_start|>user<|header_end|>\n\n", "<|header_start|>assistant<|header_end|>\n\n", "<|eot|>"
    ),
    Format("harmony", "<|start|>user<|message|>", "<|start|>assistant<|channel|>final<|message|>"),
    Format("mistral+tools", "[INST]", "", None, "[TOOL_CALLS]"),
    Format("llama2", "[INST] ", "", None, None, "<<SYS>>\n"),
    Format("mistral", "[INST]", ""),
    Format("gemma", "<start_of_turn>user\n", "<start_of_turn>model\n", "<end_of_turn>"),
    Format("gemma4", "<|turn>user\n", "<|turn>model\n", "<turn|>"),
    Format("phi", "<|user|>\n", "<|assistant|>\n", "<|end|>"),
    Format("phi4-mini", "<|user|>", "<|assistant|>", "<|end|>"),
    Format("zephyr", "<|user|>\n", "<|assistant|>\n", "</s>"),
    Format("zephyr", "<|user|>\n", "<|assistant|>\n", "{{ eos_token }}"),
    Format("deepseek", "<｜User｜>", "<｜Assistant｜>"),
    Format("granite", "<|start_of_role|>user<|end_of_role|>", "<|start_of_role|>assistant<|end_of_role|>"),
    Format("glm", "<|user|>", "<|assistant|>", "", "<tool_call>"),
    Format("command-r", "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>", "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"),
    Format("kimi", "<|im_user|>user<|im_middle|>", "<|im_assistant|>assistant<|im_middle|>", "<|im_end|>"),
    Format("minimax", "]~b]user\n", "]~b]ai\n", "[e~["),
    Format("exaone", "[|user|]\n", "[|assistant|]\n", "[|endofturn|]"),
    Format("alpaca", "### Instruction:\n", "### Response:\n"),
    Format("vicuna", "USER: ", "ASSISTANT: "),
)


def family_of(shape: Shape) -> Family | None:
    """The family that `shape` belongs to; None where it is no known one."""
    user, assistant = shape.turns.get("user"), shape.turns.get("assistant")
    if user is None or assistant is None:
        return None
    for row in FORMATS:
        if not (_begins(user.open, row.user) and _begins(assistant.open, row.assistant, exactly=not row.assistant)):
            continue
        if row.end is not None and (shape.end_of_turn.text or "") != row.end:
            continue
        if row.call is not None and (shape.tool_call is None or shape.tool_call.open != row.call):
            continue
        system = shape.turns.get("system")
        if row.system is not None and (system is None or row.system not in system.open):
            continue
        return Family(name=row.name, match="shape")
    return None


def _begins(text: str, start: str, *, exactly: bool = False) -> bool:
    """Space around markers is not what tells families apart, nor is a special token before them."""
    text, start = text.strip(), start.strip()
    if exactly:
        return text == start
    return text.startswith(start) or FIRST_MARKER.sub("", text, count=1).startswith(start)


__all__ = ["FORMATS", "family_of"]
