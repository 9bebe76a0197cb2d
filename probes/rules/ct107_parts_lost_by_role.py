"""Text parts are taken from one role and lost, printed raw or fatal in another.

What it does: sends the text of every role as two parts (system, a later user, an answer, text beside a call, a result)
and compares with what the template writes of the same text as a string. A template that takes no parts at all is told
of by CT104; a refusal in its own words is none.

Why it is bad: servers turn every content into parts for a template that looks as if it took them, and the system prompt
of one that reads only the user's parts becomes `[{'type': 'text', ...}]` or nothing.

Example: `{{ messages[0].content[0].text }}`, which prints the first part alone.

Use instead: one macro that prints a content, whether string or list, called for every role.

References: vLLM's `--chat-template-content-format auto` sends parts where a template loops over a content; the content
of every role may be a list in the OpenAI API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chats import canaries
from probes.chats.messages import say
from probes.laws.parts import parts_as_string
from probes.rules.base import Rule
from probes.rules.by_law import broken_on, hit_of
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.chats.messages import Chat
    from probes.laws.law import Violation
    from probes.rendering.input_form import PathObserver
    from probes.rules.view import Facts


def asks(on: PathObserver) -> list[Chat]:
    turns = [say("user", canaries.USER), say("assistant", canaries.ANSWER), say("user", canaries.SECOND_USER)]
    lead = [say("system", canaries.SYSTEM)] if on.writes_system else []
    chats = [on.form.chat([*lead, *turns])]
    if on.call_form is not None:
        chats.append(canaries.one_call(on.call_form.but(beside="text")))
    return chats


def check(facts: Facts) -> list[Hit]:
    found = broken_on(facts.view, parts_as_string, asks, "CT107")
    by_place: dict[str, dict[str, Violation]] = {}
    for cause, broken in found.items():
        place = cause.rpartition(" ")[0]
        by_place[place] = {**broken, **by_place.get(place, {})}
    return [hit_of(facts.view, broken, severity="error") for broken in by_place.values()]


RULE = Rule(
    code="CT107",
    name="parts-lost-by-role",
    severity="error",
    summary="Text parts that one role may send fail, vanish or are printed raw in another.",
    suggestion="print the content of every role with one macro that takes strings and lists",
    check=check,
    triggers=(
        "{% for m in messages %}<|{{ m.role }}|>{% if m.content is string or m.role != 'user' %}{{ m.content }}"
        "{% else %}{% for part in m.content %}{{ part.text }}{% endfor %}{% endif %}<|end|>\n{% endfor %}"
    ),
    repaired=(
        "{% for m in messages %}<|{{ m.role }}|>{% if m.content is string %}{{ m.content }}"
        "{% else %}{% for part in m.content %}{{ part.text }}{% endfor %}{% endif %}<|end|>\n{% endfor %}"
    ),
    healthy=(
        "{% macro said(content) %}{% if content is string %}{{ content }}{% else %}{% for part in content or [] %}"
        "{% if part.type == 'image' %}<|image|>{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}"
        "{% endmacro %}{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n"
        "{{ said(m.content) }}<|eot_id|>{% endfor %}"
    ),
    documentation=__doc__,
    asks=asks,
)
