"""What `value.name` and `value[key]` give: Jinja2's sandboxed lookup over an allow-list."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from jinja2.exceptions import TemplateRuntimeError

from jinjarun.dialects.transformers.formatting import Lookup, str_format
from jinjarun.dialects.transformers.loop import Loop
from jinjarun.dialects.transformers.markup import Markup, alike
from jinjarun.dialects.transformers.measure import check_size, pay_for_key
from jinjarun.dialects.transformers.methods import METHODS, MUTATORS
from jinjarun.dialects.transformers.undefined import Undefined, cut
from jinjarun.dialects.transformers.values import (
    Blocks,
    BoundMethod,
    Cycler,
    Function,
    GroupTuple,
    Joiner,
    Namespace,
    check_public,
)
from jinjarun.errors import SandboxViolation
from jinjarun.limits import utf8_size
from jinjarun.runtime.macro import Macro
from jinjarun.runtime.text import Text

if TYPE_CHECKING:
    from jinjarun.runtime.run import Run

_PATH_STEPS, _PART_STEPS = 8, 4
"""Steps for each of several paths of `attribute=`, and for each of its parts."""

_OF_THE_HOST = {kind: frozenset(dir(kind)) for kind in (dict, list, tuple, str, int, float, bool, type(None))}
_OF_THE_HOST[Text] = _OF_THE_HOST[str]
"""All attributes that plain data have in Python. Any other name reaches nothing but keys."""

MISSING: Any = object()
"""No such attribute."""


def _fields(names: str) -> dict[str, Callable[[Any], Any]]:
    return {name: attrgetter(name) for name in names.split()}


DATA: dict[type, dict[str, Callable[[Any], Any]]] = {
    int: _fields("denominator imag numerator real"),
    float: _fields("imag real"),
    range: _fields("start step stop"),
    GroupTuple: _fields("grouper list"),
    Loop: _fields("depth depth0 first index index0 last length nextitem previtem revindex revindex0"),
    Cycler: _fields("current items pos"),
    Joiner: _fields("sep used"),
    Macro: {
        "name": attrgetter("name"),
        "arguments": attrgetter("parameters"),
        "caller": lambda macro: "caller" in macro.special,
        "catch_kwargs": lambda macro: "kwargs" in macro.special,
        "catch_varargs": lambda macro: "varargs" in macro.special,
        "explicit_caller": lambda macro: "caller" in macro.parameters,
    },
}
"""Attributes that are not methods, by type of the object."""


_MEMBERS: dict[type, dict[str, tuple[str, Any]]] = {}


def _members(kind: type) -> dict[str, tuple[str, Any]]:
    """For each name behind a dot on objects of `kind`: "method", "data" or "mutator", and its function."""
    if kind in _MEMBERS:
        return _MEMBERS[kind]
    members: dict[str, tuple[str, Any]] = {}
    for base in reversed(kind.__mro__):
        members |= {name: ("method", function) for name, function in METHODS.get(base, {}).items()}
        members |= {name: ("data", function) for name, function in DATA.get(base, {}).items()}
        members |= dict.fromkeys(MUTATORS.get(base, ()), ("mutator", None))
        if base is str:
            members |= {"format": ("method", _format), "format_map": ("method", _format_map)}
    _MEMBERS[kind] = members
    return members


def attribute(run: Run, obj: Any, name: str) -> Any:
    """`obj.name` without a look at its items; MISSING where there is none."""
    if name.startswith("_"):
        check_hidden(obj, name)
    member = _members(type(obj)).get(name)
    if member is not None:
        kind, function = member
        if kind == "method":
            return BoundMethod(obj, name, function)
        if kind == "data":
            return function(obj)
        reason = f"access to attribute {cut(name)!r} of {type(obj).__name__!r} object is unsafe."
        return Undefined(reason, error=SandboxViolation)
    if isinstance(obj, Namespace):
        return obj.attrs.get(name, MISSING)
    if isinstance(obj, Blocks):
        return obj.blocks.get(name, MISSING)
    if isinstance(obj, Function):
        member_function = obj.members.get(name)
        return MISSING if member_function is None else Function(f"<bound method {name}>", member_function)
    if isinstance(obj, Undefined):
        obj.fail()
    return MISSING


def check_hidden(obj: Any, name: str) -> None:
    """Refuse a name with an underscore that may be an attribute of the host's object."""
    names = _OF_THE_HOST.get(type(obj))
    if names is None or name in names:
        check_public(name, f"a {type(obj).__name__}")


