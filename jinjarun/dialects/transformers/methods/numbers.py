"""Methods of int (and bool), float and complex."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinjarun.runtime.run import Run

Method = Callable[..., Any]


def _plain(kind: type, name: str) -> Method:
    """A method that takes no arguments and answers with something small."""
    function = getattr(kind, name)

    def method(_run: Run, receiver: Any, /) -> Any:
        return function(receiver)

    return method


def to_bytes(run: Run, receiver: int, /, length: Any = 1, byteorder: Any = "big", *, signed: Any = False) -> bytes:
    run.string(length if isinstance(length, int) and length > 0 else 0)
    return int.to_bytes(receiver, length, byteorder, signed=signed)


def from_bytes(run: Run, receiver: int, /, data: Any, byteorder: Any = "big", *, signed: Any = False) -> int:
    if isinstance(data, bytes) and len(data) * 8 > run.limits.integer_bits:
        raise run.exceeded("integer_bits")
    return run.integer(type(receiver).from_bytes(data, byteorder, signed=signed))


def fromhex(run: Run, _receiver: float, /, text: Any) -> float:
    run.charge(len(text) >> 4 if isinstance(text, str) else 0)
    return float.fromhex(text)


INT: dict[str, Method] = {
    **{name: _plain(int, name) for name in ("as_integer_ratio", "bit_count", "bit_length", "conjugate")},
    "from_bytes": from_bytes,
    "to_bytes": to_bytes,
}
FLOAT: dict[str, Method] = {
    **{name: _plain(float, name) for name in ("as_integer_ratio", "conjugate", "hex", "is_integer")},
    "fromhex": fromhex,
}
COMPLEX: dict[str, Method] = {"conjugate": _plain(complex, "conjugate")}
