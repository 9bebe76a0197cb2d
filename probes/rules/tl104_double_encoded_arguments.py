"""Arguments that come as a JSON string are quoted a second time.

What it does: sends a call whose arguments are a JSON string and looks for its quotes with a backslash before them.

Why it is bad: the history shows the model `"{\\"path\\": \\"a.py\\"}"`, a string, where it wrote an object. It learns
from its own history and answers so; the next call does not parse.

Example: `{{ call.function.arguments | tojson }}` whatever the arguments are.

Use instead: `{{ arguments if arguments is string else arguments | tojson }}`; or objects in the request.

References: llama-server and vLLM read the string into an object first; transformers passes on what it gets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chats import canaries
from probes.rendering.outcomes import argument_style
from probes.rules.base import Rule
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.rules.view import Asked, Facts


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    asked = [one for one in view.ask_calls(canaries.one_call, canaries.VALUE, arguments="string") if one.outcome.ok]
    quoted = [one for one in asked if is_quoted(one)]
    good = [one for one in asked if one not in quoted and one.fate == "written"]
    message = "arguments that come as a JSON string are quoted once more"
    return [view.hit(message, quoted, good, severity="error", cause="quoted arguments")] if quoted else []


def is_quoted(asked: Asked) -> bool:
    """Whether the call in this text holds its arguments as JSON inside of JSON."""
    at = asked.text.rfind(canaries.VALUE)
    return at >= 0 and argument_style(asked.text[max(0, at - 100) : at + 100]) == "escaped"


RULE = Rule(
    code="TL104",
    name="double-encoded-arguments",
    severity="error",
    summary="String arguments are quoted a second time.",
    suggestion="print arguments that are a string as they are",
    check=check,
    triggers=(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
        "to={{ c.function.name }} {{ c.function.arguments | tojson }}{% endfor %}<|end|>\n{% endfor %}"
    ),
    repaired=(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
        "to={{ c.function.name }} {% if c.function.arguments is string %}{{ c.function.arguments }}{% else %}"
        "{{ c.function.arguments | tojson }}{% endif %}{% endfor %}<|end|>\n{% endfor %}"
    ),
    healthy=(
        "{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
        "<|start|>assistant to=functions.{{ c.function.name }}<|channel|>commentary json<|message|>"
        "{% set arguments = c.function.arguments %}"
        "{{ arguments if arguments is string else arguments | tojson }}<|call|>{% endfor %}<|end|>{% endfor %}"
    ),
    documentation=__doc__,
)
