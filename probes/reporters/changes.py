"""What changed between two templates, or since a snapshot was taken, for a terminal of 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.comparison.reports import IMPACTS
from probes.rendering.renders import PATHS
from probes.reporters.escaping import WIDTH, terminal
from probes.reporters.escaping import wrapped as _wrapped
from probes.reporters.fuzzing import request_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from probes.comparison.engines import TemplateComparison
    from probes.comparison.reports import TemplateChange
    from probes.comparison.snapshot import Change, Kept

MOST_PROMPTS = 5
"""Prompts of each impact that are shown; what follows is only named."""
LONGEST = 120
"""Code points of a value that are shown."""


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
    return terminal(lines)


def template_comparison_text(comparison: TemplateComparison) -> str:
    """The worst first: what is broken, what is otherwise, what is better."""
    said = ", ".join(f"{len(comparison.of(impact))} {impact}" for impact in IMPACTS if comparison.of(impact))
    lines = wrapped(f"{comparison.old} and {comparison.new}: {said or 'no difference was found'}", "")
    for impact in IMPACTS:
        changes = comparison.of(impact)
        if not changes:
            continue
        lines += ["", impact]
        prompts = [change for change in changes if change.chapter == "prompts"]
        for change in changes:
            if change.chapter != "prompts":
                lines += _field(change)
        shown = [change for change in prompts if change.made_up is None]
        for change in [*shown[:MOST_PROMPTS], *(change for change in prompts if change.made_up is not None)]:
            lines += _prompt(f"prompt {change.name}", change.paths, change.at, change.old, change.new)
            lines += _made_up(change)
        more = dict.fromkeys(change.name for change in shown[MOST_PROMPTS:])
        if more:
            lines += wrapped(f"and the prompts {', '.join(more)}")
    return terminal(lines)


def _field(change: TemplateChange) -> Iterator[str]:
    sides = [cut(side) for side in (change.old, change.new)]
    yield from wrapped(f"{change.chapter} {change.name}: {sides[0]} became {sides[1]}")
    yield from _made_up(change)


def _made_up(change: TemplateChange) -> Iterator[str]:
    found = change.made_up
    if found is not None:
        yield f"    in {found.count} of {found.of} made-up conversations; the smallest:"
        yield from (f"    {line}" for line in request_json(found.request))


def change_lines(change: Change) -> Iterator[str]:
    """What differs, and both sides."""
    if change.kind == "prompt":
        yield from _prompt(change.name, change.paths, change.at, change.old, change.new)
    else:
        what = "" if change.kind == "made_with" else f"{change.kind} "
        yield from wrapped(f"{what}{change.name}: {cut(change.old)} became {cut(change.new)}")


def _prompt(what: str, paths: Sequence[str], at: int | None, old: str | None, new: str | None) -> Iterator[str]:
    on = "every path" if len(paths) == len(PATHS) else ", ".join(paths)
    place = "" if at is None else f", from character {at}"
    yield from wrapped(f"{what} on {on}{place}")
    yield f"    - {literal(old)}"
    yield f"    + {literal(new)}"


def cut(text: str | None) -> str:
    """A value on a line: one that does not print, or is long, as a literal."""
    if text is None:
        return "nothing"
    shown = text if text and text.isprintable() and text == text.strip() else repr(text)
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}..."


def wrapped(text: str, indent: str = "  ") -> list[str]:
    return _wrapped(text, f"{indent}  ", indent, hyphens=False)


def literal(text: str | None) -> str:
    """A prompt as Python would write it, cut to the line; an error as it is."""
    shown = "nothing" if text is None else text if text.startswith("error: ") else repr(text)
    return shown if len(shown) <= WIDTH - 6 else f"{shown[: WIDTH - 9]}..."
