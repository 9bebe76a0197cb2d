"""An answer that only speaks of a reasoning tag loses text.

What it does: sends an earlier answer in which a closing tag is quoted in the middle of a sentence, and looks for what
stands before it. The tag is one that the source names.

Why it is bad: an assistant that is asked about its own format, or writes a parser for it, loses half of its answer from
the history. The text is gone without an error; the model contradicts what it had said. It is a warning where the text
stays once the client sends the reasoning in a field of its own.

Example: `{{ message.content.split('</think>')[-1] }}` for every answer of the history.

Use instead: cut only a block that the text begins with, after `{% if content.startswith('<think>') %}`.

References: no request path of an engine repairs it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from probes.chats import canaries
from probes.chats.messages import REASONING_FIELDS, say
from probes.rules.base import Rule
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.chats.canaries import Form
    from probes.chats.messages import Chat
    from probes.rendering.input_form import PathObserver
    from probes.report import Severity
    from probes.rules.view import Facts

TAG = re.compile(r"</(?:think|thinking|thought|reasoning)>|\[/THINK\]|◁/think▷")
BEFORE, AFTER = "The phalarope of 48251 says", "and the whimbrel of 48252 ends."


def quoting(form: Form, tag: str, **fields: str) -> Chat:
    """An answer that quotes the tag, `fields` beside it, and a next question."""
    answer = say("assistant", f"{BEFORE} `{tag}` {AFTER}", **fields)
    return form.chat([say("user", canaries.USER), answer, say("user", canaries.SECOND_USER)])


def asks(on: PathObserver) -> list[Chat]:
    tag = TAG.search(on.renders.source)
    return [] if tag is None else [quoting(on.form, tag[0])]


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    tag = TAG.search(facts.source)
    if tag is None:
        return []

    asked = [one for one in view.ask(lambda form: quoting(form, tag[0]), BEFORE, AFTER) if one.outcome.ok]
    cut = [one for one in asked if (BEFORE in one.text) != (AFTER in one.text)]
    good = [one for one in asked if one.fate == "written"]
    message = (
        f"an answer that quotes {tag[0]!r} loses what stands {'before' if cut and AFTER in cut[0].text else 'after'} it"
    )
    if not cut:
        return []
    fields = canaries.fields_of(REASONING_FIELDS, canaries.REASONING)
    beside = {one.path: one for one in view.ask(lambda form: quoting(form, tag[0], **fields), BEFORE, AFTER)}
    severity: Severity = "error"
    suggestion = None
    if all(beside[one.path].fate == "written" for one in cut):
        severity = "warning"
        message += "; where the reasoning is sent in a field of its own, all of it stays"
        suggestion = "send reasoning_content with every answer, or cut only a block that the text begins with"
    line = facts.source.count("\n", 0, tag.start()) + 1
    return [view.hit(message, cut, good, severity=severity, line=line, suggestion=suggestion, cause="cut at tag")]


RULE = Rule(
    code="RS103",
    name="answer-text-cut-at-think",
    severity="error",
    summary="An ordinary answer that quotes a reasoning tag loses text.",
    suggestion="cut only where the text begins with the opening tag",
    check=check,
    triggers="{% for m in messages %}<|{{ m.role }}|>{{ m.content.split('</think>')[-1] }}<|end|>\n{% endfor %}",
    repaired=(
        "{% for m in messages %}<|{{ m.role }}|>{% if m.content.startswith('<think>') %}"
        "{{ m.content.split('</think>')[-1] }}{% else %}{{ m.content }}{% endif %}<|end|>\n{% endfor %}"
    ),
    healthy=(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.reasoning_content %}<think>\n"
        "{{ m.reasoning_content }}\n</think>\n\n{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}"
    ),
    documentation=__doc__,
    asks=asks,
)
