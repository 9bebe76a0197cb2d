"""A name is set inside a loop and read after it, where it has its old value again.

What it does: looks in the source for `set` inside of `for` that adds to a name from outside, or sets a flag, and for
a place behind the loop that reads the name before it is set anew.

Why it is bad: a loop has a scope of its own in Jinja, and what is set there ends with each pass. The text that was
gathered is gone: content that came as a list of parts is empty.

Example: `{% set text = '' %}{% for part in content %}{% set text = text + part.text %}{% endfor %}{{ text }}`.

Use instead: `{% set ns = namespace(text='') %}`, and `{% set ns.text = ns.text + part.text %}` in the loop.

References: Jinja's documentation on assignments and scoping; llama.cpp's engine does the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinjarun.syntax.nodes import Binary, Const, For, Generation, If, Macro, Name, Node, Set, SetBlock, Stmt
from probes.rules.base import Rule
from probes.rules.tree import inside, tree_of
from probes.rules.view import Hit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from probes.rules.view import Facts


def check(facts: Facts) -> list[Hit]:
    root = tree_of(facts.source)
    found = [] if root is None else sorted(set(_lost(root)))
    if not found:
        return []
    line, name = found[0]
    message = f"{name!r} is set inside a loop and read behind it, where it has its old value again"
    engines = [path for path in facts.renders.paths if facts.renders.loads(path) is None]
    return [Hit(message=message, engines=engines, line=line, cause=f"set of {name} in a loop")]


def _lost(root: Node) -> Iterator[tuple[int, str]]:
    """The line of each such `set`, and its name."""
    for node in inside(root):
        body = getattr(node, "body", None)
        if isinstance(node, For | Macro) or node is root:
            yield from _in_scope(list(_flat(body or [])))


def _flat(body: Sequence[Stmt]) -> Iterator[Stmt]:
    """The statements of a scope in their order; what `if` and `generation` hold is of the same scope."""
    for statement in body:
        yield statement
        if isinstance(statement, If):
            for branch in statement.branches:
                yield from _flat(branch.body)
            yield from _flat(statement.otherwise or [])
        elif isinstance(statement, Generation):
            yield from _flat(statement.body)


def _in_scope(statements: list[Stmt]) -> Iterator[tuple[int, str]]:
    for at, loop in enumerate(statements):
        if isinstance(loop, For):
            for made in _flat(loop.body):
                if not isinstance(made, Set) or not isinstance(made.target, Name):
                    continue
                if _gathers(made, statements[:at]) and _read_first(made.target.name, statements[at + 1 :]):
                    yield made.line, made.target.name


def _gathers(made: Set, before: list[Stmt]) -> bool:
    """Whether it adds to a name that is set before the loop, or sets a flag that is set there."""
    assert isinstance(made.target, Name)
    name = made.target.name
    earlier = [one for one in before if isinstance(one, Set) and _sets(one, name)]
    if not earlier:
        return False
    added = isinstance(made.value, Binary) and any(isinstance(n, Name) and n.name == name for n in inside(made.value))
    flag = isinstance(made.value, Const) and isinstance(earlier[-1].value, Const)
    return added or (flag and isinstance(made.value.value, bool) and made.value != earlier[-1].value)  # type: ignore[attr-defined]


def _sets(statement: Stmt, name: str) -> bool:
    target = statement.target if isinstance(statement, Set | SetBlock) else None
    return isinstance(target, Name) and target.name == name


def _read_first(name: str, after: list[Stmt]) -> bool:
    """Whether the name is read there before it is set."""
    for statement in after:
        parts: list[Node] = [statement]
        if isinstance(statement, If):
            parts = [branch.test for branch in statement.branches]
        elif isinstance(statement, Generation):
            parts = []
        elif isinstance(statement, Set):
            parts = [statement.value]
        elif isinstance(statement, Macro):
            continue
        if any(isinstance(node, Name) and node.name == name for node in inside(*parts)):
            return True
        if _sets(statement, name):
            return False
    return False


RULE = Rule(
    code="SY006",
    name="set-lost-after-loop",
    severity="warning",
    summary="A name is set inside a loop and read behind it, where it has its old value.",
    suggestion="gather in an attribute of a namespace",
    check=check,
    triggers=(
        "{% for m in messages %}{% set text = '' %}{% for word in m.content.split(' ') %}{% set t"
        "ext = text + word + ' ' %}{% endfor %}<|{{ m.role }}|>{{ text }}<|end|>\n{% endfor %}"
    ),
    repaired=(
        "{% for m in messages %}{% set ns = namespace(text='') %}{% for word in m.content.split('"
        " ') %}{% set ns.text = ns.text + word + ' ' %}{% endfor %}<|{{ m.role }}|>{{ ns.text }}<"
        "|end|>\n{% endfor %}"
    ),
    healthy=(
        "{% for m in messages %}{% set text = m.content %}{% for part in [1] %}{% set text = 'x' "
        "%}{{ text | length }}{% endfor %}<|{{ m.role }}|>{{ text }}<|end|>\n{% endfor %}"
    ),
    documentation=__doc__,
)
