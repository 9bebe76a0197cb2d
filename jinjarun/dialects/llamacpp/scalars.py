"""What llama.cpp offers on integers, floats, booleans, none and undefined, as filters and as methods alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinjarun.dialects.llamacpp.arguments import types
from jinjarun.dialects.llamacpp.shared import default_value, to_json_filter
from jinjarun.dialects.llamacpp.values import UNDEFINED, truncate, wrap

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinjarun.runtime.run import Run


def _abs(_run: Run, *args: Any) -> Any:
    """A negative zero and a NaN keep their sign: neither is below zero."""
    types(args, (int, float))
    value = args[0]
    return (wrap(-value) if type(value) is int else -value) if value < 0 else value


def _int(_run: Run, *args: Any) -> int:
    types(args, (bool, int, float))
    return truncate(args[0]) if type(args[0]) is float else int(args[0])


def _float(_run: Run, *args: Any) -> float:
    types(args, (bool, int, float))
    return float(args[0])


def _bool_text(_run: Run, *args: Any) -> str:
    types(args, bool)
    return str(args[0])


def _none_text(_run: Run, *_: Any) -> str:
    return "None"


def _always(value: Any) -> Callable[..., Any]:
    def builtin(_run: Run, *_: Any) -> Any:
        return value

    return builtin


def _empty_list(_run: Run, *_: Any) -> list[Any]:
    return []


_NUMBERS: dict[str, Callable[..., Any]] = {
    "abs": _abs,
    "default": default_value,
    "float": _float,
    "int": _int,
    "safe": to_json_filter,
    "string": to_json_filter,
    "tojson": to_json_filter,
}
INTEGER = _NUMBERS
FLOAT = _NUMBERS

BOOLEAN: dict[str, Callable[..., Any]] = {
    "default": default_value,
    "float": _float,
    "int": _int,
    "safe": _bool_text,
    "string": _bool_text,
    "tojson": to_json_filter,
}

_NOTHING_TO_LIST = ("items", "map", "reject", "rejectattr", "select", "selectattr", "unique")

NONE: dict[str, Callable[..., Any]] = {
    "default": default_value,
    "safe": _none_text,
    "string": _none_text,
    "tojson": to_json_filter,
    **dict.fromkeys(_NOTHING_TO_LIST, _empty_list),
}

_NOTHING_TO_TEXT = (
    "capitalize",
    "join",
    "lower",
    "replace",
    "safe",
    "string",
    "strip",
    "title",
    "truncate",
    "upper",
)

UNDEFINED_VALUE: dict[str, Callable[..., Any]] = {
    "default": default_value,
    **dict.fromkeys(("first", "last", "max", "min"), _always(UNDEFINED)),
    **dict.fromkeys(("length", "sum", "wordcount"), _always(0)),
    **dict.fromkeys((*_NOTHING_TO_LIST, "list", "reverse", "sort"), _empty_list),
    **dict.fromkeys(_NOTHING_TO_TEXT, _always("")),
}
