"""What a worker answered, bounded before it is parsed and looked through before it is used.

A worker that was taken over sends what it likes: so many small values that they cost the parent a gigabyte, brackets
that go deeper than its stack, an error whose details are none. So bytes, values and depth are counted first, in time
linear in the answer, and everything that is no well-formed answer is `Malformed`.
"""

from __future__ import annotations

import json
import re
from itertools import accumulate
from typing import Any

from jinjarun import errors
from jinjarun.errors import JinjarunError

DEPTH = 200
"""Of lists and objects in each other: a report has about 10, and the input of a template at most 100."""

_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\Z)', re.DOTALL)
"""A string, or what is left of one: each byte is looked at once, whatever the answer."""
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_LEVELS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


class Malformed(Exception):
    """Nobody's answer; the message says in which way."""


def parse(data: bytes | bytearray, most_values: int) -> Any:
    """The JSON of an answer, which is ASCII: other characters are escaped. Raises Malformed."""
    if not data.isascii():
        raise Malformed("that is not ASCII")
    bare, end = bytearray(), 0
    for number, string in enumerate(_STRING.finditer(data)):
        if number == most_values:
            raise Malformed(f"of more than {most_values:,} values")
        bare += data[end : string.start()]
        end = string.end()
    bare += data[end:]
    opened = bare.count(b"[") + bare.count(b"{")
    if opened + bare.count(b",") + bare.count(b":") > most_values:
        raise Malformed(f"of more than {most_values:,} values")
    if opened > DEPTH and max(accumulate(map(_LEVELS.__getitem__, bare.translate(None, _NOT_BRACKETS)))) > DEPTH:
        raise Malformed(f"nested deeper than {DEPTH} levels")
    del bare
    try:
        return json.loads(data.decode("ascii"))
    except (ValueError, RecursionError):
        raise Malformed("that is not JSON") from None


_DETAIL_TYPES: dict[str, type | tuple[type, ...]] = {
    "allowed": int,
    "excerpt": (str, type(None)),
    "hint": (str, type(None)),
    "limit": str,
    "path": (str, type(None)),
    "place": (str, type(None)),
    "reason": str,
}
"""Details that the classes of `errors` read. Others are JSON and stay as they come."""


def error_of(fields: dict[str, Any]) -> JinjarunError:
    """The error whose `to_dict` this is. No class is looked up outside `errors`. Raises Malformed."""
    match fields:
        case {
            "type": str(name),
            "message": str(message),
            "line": int() | None as line,
            "column": int() | None as column,
            "status": int(status),
        } if 400 <= status <= 599:
            cls = vars(errors).get(name)
        case _:
            raise Malformed("of an error without its fields")
    if not (isinstance(cls, type) and issubclass(cls, JinjarunError)):
        raise Malformed("of an error that is none of ours")
    details = {key: fields[key] for key in fields.keys() - {"type", "message", "line", "column", "status"}}
    if not all(isinstance(details[key], _DETAIL_TYPES[key]) for key in details.keys() & _DETAIL_TYPES.keys()):
        raise Malformed("of an error with details of other types")
    error = cls(message, line=line, column=column, status=status)
    error.details = details
    return error
