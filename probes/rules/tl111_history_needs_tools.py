"""Calls in the history fail or change where the tools are not offered again.

What it does: sends a conversation with a call and its result once with the tools and once without, and compares the
text behind the first question.

Why it is bad: clients leave tools out for the last answer, for a summary, or when a model takes a chat over. Then the
request fails, or the calls that were made vanish from the chat.

Example: `{% if tools and message.tool_calls %}`.

Use instead: what is written of a call depends on the call alone.

References: `tool_choice: "none"` of OpenAI's chat API, for which some servers leave the tools out of the prompt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chats import canaries
from probes.rules.base import Rule
from probes.rules.view import Hit, fates

if TYPE_CHECKING:
    from probes.chats.canaries import Form
    from probes.chats.messages import Chat
    from probes.rules.view import Asked, Facts


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    offered = {one.path: one for one in view.ask_calls(canaries.one_call, canaries.VALUE)}
    asked = [one for one in view.ask_calls(_without_tools, canaries.VALUE) if offered[one.path].fate == "written"]
    failed = fates(asked, "raised")
    lost = fates(asked, "lost")
    changed = [one for one in fates(asked, "written") if _history(one) != _history(offered[one.path])]
    bad = failed or lost or changed
    if not bad:
        return []
    what = f"fail: {failed[0].error}" if failed else "are left out" if lost else "are written otherwise"
    good = [one for one in fates(asked, "written") if one not in changed]
    return [view.hit(f"without tools calls in the history {what}", bad, good, severity="warning", cause="no tools")]


def _without_tools(form: Form) -> Chat:
    chat = canaries.one_call(form)
    chat.pop("tools", None)
    return chat


def _history(asked: Asked) -> str:
    """From the call to the result: what stands around it is not of the history."""
    text = asked.text
    return text[text.rfind(canaries.USER) if canaries.USER in text else 0 : text.rfind(canaries.RESULT)].partition(
        canaries.USER
    )[2]


RULE = Rule(
    code="TL111",
    name="history-needs-tools",
    severity="warning",
    summary="Calls in the history fail or change when tools is not sent again.",
    suggestion="let what is written of a call depend on the call alone",
    check=check,
    triggers=(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}{% if tools %}"
        "{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}{% endif %}<|end|>\n"
        "{% endfor %}"
    ),
    repaired=(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}"
        "{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}<|end|>\n{% endfor %}"
    ),
    healthy=(
        "{% for m in messages %}{% if m.role == 'user' and loop.last and tools %}[TOOLS]{{ tools | tojson }}[/TOOLS]"
        "{% endif %}[INST]{{ m.content or '' }}[/INST]{% for c in m.tool_calls or [] %}[CALL]{{ c.function | tojson }}"
        "{% endfor %}{% endfor %}"
    ),
    documentation=__doc__,
)
