"""The prompt depends on the clock.

What it does: renders the same request at other moments; says where the date stands, how finely it is written and which
variable pins it. A constant that a template prints in place of a date is told too.

Why it is bad: at midnight, or at every second, all prompts change from the place of the date on, and every cache is
lost; a test that compares prompts fails on another day. A constant date is wrong every day but one.

Example: `Today is {{ strftime_now('%d %B %Y') }}` at the start of the system turn.

Use instead: a variable with the clock as its default, as far to the end of the prompt as the model was trained to see
it: `{{ date_string if date_string is defined else strftime_now('%d %b %Y') }}`.

References: `strftime_now` of transformers' chat templates; llama.cpp sends the time of day with each request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chats import canaries
from probes.laws.growth import CONSTANT_DATE
from probes.rendering.renders import LLAMA_RAW, RAW
from probes.rules.base import Rule
from probes.rules.laws import broken, cause_of
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.report import Severity
    from probes.rules.view import Facts

NEAR_END = 0.8
"""From this part of a short conversation's prompt on a date counts as standing at the end."""


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    if view.loaded is None:
        return []
    clock = view.shape.clock
    if clock is None:
        return _constant(facts)
    law = broken(facts, "another-day")
    prompt = view.ask_path(view.loaded, canaries.user_only(view.form(view.loaded)))
    at_end = law is None or clock.at >= NEAR_END * len(prompt.text)
    severity: Severity = "info" if at_end else "warning"
    pinned = f"; the variable {clock.pinned_by} pins it" if clock.pinned_by else "; no variable pins it"
    where = f"from character {clock.at} on the prompt depends on the {clock.resolution}"
    return [
        Hit(
            message=f"{where}{pinned}",
            engines=[path for path in facts.renders.paths if facts.renders.loads(path) is None],
            line=clock.line,
            evidence=law.evidence if law is not None else [view.cite(prompt)],
            severity=severity,
            cause="prefix: clock" if law is None else cause_of(law),
        )
    ]


def _constant(facts: Facts) -> list[Hit]:
    """A date that the author wrote down, printed unless the caller gives another."""
    found = CONSTANT_DATE.search(facts.source)
    if found is None:
        return []
    view = facts.view
    name = found["name"] or found["other"]
    asked = [view.ask_path(path, canaries.user_only(view.form(path))) for path in (RAW, LLAMA_RAW)]
    shown = [one for one in asked if found["date"] in one.text]
    if not shown:
        return []
    message = f"the date {found['date']!r} is a constant of the template; the variable {name} replaces it"
    line = facts.source.count("\n", 0, found.start()) + 1
    return [view.hit(message, shown, severity="info", line=line, cause="constant date")]


RULE = Rule(
    code="PS104",
    name="clock-in-prompt",
    severity="warning",
    summary="The text depends on the clock; position, resolution and the variable that pins it.",
    suggestion="give the date a variable, and send that variable where prompts must not change",
    check=check,
    triggers=(
        "<|system|>Now: {{ strftime_now('%d %b %Y %H:%M:%S') }}\n"
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>\n{% endfor %}"
    ),
    repaired="<|system|>\n{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>\n{% endfor %}",
    healthy=(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    ),
    documentation=__doc__,
)
