"""A limit was hit by an ordinary conversation, or the work grows much faster than the conversation.

What it does: collects the limits that conversations of the set ran into, and measures the steps of conversations of 8,
16 and 32 turns.

Why it is bad: the template runs on the server, for every request. A loop over all messages inside of another makes a
long chat slow for everybody; one over `range(10 ** 9)` stops the server.

Example: `{% for i in range(100000) %}{% for j in range(100000) %}`.

Use instead: one pass over the messages, with a `namespace` for what must be remembered.

References: `Limits` of this package; the sandbox of Jinja2 bounds `range` at 100,000 and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinjarun.errors import JinjarunError, LimitExceeded, quote
from probes.chats import canaries
from probes.chats.messages import say
from probes.chats.named import CHATS
from probes.rendering.renders import LLAMA_RAW, RAW, dialect_of
from probes.rules.base import Rule
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.chats.canaries import Form
    from probes.chats.messages import Chat
    from probes.rules.view import Facts

TURNS = (8, 16, 32)
SQUARE = 3.4
"""By this factor or more the steps grow where the turns double: work that grows with their square comes near 4."""
ENOUGH_STEPS = 6_000
"""Below this many steps for the longest conversation nothing is slow."""


def check(facts: Facts) -> list[Hit]:
    return _limits(facts) or _growth(facts)


def _limits(facts: Facts) -> list[Hit]:
    for path in (RAW, LLAMA_RAW):
        if facts.renders.loads(path) is not None:
            continue
        for name, build in CHATS.items():
            error = facts.renders.conversation(path, name).error
            if isinstance(error, LimitExceeded) and error.allowed:  # else the host itself was too small
                cite = facts.book.cite(build(), path, "limit", excerpt=error.message, line=error.line)
                return [
                    Hit(
                        message=f"an ordinary conversation ({name}) hits a limit: {quote(error.message)[:120]}",
                        engines=[other for other in facts.renders.paths if dialect_of(other) == dialect_of(path)],
                        line=error.line,
                        evidence=[cite],
                        cause="limit",
                    )
                ]
    return []


def _growth(facts: Facts) -> list[Hit]:
    view = facts.view
    if view.bare is None:
        return []
    template = facts.renders.template(dialect_of(view.bare))
    if isinstance(template, JinjarunError):
        return []
    costs: list[int] = []
    for turns in reversed(TURNS):
        chat = _long(view.form(view.bare), turns)
        try:
            variables = chat.get("variables")
            costs.insert(0, template.render(chat["messages"], variables=variables, now=facts.renders.now).cost)
        except JinjarunError:
            return []
        if costs[-1] < ENOUGH_STEPS:
            return []
    if costs[2] - costs[1] < SQUARE * (costs[1] - costs[0]):
        return []
    chat = _long(view.form(view.bare), TURNS[0])
    said = ", ".join(f"{cost:,}" for cost in costs)
    message = f"the work grows with the square of the conversation: {said} steps for {', '.join(map(str, TURNS))} turns"
    engines = [path for path in view.paths if dialect_of(path) == dialect_of(view.bare)]
    cite = facts.book.cite(chat, view.bare, "slow", excerpt=said, conversation=f"{TURNS[0]} turns")
    return [Hit(message=message, engines=engines, evidence=[cite], severity="warning", cause="growth")]


def _long(form: Form, turns: int) -> Chat:
    messages = [say("user", canaries.USER)]
    for _ in range(turns // 2):
        messages += [say("assistant", canaries.ANSWER), say("user", canaries.SECOND_USER)]
    return form.chat(messages)


RULE = Rule(
    code="SC105",
    name="unbounded-work",
    severity="error",
    summary="A limit was hit, or cost grows faster than the input.",
    suggestion="pass over the messages once, and bound every loop by what was sent",
    check=check,
    triggers=(
        "{% for i in range(1000) %}{% for j in range(1000) %}{% endfor %}{% endfor %}"
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
    ),
    repaired=(
        "{% for i in range(10) %}{% for j in range(10) %}{% endfor %}{% endfor %}"
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
    ),
    healthy=(
        "{% set ns = namespace(last=0) %}{% for m in messages %}{% if m.role == 'user' %}"
        "{% set ns.last = loop.index0 %}{% endif %}{% endfor %}{% for m in messages %}<|im_start|>{{ m.role }}\n"
        "{{ m.content }}<|im_end|>\n{% endfor %}"
    ),
    documentation=__doc__,
)
