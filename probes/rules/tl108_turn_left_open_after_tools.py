"""The turn of a message that calls tools is closed twice, or never, or generation starts outside of any turn.

What it does: compares conversations with a call and its result to how the same template closes an answer and opens the
model's turn: the marker that ends a turn must stand once between the call and a new turn with the result, and where a
turn was closed the prompt must open one before the model goes on.

Why it is bad: the model continues text that no turn holds, or reads the end of a turn where nobody had spoken. It stops
at once, repeats the call or answers as the user.

Example: a generation prompt that is left out after every tool result, though a call with text closed its turn.

Use instead: keep the turn open through call and result, or close it and open the next, in every branch alike.

References: Qwen3's template closes each call's turn; Gemma 4's keeps one turn open over call and result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes import canaries
from probes.rules.base import Hit, Rule

if TYPE_CHECKING:
    from probes.report import Shape
    from probes.rules.base import Facts
    from probes.rules.looking import Asked


def check(facts: Facts) -> list[Hit]:
    look = facts.look
    found = look.shape
    end = (found.end_of_turn.text or "").strip()
    opener = found.turns["assistant"].open.strip() if "assistant" in found.turns else ""
    if not end or not opener or found.generation_prompt is None or not found.generation_prompt.text.strip():
        return []
    header = _first_marker(opener)
    hits: list[Hit] = []
    for beside, what in (("empty", "a call"), ("text", "a call with text beside it")):
        asked = [one for one in look.ask_calls(canaries.one_call, canaries.VALUE, beside=beside) if _whole(one)]
        twice = [one for one in asked if _between(one).count(end) > 1 and header not in _between(one)]
        if twice:
            message = f"after {what} {end!r} stands twice, with no turn between"
            hits.append(look.hit(message, twice, [a for a in asked if a not in twice], severity="error", cause="end"))
            continue
        outside = [one for one in asked if _outside(one, found, end, header)]
        if outside:
            message = f"after {what} and its result the turn is closed, and the generation prompt opens none"
            good = [one for one in asked if one not in outside]
            hits.append(look.hit(message, outside, good, severity="error", cause="turn after tools"))
    return hits[:1]


def _first_marker(opener: str) -> str:
    return opener.split("\n", maxsplit=1)[0]


def _whole(asked: Asked) -> bool:
    return asked.fate == "written" and canaries.RESULT in asked.text


def _between(asked: Asked) -> str:
    """From the call's argument to the result."""
    text = asked.text
    return text[text.rfind(canaries.VALUE) : text.rfind(canaries.RESULT)]


def _outside(asked: Asked, found: Shape, end: str, header: str) -> bool:
    tail = asked.text[asked.text.rfind(canaries.RESULT) :]
    between = _between(asked)
    if header in tail or (found.generation_prompt is not None and found.generation_prompt.text.strip() in tail):
        return False
    after_end = between.rpartition(end)[2] if end in between else None
    return after_end is not None and header not in after_end


RULE = Rule(
    code="TL108",
    name="turn-left-open-after-tools",
    severity="error",
    summary="After calls or results the assistant turn is closed twice, never, or generation starts outside any turn.",
    suggestion="close and open turns around calls and results in every branch alike",
    check=check,
    triggers=(
        "{% for m in messages %}{% if m.role == 'tool' %}<result>{{ m.content }}</result>{% else %}"
        "<|turn|>{{ m.role }}\n{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
        "<call>{{ c.function | tojson }}</call>{% endfor %}<|end|>\n{% endif %}{% endfor %}"
        "{% if add_generation_prompt and messages[-1].role != 'tool' %}<|turn|>assistant\n{% endif %}"
    ),
    repaired=(
        "{% for m in messages %}{% if m.role == 'tool' %}<result>{{ m.content }}</result>{% else %}"
        "<|turn|>{{ m.role }}\n{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
        "<call>{{ c.function | tojson }}</call>{% endfor %}<|end|>\n{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
    ),
    healthy=(
        "{% for m in messages %}{% if m.role == 'tool' %}<|tool_response>{{ m.content }}<tool_response|>"
        "{% else %}<|turn>{{ 'model' if m.role == 'assistant' else m.role }}\n{{ m.content or '' }}"
        "{% for c in m.tool_calls or [] %}<|tool_call>{{ c.function | tojson }}<tool_call|>{% endfor %}"
        "{% if not m.tool_calls %}<turn|>\n{% endif %}{% endif %}{% endfor %}"
        "{% if add_generation_prompt and messages[-1].role != 'tool' %}<|turn>model\n{% endif %}"
    ),
    documentation=__doc__,
)
