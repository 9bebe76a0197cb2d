"""Escapes in strings: Python's, as Jinja2 reads them, and the few of llama.cpp."""

from __future__ import annotations

import re
import unicodedata

from jinjarun.errors import quote

_ESCAPE = re.compile(
    r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}]+\}|[0-7]{1,3}|.)",
    re.S,
)
_C_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "\\": "\\", "'": "'", '"': '"'}


def python_unescape(text: str) -> str:
    """Raises ValueError for an incomplete escape or an unknown character; any other unknown escape stays as it is."""
    return _ESCAPE.sub(_python_escape, text)


def c_unescape(text: str) -> str:
    """Raises ValueError for an unknown escape."""
    return _ESCAPE.sub(_c_escape, text)


def _c_escape(match: re.Match[str]) -> str:
    code = match[1]
    try:
        return _C_ESCAPES[code]
    except KeyError:
        raise ValueError(f"unknown escape `\\{quote(code[0])}`") from None


def _python_escape(match: re.Match[str]) -> str:
    code = match[1]
    first = code[0]
    if first in "xuUN":
        if len(code) == 1:
            raise ValueError(f"incomplete escape `\\{first}`")
        try:
            return _character(unicodedata.lookup(code[2:-1])) if first == "N" else chr(int(code[1:], 16))
        except (KeyError, ValueError):
            raise ValueError(f"unknown character `\\{quote(code)}`") from None
    if first in "01234567":
        return chr(int(code, 8))
    if first in _C_ESCAPES:
        return _C_ESCAPES[first]
    if first == "a":
        return "\a"
    if first == "\n":
        return ""
    # Jinja2 encodes a string to ASCII before it resolves escapes, so that `\é` becomes `\xe9` with its backslash.
    return "\\" + first if first.isascii() else first.encode("ascii", "backslashreplace").decode()


def _character(text: str) -> str:
    if len(text) != 1:
        raise KeyError(text)
    return text
