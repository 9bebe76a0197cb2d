"""The marker that ends an assistant turn is no token at which the engine stops.

What it does: looks at what the template writes after an answer and after calls, and for it in the stop set of each
engine: `eos_token_id` of generation_config.json (transformers, vLLM), the tokenizer's EOS (vLLM), the end-of-generation
set of llama.cpp.

Why it is bad: the model ends its turn as it was trained to, the engine does not notice, and generation goes on: the
user's next message is invented, role names appear in the answer, replies run to the limit.

Example: a template that writes `<|im_end|>` after each message, beside a generation_config.json whose `eos_token_id`
is that of `<|endoftext|>` alone.

Use instead: a list, `"eos_token_id": [151645, 151643]`, that holds the token which ends a turn. Until the model is
repaired a client can name it in its request: `stop_token_ids` in vLLM, `eos_token_id` in transformers.

References: `generate` of transformers; `update_from_generation_config` of vLLM; src/llama-vocab.cpp of llama.cpp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinjarun.errors import quote
from probes.chapters.tokens import UndeclaredStop, undeclared_stops
from probes.rendering.renders import APPLY, LLAMA_SERVER, VLLM
from probes.rules.base import Rule
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.rules.view import Facts

PATHS = {"transformers": APPLY, "vllm": VLLM, "llama.cpp": LLAMA_SERVER}


def check(facts: Facts) -> list[Hit]:
    return [_hit(facts, found) for found in undeclared_stops(facts.renders, facts.tokens)]


def _hit(facts: Facts, found: UndeclaredStop) -> Hit:
    ending = found.ending
    turn = "an answer" if ending.after == "answer" else "a turn with calls"
    sets = "; ".join(
        f"{engine} stops at {', '.join(map(quote, texts)) or 'nothing'}" for engine, texts in found.declared.items()
    )
    stopping = (
        f"; {' and '.join(found.stopping)} stop{'s' if len(found.stopping) == 1 else ''}" if found.stopping else ""
    )
    kind = "" if found.is_token is not False else ", which is no token of the vocabulary"
    text = facts.renders.render(ending.path, ending.chat).text or ""
    at = text.rfind(found.marker)
    evidence = facts.book.cite(
        ending.chat,
        ending.path,
        "never_stops",
        excerpt=text[max(0, at - 60) :],
        span=(at, at + len(found.marker)) if at >= 0 else None,
    )
    return Hit(
        message=f"{turn} ends with {quote(found.marker)}{kind}, and generation goes on: {sets}{stopping}",
        engines=[PATHS[engine] for engine in found.engines],
        evidence=[evidence],
        severity="error" if len(found.engines) > 1 else "warning",
        cause=f"marker {found.marker}",
    )


RULE = Rule(
    code="ST201",
    name="stop-token-not-declared",
    severity="error",
    summary="What ends an assistant turn is in no stop set of the engine, so generation never ends.",
    suggestion="put the id of the token that ends a turn into eos_token_id of generation_config.json",
    check=check,
    triggers=(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    ),
    repaired=(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{{ eos_token }}\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    ),
    healthy="{% for m in messages %}[{{ m.role }}] {{ m.content }}{{ eos_token }}{% endfor %}",
    documentation=__doc__,
)
