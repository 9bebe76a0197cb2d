"""Two calls in one turn fail, or only one of them is printed, or they run together.

What it does: sends one message with two calls, and their results, where one call alone is written.

Why it is bad: models call several tools at once, and a client sends back what it got. Of a call that is not printed the
model sees only a result that belongs to nothing. It is a warning where the template knows of the first call alone:
its model makes one call in a turn, and clients can ask for that.

Example: `{{ message.tool_calls[0].function | tojson }}`.

Use instead: a loop over the calls with something between them; or `raise_exception('only one call in a turn')`.

References: `parallel_tool_calls` of OpenAI's chat API; Llama 3.1's template refuses two calls, which is a contract.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinjarun.syntax.nodes import Const, For, GetItem, Name
from probes.chats import canaries
from probes.rules.base import Rule
from probes.rules.tree import last_key, nodes
from probes.rules.view import Hit, fates

if TYPE_CHECKING:
    from jinjarun.syntax.nodes import Expr
    from probes.report import Severity
    from probes.rules.view import Facts

REFUSE = "where the model makes one call in a turn, refuse more with raise_exception; else loop over tool_calls"


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    alone = {one.path for one in fates(view.ask_calls(canaries.one_call, canaries.VALUE), "written")}
    asked = view.ask_calls(canaries.parallel_calls, canaries.VALUE, canaries.SECOND_VALUE)
    asked = [one for one in asked if one.path in alone]
    good = fates(asked, "written")
    if lost := fates(asked, "lost"):
        severity: Severity = "warning" if takes_first(facts.source) else "error"
        message = "of two calls only one is written, and no error says so"
        return [view.hit(message, lost, good, severity=severity, suggestion=REFUSE, cause="parallel calls")]
    if failed := fates(asked, "raised"):
        message = f"two calls in one turn fail: {failed[0].error}"
        return [view.hit(message, failed, good, severity="error", cause="parallel calls")]
    glued = [one for one in good if _run_together(one.text)]
    if glued:
        good = [one for one in good if one not in glued]
        message = "two calls are written with nothing between them"
        return [view.hit(message, glued, good, severity="error", cause="parallel calls")]
    return []


def takes_first(source: str) -> bool:
    """Whether the template reads the first call and loops over none: it is of a model that makes one call in a turn."""
    loops = any(isinstance(node, For) and _is_calls(node.iterable) for node in nodes(source))
    indexes = (node for node in nodes(source) if isinstance(node, GetItem) and isinstance(node.index, Const))
    return not loops and any(_is_calls(node.value) for node in indexes)


def _is_calls(expression: Expr) -> bool:
    """Whether this is `tool_calls` of something, or a variable named so."""
    name = last_key(expression) or (expression.name if isinstance(expression, Name) else "")
    return "tool_calls" in name


def _run_together(text: str) -> bool:
    """Whether the name of the second call stands directly behind the arguments of the first."""
    between = text[text.rfind(canaries.VALUE) + len(canaries.VALUE) : text.rfind(canaries.SECOND_VALUE)]
    name = between.find(canaries.SECOND_TOOL)
    return name >= 0 and not between[:name].strip("\"}{' ")


RULE = Rule(
    code="TL106",
    name="parallel-calls-broken",
    severity="error",
    summary="Two calls in a turn fail, or only one is printed, or they run together.",
    suggestion="loop over tool_calls, or refuse more than one with raise_exception",
    check=check,
    triggers=(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}"
        "{% if m.tool_calls %}<call>{{ m.tool_calls[0].function | tojson }}</call>{% endif %}<|end|>\n{% endfor %}"
    ),
    repaired=(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}"
        "{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}<|end|>\n{% endfor %}"
    ),
    healthy=(
        "{% for m in messages %}{% if m.tool_calls and m.tool_calls | length != 1 %}"
        "{{ raise_exception('only one tool call at once') }}{% endif %}<|start_header_id|>{{ m.role }}"
        "<|end_header_id|>\n\n{{ m.content or '' }}{% if m.tool_calls %}{{ m.tool_calls[0].function | tojson }}"
        "{% endif %}<|eot_id|>{% endfor %}"
    ),
    documentation=__doc__,
)
