"""Filters about numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from jinja2 import filters as jinja
from jinja2.exceptions import FilterArgumentError

from jinjarun.dialects.transformers.measure import pay_for_digits, pay_for_product
from jinjarun.dialects.transformers.operators import mul, pow_, truediv

if TYPE_CHECKING:
    from jinjarun.runtime.run import Run

_INT_DIGITS = 4300
"""Digits beyond which Python refuses to read a decimal int (sys.int_info.default_max_str_digits)."""
_READ_A_STEP = 8
"""Digits that are read in a step."""
_BITS_A_DIGIT = 3
"""Of a decimal number, at the least."""


def absolute(run: Run, value: Any, /) -> Any:
    if isinstance(value, int):
        pay_for_product(run, value, 1)
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
    if not isinstance(value, str):
        return int(value)
    digits = len(value.strip())
    run.charge(len(value) // _READ_A_STEP)
    if base not in (2, 4, 8, 16, 32):
        if digits > _INT_DIGITS:
            raise ValueError("too many digits")
        run.charge((digits // 20) ** 2 // 16)
    return int(value, base)


def float_(run: Run, value: Any, /, default: Any = 0.0) -> Any:
    if isinstance(value, str):
        run.charge(len(value) // _READ_A_STEP)
    try:
        return float(value)
    except (TypeError, ValueError):
        return default


def round_(run: Run, value: Any, /, precision: Any = 0, method: Any = "common") -> Any:
    if method not in ("common", "ceil", "floor"):
        raise FilterArgumentError("method must be common, ceil or floor")
    if method == "common":
        if isinstance(value, int) and isinstance(precision, int) and precision < 0:
            if -precision > 1 + value.bit_length() // _BITS_A_DIGIT:
                return 0
            pay_for_digits(run, value)
        return round(value, precision)
    scale = pow_(run, 10, precision)
    scaled = mul(run, value, scale)
    return truediv(run, math.ceil(scaled) if method == "ceil" else math.floor(scaled), scale)


def filesizeformat(run: Run, value: Any, /, binary: Any = False) -> str:
    if isinstance(value, str):
        run.charge(len(value) // _READ_A_STEP)
    elif isinstance(value, int):
        pay_for_digits(run, value)
    return jinja.do_filesizeformat(value, binary)
