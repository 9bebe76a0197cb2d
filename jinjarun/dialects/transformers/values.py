"""Values of the language that are not plain data: functions, namespaces, and the helpers that globals make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from jinjarun.errors import SandboxViolation, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jinjarun.runtime.macro import Macro
    from jinjarun.runtime.run import Run


class Invocable:
    """A value that a template can call. Its repr is what Python prints for the original, without the address."""

    __slots__ = ()

    def invoke(self, run: Run, /, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


class Function(Invocable):
    """A global function, called as `function(run, ...)`; `members` are the functions found behind a dot."""

    __slots__ = ("function", "members", "shown")

    def __init__(
        self, shown: str, function: Callable[..., Any], members: Mapping[str, Callable[..., Any]] | None = None
    ) -> None:
        self.shown = shown
        self.function = function
        self.members = members or {}

    def invoke(self, run: Run, /, *args: Any, **kwargs: Any) -> Any:
        return self.function(run, *args, **kwargs)

    def __repr__(self) -> str:
        return self.shown


class BoundMethod(Invocable):
    """`receiver.name` before it is called; `function` takes `(run, receiver, ...)`."""

    __slots__ = ("function", "name", "receiver")

    def __init__(self, receiver: Any, name: str, function: Callable[..., Any]) -> None:
        self.receiver = receiver
        self.name = name
        self.function = function

    def invoke(self, run: Run, /, *args: Any, **kwargs: Any) -> Any:
        return self.function(run, self.receiver, *args, **kwargs)

    def __repr__(self) -> str:
        return f"<built-in method {self.name} of {type(self.receiver).__name__} object>"


class Namespace:
    """`namespace(...)`: attributes that a template may assign. transformers 5.24 refuses names with an underscore."""

    __slots__ = ("attrs",)

    def __init__(self, attrs: dict[Any, Any]) -> None:
        for name in attrs:
            check_public(name, "a namespace")
        self.attrs = attrs

    def set(self, name: str, value: Any) -> None:
        check_public(name, "a namespace")
        self.attrs[name] = value

    def clear(self) -> None:
        self.attrs.clear()

    def __repr__(self) -> str:
        return f"<Namespace {self.attrs!r}>"


class Blocks:
    """`self`: the blocks of the template, which see its outermost variables when they are called."""

    __slots__ = ("blocks",)

    def __init__(self, blocks: Mapping[str, Macro]) -> None:
        self.blocks = blocks

    def __repr__(self) -> str:
        return "<TemplateReference None>"


class Cycler:
    """`cycler(...)`: gives its items in turn."""

    __slots__ = ("items", "pos")

    def __init__(self, items: tuple[Any, ...]) -> None:
        self.items = items
        self.pos = 0

    @property
    def current(self) -> Any:
        return self.items[self.pos]

    def __repr__(self) -> str:
        return "<jinja2.utils.Cycler object>"


class Joiner(Invocable):
    """`joiner(sep)`: empty at its first call, `sep` at every other."""

    __slots__ = ("sep", "used")

    def __init__(self, sep: Any) -> None:
        self.sep = sep
        self.used = False

    def invoke(self, run: Run, /, *args: Any, **kwargs: Any) -> Any:
        if args or kwargs:
            raise TypeError("a joiner takes no arguments")
        text = self.sep if self.used else ""
        self.used = True
        return text

    def __repr__(self) -> str:
        return "<jinja2.utils.Joiner object>"


class GroupTuple(NamedTuple):
    """One group of `groupby`; prints as a plain tuple."""

    grouper: Any
    list: list[Any]

    def __repr__(self) -> str:
        return tuple.__repr__(self)


def check_public(name: Any, kind: str) -> None:
    """Refuse a name that begins with an underscore where it could reach an object of the host."""
    if isinstance(name, str) and name.startswith("_"):
        raise SandboxViolation(f"access to {quote(repr(name))} of {kind} is not allowed")
