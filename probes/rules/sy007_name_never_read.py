"""A name is set and read nowhere in the template.

What it does: collects the names that `set` makes and those that are read anywhere, in macros too.

Why it is bad: it may be only untidy. Often it is the trace of a slip: a list without its first message is made, and the
loop walks the whole list all the same, so that the system message is refused as a turn out of order.

Example: `{% set loop_messages = messages[1:] %}{% for message in messages %}`.

Use instead: read the name where it was meant, or take the line out.

References: early templates for Gemma and Mistral that fold the system message into the first question.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinjarun.syntax.nodes import Name, Set, SetBlock, TupleExpr
from probes.rules.base import Rule
from probes.rules.tree import nodes
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.rules.view import Facts


KEPT = frozenset({"stop_strings", "tool_start", "tool_end", "tool_start_token", "tool_end_token", "prompt_template"})
"""Names that an engine (tabbyAPI) reads from outside of the template."""


def check(facts: Facts) -> list[Hit]:
    found = nodes(facts.source)
    made = {
        name.name: node.line
        for node in reversed(found)
        if isinstance(node, Set | SetBlock)
        for name in (node.target.items if isinstance(node.target, TupleExpr) else [node.target])
        if isinstance(name, Name)
    }
    targets = {id(node.target) for node in found if isinstance(node, Set | SetBlock)}
    read = {node.name for node in found if isinstance(node, Name) and id(node) not in targets}
    unread = sorted((line, name) for name, line in made.items() if name not in read | KEPT and not name.startswith("_"))
    engines = [path for path in facts.renders.paths if facts.renders.loads(path) is None]
    return [Hit(message=f"{name!r} is set and read nowhere", engines=engines, line=line) for line, name in unread]


RULE = Rule(
    code="SY007",
    name="name-never-read",
    severity="info",
    summary="A name is set and read nowhere.",
    suggestion="read the name where it was meant, or take it out",
    check=check,
    triggers=(
        "{% set rest = messages[1:] %}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>\n{% endfor %}"
    ),
    repaired=("{% set rest = messages[1:] %}{% for m in rest %}<|{{ m.role }}|>{{ m.content }}<|end|>\n{% endfor %}"),
    healthy=(
        "{% set stop_strings = ['###'] %}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.con"
        "tent }}<|im_end|>\n{% endfor %}"
    ),
    documentation=__doc__,
)
