"""Text of a message is changed, so that the input cannot be read back.

What it does: sends texts with markup, quotes, several scripts and line breaks under each role, and looks for them
character by character. Space that is trimmed at the ends does not count. Of a tool's result it tells too where it is
put into quotes, as JSON, though no object stands around it.

Why it is bad: code that lost its `<` or its line breaks is other code, and the model repairs what was never broken.

Example: `{{ message.content | e }}`, `{{ message.content | upper }}`, `{{ message.content | truncate(500) }}`; and
`{% if content is iterable %}{{ content | tojson }}`, which is true of every string.

Use instead: the content as it is; test `is string` before `is iterable`.

References: strings are iterable in Jinja2 and in llama.cpp; Llama 3.1's template quotes results for that reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chats import canaries
from probes.chats.messages import say
from probes.laws.texts import stands_quoted
from probes.rules.base import Rule
from probes.rules.view import Hit, fates

if TYPE_CHECKING:
    from collections.abc import Callable

    from probes.chats.canaries import Form
    from probes.chats.messages import Chat
    from probes.rendering.input_form import PathObserver
    from probes.rules.view import Asked, Facts, TemplateView

BEFORE, AFTER = "the knot of 48231", "the godwit of 48232"
ODD = f"{BEFORE}:\n\t<b>a & \"b\"</b> isn't 'c' \\d {{x}}\n\n- É你好🙂 100% {AFTER}"
"""What markup, JSON, case and line breaks would change."""
TOGETHER = tuple(f"{number} {ODD}" for number in range(4))
QUOTED = ODD.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")


BUILDS: dict[str, Callable[[Form], Chat]] = {
    "a user's text": lambda form: form.chat([say("user", ODD)]),
    "a system text": lambda form: form.chat([say("system", ODD), say("user", canaries.USER)]),
    "an answer": lambda form: form.chat(
        [say("user", canaries.USER), say("assistant", ODD), say("user", canaries.SECOND_USER)]
    ),
}


def as_result(form: Form) -> Chat:
    """A tool's result with the odd text."""
    chat = canaries.one_call(form)
    chat["messages"][-1]["content"] = ODD
    return chat


def asks(on: PathObserver) -> list[Chat]:
    return [*(build(on.form) for build in BUILDS.values()), as_result(on.best_form), _together(on.best_form)]


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    hits = _strings(view)
    if _intact(view):
        return hits
    for what, build in BUILDS.items():
        asked = [one for one in view.ask(build, BEFORE) if one.fate == "written"]
        altered = [one for one in asked if ODD not in one.text]
        good = [one for one in asked if one not in altered]
        if altered:
            message = f"{what} is changed: {_change(altered[0])}"
            hits.append(view.hit(message, altered, good, severity="error", cause=f"altered {what}"))
    asked = [one for one in view.ask(as_result, BEFORE) if one.fate == "written"]
    quoted = [one for one in asked if ODD not in one.text and stands_quoted(one.text, ODD)]
    if quoted:
        good = [one for one in asked if ODD in one.text]
        message = "a tool's result that is a string is put into quotes, as JSON"
        hits.append(view.hit(message, quoted, good, severity="error", cause="quoted results"))
    altered = [one for one in asked if ODD not in one.text and QUOTED not in one.text]
    if altered:
        good = [one for one in asked if one not in altered]
        message = f"a tool's result is changed: {_change(altered[0])}"
        hits.append(view.hit(message, altered, good, severity="warning", cause="altered results"))
    return hits


def _together(form: Form) -> Chat:
    """All of TOGETHER in one conversation."""
    system, question, answer, result = TOGETHER
    rounds = [form.calling(), {**canaries.result(), "content": result}, say("assistant", answer)]
    messages = [say("system", system), say("user", question), *rounds, say("user", canaries.SECOND_USER)]
    return form.chat(messages, [canaries.tool()])


def _intact(view: TemplateView) -> bool:
    """Whether every text comes through on every path when all are sent together: asked first, to save the rest."""
    return all(text in one.text for one in view.asking(_together) for text in TOGETHER)


def _strings(view: TemplateView) -> list[Hit]:
    """Content that is a string vanishes where the same text as a part is written."""
    asked = view.ask(canaries.user_only, canaries.USER, parts="no")
    lost = fates(asked, "lost")
    if lost:
        as_part = {one.path for one in fates(view.ask(canaries.user_only, canaries.USER, parts="yes"), "written")}
        lost = [one for one in lost if one.path in as_part]
    good = fates(asked, "written")
    message = "content that is a string leaves no trace and no error; as a list of parts it is written"
    return [view.hit(message, lost, good, severity="error", cause="string content")] if lost else []


def _change(asked: Asked) -> str:
    """The first place at which the text is not what was sent."""
    start = asked.text.find(BEFORE)
    written = asked.text[start : start + len(ODD)]
    at = next((i for i, (x, y) in enumerate(zip(ODD, written, strict=False)) if x != y), len(written))
    return f"{ODD[at : at + 12]!r} became {written[at : at + 12]!r}"


RULE = Rule(
    code="CT106",
    name="content-altered",
    severity="error",
    summary="Text is escaped, cut, replaced or moved in a way that the input cannot be read back.",
    suggestion="print content as it is, and test for strings before anything that strings are too",
    check=check,
    triggers="{% for m in messages %}<|{{ m.role }}|>{{ m.content | e }}<|end|>\n{% endfor %}",
    repaired="{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>\n{% endfor %}",
    healthy=(
        "{% for m in messages %}<start_of_turn>{{ m.role }}\n"
        "{% if m.role == 'tool' %}{\"result\": {{ m.content | tojson }}}{% else %}{{ m.content | trim }}{% endif %}"
        "{% for c in m.tool_calls or [] %}{{ c.function | tojson }}{% endfor %}<end_of_turn>\n{% endfor %}"
    ),
    documentation=__doc__,
    asks=asks,
)