def getattr_(run: Run, obj: Any, name: str) -> Any:
    """`obj.name`: the attribute, else the item, else undefined."""
    value = attribute(run, obj, name)
    if value is not MISSING:
        return value
    if isinstance(obj, dict):
        run.charge(len(name) >> 6)
        value = obj.get(name, MISSING)
        if value is not MISSING:
            return value
    return Undefined(name=name, kind=type(obj))


def getitem(run: Run, obj: Any, key: Any) -> Any:
    """`obj[key]`: the item, else for a string the attribute, else undefined."""
    if isinstance(obj, dict):
        pay_for_key(run, key, len(obj))
    try:
        if isinstance(key, slice):
            return subscript(run, obj, key)
        return Markup(obj[key]) if type(obj) is Markup else obj[key]
    except (TypeError, LookupError):
        pass
    if isinstance(key, str):
        value = attribute(run, obj, key)
        if value is not MISSING:
            return value
    return Undefined(name=key, kind=type(obj))


def subscript(run: Run, obj: Any, key: slice) -> Any:
    """`obj[start:stop:step]`, which fails where Python's does.

    So Jinja2 compiles a slice; one of constants, which it works out beforehand, goes through `getitem`.
    """
    if isinstance(obj, (str, list, tuple)):
        count = len(range(*key.indices(len(obj))))
        if isinstance(obj, str):
            run.charge(count >> 2)
        else:
            run.items(count)
    elif isinstance(obj, dict):
        raise TypeError("unhashable type: 'slice'")  # newer Pythons would hash all that is in it
    result = alike(obj[key], obj) if isinstance(obj, str) else obj[key]
    if isinstance(result, str):
        check_size(run, utf8_size(result))
    return result


def set_attribute(obj: Any, name: str, value: Any) -> None:
    """`{% set obj.name = value %}`: only on a namespace."""
    if not isinstance(obj, Namespace):
        raise TemplateRuntimeError("cannot assign attribute on non-namespace object")
    obj.set(name, value)


_LOOKUP = Lookup(getattr_, getitem)


def _format(run: Run, receiver: str, /, *args: Any, **kwargs: Any) -> Any:
    return str_format(run, receiver, args, kwargs, _LOOKUP)


def _format_map(run: Run, receiver: str, mapping: Any, /) -> Any:
    return str_format(run, receiver, (), mapping, _LOOKUP)


def getter(
    run: Run, path: Any, *, default: Any = None, finish: Callable[[Any], Any] | None = None
) -> Callable[[Any], Any]:
    """The function behind `attribute="a.b.0"`: looks up each part as an item; None stands for the value itself."""
    parts = _parts(run, path)

    def get(item: Any) -> Any:
        for part in parts:
            run.charge(_PART_STEPS)
            item = getitem(run, item, part)
            if default is not None and isinstance(item, Undefined):
                item = default
        return item if finish is None else finish(item)

    return get


def multi_getter(run: Run, paths: Any, *, finish: Callable[[Any], Any] | None = None) -> Callable[[Any], list[Any]]:
    """The same for `attribute="a.b,c"`: a list of the values of all paths."""
    if isinstance(paths, str):
        run.items(1 + paths.count(","))
        run.charge(_PATH_STEPS * (1 + paths.count(",")))
    getters = [getter(run, path, finish=finish) for path in (paths.split(",") if isinstance(paths, str) else [paths])]

    def get(item: Any) -> list[Any]:
        run.charge(len(getters))
        return [get(item) for get in getters]

    return get


def _parts(run: Run, path: Any) -> list[Any]:
    if path is None:
        return []
    if not isinstance(path, str):
        return [path]
    run.charge((len(path) >> 3) + _PART_STEPS * path.count("."))
    parts: list[Any] = []
    for part in str(path).split("."):
        parts.append(int(part) if part.isdigit() else part)
    return parts
