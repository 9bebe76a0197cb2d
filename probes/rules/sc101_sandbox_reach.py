"""The template reaches for the objects of the program that runs it.

What it does: looks in the syntax tree for names that begin with two underscores after a dot, in brackets, as the name
for `attr` and in format strings, also where they are joined from pieces; and for renders that the sandbox stopped.

Why it is bad: a template is a program by a stranger that every request runs. `''.__class__.__mro__` is the first step
to the file system on an engine without a sandbox, and no chat needs it.

Example: `{{ messages | attr('__class__') }}`, `{{ '{0.__class__}'.format(messages) }}`.

Use instead: nothing of the sort; do not run the model before somebody has read its template.

References: the sandbox of Jinja2, escaped several times (CVE-2024-56326, CVE-2025-27516).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jinjarun.errors import SandboxViolation, quote
from jinjarun.syntax.nodes import Const, Filter, GetAttr, GetItem, Node
from probes.chats.named import CHATS
from probes.rendering.renders import LLAMA_RAW, RAW
from probes.rules.base import Rule
from probes.rules.tree import nodes
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.rules.view import Facts

HOST = re.compile(
    r"__(?:class|base|bases|mro|subclasses|globals|builtins|import|init|dict|getattribute|code|func|self|module)__"
)
FIELD = re.compile(r"\{[^{}]*\._")


def check(facts: Facts) -> list[Hit]:
    for node in nodes(facts.source):
        what = _reach(node)
        if what is not None:
            message = f"the template reaches for the host's objects: {quote(what)}"
            engines = [path for path in facts.renders.paths if facts.renders.loads(path) is None]
            return [Hit(message=message, engines=engines, line=node.line, column=node.column, cause="sandbox")]
    return _stopped(facts)


def _reach(node: Node) -> str | None:
    if not isinstance(node, (GetAttr, GetItem, Filter, Const)):
        return None
    if isinstance(node, GetAttr) and node.name.startswith("__"):
        return f".{node.name}"
    if isinstance(node, GetItem) and isinstance(node.index, Const) and HOST.fullmatch(str(node.index.value)):
        return f"[{node.index.value!r}]"
    if isinstance(node, Filter) and node.name == "attr":
        for argument in node.arguments:
            if not isinstance(argument.value, Const):
                return "attr of a name that is computed"
            if str(argument.value.value).startswith("_"):
                return f"attr({argument.value.value!r})"
    if (
        isinstance(node, Const)
        and isinstance(node.value, str)
        and (HOST.search(node.value) or FIELD.search(node.value))
    ):
        return repr(node.value[:60])
    return None


def _stopped(facts: Facts) -> list[Hit]:
    """Renders that the sandbox stopped at an underscore name."""
    for path in (RAW, LLAMA_RAW):
        for name, build in CHATS.items():
            error = facts.renders.conversation(path, name).error
            if isinstance(error, SandboxViolation) and "_" in error.message:
                cite = facts.book.cite(build(), path, "raised", excerpt=error.message, line=error.line)
                message = f"the sandbox stopped it ({name}): {quote(error.message)[:120]}"
                return [Hit(message=message, engines=[path], line=error.line, evidence=[cite], cause="sandbox")]
    return []


RULE = Rule(
    code="SC101",
    name="sandbox-reach",
    severity="error",
    summary="Underscore attributes, attr, format strings or split names aim at the host's objects.",
    suggestion="do not run this template before somebody has read it",
    check=check,
    triggers="{% for m in messages %}{{ m.content }}{% endfor %}{% if 0 %}{{ messages|attr('__class__') }}{% endif %}",
    repaired="{% for m in messages %}{{ m.content }}{% endfor %}",
    healthy=(
        "{% set __last = messages[-1] %}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
        "{% if __last.role == 'user' %}<|assistant|>{% endif %}"
    ),
    documentation=__doc__,
)
