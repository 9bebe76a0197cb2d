"""What a file or a record turned out to hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jinjarun.errors import quote

if TYPE_CHECKING:
    from jinjarun.errors import JinjarunError

LINE_BYTES = 8_000_000
"""The longest line of a list or of JSON Lines: the largest known tokenizer_config.json has 1.2 MB."""


@dataclass(frozen=True, slots=True)
class Found:
    """One template, or a file without one (`text` is None), or a file that cannot be read (`error` says why)."""

    id: str
    kind: str
    key: str | None = None
    name: str | None = None
    form: str | None = None
    text: str | None = None
    error: dict[str, str] | None = None


def unreadable(id: str, kind: str, error: JinjarunError) -> Found:
    return Found(printable(id), kind, error={"type": type(error).__name__, "message": quote(error.message)})


def printable(path: str) -> str:
    """A path as text that is UTF-8, whatever bytes its name has."""
    return path if path.isascii() else path.encode("utf-8", "backslashreplace").decode()
