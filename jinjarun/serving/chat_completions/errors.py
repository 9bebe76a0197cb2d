"""How a server says no: its own text and HTTP status, and in our details why that is and what to send instead.

Details of an error: `stage` is "validation" where the server refuses the body before it looks at the template,
"template" where the template fails, "other" between the two; `reason` is the name of a row of the server's table of
refusals where one fits, `why` its sentence, `hint` what to send instead. Where a template fails, `server_text` is what
the server answers, as far as it is known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from jinjarun.errors import InputError, JinjarunError, LimitExceeded, RenderError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import ValidationError

Stage = Literal["validation", "other", "template"]

_HELP_LINE = re.compile(r"\n +For further information visit [^\n]*")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a server refuses a request, what to send instead, and the file of the server that says so."""

    why: str
    hint: str
    source: str


def refused(
    text: str,
    path: str,
    stage: Stage,
    reason: str | None = None,
    refusals: Mapping[str, Refusal] | None = None,
    *,
    status: int = 400,
) -> InputError:
    """The server's refusal of a body: `text` is what it answers, `reason` a row of `refusals`."""
    details: dict[str, Any] = {"path": path, "stage": stage}
    if reason is not None and refusals is not None:
        row = refusals[reason]
        details |= {"reason": reason, "why": row.why, "hint": row.hint, "source": row.source}
    return InputError(text, status=status, **details)


def place_of(loc: Sequence[str | int], known: frozenset[str]) -> str:
    """pydantic's `loc` as a path into the body: the names of types in it are left out, `known` are the body's keys."""
    path = ""
    for step in loc:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step in known:
            path += f".{step}" if path else step
    return path


def check_size(body: Any) -> None:
    """Raises LimitExceeded for a body with more list items than a server's model is asked about: for each that fits no
    type pydantic makes an error for every type."""
    waiting, left = [body], MOST_ITEMS
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            left -= len(value)
            waiting.extend(value)
        if left < 0:
            message = f"limit exceeded: items (allowed {MOST_ITEMS:,} in the lists of a request)"
            raise LimitExceeded(message, limit="items", allowed=MOST_ITEMS)


MOST_ITEMS = 20_000
MOST_LINES = 100
"""Of a model's errors, so many are quoted; the server quotes them all."""
_MOST_SHOWN = 2_000


def shown_input(value: Any) -> Any:
    """The value that an error quotes, or what it is where it is large."""
    waiting, size = [value], 0
    while waiting and size <= _MOST_SHOWN:
        one = waiting.pop()
        size += len(one) if isinstance(one, str) else 8
        if isinstance(one, dict):
            waiting.extend(one.values())
            size += sum(map(len, one))
        elif isinstance(one, list):
            waiting.extend(one)
    if size <= _MOST_SHOWN:
        return value
    return value[:_MOST_SHOWN] if isinstance(value, str) else f"<{type(value).__name__} of {len(value)} items>"


def python_text(error: ValidationError) -> str:
    """What `str` gives of a pydantic error, without the addresses of pydantic's pages."""
    return _HELP_LINE.sub("", str(error))


def count_of(errors: Sequence[Any]) -> str:
    return f"{len(errors)} validation error{'' if len(errors) == 1 else 's'}"


def engine_text(error: JinjarunError) -> str:
    """What Jinja2, Python or transformers say where we fail, as far as it is known."""
    if "engine_text" in error.details:
        return str(error.details["engine_text"])
    if error.details.get("limit") == "depth":
        return "maximum recursion depth exceeded"
    kind = error.details.get("kind")
    text = error.message.removeprefix(f"{kind}: ")
    for ours, theirs in WORDINGS:
        text = ours.sub(theirs, text)
    return text


WORDINGS = (
    (re.compile(r"^no (filter|test) named ('.*') in transformers$"), r"No \1 named \2 found."),
    (re.compile("^Object of type Lazy "), "Object of type generator "),
)
"""Our wording -> Jinja2's."""


def is_verdict(error: JinjarunError) -> bool:
    """Whether the server fails, too: of our limits only the one on depth stands for a limit of Python's."""
    return not isinstance(error, LimitExceeded) or error.limit == "depth"


def python_error(error: JinjarunError) -> str | None:
    """The name of the Python exception with which the engine fails; None for an error of Jinja2's own."""
    if isinstance(error, LimitExceeded):
        return "RecursionError"
    kind = error.details.get("kind")
    return kind if isinstance(error, RenderError) and isinstance(kind, str) and kind not in JINJA_ERRORS else None


JINJA_ERRORS = frozenset({"UndefinedError", "SecurityError", "TemplateRuntimeError", "FilterArgumentError"})
"""Exceptions of Jinja2 that are TemplateErrors."""


def failed(error: JinjarunError, status: int, text: str) -> JinjarunError:
    """A failure of the template as the server answers it."""
    return error.answered_with(status, stage="template", server_text=text)
