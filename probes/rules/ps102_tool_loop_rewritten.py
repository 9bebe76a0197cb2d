"""A further round of call and result changes text of the rounds before it.

What it does: takes the prefix law `within-tool-loop` and says how much of the prompt stays, why it changes and in which
line; and what a loop of 20 rounds computes again in all.

Why it is bad: an agent makes dozens of rounds in one turn, and each pays for the whole rest of the prompt. Where the
first round is computed again in each, 20 rounds cost what 210 would (1 + 2 + ... + 20).

Example: tools printed before the last message, whichever that is; reasoning dropped from all calls but the last.

Use instead: within a turn nothing changes that was written: what depends on the place of a message looks at the last
*user's* message, not at the last one.

References: prompt caching of llama-server and vLLM; `tool_loop_20_rounds` of the report.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.rules.base import Rule
from probes.rules.laws import broken_laws
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.rules.view import Facts

LAWS = {"within-tool-loop": "a further round of call and result"}


def check(facts: Facts) -> list[Hit]:
    return broken_laws(facts, LAWS, "error")


RULE = Rule(
    code="PS102",
    name="tool-loop-rewritten",
    severity="error",
    summary="The same within a tool loop, where each round pays for it.",
    suggestion="make what is written depend on the last user message, not on the last message",
    check=check,
    triggers=(
        "{% for m in messages %}{% if tools and loop.last %}<tools>{{ tools | tojson }}</tools>{% endif %}"
        "<|{{ m.role }}|>{{ m.content or '' }}{% for c in m.tool_calls or [] %}{{ c.function | tojson }}{% endfor %}"
        "<|end|>\n{% endfor %}"
    ),
    repaired=(
        "{% for m in messages %}{% if tools and loop.first %}<tools>{{ tools | tojson }}</tools>{% endif %}"
        "<|{{ m.role }}|>{{ m.content or '' }}{% for c in m.tool_calls or [] %}{{ c.function | tojson }}{% endfor %}"
        "<|end|>\n{% endfor %}"
    ),
    healthy=(
        "{% set ns = namespace(last=-1) %}{% for m in messages %}{% if m.role == 'user' %}"
        "{% set ns.last = loop.index0 %}{% endif %}{% endfor %}{% for m in messages %}<|im_start|>{{ m.role }}\n"
        "{% if m.reasoning_content and loop.index0 > ns.last %}<think>{{ m.reasoning_content }}</think>{% endif %}"
        "{{ m.content or '' }}{% for c in m.tool_calls or [] %}{{ c.function | tojson }}{% endfor %}<|im_end|>\n"
        "{% endfor %}"
    ),
    documentation=__doc__,
)
