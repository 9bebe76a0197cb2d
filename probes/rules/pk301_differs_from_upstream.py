"""The template of a copy renders otherwise than that of the model it was made from.

What it does: with `--upstream`, renders every conversation of the set with both templates and names those whose prompts
differ, or that only one of them renders.

Why it is bad: whoever converts, quantises or fine-tunes a model often takes a template from elsewhere, or repairs one;
then it answers otherwise than the original, and nobody knows why.

Example: a quantised model with a template of an earlier release; a fine-tune with ChatML in place of Llama's form.

Use instead: the base model's template, or a comment in the file that says what was changed and why.

References: `base_model` in the model cards of the Hugging Face Hub.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from jinjarun.errors import quote
from jinjarun.sequences import common_prefix
from probes.chats.named import CHATS
from probes.rendering.outcomes import said
from probes.rendering.renders import LLAMA_RAW, LLAMA_SERVER, RAW, Renders
from probes.rules.base import Rule
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.chats.messages import Chat
    from probes.rules.view import Facts

NAMED = 5
CONTEXT = 25
"""Characters on both sides of a difference that are quoted."""
SAYS_SO = re.compile(r"\{#.*?\b(?:chang|fix|modif|patch|differ|edit|adapt)\w*.*?#\}", re.DOTALL | re.IGNORECASE)


def check(facts: Facts) -> list[Hit]:
    if facts.upstream is None or facts.upstream == facts.source:
        return []
    ours = facts.renders
    theirs = Renders(facts.upstream, bos_token=ours.bos_token, eos_token=ours.eos_token, now=ours.now)
    path = next((p for p in (RAW, LLAMA_RAW) if ours.loads(p) is None and theirs.loads(p) is None), None)
    if path is None:
        return []
    differing = []
    for name, build in CHATS.items():
        left, right = ours.render(path, build()), theirs.render(path, build())
        if not left.limited and not right.limited and (left.text, left.ok) != (right.text, right.ok):
            differing.append(name)
    if not differing:
        return []
    named = ", ".join(differing[:NAMED]) + (" and others" if len(differing) > NAMED else "")
    comment = "a comment in the file speaks of changes" if SAYS_SO.search(facts.source) else "the file does not say so"
    smallest = min(differing, key=lambda name: len(json.dumps(CHATS[name]())))
    chat = CHATS[smallest]()
    first, excerpt, line = _first(ours, theirs, path, chat)
    return [
        Hit(
            message=(
                f"{len(differing)} of {len(CHATS)} conversations differ from upstream ({named}); {comment}; "
                f"the smallest is {smallest}: {first}"
            ),
            engines=[path, LLAMA_SERVER] if path == LLAMA_RAW else [path],
            line=line,
            evidence=[facts.book.cite(chat, path, "differs", excerpt=excerpt, line=line)],
        )
    ]


def _first(ours: Renders, theirs: Renders, path: str, chat: Chat) -> tuple[str, str, int | None]:
    """The first difference in words, the text around it, and the line of our template that wrote it."""
    left, right = ours.render(path, chat), theirs.render(path, chat)
    if left.text is None or right.text is None:
        failed, which = (left, "this one") if left.text is None else (right, "upstream")
        assert failed.error is not None
        return f"{which} fails: {said(failed.error)}", failed.error.message, failed.error.line
    at = common_prefix(left.text, right.text)
    here, there = (text[max(0, at - CONTEXT) : at + CONTEXT] for text in (left.text, right.text))
    blank = left.text.split() == right.text.split()
    line = None
    for span in ours.spans(path, chat).spans:
        if found := re.fullmatch(r"line (\d+)", span.origin):
            line = int(found[1])
        if span.end > at and line is not None:
            break
    kind = "white space only, " if blank else ""
    return f"{kind}{quote(here)!r} here, {quote(there)!r} upstream", here, line


RULE = Rule(
    code="PK301",
    name="differs-from-upstream",
    severity="warning",
    summary="The base model's template renders differently; on which conversations, and whether the file says so.",
    suggestion="take the template of the base model, or say in a comment what was changed and why",
    check=check,
    triggers="{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>\n{% endfor %}",
    repaired="{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}",
    healthy="{% for turn in messages %}<|im_start|>{{ turn.role }}\n{{ turn.content }}<|im_end|>\n{% endfor %}",
    documentation=__doc__,
    beside="upstream",
)
