"""What changed between two templates, or since a snapshot was taken, for a terminal of 80 columns."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from probes.renders import PATHS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from probes.snapshot import Change, Kept

WIDTH = 79


def snapshot_text(kept: Iterable[Kept]) -> str:
    """A line a template, and below it each change."""
    lines: list[str] = []
    for one in kept:
        said = {
            "written": f"written to {one.file}",
            "unchanged": "unchanged",
            "changed": f"differs from {one.file} (--update accepts it)",
            "missing": f"no snapshot: {one.file} is missing (write it without --check)",
        }[one.state]
        lines.append(f"{one.template}: {said}")
        for change in one.changes:
            lines += change_lines(change)
    return "".join(f"{line}\n" for line in lines)


def change_lines(change: Change) -> Iterator[str]:
    """What differs, and both sides."""
    if change.kind != "prompt":
        what = "" if change.kind == "made_with" else f"{change.kind} "
        yield from wrapped(f"{what}{change.name}: {word(change.old)} became {word(change.new)}")
        return
    paths = "every path" if len(change.paths) == len(PATHS) else ", ".join(change.paths)
    place = "" if change.at is None else f", from character {change.at}"
    yield from wrapped(f"{change.name} on {paths}{place}")
    yield f"    - {literal(change.old)}"
    yield f"    + {literal(change.new)}"


def word(text: str | None) -> str:
    return "nothing" if text is None else text or "''"


def wrapped(text: str, indent: str = "  ") -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ", break_long_words=False)


def literal(text: str | None) -> str:
    """A prompt as Python would write it, cut to the line; an error as it is."""
    shown = "nothing" if text is None else text if text.startswith("error: ") else repr(text)
    return shown if len(shown) <= WIDTH - 6 else f"{shown[: WIDTH - 9]}..."
