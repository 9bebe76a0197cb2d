"""Reasoning before a call is dropped while the same turn goes on, though the template prints reasoning elsewhere.

What it does: sends reasoning in a last answer and in a message that calls a tool whose result follows, and looks for
both.

Why it is bad: a model reasons, calls, and goes on from the result. Without its reasoning it begins to think anew in
each round, forgets its plan and calls the same tool again. It is a warning where the author says that no reasoning is
kept.

Example: `{% if loop.last and message.reasoning_content %}`, where the last message is the tool's result.

Use instead: reasoning of all messages after the last one of the *user*.

References: DeepSeek's, Qwen3's and OpenAI's guides all keep reasoning between calls of one turn.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from probes.chats import canaries
from probes.chats.messages import REASONING_FIELDS, say
from probes.rendering.input_form import BARE
from probes.rendering.renders import LLAMA_SERVER, SGLANG
from probes.rules.base import Rule
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.chats.canaries import Form
    from probes.chats.messages import Chat
    from probes.report import Severity
    from probes.rules.view import Asked, Facts

THOUGHT = r"\b(?:reason|think|thought|cot\b|analysis|chain)"
DROPPING = r"\b(?:drop|discard|remove|strip|omit|exclude|ignore)"
SAYS_SO = re.compile(
    rf"\{{#(?:(?!#\}}).)*?(?:{DROPPING}(?:(?!#\}}).)*{THOUGHT}|{THOUGHT}(?:(?!#\}}).)*{DROPPING})", re.S | re.I
)
"""A comment in which the author says that reasoning is not kept."""


OWN_ANSWER = (LLAMA_SERVER, SGLANG)
"""Servers that rework a last answer themselves: there the bare template tells."""


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    calling = [one for one in view.ask_calls(_before_call, canaries.VALUE, canaries.RESULT) if one.fate == "written"]
    if all(_printed(one) for one in calling):
        return []
    answering = {one.path for one in view.ask(_in_last_answer) if _printed(one) and one.path not in OWN_ANSWER}
    dropping = {one.path for one in calling if not _printed(one)}
    answering |= {server for server in OWN_ANSWER if BARE[server] in dropping & answering}
    lost = [one for one in calling if not _printed(one) and one.path in answering]
    good = [one for one in calling if _printed(one)]
    if not lost:
        return []
    message = "reasoning before a call is dropped while its turn goes on; that of a last answer is written"
    severity: Severity = "error"
    if SAYS_SO.search(facts.source) and not any(map(_printed, view.ask(_earlier))):
        message += "; a comment says that earlier reasoning is dropped, and no prompt has any"
        severity = "warning"
    return [view.hit(message, lost, good, severity=severity, cause="reasoning in tool loops")]


def _before_call(form: Form) -> Chat:
    return canaries.reasoning_in_loop(form, REASONING_FIELDS)


def _earlier(form: Form) -> Chat:
    return canaries.reasoning(form, REASONING_FIELDS)


def _in_last_answer(form: Form) -> Chat:
    answer = say("assistant", canaries.ANSWER, **canaries.fields_of(REASONING_FIELDS, canaries.REASONING))
    return form.chat([say("user", canaries.USER), answer], add_generation_prompt=False)


def _printed(asked: Asked) -> bool:
    return any(canaries.reasoning_under(name) in asked.text for name in REASONING_FIELDS)


RULE = Rule(
    code="RS102",
    name="reasoning-lost-in-tool-loop",
    severity="error",
    summary="Reasoning before a call is dropped while the same tool turn continues.",
    suggestion="print the reasoning of every message after the last user message",
    check=check,
    triggers=(
        "{% for m in messages %}<|{{ m.role }}|>{% if m.reasoning_content and loop.last %}"
        "<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content or '' }}"
        "{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}<|end|>\n{% endfor %}"
    ),
    repaired=(
        "{% for m in messages %}<|{{ m.role }}|>{% if m.reasoning_content %}"
        "<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content or '' }}"
        "{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}<|end|>\n{% endfor %}"
    ),
    healthy=(
        "{% set ns = namespace(last=-1) %}{% for m in messages %}{% if m.role == 'user' %}"
        "{% set ns.last = loop.index0 %}{% endif %}{% endfor %}{% for m in messages %}<|im_start|>{{ m.role }}\n"
        "{% if m.reasoning_content and loop.index0 > ns.last %}<think>{{ m.reasoning_content }}</think>{% endif %}"
        "{{ m.content or '' }}{% for c in m.tool_calls or [] %}{{ c.function | tojson }}{% endfor %}<|im_end|>\n"
        "{% endfor %}"
    ),
    documentation=__doc__,
)
