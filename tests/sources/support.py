"""What the tests of sources share: model folders, and what bad input must lead to."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jinjarun.errors import SourceError
from jinjarun.sources import Source, open_source

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

SHARED = Path(__file__).parents[3] / "shared"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the recordings in ../shared are not here")

TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"


def write(folder: Path, files: dict[str, Any]) -> Path:
    """Files by their path in the folder: strings and bytes as they are, anything else as JSON."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8", newline="")
    return folder


def steps(call: Callable[[], object]) -> int:
    """How many lines of Python a call runs, which is the same on every machine."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def refused(target: Any, **options: Any) -> SourceError:
    """The error of a target that cannot be opened, after checking that it says where and why."""
    with pytest.raises(SourceError) as caught:
        open_source(target, **options)
    return checked(caught.value)


def unusable(source: Source, name: str | None = None) -> SourceError:
    """The error of a source that opens and has no such template."""
    with pytest.raises(SourceError) as caught:
        source.template(name)
    return checked(caught.value)


def checked(error: SourceError) -> SourceError:
    details = error.to_dict()
    assert details["path"]
    assert details["reason"] in str(error)
    assert details["place"] is None or details["place"] in str(error)
    assert str(error).isprintable()
    return error
