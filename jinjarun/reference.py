"""The real Jinja2, sandboxed and configured as transformers 5.24 does for chat templates (utils/chat_template_utils).

It is what the `transformers` dialect must equal: the oracle of the tests and of `compare`. Nothing bounds it: a
template can make it compile or render for ever. Never feed it a stranger's template outside of a worker process.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from datetime import datetime
from typing import TYPE_CHECKING, Any

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from jinjarun.errors import (
    JinjarunError,
    LimitExceeded,
    RenderError,
    SandboxViolation,
    TemplateRaised,
    TemplateSyntaxError,
    quote,
)
from jinjarun.runtime.clock import resolve_now

if TYPE_CHECKING:
    from types import TracebackType

    from jinja2.parser import Parser

_clock: ContextVar[datetime] = ContextVar("clock")


class Reference:
    """One template in the real engine; raises TemplateSyntaxError or RenderError where it does not compile."""

    def __init__(self, source: str) -> None:
        with _converted():
            self._template = environment().from_string(source)

    def render_context(self, context: dict[str, Any], *, now: datetime | float | None = None) -> str:
        """The text for exactly these variables, with the clock at `now` (see `resolve_now`)."""
        token = _clock.set(resolve_now(now).replace(tzinfo=None))
        try:
            with _converted():
                # Filters change lists: `indent` appends to the one that it is given before it fails.
                return self._template.render(deepcopy(context))
        finally:
            _clock.reset(token)


class _Raised(Exception):
    """The template called `raise_exception`."""


class _Generation(Extension):
    """`{% generation %}...{% endgeneration %}`: a scope of its own, written as it stands."""

    tags = {"generation"}  # noqa: RUF012 - declared so by Extension

    def parse(self, parser: Parser) -> nodes.CallBlock:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_write"), [], [], body, lineno=line)

    def _write(self, caller: Any) -> Any:
        return caller()


class _Dict:
    """`dict`, of which only the call and `fromkeys` can be reached."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args, **kwargs)


class _PublicNamespace(Namespace):
    """`namespace`, whose attributes may not begin with an underscore."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        self, *rest = args
        attributes = dict(*rest, **kwargs)
        for name in attributes:
            _check_public(name)
        Namespace.__init__(self, attributes)

    def __setitem__(self, name: Any, value: Any) -> None:
        _check_public(name)
        Namespace.__setitem__(self, name, value)


def _check_public(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"the attribute {name!r} of a namespace begins with an underscore")


def _tojson(
    x: Any, ensure_ascii: Any = False, indent: Any = None, separators: Any = None, sort_keys: Any = False
) -> str:
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: Any) -> Any:
    raise _Raised(str(message))


def _strftime_now(format: str) -> str:
    return _clock.get().strftime(format)


def environment() -> ImmutableSandboxedEnvironment:
    """Jinja2's environment as transformers sets it up; `strftime_now` works only within `render_context`."""
    result = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols])
    result.filters["tojson"] = _tojson
    result.globals |= {
        "dict": _Dict(),
        "namespace": _PublicNamespace,
        "raise_exception": _raise_exception,
        "strftime_now": _strftime_now,
    }
    return result


@contextmanager
def _converted() -> Iterator[None]:
    """Errors of Jinja2 and of Python as errors of our tree, with the template's line."""
    try:
        yield
    except jinja2.TemplateSyntaxError as error:
        message, line = quote(error.message or ""), error.lineno
        if isinstance(error, jinja2.TemplateAssertionError) and message.startswith(("No filter", "No test")):
            raise RenderError(message, line=line) from error
        raise TemplateSyntaxError(message, line=line) from error
    except (RecursionError, MemoryError) as error:
        raise LimitExceeded("the host is too small for this template", limit="depth", allowed=0) from error
    except Exception as error:
        raise _as_ours(error)(quote(_message(error)), line=_line(error.__traceback__)) from error


def _as_ours(error: Exception) -> type[JinjarunError]:
    if isinstance(error, _Raised):
        return TemplateRaised
    return SandboxViolation if isinstance(error, SecurityError) else RenderError


def _message(error: Exception) -> str:
    if isinstance(error, (_Raised, jinja2.TemplateError)):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _line(traceback: TracebackType | None) -> int | None:
    """The innermost line of the template in a traceback (Jinja2 rewrites its frames to the template's lines)."""
    line = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == "<template>":
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line
