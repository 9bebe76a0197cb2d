"""A new turn of the user changes text that stands before it.

What it does: takes the prefix laws `next-user-turn` and `tool-loop-to-next-user` and says how much of the prompt stays,
why it changes and in which line of the template.

Why it is bad: servers keep the KV cache of a prompt as far as the next one begins alike. What is rewritten near the
start is computed again, in a long conversation for seconds, on every turn.

Example: reasoning that is printed for the last answer and dropped for earlier ones; tools in the last user's turn.

Use instead: what was written once stays as it was, or a switch that keeps it (`preserve_thinking`, `clear_thinking`).

References: prompt caching of llama-server (`cache_prompt`) and vLLM (automatic prefix caching). Dropping earlier
reasoning is how many models were trained: there it is a price to know, not a mistake.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinjarun.sequences import common_prefix
from probes.chats import canaries
from probes.laws.frames import history_in
from probes.laws.prompt import Prompt
from probes.laws.subject import Subject
from probes.rules.base import Rule
from probes.rules.laws import broken_laws
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.rules.view import Facts

LAWS = {"next-user-turn": "a new question", "tool-loop-to-next-user": "a question after a tool loop"}


def check(facts: Facts) -> list[Hit]:
    hits = broken_laws(facts, LAWS, "warning")
    return hits or _with_tools(facts)


def _with_tools(facts: Facts) -> list[Hit]:
    """A new question where tools are offered that nobody called: the laws do not ask that."""
    view = facts.view
    subject = Subject(facts.source, renders=facts.renders)
    if subject.path not in view.paths:
        return []
    form = view.form(subject.path)
    first = canaries.tools_without_system(form)
    later = canaries.reasoning(form, ())
    later["tools"] = first["tools"]
    asked, text = subject.prompt(first), subject.render(later).text
    kept = history_in(subject, asked) if isinstance(asked, Prompt) else None
    if kept is None or text is None or canaries.TOOL not in kept or text.startswith(kept):
        return []
    at = common_prefix(kept, text)
    message = (
        f"where tools are offered a new question changes the prompt before it; {at} of {len(kept)} characters are kept"
    )
    seen = view.ask_path(subject.path, later, canaries.SECOND_USER)
    return [view.hit(message, [seen], severity="warning", cause="prefix: tools_move")]


RULE = Rule(
    code="PS101",
    name="earlier-turns-rewritten",
    severity="warning",
    summary="A new user turn changes text before it; measure, cause and line.",
    suggestion="write a turn the same way whatever follows it, or give callers a switch that does",
    check=check,
    triggers=(
        "{% for m in messages %}<|{{ m.role }}|>{% if m.reasoning_content and loop.index0 >= messages | length - 2 %}"
        "<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}<|end|>\n{% endfor %}"
    ),
    repaired=(
        "{% for m in messages %}<|{{ m.role }}|>{% if m.reasoning_content %}"
        "<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}<|end|>\n{% endfor %}"
    ),
    healthy=(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    ),
    documentation=__doc__,
)
