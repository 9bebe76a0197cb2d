"""The variables that every template has: `(run, ...)` functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinjarun.dialects.transformers.iteration import keys_from, make_dict
from jinjarun.dialects.transformers.measure import to_text
from jinjarun.dialects.transformers.values import Cycler, Function, Joiner, Namespace
from jinjarun.errors import REFUSAL_LIMIT, RenderError, TemplateRaised, quote
from jinjarun.runtime.clock import strftime

if TYPE_CHECKING:
    from jinjarun.runtime.run import Run


_ATTRIBUTE_STEPS = 2
"""Steps for an attribute of a namespace, whose name is looked at."""


def raise_exception(run: Run, /, message: Any) -> Any:
    raise TemplateRaised(quote(to_text(run, message), REFUSAL_LIMIT))


def strftime_now(run: Run, /, format: Any) -> str:
    """The clock of this render, which transformers reads without a time zone."""
    return strftime(run, format, run.now.replace(tzinfo=None), microseconds=True)


def range_(run: Run, /, *args: Any) -> range:
    numbers = range(*args)
    try:
        size = len(numbers)
    except OverflowError:
        raise run.exceeded("items") from None
    if size > run.limits.items:
        raise run.exceeded("items")
    return numbers


def namespace(run: Run, /, *args: Any, **kwargs: Any) -> Namespace:
    run.charge(_ATTRIBUTE_STEPS * len(kwargs))
    return Namespace(make_dict(run, *args, **kwargs))


def cycler(run: Run, /, *items: Any) -> Cycler:
    if not items:
        raise RuntimeError("at least one item has to be provided")
    run.items(len(items))
    return Cycler(items)


def joiner(_run: Run, /, sep: Any = ", ") -> Joiner:
    return Joiner(sep)


def lipsum(_run: Run, /, *_args: Any, **_kwargs: Any) -> Any:
    raise RenderError("lipsum writes random text, which no answer could repeat")


GLOBALS: dict[str, Any] = {
    "cycler": Function("<class 'jinja2.utils.Cycler'>", cycler),
    "dict": Function("<TemplateDict object>", make_dict, {"fromkeys": keys_from}),
    "joiner": Function("<class 'jinja2.utils.Joiner'>", joiner),
    "lipsum": Function("<function generate_lorem_ipsum>", lipsum),
    "namespace": Function("<class 'TemplateNamespace'>", namespace),
    "raise_exception": Function("<function raise_exception>", raise_exception),
    "range": Function("<function safe_range>", range_),
    "strftime_now": Function("<function strftime_now>", strftime_now),
}
"""The values hold no state: one table serves every render."""
