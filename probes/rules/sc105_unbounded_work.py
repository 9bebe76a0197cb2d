"""A limit was hit by an ordinary conversation, or the work grows much faster than the conversation.

What it does: collects the limits that conversations of the set ran into, and measures the steps of 16, 32 and 64
messages: turns of a chat, and calls with their results.

Why it is bad: the template runs on the server, for every request. A loop over all messages inside of another makes a
long chat slow for everybody; one over `range(10 ** 9)` stops the server.

Example: `{% for i in range(100000) %}{% for j in range(100000) %}`.

Use instead: one pass over the messages, with a `namespace` for what must be remembered.

References: `Limits` of this package; the sandbox of Jinja2 bounds `range` at 100,000 and nothing else.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from jinjarun.errors import JinjarunError, LimitExceeded, quote
from probes.chats import canaries
from probes.chats.messages import say
from probes.chats.named import CHATS
from probes.rendering.renders import LLAMA_RAW, RAW, dialect_of
from probes.rules.base import Rule
from probes.rules.view import Hit

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from jinjarun.template import Template
    from probes.chats.canaries import Form
    from probes.chats.messages import Chat
    from probes.rules.view import Facts

TURNS = (16, 32, 64)
SQUARE = 0.45
"""From this share of the steps on, what grows with the square of the messages is what a long chat costs."""
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
    builders = [partial(_turns, view.form(view.bare))]
    calling = view.calling(view.bare)
    if calling is not None:
        builders.append(partial(_rounds, calling))
    for build in builders:
        costs = _costs(template, build, facts.renders.now)
        if costs is None or _squared(costs) < SQUARE * costs[2]:
            continue
        said = ", ".join(f"{cost:,}" for cost in costs)
        counts = ", ".join(map(str, TURNS))
        message = f"the work grows with the square of the conversation: {said} steps for {counts} messages"
        engines = [path for path in view.paths if dialect_of(path) == dialect_of(view.bare)]
        cite = facts.book.cite(build(TURNS[0]), view.bare, "slow", excerpt=said)
        return [Hit(message=message, engines=engines, evidence=[cite], severity="warning", cause="growth")]
    return []


def _squared(costs: list[int]) -> float:
    """The part of the largest cost that grows with the square, if each is a + bn + cn² and the messages double."""
    return 16 * (costs[2] - costs[1] - 2 * (costs[1] - costs[0])) / 6


def _costs(template: Template, build: Callable[[int], Chat], now: datetime | float) -> list[int] | None:
    """The steps by number of messages, None where they are too few to tell, or something fails."""
    costs: list[int] = []
    for turns in reversed(TURNS):
        chat = build(turns)
        try:
            answer = template.render(
                chat["messages"], tools=chat.get("tools"), variables=chat.get("variables"), now=now
            )
        except JinjarunError:
            return None
        costs.insert(0, answer.cost)
        if costs[-1] < ENOUGH_STEPS:
            return None
    return costs


def _rounds(form: Form, turns: int) -> Chat:
    messages = [say("user", canaries.USER)]
    for _ in range(turns // 2):
        messages += [form.calling(), canaries.result()]
    return form.chat(messages)


def _turns(form: Form, turns: int) -> Chat:
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
