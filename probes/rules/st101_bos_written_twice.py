"""The template itself writes BOS more than once before the first message.

What it does: gives BOS a text that occurs nowhere else and counts it up to the first message.

Why it is bad: the model never saw two BOS in a row, and answers worse. Unlike a BOS that the tokenizer adds, no engine
takes this one away.

Example: `{{ bos_token }}` at the start and once more in the branch that writes the system message.

Use instead: `{{ bos_token }}` in one place. BOS before each turn, as Llama 2 has it, is another thing and not reported.

References: `bos_token` of transformers' chat templates; llama-server takes one BOS from the start of a prompt where its
tokenizer adds one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chats import canaries
from probes.rendering.renders import LLAMA_RAW, RAW, dialect_of
from probes.rules.base import Rule
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.chats.messages import Chat
    from probes.rules.view import Asked, Facts

BOS = "<bos-48261>"


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    bare = [path for path in (RAW, LLAMA_RAW) if path in view.paths]
    if "bos_token" not in facts.source or not bare:
        return []
    for build in (canaries.user_only, canaries.system_user, canaries.tools_offered):
        asked = [view.ask_path(path, _with_bos(build(view.form(path))), canaries.USER) for path in bare]
        twice = [one for one in asked if one.fate == "written" and _count(one) > 1]
        if twice:
            engines = [path for one in twice for path in view.paths if dialect_of(path) == dialect_of(one.path)]
            return [
                Hit(
                    message=f"BOS is written {_count(twice[0])} times before the first message",
                    engines=engines,
                    evidence=[view.cite(one) for one in twice],
                    cause="bos twice",
                )
            ]
    return []


def _with_bos(chat: Chat) -> Chat:
    """The request with a BOS that is known again."""
    return {**chat, "variables": {**chat.get("variables", {}), "bos_token": BOS}}


def _count(asked: Asked) -> int:
    """BOS up to the first text of the conversation."""
    places = [at for text in (canaries.USER, canaries.SYSTEM) if (at := asked.text.find(text)) >= 0]
    return asked.text[: min(places)].count(BOS)


RULE = Rule(
    code="ST101",
    name="bos-written-twice",
    severity="error",
    summary="The template itself writes BOS more than once.",
    suggestion="write bos_token in one place",
    check=check,
    triggers=(
        "{{ bos_token }}{% for m in messages %}{% if loop.first %}{{ bos_token }}{% endif %}"
        "<|{{ m.role }}|>{{ m.content }}<|end|>\n{% endfor %}"
    ),
    repaired="{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>\n{% endfor %}",
    healthy=(
        "{% for m in messages %}{% if m.role == 'user' %}{{ bos_token }}[INST] {{ m.content }} [/INST]"
        "{% elif m.role == 'assistant' %} {{ m.content }} {{ eos_token }}{% endif %}{% endfor %}"
    ),
    documentation=__doc__,
)
