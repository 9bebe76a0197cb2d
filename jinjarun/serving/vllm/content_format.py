"""Which form of message content vLLM 0.33.0 finds in a template: "openai" is a list of parts, "string" one text.

Facts: renderers/hf.py, _detect_content_format. The detection follows names, not values: `messages` and what is set to
it, the targets of loops over these, and then a loop over the `content` of such a target.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from jinjarun.serving.cache import TEMPLATES_CACHED
from jinjarun.serving.chat_completions.contents import ContentFormat, reads_key, tree_of, variable_of
from jinjarun.syntax.nodes import Call, Expr, For, GetAttr, Macro, Name, Set
from jinjarun.syntax.search import find_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jinjarun.limits import Limits
    from jinjarun.syntax.nodes import Node


class _NoName(Exception):
    """The detection met a target that is no plain name, and gives up."""


@lru_cache(maxsize=TEMPLATES_CACHED)
def detect_content_format(source: str, limits: Limits) -> ContentFormat:
    """ "string" also where the template does not load. Raises LimitExceeded."""
    tree = tree_of(source, limits)
    if tree is None:
        return "string"
    try:
        return "openai" if _loops_over_content(tree) else "string"
    except _NoName:
        return "string"


def _loops_over_content(tree: Node) -> bool:
    message_names = _message_names(tree)
    for loop in find_all(tree, For):
        if reads_key(loop.iterable, message_names, "content"):
            _plain_name(loop.target)
            return True
    in_macros: set[int] = set()
    for macro in find_all(tree, Macro):
        loops = list(find_all(macro.body, For))
        in_macros.update(map(id, loops))
        given = _parameters_given_content(tree, macro, message_names)
        if any(variable_of(loop.iterable) in given for loop in loops):
            return True
    outside = (loop for loop in find_all(tree, For) if id(loop) not in in_macros)
    return any(isinstance(loop.iterable, Name) and loop.iterable.name == "content" for loop in outside)


def _message_names(tree: Node) -> set[str]:
    """Targets of the loops over what holds messages."""
    lists = _list_names(tree)
    return {_plain_name(loop.target) for loop in find_all(tree, For) if variable_of(loop.iterable) in lists}


def _list_names(tree: Node) -> set[str]:
    """Names that hold messages: `messages`, what is set to such a name, attributes of namespaces among them."""
    aliases = list(_aliases(tree))
    known, waiting = {"messages"}, ["messages"]
    while waiting:
        name = waiting.pop()
        for target, value in aliases:
            if variable_of(value) == name:
                alias = _assigned(target) if isinstance(target, Expr) else target
                if alias not in known:
                    known.add(alias)
                    waiting.append(alias)
    return known


def _aliases(tree: Node) -> Iterator[tuple[Expr | str, Expr]]:
    """What is assigned: a target and its value, the arguments of `namespace` as attributes."""
    for assignment in find_all(tree, Set):
        yield assignment.target, assignment.value
        made = assignment.value
        if isinstance(assignment.target, Name) and isinstance(made, Call) and variable_of(made.callee) == "namespace":
            for argument in made.arguments:
                if argument.kind == "keyword":
                    yield f"{assignment.target.name}.{argument.name}", argument.value


def _assigned(target: Expr) -> str:
    if isinstance(target, GetAttr) and isinstance(target.value, Name):
        return f"{target.value.name}.{target.name}"
    return _plain_name(target)


def _plain_name(target: Expr) -> str:
    if isinstance(target, Name):
        return target.name
    raise _NoName


def _parameters_given_content(tree: Node, macro: Macro, message_names: set[str]) -> set[str]:
    """Parameters of a macro to which some call passes the content of a message."""
    names = [parameter.name for parameter in macro.parameters]
    given: set[str] = set()
    for call in find_all(tree, Call):
        if not isinstance(call.callee, Name) or call.callee.name != macro.name:
            continue
        positional = [argument.value for argument in call.arguments if argument.kind == "positional"]
        passed = [*zip(names, positional, strict=False)]
        passed += [(argument.name, argument.value) for argument in call.arguments if argument.kind == "keyword"]
        given.update(name for name, value in passed if reads_key(value, message_names, "content"))
    return given
