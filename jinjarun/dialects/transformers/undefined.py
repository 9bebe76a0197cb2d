"""What stands for a value that is not there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from jinjarun.errors import QUOTE_LIMIT, JinjarunError, RenderError

_SCALARS = frozenset({int, float, bool, type(None)})


class Undefined:
    """Prints as nothing, is false and empty; all else fails with the reason why it is not there.

    It keeps text that no later change of the template's values can reach: of what was asked only the name of its type,
    of a key only what is short and cannot change.
    """

    __slots__ = ("error", "key", "kind", "reason")

    def __init__(
        self,
        reason: str = "",
        name: Any = "",
        kind: type | None = None,
        error: type[JinjarunError] = RenderError,
    ) -> None:
        """`reason`; or that the variable `name` is not there; or that a value of type `kind` has nothing under it."""
        self.reason = reason
        self.key = cut(name) if type(name) is str else name if type(name) in _SCALARS else type(name)
        self.kind = kind
        self.error = error

    def fail(self, *_: Any, **__: Any) -> NoReturn:
        message = self.reason or self._missing()
        raise RenderError(message, kind="UndefinedError") if self.error is RenderError else self.error(message)

    def _missing(self) -> str:
        if self.kind is None:
            return f"{self.key!r} is undefined"
        owner = "None" if self.kind is type(None) else f"{self.kind.__name__} object"
        if isinstance(self.key, str):
            return f"{owner!r} has no attribute {self.key!r}"
        key = f"that is a {self.key.__name__}" if isinstance(self.key, type) else cut(repr(self.key))
        return f"{owner} has no element {key}"

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = fail
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = fail
    __mod__ = __rmod__ = __pow__ = __rpow__ = __pos__ = __neg__ = fail
    __call__ = __getitem__ = __int__ = __float__ = fail
    __lt__ = __le__ = __gt__ = __ge__ = fail

    def __eq__(self, other: object) -> bool:
        return type(other) is Undefined

    def __hash__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return False

    def __len__(self) -> int:
        return 0

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __str__(self) -> str:
        return ""

    def __repr__(self) -> str:
        return "Undefined"


def cut(text: str) -> str:
    """As much of a template's own text as a message may quote."""
    return text if len(text) <= QUOTE_LIMIT else f"{text[:QUOTE_LIMIT]}..."
