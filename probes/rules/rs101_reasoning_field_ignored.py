"""The template writes marks of reasoning, and no field in which clients send it is printed.

What it does: looks for the reasoning of a last answer, of an earlier one and of a message that calls tools, in each of
the fields that clients and servers use: reasoning_content, reasoning, thinking and others.

Why it is bad: servers hand reasoning out in a field of its own, and clients send it back there. A template that reads
only tags inside the text never sees it, so the model never sees how it came to its call. Where earlier reasoning is in
no prompt, however it is sent, the model was trained so: that is only to know.

Example: `{% set content = message.content.split('</think>')[-1] %}` and nothing that reads a field.

Use instead: print `message.reasoning_content` between the tags while the turn with its tools goes on.

References: `reasoning_content` of DeepSeek's API and llama-server, `reasoning` of vLLM and OpenRouter; transformers
fills `reasoning_content` and `thinking` from whichever field is there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from probes.chapters.contract import INLINE_TAGS
from probes.chats import canaries
from probes.chats.messages import REASONING_FIELDS, say
from probes.rendering.renders import LLAMA_RAW, LLAMA_SERVER, RAW, SGLANG, VLLM
from probes.rules.base import Rule
from probes.rules.view import Hit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from probes.chats.canaries import Form
    from probes.chats.messages import Chat
    from probes.report import Severity
    from probes.rules.view import Asked, Facts, TemplateView

PASSED_ON = {LLAMA_RAW: (LLAMA_SERVER,), RAW: (VLLM, SGLANG)}
"""Bare path -> the servers that pass on `reasoning_content` to such a template."""
MARK = re.compile(
    r"<[|/]?(?:think|thinking|thought|reasoning)\b[^<>\n]*>|\[/?THINK\]|<\|channel\|?>(?:analysis|thought)"
)


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    mark = MARK.search(facts.source)
    if mark is None or view.bare is None:
        return []
    printing: set[str] = set()
    failed: set[str] = set()
    for one in _asking(view, printing):
        if not one.outcome.ok:
            failed.add(one.path)
        if any(canaries.reasoning_under(name) in one.text for name in REASONING_FIELDS):
            printing.add(one.path)
        if one.path in PASSED_ON and canaries.reasoning_under("reasoning_content") in one.text:
            printing.update(PASSED_ON[one.path])
    if printing.issuperset(view.paths):
        return []
    silent = [one for one in view.ask(canaries.reasoning, canaries.ANSWER) if one.outcome.ok]
    if any(name in facts.source for name in REASONING_FIELDS):  # a render that failed might have written one
        silent = [one for one in silent if one.path in printing or one.path not in failed]
    bad = [one for one in silent if one.path not in printing]
    if not bad:
        return []
    good = [one for one in silent if one.path in printing]
    message = f"{mark[0]!r} is known, and none of {', '.join(REASONING_FIELDS)} is printed"
    severity: Severity = "warning" if good or _keeps_inline(view, bad) else "info"
    if good:
        texts = [one.text for one in _asking(view)]
        read = [name for name in REASONING_FIELDS if any(canaries.reasoning_under(name) in text for text in texts)]
        message = (
            f"{mark[0]!r} is written, and the field that is printed there, {', '.join(read)}, does not come through"
        )
    line = facts.source.count("\n", 0, mark.start()) + 1
    return [view.hit(message, bad, good, severity=severity, line=line, cause="reasoning field")]


def _keeps_inline(view: TemplateView, bad: list[Asked]) -> bool:
    """Whether the reasoning that stands inside the text of an answer comes through in a prompt: then the field is what
    is missing. Where it does not, no prompt has earlier reasoning, and the model was trained so."""
    tags = next((tags for tags in INLINE_TAGS if tags[1] in view.facts.source), INLINE_TAGS[0])
    paths = {one.path for one in bad}
    asked = view.asking(lambda form: canaries.inline_reasoning(form, *tags), canaries.REASONING)
    return any(one.fate == "written" for one in asked if one.path in paths)


def _asking(view: TemplateView, known: Collection[str] = ()) -> Iterator[Asked]:
    """Reasoning in every place, on the paths that are not known by then."""
    for build in (canaries.reasoning_in_loop, _earlier, _last):
        for path in view.paths:
            if build is _last and path in (LLAMA_SERVER, SGLANG):  # they rework a last answer themselves
                continue
            if path not in known or any(server not in known for server in PASSED_ON.get(path, ())):
                yield view.ask_path(path, build(view.form(path)))


def _last(form: Form) -> Chat:
    """Reasoning of the last message, under every name."""
    answer = say("assistant", canaries.ANSWER, **canaries.fields_of(REASONING_FIELDS, canaries.REASONING))
    return form.chat([say("user", canaries.USER), answer], add_generation_prompt=False)


def _earlier(form: Form) -> Chat:
    return canaries.reasoning(form, REASONING_FIELDS)


RULE = Rule(
    code="RS101",
    name="reasoning-field-ignored",
    severity="warning",
    summary="None of the known reasoning fields is printed although the template writes reasoning markers.",
    suggestion="print reasoning_content between the markers of reasoning",
    check=check,
    triggers=(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content.split('</think>')[-1] }}<|end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|><think>\n{% endif %}"
    ),
    repaired=(
        "{% for m in messages %}<|{{ m.role }}|>"
        "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}</think>{% endif %}"
        "{{ m.content.split('</think>')[-1] }}<|end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|><think>\n{% endif %}"
    ),
    healthy=(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if loop.last and m.reasoning_content %}<think>\n"
        "{{ m.reasoning_content }}\n</think>\n\n{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}"
    ),
    documentation=__doc__,
)
