"""Methods of int (and bool) and float."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from jinjarun.errors import RenderError

if TYPE_CHECKING:
    from jinjarun.runtime.run import Run

Method = Callable[..., Any]


def _plain(kind: type, name: str) -> Method:
    """A method that takes no arguments and answers with something small."""
    function = getattr(kind, name)

    def method(_run: Run, receiver: Any, /) -> Any:
        return function(receiver)

    return method


def fromhex(run: Run, _receiver: float, /, text: Any) -> float:
    run.charge(len(text) >> 3 if isinstance(text, str) else 0)
    return float.fromhex(text)


def no_bytes(_run: Run, _receiver: int, /, *_: Any, **__: Any) -> NoReturn:
    raise RenderError("bytes are not offered: no chat template needs them")


INT: dict[str, Method] = {
    **{name: _plain(int, name) for name in ("as_integer_ratio", "bit_count", "bit_length", "conjugate")},
    "from_bytes": no_bytes,
    "to_bytes": no_bytes,
}
FLOAT: dict[str, Method] = {
    **{name: _plain(float, name) for name in ("as_integer_ratio", "conjugate", "hex", "is_integer")},
    "fromhex": fromhex,
}
