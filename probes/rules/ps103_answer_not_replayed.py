"""A prompt and the answer generated for it are not the start of the next prompt.

What it does: takes the prefix law `as-generated`: the prompt, behind it the answer as the template writes a last turn,
and the prompt of the next question, which should begin with both.

Why it is bad: the answer just generated is in the cache and must be computed again; and what the model sees of its own
answer is not what it wrote, in use as in training.

Example: an empty block of reasoning that only the generation prompt has; reasoning that is dropped from history.

Use instead: the generation prompt begins as the turn in the history does.

References: prompt caching of llama-server and vLLM. Where reasoning is dropped by design it is a price to know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.rules.base import Rule
from probes.rules.laws import broken_laws
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.rules.view import Facts

LAWS = {"as-generated": "the next question after an answer"}


def check(facts: Facts) -> list[Hit]:
    return broken_laws(facts, LAWS, "warning")


RULE = Rule(
    code="PS103",
    name="answer-not-replayed",
    severity="warning",
    summary="Prompt plus the answer as generated is not a prefix of the next prompt.",
    suggestion="let the generation prompt begin as the assistant's turn in the history does",
    check=check,
    triggers=(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|><think>\n\n</think>\n\n{% endif %}"
    ),
    repaired=(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% endif %}"
    ),
    healthy=(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    ),
    documentation=__doc__,
)
