"""Filters about numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from jinja2 import filters as jinja
from jinja2.exceptions import FilterArgumentError

from jinjarun.dialects.transformers.operators import mul, pow_, truediv

if TYPE_CHECKING:
    from jinjarun.runtime.run import Run

_INT_DIGITS = 4300
"""Digits beyond which Python refuses to read a decimal int (sys.int_info.default_max_str_digits)."""


def absolute(_run: Run, value: Any, /) -> Any:
    return abs(value)


def int_(run: Run, value: Any, /, default: Any = 0, base: Any = 10) -> Any:
    """`value` as an int, by way of a float if need be; `default` where it is no number."""
    try:
        return run.integer(_int(run, value, base))
    except (TypeError, ValueError):
        try:
            return int(float(value))
        except (TypeError, ValueError, OverflowError):
            return default


def _int(run: Run, value: Any, base: Any) -> int:
    if not isinstance(value, (str, bytes)):
        return int(value)
    run.charge(len(value) >> 4)
    if len(value.strip()) > _INT_DIGITS and base not in (2, 4, 8, 16, 32):
        raise ValueError("too many digits")
    return int(value, base) if isinstance(value, str) else int(value)


def float_(run: Run, value: Any, /, default: Any = 0.0) -> Any:
    if isinstance(value, (str, bytes)):
        run.charge(len(value) >> 4)
    try:
        return float(value)
    except (TypeError, ValueError):
        return default


def round_(run: Run, value: Any, /, precision: Any = 0, method: Any = "common") -> Any:
    if method not in ("common", "ceil", "floor"):
        raise FilterArgumentError("method must be common, ceil or floor")
    if method == "common":
        if isinstance(value, int) and isinstance(precision, int) and -precision > run.limits.integer_bits:
            return 0
        return round(value, precision)
    scale = pow_(run, 10, precision)
    scaled = mul(run, value, scale)
    return truediv(run, math.ceil(scaled) if method == "ceil" else math.floor(scaled), scale)


def filesizeformat(run: Run, value: Any, /, binary: Any = False) -> str:
    if isinstance(value, (str, bytes)):
        run.charge(len(value) >> 4)
    return jinja.do_filesizeformat(value, binary)
