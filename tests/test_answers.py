"""What a worker that was taken over may send, and what it costs its parent."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jinjarun.isolation.answers import DEPTH, Malformed, parse

if TYPE_CHECKING:
    from collections.abc import Callable

VALUES = 250_000
BYTES = 16_000_000
"""The defaults of `IsolatedExecutor`."""

WORST: dict[str, Callable[[], bytes]] = {
    "lists": lambda: b"[" + b"[]," * (BYTES // 3 - 2) + b"[]]",
    "objects": lambda: b"[" + b'{"":0},' * (BYTES // 7 - 2) + b"0]",
    "objects within": lambda: b"[" + b'{"":0},' * 80_000 + b'"' + b"x" * (BYTES - 600_000) + b'"]',
    "a wide string": lambda: b'["' + b"x" * (BYTES - 20) + b'\\ud83d\\ude00"]',
    "wide strings": lambda: b"[" + (b'"' + b"\\ud83d\\ude00" * 4 + b'",') * 240_000 + b"0]",
    "escaped quotes": lambda: b'["' + b'\\"' * (BYTES // 2 - 1),
    "quotes": lambda: b'"' * BYTES,
    "integers": lambda: b"[" + (b"9" * 60 + b",") * 240_000 + b"0]",
    "keys": lambda: json.dumps({str(number): 0 for number in range(120_000)}).encode(),
    "depth": lambda: b"[" * BYTES,
    "depth within": lambda: b"[" * 200_000 + b"]" * 200_000,
}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc for the memory of this process")
@pytest.mark.parametrize("name", WORST)
def test_it_costs_at_most_150_mb(name: str) -> None:
    data = bytearray(WORST[name]())
    assert len(data) <= BYTES
    before = resident()
    reset_peak()
    try:
        kept: Any = parse(data, VALUES)
    except Malformed:
        kept = None
    assert peak() - before <= 150_000_000
    del kept


def status(field: str) -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field))


def resident() -> int:
    return status("VmRSS")


def peak() -> int:
    return status("VmHWM")


def reset_peak() -> None:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(json_values)
def test_what_was_sent_arrives(value: Any) -> None:
    assert parse(json.dumps(value).encode(), VALUES) == value


@given(st.binary() | st.text('[]{}",:\\0u').map(str.encode))
def test_anything_else_is_malformed(data: bytes) -> None:
    try:
        value = parse(data, VALUES)
    except Malformed:
        return
    assert json.dumps(value) == json.dumps(json.loads(data))


@given(st.lists(st.integers(), max_size=30), st.integers(0, 40))
def test_values_are_counted(values: list[int], most: int) -> None:
    """Each list, object, comma and colon is one."""
    data = json.dumps(values).encode()
    if 1 + max(0, len(values) - 1) <= most:
        assert parse(data, most) == values
    else:
        with pytest.raises(Malformed, match="values"):
            parse(data, most)


def test_what_stands_in_strings_is_not_counted() -> None:
    text = '[{,:"\\' * 100_000
    assert parse(json.dumps([text]).encode(), 10) == [text]


def test_depth() -> None:
    assert parse(b"[" * DEPTH + b"]" * DEPTH, VALUES)
    for opening, closing in ((b"[", b"]"), (b'{"":', b"}")):
        deep = opening * (DEPTH + 1) + b"0" + closing * (DEPTH + 1)
        with pytest.raises(Malformed, match="deeper"):
            parse(deep, VALUES)
