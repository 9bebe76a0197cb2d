"""The prompt is the same whatever is said.

What it does: renders two conversations of which no text is alike and compares the prompts.

Why it is bad: the model answers without having seen a word. Servers start with such a template and report nothing.

Example: a template that loops over `conversation`, a name that no engine sets.

Use instead: `{% for message in messages %}`; `messages` is what every engine calls the conversation.

References: the variables of `apply_chat_template` in transformers and of common/chat.cpp in llama.cpp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinjarun.sources.not_a_template import not_a_template
from probes.chats import canaries
from probes.chats.canaries import USUAL
from probes.rendering.renders import LLAMA_RAW, RAW
from probes.rules.base import Rule
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.chats.messages import Chat
    from probes.rules.view import Facts


def check(facts: Facts) -> list[Hit]:
    if not_a_template(facts.source) is not None or facts.view.paths:
        return []
    bare = [path for path in (RAW, LLAMA_RAW) if facts.renders.loads(path) is None]
    if not bare or not all(_constant(facts, path) for path in bare):
        return []
    text = facts.renders.render(bare[0], canaries.user_only(USUAL)).text or ""
    return [
        Hit(
            message="two conversations that share no text give the same prompt",
            engines=[path for path in facts.renders.paths if facts.renders.loads(path) is None],
            evidence=[facts.book.cite(canaries.user_only(USUAL), bare[0], "rendered", excerpt=text[:80])],
            cause="constant output",
        )
    ]


def _constant(facts: Facts, path: str) -> bool:
    chats: list[Chat] = [canaries.user_only(USUAL), canaries.calls(USUAL), canaries.text_parts(USUAL)]
    outcomes = [facts.renders.render(path, chat) for chat in chats]
    return outcomes[0].ok and len({outcome.text for outcome in outcomes if outcome.ok}) == 1 < sum(
        outcome.ok for outcome in outcomes
    )


RULE = Rule(
    code="SY003",
    name="constant-output",
    severity="error",
    summary="Two different conversations give the same text; nothing of the messages is printed.",
    suggestion="print the content of messages",
    check=check,
    triggers="{% for m in conversation %}<|{{ m.role }}|>{{ m.content }}{% endfor %}<|assistant|>",
    repaired="{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}<|assistant|>",
    healthy="{{ bos_token }}{% for m in messages %}{{ m.role | capitalize }}: {{ m.content }}\n{% endfor %}Assistant:",
    documentation=__doc__,
)
