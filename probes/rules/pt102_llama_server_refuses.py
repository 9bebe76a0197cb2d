"""llama-server does not start with the template.

What it does: starts the path of llama-server with a template that its interpreter loads. Before it listens, the server
renders the template many times, to find out what it can do and how to read what the model writes.

Why it is bad: the server ends with an error instead of answering. Nothing in a test of the prompts shows it, because
the template itself renders.

Example: the schemas of the tools behind every message, so that a call and what follows it are no JSON from the first
brace to the last; a test or a filter that llama.cpp does not know, in a branch that only the server's own conversations
reach.

Use instead: what the server can read; `jinjarun render TEMPLATE --as llama-server` shows whether it starts.

References: common_chat_verify_template and the analysis of templates in llama.cpp (common/chat.cpp, build b11434); with
--no-jinja the server starts, and takes one of its built-in formats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chats import canaries
from probes.rendering.outcomes import said
from probes.rendering.renders import LLAMA_RAW, LLAMA_SERVER
from probes.rules.base import Rule
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.rules.view import Facts


def check(facts: Facts) -> list[Hit]:
    if facts.renders.loads(LLAMA_RAW) is not None:
        return []
    chat = canaries.user_only()
    outcome = facts.renders.render(LLAMA_SERVER, chat)
    error = outcome.error
    if error is None or outcome.limited or not error.details.get("refused"):
        return []
    return [
        Hit(
            message=f"llama-server does not start with this template: {said(error)}",
            engines=[LLAMA_SERVER],
            line=error.line,
            column=error.column,
            evidence=[facts.book.cite(chat, LLAMA_SERVER, "raised", excerpt=error.message, line=error.line)],
            severity="error",
            cause="server refuses",
        )
    ]


RULE = Rule(
    code="PT102",
    name="llama-server-refuses",
    severity="error",
    summary="llama-server cannot analyse the template and does not start; gives its message.",
    suggestion="write what the message names in a way that llama.cpp reads too; until then start it with --no-jinja",
    check=check,
    triggers=(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}{% if tools %}{{ tools | tojson }}{% endif %}"
        "{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}<|end|>\n{% endfor %}"
    ),
    repaired=(
        "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}"
        "{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}<|end|>\n{% endfor %}"
    ),
    healthy="{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}",
    documentation=__doc__,
)
