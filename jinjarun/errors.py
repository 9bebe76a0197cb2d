"""Every error that leaves a public function.

    JinjarunError
    +-- TemplateSyntaxError   the source does not parse in this dialect
    +-- TemplateRaised        the template called raise_exception
    +-- RenderError           undefined value, wrong type, unknown filter, test or method
    +-- LimitExceeded         a limit of `Limits` was reached: not evaluated, never a verdict
    +-- SandboxViolation      the template reached for the host's objects or for the caller's data
    +-- InputError            the caller's data is not plain JSON, or too much of it
    +-- SourceError           there is no usable template where one was looked for
    +-- WorkerError           a worker process ran out of time or memory, or died

All are picklable, all have `to_dict()`, and `status` is the HTTP status that a server would answer with: the class
has a usual one, and a path that knows better gives it with `status=` or `answered_with`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from collections.abc import Iterable

QUOTE_LIMIT = 200
"""Characters of a template's own text that a message may quote."""
REFUSAL_LIMIT = 1000
"""The same of what a template says by raise_exception: its remedy may stand at the end."""


def quote(text: str, limit: int = QUOTE_LIMIT) -> str:
    """Text that a stranger wrote, made safe to print: control characters escaped, cut at `limit` characters."""
    cut = text[:limit]
    safe = cut if cut.isprintable() else "".join(map(_escaped, cut))
    return safe if len(text) <= limit else f"{safe}... ({len(text)} characters)"


def nearest(word: str, known: Iterable[str]) -> str:
    """ "; did you mean X?" for the known name that is most like a word that is none; empty where none is."""
    from difflib import get_close_matches  # noqa: PLC0415  (only an error needs it)

    names = {name.lower(): name for name in known}
    found = get_close_matches(word[:QUOTE_LIMIT].lower(), names, 1, 0.6)
    return f"; did you mean {quote(names[found[0]])}?" if found else ""


def _escaped(char: str) -> str:
    return char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode()


class JinjarunError(Exception):
    """The root. `line` and `column` are 1-based places in the template, None where there is none."""

    status: int = 500
    name: ClassVar[str] = "error"

    def __init__(
        self,
        message: str,
        *,
        line: int | None = None,
        column: int | None = None,
        status: int | None = None,
        **details: Any,
    ) -> None:
        super().__init__(message)
        if status is not None:
            self.status = status
        self.message = message
        self.line = line
        self.column = column
        self.details = details

    def __str__(self) -> str:
        return self.message if self.line is None else f"{self.message} (line {self.line})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.message, (self.line, self.column), self.status, self.details)

    def answered_with(self, status: int, **details: Any) -> Self:
        """The same error as another HTTP status, with more details."""
        merged = {**self.details, **details}
        return type(self)(self.message, line=self.line, column=self.column, status=status, **merged)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON: `type`, `message`, `line`, `column`, `status`, and what the class adds."""
        return {
            "type": type(self).__name__,
            "message": self.message,
            "line": self.line,
            "column": self.column,
            "status": self.status,
            **self.details,
        }


def _restore(
    cls: type[JinjarunError],
    message: str,
    place: tuple[int | None, int | None],
    status: int,
    details: dict[str, Any],
) -> JinjarunError:
    line, column = place
    return cls(message, line=line, column=column, status=status, **details)


class TemplateSyntaxError(JinjarunError):
    """The source does not parse. `details`: `excerpt` (the line with a caret under the place), `hint` (what to do)."""

    status = 400
    name = "syntax error"

    def __str__(self) -> str:
        parts = [super().__str__()]
        parts += [self.details[key] for key in ("excerpt", "hint") if self.details.get(key)]
        return "\n".join(parts)


class TemplateRaised(JinjarunError):
    """The template itself refused the conversation by `raise_exception(message)`."""

    status = 400
    name = "raised"


class RenderError(JinjarunError):
    """The template failed while it ran."""

    status = 500
    name = "render error"


class LimitExceeded(JinjarunError):
    """A limit was reached. `details`: `limit` (a field of `Limits`, or the name of an `Allowance`), `allowed` (its
    value).

    `spent` is the steps that the render had been charged; more than are allowed where the last charge was refused.
    """

    status = 400
    name = "limit exceeded"
    spent: int = 0

    @property
    def limit(self) -> str:
        return str(self.details.get("limit", ""))

    @property
    def allowed(self) -> int:
        return int(self.details.get("allowed", 0))


class SandboxViolation(JinjarunError):
    """The template asked for something that no chat template has reason to touch."""

    status = 400
    name = "sandbox violation"


class InputError(JinjarunError):
    """The caller's data cannot be rendered. `details`: `path`, a place such as `messages[1].content`."""

    status = 400
    name = "input error"


class SourceError(JinjarunError):
    """No template could be read. `details`: `path`, and `place` inside it where there is one."""

    status = 400
    name = "source error"


class WorkerError(JinjarunError):
    """A worker process gave no answer. `details`: `reason`, one of "timeout", "memory", "cpu", "crash", "protocol",
    "start" (no worker could be started), "cancelled" (nobody waits any more), "lost" (an executor is gone, and all that
    it was asked)."""

    status = 503
    name = "worker error"
