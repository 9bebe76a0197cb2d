"""The frame of a system turn is written though no system message was sent.

What it does: renders a question with a system message and without, and compares: where all that differs is the system
text itself, its frame stands there empty.

Why it is bad: it may be meant: some models were trained on it. Where the frame is a slip it costs tokens in every
request, and a model that never saw an empty system turn may make one up.

Example: `<|im_start|>system` and `<|im_end|>` around a text that defaults to nothing.

Use instead: write the turn inside `{% if messages[0].role == 'system' %}`, unless the model was trained otherwise.

References: NVIDIA's Nemotron models are trained with an empty system turn; ChatML has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.laws.layout import empty_turn, plain_chats
from probes.rules.base import Rule
from probes.rules.by_law import broken_on, hit_of
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.chats.messages import Chat
    from probes.rendering.input_form import PathObserver
    from probes.rules.view import Facts


def asks(on: PathObserver) -> list[Chat]:
    return plain_chats(on)[-1:] if on.writes_system else []


def check(facts: Facts) -> list[Hit]:
    found = broken_on(facts.view, empty_turn, asks, "RL108")
    return [hit_of(facts.view, broken, severity="info") for broken in found.values()]


RULE = Rule(
    code="RL108",
    name="empty-system-turn",
    severity="info",
    summary="An empty system turn is written where no system message is sent.",
    suggestion="write the system turn only where there is a system message",
    check=check,
    triggers=(
        "{% set system = messages[0].content if messages[0].role == 'system' else '' %}<|im_start"
        "|>system\n{{ system }}<|im_end|>\n{% for m in messages if m.role != 'system' %}<|im_start|"
        ">{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    ),
    repaired=(
        "{% set system = messages[0].content if messages[0].role == 'system' else '' %}{% if syst"
        "em %}<|im_start|>system\n{{ system }}<|im_end|>\n{% endif %}{% for m in messages if m.role"
        " != 'system' %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    ),
    healthy=("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"),
    documentation=__doc__,
    asks=asks,
)
