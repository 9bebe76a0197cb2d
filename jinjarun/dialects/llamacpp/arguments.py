"""How llama.cpp's builtins read their arguments: one list, keyword arguments among the others (struct func_args)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinjarun.dialects.llamacpp.values import UNDEFINED, Keyword, Undefined, type_name
from jinjarun.errors import RenderError

if TYPE_CHECKING:
    from collections.abc import Sequence

Args = tuple[Any, ...]


def keyword(args: Args, name: str, default: Any = UNDEFINED) -> Any:
    for arg in args:
        if type(arg) is Keyword and arg.name == name:
            return arg.value
    return default


def keyword_or_position(args: Args, name: str, position: int) -> Any:
    value = keyword(args, name)
    if isinstance(value, Undefined) and position < len(args) and type(args[position]) is not Keyword:
        return args[position]
    return value


def position(args: Args, at: int) -> Any:
    if at < len(args):
        return args[at]
    raise RenderError(f"expected at least {at + 1} arguments, got {len(args)}")


def count(args: Args, least: int, most: int = 999) -> None:
    if not least <= len(args) <= most:
        raise RenderError(f"expected between {least} and {most} arguments, got {len(args)}")


def types(args: Args, *required: Sequence[type] | type) -> None:
    """The first arguments are there and of these types; a Boolean is no Integer, a Tuple is an Array."""
    count(args, len(required))
    for arg, kind in zip(args, required, strict=False):
        kinds = (kind,) if isinstance(kind, type) else tuple(kind)
        if not isinstance(arg, kinds) or (type(arg) is bool and bool not in kinds):
            raise RenderError(f"expected another type of argument, got {type_name(arg)}")


ARRAY = (list, tuple)
