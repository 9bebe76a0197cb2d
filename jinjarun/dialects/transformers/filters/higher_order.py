"""Filters that apply other filters and tests, found by name when the first item is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from jinja2.exceptions import FilterArgumentError, TemplateRuntimeError

from jinjarun.dialects.transformers.lazy import Lazy
from jinjarun.dialects.transformers.lookup import getter
from jinjarun.dialects.transformers.measure import measure
from jinjarun.dialects.transformers.undefined import cut

if TYPE_CHECKING:
    from jinjarun.runtime.run import Run

Builtin = Callable[..., Any]

_ITEM_STEPS = 2
"""An item visited and a builtin called."""


def _found(table: Mapping[str, Builtin], name: Any, kind: str) -> Builtin:
    """The builtin of that name; one that fails with the first item where there is none."""
    if isinstance(name, str) and name in table:
        return table[name]

    def missing(*_: Any, **__: Any) -> NoReturn:
        hash(name)  # what cannot be looked up fails as such
        raise TemplateRuntimeError(f"No {kind} named {cut(str(name))!r}.")

    return missing


def mapping(filters: Mapping[str, Builtin]) -> Builtin:
    """The filter `map` over the table `filters`."""

    def map_(run: Run, value: Any, /, *args: Any, **kwargs: Any) -> Lazy:
        return Lazy(run, "<generator object sync_do_map>", items(run, value, args, kwargs), value)

    def items(run: Run, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Any]:
        if not value:
            return
        function = prepared(run, args, kwargs)
        for item in value:
            run.charge(_ITEM_STEPS)
            yield function(item)

    def prepared(run: Run, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[Any], Any]:
        if not args and "attribute" in kwargs:
            unknown = kwargs.keys() - {"attribute", "default"}
            if unknown:
                raise FilterArgumentError(f"Unexpected keyword argument {min(unknown)!r}")
            return getter(run, kwargs["attribute"], default=kwargs.get("default"))
        if not args:
            raise FilterArgumentError("map requires a filter argument")
        name, *rest = args
        measure(run, name)
        function = _found(filters, name, "filter")
        return lambda item: function(run, item, *rest, **kwargs)

    return map_


def selecting(tests: Mapping[str, Builtin], *, keep: bool, by_attribute: bool) -> Builtin:
    """`select`, `reject`, `selectattr` or `rejectattr` over the table `tests`."""

    def select(run: Run, value: Any, /, *args: Any, **kwargs: Any) -> Lazy:
        return Lazy(run, "<generator object select_or_reject>", items(run, value, args, kwargs), value)

    def items(run: Run, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Any]:
        if not value:
            return
        get = None
        if by_attribute:
            if not args:
                raise FilterArgumentError("Missing parameter for attribute name")
            get, args = getter(run, args[0]), args[1:]
        accepts = test(run, args, kwargs)
        for item in value:
            run.charge(_ITEM_STEPS)
            if bool(accepts(item if get is None else get(item))) is keep:
                yield item

    def test(run: Run, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[Any], Any]:
        if not args:
            return bool
        name, *rest = args
        measure(run, name)
        function = _found(tests, name, "test")
        return lambda item: function(run, item, *rest, **kwargs)

    return select
