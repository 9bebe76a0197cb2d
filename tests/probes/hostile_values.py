"""Values of our own types with a hostile string in every place for one, also in fields that are added later."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

HOSTILE = [
    "\x1b[2J\x1b]0;title\x07\x9b31m\x7f\x00",
    "\u202eright to left\u2066\u2069\u200b\u200d\ufeff\u061c",
    "\n::error file=x::forged\r\n::set-output name=a::b\r\u2028::stop-commands::t\u2029\x85\x0b\x0c",
    "::error::first thing of the line",
    " ##[add-mask]x ##[error]y ##vso[task.setvariable variable=a]b",
    "`a` ``b`` ``` | x | <b onclick=x>&lt;</b> [l](javascript:x) ![i](http://x) <http://x> http://x @all #1 \\",
    "```\n# title\n| a | b |\n|---|---|\n***\n<script>alert(1)</script>",
    *("=1+1", "@SUM(A1)", "-2+3", "+4", "\t=5", "\r=6", " =7", "\uff1d8", '=HYPERLINK("http://x")', '","=9'),
    "</script><script>x</script><!-- --> ]]> <![CDATA[ &amp; \"'",
    "[x](javascript:alert(1)) {0} [y](0)",
    "\ud800 \udcff \udfff \U000e0041 \ue000 \ufffe",
    "C:\\x %0A%0D%3A,:;%25 a=b,c=d::e",
    "",
    " ",
    "x" * 5_000,
    "word " * 500,
]
"""Each is an attack on one format or on several."""


def filled(kind: Any, text: str, turn: int = 0, **given: Any) -> Any:
    """A value of `kind` in which every string is `text`. `turn` chooses among literals and between null and a value;
    `given` are values of fields by name, wherever they stand."""
    origin, inside = get_origin(kind), get_args(kind)
    if kind is Any or kind is str or kind is object:
        return text
    if kind in (int, float):
        return kind(turn + 1)
    if kind is bool:
        return turn % 2 == 0
    if kind is bytes:
        return text.encode("utf-8", "surrogatepass")
    if kind is None or kind is types.NoneType:
        return None
    if origin is Literal:
        return inside[turn % len(inside)]
    if origin in (Union, types.UnionType):
        some = [one for one in inside if one is not types.NoneType]
        absent = turn % 3 == 2 and len(some) < len(inside)
        return None if absent else filled(some[turn % len(some)], text, turn, **given)
    if origin is Callable:
        return lambda *_: None
    if origin is tuple and inside[-1:] != (...,):
        return tuple(filled(one, text, turn, **given) for one in inside)
    if origin in (list, tuple, set, frozenset, Sequence, Collection, Iterable, Iterator):
        made = [filled(inside[0], text, turn + n, **given) for n in range(2)]
        return made if origin in (Sequence, Collection, Iterable, Iterator) else origin(made)
    if origin in (dict, Mapping):
        return {filled(inside[0], text, turn, **given): filled(inside[1], text, turn, **given)}
    return _filled_class(kind, text, turn, given)


def _filled_class(kind: Any, text: str, turn: int, given: dict[str, Any]) -> Any:
    values = {}
    for name, hint in hints(kind).items():
        if name in given:
            values[name] = given[name]
        elif not (dataclasses.is_dataclass(kind) and name not in {field.name for field in dataclasses.fields(kind)}):
            values[name] = filled(hint, text, turn, **given)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind.model_construct(**values)
    if dataclasses.is_dataclass(kind):
        return kind(**values)
    if typing.is_typeddict(kind):
        return values
    raise AssertionError(f"nobody has said how to fill {kind}")


@cache
def hints(kind: Any) -> dict[str, Any]:
    """The types of the fields, also of names that are imported for type checkers alone."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {name: field.annotation for name, field in kind.model_fields.items()}
    found: dict[str, Any] = {}
    for base in reversed(getattr(kind, "__mro__", (kind,))):
        if base.__module__.partition(".")[0] in {"probes", "jinjarun"}:
            found |= typing.get_type_hints(base, namespace(base.__module__))
    return {name: hint for name, hint in found.items() if get_origin(hint) is not typing.ClassVar}


@cache
def namespace(module: str) -> dict[str, Any]:
    """What a module's annotations may name."""
    known = dict(vars(sys.modules[module]))
    for node in ast.walk(ast.parse(inspect.getsource(sys.modules[module]))):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for one in node.body:
                if isinstance(one, ast.ImportFrom) and one.module is not None:
                    imported = importlib.import_module(one.module)
                    known |= {alias.asname or alias.name: getattr(imported, alias.name) for alias in one.names}
    return known


def argument(function: Callable[..., Any]) -> Any:
    """The type of a function's first argument."""
    known = typing.get_type_hints(function, namespace(function.__module__))
    return known[next(iter(inspect.signature(function).parameters))]
