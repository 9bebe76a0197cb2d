"""An empty list of tools or calls renders differently from none.

What it does: sends `"tools": []`, and an answer with `"tool_calls": []`, and compares with the same without the key.

Why it is bad: serialisers write empty lists where there is nothing. A heading for tools without a tool makes the model
invent one; an empty list of calls drops the answer, or fails.

Example: `{% if tools is not none %}`, `{% if 'tool_calls' in message %}`.

Use instead: `{% if tools %}`, `{% if message.tool_calls %}`.

References: llama-server and SGLang take an empty list of tools away, vLLM refuses it; transformers passes it on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chats import canaries
from probes.chats.messages import say
from probes.rules.base import Rule
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.chats.canaries import Form
    from probes.chats.messages import Chat
    from probes.rules.view import Facts


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    hits = []
    for name, empty, absent in (("tools", _no_tools, canaries.user_only), ("tool_calls", _no_calls, _answered)):
        plain = {one.path: one for one in view.ask(absent, canaries.USER)}
        asked = [
            one for one in view.ask(empty, canaries.USER) if plain[one.path].outcome.ok and not one.outcome.turned_away
        ]
        differing = [one for one in asked if one.text != plain[one.path].text and one.fate != "limit"]
        if not differing:
            continue
        good = [one for one in asked if one not in differing]
        what = "renders otherwise than no such key"
        if not differing[0].outcome.ok:
            what = f"fails: {differing[0].error}"
        message = f"an empty list of {name} {what}"
        hits.append(view.hit(message, differing, good, severity="warning", cause=f"empty {name}"))
    return hits


def _no_tools(form: Form) -> Chat:
    return form.chat([say("user", canaries.USER)], [])


def _no_calls(form: Form) -> Chat:
    answer = say("assistant", canaries.ANSWER, tool_calls=[])
    return form.chat([say("user", canaries.USER), answer, say("user", canaries.SECOND_USER)])


def _answered(form: Form) -> Chat:
    return canaries.reasoning(form, ())


RULE = Rule(
    code="TL112",
    name="empty-list-is-not-absent",
    severity="warning",
    summary="tools: [] or tool_calls: [] renders differently from leaving the key out.",
    suggestion="test the list itself, which is false where it is empty",
    check=check,
    triggers=(
        "{% if tools is not none %}<|system|>You may call:{% for t in tools %} {{ t.function.name }}{% endfor %}"
        "{% endif %}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>\n{% endfor %}"
    ),
    repaired=(
        "{% if tools %}<|system|>You may call:{% for t in tools %} {{ t.function.name }}{% endfor %}"
        "{% endif %}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>\n{% endfor %}"
    ),
    healthy=(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
        "{% if m.tool_calls is defined and m.tool_calls %}{{ m.tool_calls | tojson }}{% endif %}<|im_end|>\n"
        "{% endfor %}"
    ),
    documentation=__doc__,
)
