"""The mask for training covers what the generation prompt writes.

What it does: renders a question with and without its answer, and looks whether a `{% generation %}` block begins before
the end of the text that the generation prompt supplies.

Why it is bad: what stands in the prompt is never generated. Training on it teaches the model to write such text itself,
an empty block of reasoning for one, and the loss looks better than it is.

Example: `{% generation %}<think></think>{{ m.content }}`, where the generation prompt ends with `<think></think>`.

Use instead: begin the block behind the text that the generation prompt writes.

References: `return_assistant_tokens_mask` of transformers; `assistant_only_loss` of TRL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinjarun.errors import quote
from probes.chats import canaries
from probes.chats.messages import say
from probes.rendering.renders import APPLY, RAW
from probes.rules.base import Rule
from probes.rules.tr102_mask_misses_stop_token import TAG, rendered_with_mask
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.rules.view import Facts


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    tag = TAG.search(facts.source)
    if tag is None or RAW not in view.paths:
        return []
    form = view.form(RAW)
    asked = view.ask_path(RAW, canaries.user_only(form), canaries.USER)
    turns = [say("user", canaries.USER), say("assistant", canaries.ANSWER)]
    whole = rendered_with_mask(facts, form.chat(turns, add_generation_prompt=False))
    if whole is None or not whole.generations or not whole.text.startswith(asked.text) or not asked.text:
        return []
    begins = whole.generations[0][0]
    if begins >= len(asked.text):
        return []
    covered = asked.text[begins:]
    return [
        Hit(
            message=f"the mask for training covers {quote(covered)!r}, which the generation prompt writes",
            engines=[RAW, APPLY],
            line=facts.source.count("\n", 0, tag.start()) + 1,
            evidence=[view.cite(asked)],
            severity="warning",
            cause="generation prompt in mask",
        )
    ]


RULE = Rule(
    code="TR104",
    name="mask-covers-generation-prompt",
    severity="warning",
    summary="A generation block begins before the end of what the generation prompt writes.",
    suggestion="begin the generation block behind the text that the generation prompt writes",
    check=check,
    triggers=(
        "{% for m in messages %}{% if m.role == 'assistant' %}<|im_start|>assistant\n{% generation %}<think></think>"
        "{{ m.content }}<|im_end|>{% endgeneration %}\n{% else %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
        "{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n<think></think>{% endif %}"
    ),
    repaired=(
        "{% for m in messages %}{% if m.role == 'assistant' %}<|im_start|>assistant\n<think></think>{% generation %}"
        "{{ m.content }}<|im_end|>{% endgeneration %}\n{% else %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
        "{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n<think></think>{% endif %}"
    ),
    healthy=(
        "{% for m in messages %}{% if m.role == 'assistant' %}<|im_start|>assistant\n{% generation %}{{ m.content }}"
        "<|im_end|>\n{% endgeneration %}{% else %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endif %}"
        "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    ),
    documentation=__doc__,
)
