"""Ids of calls are not written, so results belong to calls by their order alone.

What it does: looks for the ids of calls and of results, and for the names of results, where two calls are written.

Why it is bad: it is not bad, but a client that runs calls at once and sends each result as it comes gets them mixed up:
the model reads the weather of one town as that of the other.

Example: `<tool_response>{{ message.content }}</tool_response>` for every message of the role `tool`.

Use instead: results in the order of the calls.

References: Hermes' and Qwen's formats have no ids; Mistral's and Kimi's do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chats import canaries
from probes.rules.base import Rule
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.chats.canaries import Form
    from probes.chats.messages import Chat
    from probes.rules.view import Facts

TOLD = (canaries.ID, canaries.SECOND_ID, canaries.RESULT_NAME, canaries.SECOND_RESULT_NAME)


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    wanted = (canaries.SECOND_VALUE, canaries.RESULT, canaries.SECOND_RESULT)
    asked = [one for one in view.ask_calls(canaries.parallel_calls, *wanted) if one.fate == "written"]
    bare = [one for one in asked if not any(text in one.text for text in TOLD)]
    if bare:
        exchanged = {one.path: one.text for one in view.ask_calls(_exchanged)}
        bare = [one for one in bare if one.text == exchanged[one.path]]
    message = "neither ids nor names of results are written: results must come in the order of the calls"
    return [view.hit(message, bare, severity="info")] if bare else []


def _exchanged(form: Form) -> Chat:
    """The same with the ids of the results exchanged: a template that looks the name up by the id writes another."""
    chat = canaries.parallel_calls(form)
    first, second = (message for message in chat["messages"] if message["role"] == "tool")
    first["tool_call_id"], second["tool_call_id"] = second["tool_call_id"], first["tool_call_id"]
    return chat


RULE = Rule(
    code="TL109",
    name="result-order-only",
    severity="info",
    summary="Call ids are not written: results must be sent in the order of the calls.",
    suggestion="send results in the order of the calls",
    check=check,
    triggers=(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
        "<call>{{ c.function | tojson }}</call>{% endfor %}<|end|>\n{% endfor %}"
    ),
    repaired=(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.tool_call_id }}{{ m.content or '' }}"
        "{% for c in m.tool_calls or [] %}<call>{{ c | tojson }}</call>{% endfor %}<|end|>\n{% endfor %}"
    ),
    healthy=(
        "{% for m in messages %}{% if m.role == 'tool' %}[TOOL_RESULTS]{{ m.tool_call_id }}[TOOL_CONTENT]"
        "{{ m.content }}[/TOOL_RESULTS]{% else %}[INST]{{ m.content or '' }}[/INST]{% for c in m.tool_calls or [] %}"
        "[TOOL_CALLS]{{ c.function.name }}[CALL_ID]{{ c.id }}[ARGS]{{ c.function.arguments | tojson }}{% endfor %}"
        "{% endif %}{% endfor %}"
    ),
    documentation=__doc__,
)
