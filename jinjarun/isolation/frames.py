"""How calls and answers cross a pipe: a header, then JSON. Functions cross by name."""

from __future__ import annotations

import importlib
import json
import os
import struct
from typing import Any

from jinjarun.errors import InputError

HEADER = struct.Struct(">II")
"""Before each frame: bytes of the JSON that follows, number of the call. An answer repeats its call's number."""

CHUNK = 1 << 16


def find(name: str) -> Any:
    """What `module:qualified.name` names."""
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def shown(function: str) -> str:
    return function.replace(":", ".")


def encode(value: Any, what: str) -> bytes:
    """ASCII. Raises InputError for what is not plain JSON."""
    try:
        return json.dumps(value).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{what} cannot cross to another process: {error}; pass plain JSON", path=what) from None


def read(descriptor: int, size: int) -> bytes:
    """Exactly `size` bytes; none if the other end is closed."""
    data = bytearray()
    while len(data) < size:
        chunk = os.read(descriptor, min(size - len(data), CHUNK))
        if not chunk:
            return b""
        data += chunk
    return bytes(data)


def write(descriptor: int, number: int, data: bytes) -> None:
    rest = memoryview(HEADER.pack(len(data), number) + data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
