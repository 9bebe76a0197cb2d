"""llama.cpp's global functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from jinjarun.dialects.llamacpp.arguments import count, types
from jinjarun.dialects.llamacpp.shared import to_json_filter, to_object
from jinjarun.dialects.llamacpp.tests import TESTS
from jinjarun.dialects.llamacpp.values import Function, as_int, to_bytes
from jinjarun.errors import REFUSAL_LIMIT, RenderError, TemplateRaised, quote
from jinjarun.runtime.clock import strftime

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinjarun.runtime.run import Run

STRFTIME_BYTES = 100
"""The engine's buffer; what does not fit fails."""


def _raise_exception(_run: Run, *args: Any) -> NoReturn:
    types(args, str)
    raise TemplateRaised(quote(to_bytes(args[0]).decode("utf-8", "replace"), REFUSAL_LIMIT))


def _strftime_now(run: Run, *args: Any) -> str:
    types(args, str)
    run.charge(len(args[0]) >> 4)
    text = strftime(run, str(args[0]))
    if not 0 < len(text) < STRFTIME_BYTES:
        raise RenderError("strftime_now: failed to format time")
    return text


def _range(run: Run, *args: Any) -> list[int]:
    count(args, 1, 3)
    types(args, int)
    numbers = [as_int(arg) for arg in args]
    indices = range(*numbers)
    run.items((indices[-1] - indices[0]) // indices.step + 1 if indices else 0)
    return list(indices)


GLOBALS: dict[str, Callable[..., Any]] = {
    "dict": to_object,
    "namespace": to_object,
    "raise_exception": _raise_exception,
    "range": _range,
    "strftime_now": _strftime_now,
    "tojson": to_json_filter,
    **{f"test_is_{name}": test for name, test in TESTS.items()},
}

CONSTANTS = {"true": True, "True": True, "false": False, "False": False, "none": None, "None": None}
"""Variables like any other: a template or a caller may set them."""

FUNCTIONS = {name: Function(name, function) for name, function in GLOBALS.items()}
"""Found where no variable has the name."""
