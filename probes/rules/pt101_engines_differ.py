"""The same request renders differently on the two engines, or on one of them only.

What it does: renders every conversation of the set with the bare template on both engines, finds the first character at
which they part, and the line of the template that writes it.

Why it is bad: a template is written and tested with one engine, and the model is run with another. Of two different
prompts at least one is not what the model was trained on.

Example: a slice of a string (llama.cpp counts bytes), `{{ value }}` of null or of a list, a list changed with `append`,
which transformers refuses.

Use instead: what both engines read alike; `jinjarun compare` shows a request on every path.

References: Jinja2 3.1.6 in transformers' sandbox; common/jinja of llama.cpp.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from jinjarun.errors import quote
from jinjarun.sequences import common_prefix
from probes.chats import canaries
from probes.chats.named import CHATS
from probes.rendering.outcomes import said
from probes.rendering.renders import APPLY, LLAMA_RAW, LLAMA_SERVER, RAW
from probes.rules.base import Rule
from probes.rules.view import Hit, fates

if TYPE_CHECKING:
    from probes.chats.messages import Chat
    from probes.rendering.renders import Outcome
    from probes.rules.view import Facts

CONTEXT = 25
CAUSES = {
    "call-null-content": "null content beside calls",
    "call-string-args": "arguments as string",
    "typed-content": "text parts",
    "typed-two-parts": "text parts",
    "developer": "developer role",
    "nested-args": "scalar arguments of calls",
    "parallel-calls": "parallel calls",
}
"""Conversation -> the cause under which another rule has the same defect."""


def check(facts: Facts) -> list[Hit]:
    renders = facts.renders
    if renders.loads(RAW) is not None or renders.loads(LLAMA_RAW) is not None:
        return []
    skipped = _unsupported(facts)
    hits: dict[str, list[tuple[str, Hit]]] = {}
    for name, build in CHATS.items():
        if name in skipped:
            continue
        ours, theirs = renders.conversation(RAW, name), renders.conversation(LLAMA_RAW, name)
        if ours.limited or theirs.limited or (ours.ok == theirs.ok and ours.text == theirs.text):
            continue
        hit = _hit(facts, name, build(), ours, theirs)
        hits.setdefault(hit.cause or "", []).append((name, hit))
    return [_joined(same) for same in hits.values()]


def _unsupported(facts: Facts) -> set[str]:
    """Conversations that neither engine supports: what becomes of them says nothing."""
    view = facts.view
    skipped = {"empty"}
    if not any(view.calling(path) for path in view.paths):
        skipped |= {name for name, build in CHATS.items() if any("tool_calls" in one for one in build()["messages"])}
    if not fates(view.ask(canaries.one_text_part, canaries.PART, parts="no"), "written"):
        skipped |= {"typed-content", "typed-two-parts"}
    return skipped


def _hit(facts: Facts, name: str, chat: Chat, ours: Outcome, theirs: Outcome) -> Hit:
    if ours.text is not None and theirs.text is not None:
        at = common_prefix(ours.text, theirs.text)
        left, right = (text[max(0, at - CONTEXT) : at + CONTEXT] for text in (ours.text, theirs.text))
        message = f"transformers writes {quote(left)!r}, llama.cpp {quote(right)!r}"
        line = _line(facts, chat, at)
        cite = facts.book.cite(chat, RAW, "differs", excerpt=left, span=(at, at + len(left)), line=line)
    else:
        failed = ours if ours.text is None else theirs
        assert failed.error is not None
        engine, path = ("transformers", RAW) if ours.text is None else ("llama.cpp", LLAMA_RAW)
        other = "llama.cpp" if ours.text is None else "transformers"
        message = f"{other} renders, {engine} fails: {said(failed.error)}"
        line = failed.error.line
        cite = facts.book.cite(chat, path, "raised", excerpt=failed.error.message, line=line)
    served = facts.renders.render(APPLY, chat), facts.renders.render(LLAMA_SERVER, chat)
    alike = served[0].ok and served[0].text == served[1].text
    return Hit(
        message=f"{message} ({name})",
        engines=[RAW, LLAMA_RAW],
        not_on=[APPLY, LLAMA_SERVER] if alike else [],
        line=line,
        evidence=[cite],
        severity="info" if alike else "warning",
        cause=f"engines differ in line {line}",
    )


def _line(facts: Facts, chat: Chat, at: int) -> int | None:
    """The line of the template that wrote what differs on transformers."""
    line = None
    for span in facts.renders.spans(RAW, chat).spans:
        if found := re.fullmatch(r"line (\d+)", span.origin):
            line = int(found[1])
        if span.end > at and line is not None:
            return line
    return line


def _joined(same: list[tuple[str, Hit]]) -> Hit:
    """One hit for what has one cause: the gravest, which counts the others. Where all its conversations ask what
    another rule asks, the cause is that rule's, which grades it."""
    hits = [hit for _, hit in same]
    first = min(hits, key=lambda hit: bool(hit.not_on))
    causes = {CAUSES.get(name) for name, _ in same}
    cause = next(iter(causes)) if len(causes) == 1 else None
    more = f" and {len(same) - 1} more)" if len(same) > 1 else ")"
    return replace(
        first,
        severity="info" if cause else first.severity,
        message=f"{first.message[:-1]}{more}",
        evidence=[key for hit in hits[:3] for key in hit.evidence],
        cause=cause or first.cause,
    )


RULE = Rule(
    code="PT101",
    name="engines-differ",
    severity="warning",
    summary="The same request renders differently, or only in one engine; first difference and its line.",
    suggestion="write it in a way that both engines read alike; jinjarun compare shows both",
    check=check,
    triggers="{% for m in messages %}<|{{ m.role }}|>{{ m.content[:5] }}|{{ m.content | length }}<|end|>\n{% endfor %}",
    repaired="{% for m in messages %}<|{{ m.role }}|>{{ m.content | trim }}<|end|>\n{% endfor %}",
    healthy=(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.content is string %}{{ m.content }}{% else %}"
        "{% for part in m.content or [] %}{{ part.text }}{% endfor %}{% endif %}"
        "{% for c in m.tool_calls or [] %}{{ c.function | tojson }}{% endfor %}<|im_end|>\n{% endfor %}"
    ),
    documentation=__doc__,
)
