"""A name is printed that nothing sets and no engine gives.

What it does: looks for `{{ name }}` where the name is set nowhere, is given by no engine, and is never asked whether it
is defined.

Why it is bad: it may be a variable that callers are meant to send. Where it is a slip nothing is printed in its place,
and no engine says so: the text of every message is lost.

Example: `{% for message in messages %}{{ content }}{% endfor %}`.

Use instead: `{{ message.content }}`; for a variable of the caller, `{{ name | default('') }}`.

References: both engines print an undefined name as an empty text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinjarun.syntax.nodes import Binary, Name, Node, Output
from probes.rendering.variables import caller_variables
from probes.rules.base import Rule
from probes.rules.tree import nodes
from probes.rules.view import Hit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from probes.rules.view import Facts


def check(facts: Facts) -> list[Hit]:
    found = nodes(facts.source)
    printed = {name.name: name.line for node in found if isinstance(node, Output) for name in _printed(node.value)}
    if not printed:
        return []
    names = frozenset(node.name for node in found if isinstance(node, Name))
    free = set(caller_variables(facts.source, names))
    asked = {name for name in free if _is_asked(facts.source, name)}
    lost = sorted((line, name) for name, line in printed.items() if name in free - asked)
    if not lost:
        return []
    said = ", ".join(repr(name) for _, name in lost)
    message = f"{said} is printed, and set nowhere" if len(lost) == 1 else f"{said} are printed, and set nowhere"
    engines = [path for path in facts.renders.paths if facts.renders.loads(path) is None]
    return [Hit(message=message, engines=engines, line=lost[0][0], cause="names never set")]


def _printed(value: Node) -> Iterator[Name]:
    """The names that are printed as they are, alone or joined to other texts."""
    if isinstance(value, Name):
        yield value
    elif isinstance(value, Binary) and all(operator in "+~" for operator, _ in value.rest):
        for part in (value.first, *(operand for _, operand in value.rest)):
            yield from _printed(part)


def _is_asked(source: str, name: str) -> bool:
    """Whether a name stands elsewhere than where it is printed: then somebody thought of its being absent."""
    return any(mark in source for mark in (f"{name} is ", f"if {name}", f"not {name}", f"{name} |", f"{name}|"))


RULE = Rule(
    code="SY008",
    name="name-never-set",
    severity="info",
    summary="A name is printed that nothing sets and no engine gives.",
    suggestion="print what was meant, or give the variable a default",
    check=check,
    triggers=("{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{{ suffix }}<|end|>\n{% endfor %}"),
    repaired=("{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{{ suffix | default('') }}<|end|>\n{% endfor %}"),
    healthy=("{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>\n{% endfor %}"),
    documentation=__doc__,
)
