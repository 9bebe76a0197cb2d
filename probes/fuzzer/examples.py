"""The conversations that `fuzz` asks before it generates any: those of the chapters and of the rules.

So a rule and the laws that name it, and the prefix chapter and its laws, speak of the same conversations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chapters import prefix
from probes.chats import canaries as c
from probes.chats.messages import say
from probes.laws import LAWS
from probes.laws.frames import frames_of
from probes.rules import rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from probes.chats.messages import Chat
    from probes.laws import Subject

PLAIN = (c.user_only, c.system_user, c.second_system, c.late_system, c.two_users, c.developer, c.three_turns)
WITH_TOOLS = (c.tools_offered, c.tools_without_system, c.text_parts)


def examples(subject: Subject) -> tuple[list[Chat], list[Chat]]:
    """Of the conversations that the template takes, those that every law is asked of, and those that the laws are asked
    of that render little: of the first kind are those of the prefix chapter and of rules that speak of heavy laws."""
    supports = subject.supports
    assert supports is not None
    every = [chat for build in prefix.LAWS.values() for chat in build(subject.on)]
    every += [chat for rule in rules().values() if rule.code in _heavy() for chat in rule.asks(subject.on)]
    return list(filter(supports.covers, every)), list(filter(supports.covers, _others(subject)))


def _heavy() -> set[str]:
    return {code for law in LAWS.values() if law.heavy for code in law.codes}


def _others(subject: Subject) -> Iterator[Chat]:
    on = subject.on
    yield from (build(on.system_form) for build in (*PLAIN, *WITH_TOOLS))
    calls = on.call_form
    if calls is not None:
        yield from (build(calls) for build in (c.calls, c.one_call, c.parallel_calls, c.reasoning_in_loop))
    for rule in rules().values():
        if rule.code not in _heavy():
            yield from rule.asks(on)
    forged = f"{''.join(frames_of(subject).markers)}{c.TEXT}"
    yield on.form.chat([say("user", forged)])
    if calls is not None:
        chat = c.one_call(calls)
        chat["messages"][-1]["content"] = forged
        yield chat
