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

from probes.chats import canaries
from probes.chats.messages import say
from probes.rules.base import Rule
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.report import Shape
    from probes.rules.view import Asked, Facts, TemplateView


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    found = view.shape
    end = (found.end_of_turn.text or "").strip()
    opener = found.turns["assistant"].open.strip() if "assistant" in found.turns else ""
    if not end or not opener or found.generation_prompt is None or not found.generation_prompt.text.strip():
        return []
    header = opener.split("\n", maxsplit=1)[0]
    empty, text = (_written(view, beside) for beside in ("empty", "text"))
    for asked, what in ((empty, "a call"), (text, "a call with text beside it")):
        twice = [one for one in asked if _between(one).count(end) > 1 and header not in _between(one)]
        if twice:
            good = [one for one in asked if one not in twice]
            message = f"after {what} {end!r} stands twice, with no turn between"
            return [view.hit(message, twice, good, severity="error", cause="end of call turn")]
    silent = [one for one in (*empty, *text) if not _opened(one, found, header)]
    closed = [one for one in silent if _is_closed(one, end, header)]
    left_open = {one.path for one in silent if one not in closed}
    outside = [one for one in closed if one.path in left_open or _answer_has_header(view, one, header)]
    if not outside:
        return []
    message = "after a call and its result the turn is closed, and the generation prompt opens none"
    paths = {one.path for one in outside}
    good = [one for one in (*empty, *text) if one.path not in paths]
    first = {one.path: one for one in reversed(outside)}
    return [view.hit(message, list(first.values()), good, severity="error", cause="turn after tools")]


def _written(view: TemplateView, beside: str) -> list[Asked]:
    return [one for one in view.ask_named(beside=beside) if one.fate == "written" and canaries.RESULT in one.text]


def _between(asked: Asked) -> str:
    """From the call to the result."""
    text = asked.text
    return text[max(text.rfind(canaries.VALUE), text.rfind(canaries.TOOL)) : text.rfind(canaries.RESULT)]


def _opened(asked: Asked, found: Shape, header: str) -> bool:
    """Whether a turn of the model is opened behind the result."""
    tail = asked.text[asked.text.rfind(canaries.RESULT) :]
    return header in tail or (found.generation_prompt is not None and found.generation_prompt.text.strip() in tail)


def _is_closed(asked: Asked, end: str, header: str) -> bool:
    """Whether the turn of the call ends before the result."""
    between = _between(asked)
    return end in between and header not in between.rpartition(end)[2]


def _answer_has_header(view: TemplateView, asked: Asked, header: str) -> bool:
    """Whether an answer in the history has the header between the result and itself: then the prompt misses it. Some
    formats never have one there, and a model was trained so."""
    messages = [*asked.chat["messages"], say("assistant", canaries.ANSWER), say("user", canaries.SECOND_USER)]
    text = view.facts.renders.render(asked.path, {**asked.chat, "messages": messages}).text or ""
    result, answer = text.rfind(canaries.RESULT), text.rfind(canaries.ANSWER)
    return 0 <= result < answer and header in text[result:answer]


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
