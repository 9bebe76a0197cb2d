"""A finding for people: what is wrong, where, what it does to a prompt, how to mend it, and what shows more."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from probes.rendering.renders import PATHS
from probes.reporters.document import Paragraph, Part, say
from probes.reporters.escaping import visible

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from probes.report import Evidence, Finding

PATH_NAMES = {
    "transformers:raw": "bare transformers",
    "llama.cpp:raw": "bare llama.cpp",
    "llama.cpp:llama-server": "llama-server",
    "transformers:apply_chat_template": "transformers",
    "vllm:chat-completions": "vLLM",
    "sglang:chat-completions": "SGLang",
}
"""Paths as people call them; JSON has the ids. A bare path renders the template with the request as it is."""

_PATH = re.compile("|".join(map(re.escape, PATH_NAMES)))
_BECAME = re.compile(r"(.*?) became (.*)")
_NOT_WRITTEN = "not written: "

LONGEST_COMMAND = 200
"""Characters of a command that is shown; a longer one holds a whole request, and stands in the JSON."""


def for_people(text: str) -> str:
    """The same with names for the ids of paths."""
    return _PATH.sub(lambda found: PATH_NAMES[found[0]], text)


def on_paths(engines: Sequence[str], every: Collection[str] = PATHS) -> str:
    """The paths in words."""
    if set(engines) >= set(every) and len(engines) > 1:
        return "on all paths"
    return f"on {', '.join(PATH_NAMES.get(path, path) for path in engines)}"


def finding_head(found: Finding) -> tuple[Part, str, Part]:
    """Severity and code, then the message."""
    code = Part(f"{found.severity} {found.code}", found.severity)
    return code, " ", Part(f"{found.name}: {for_people(found.message)}", "head")


def finding_lines(
    found: Finding,
    evidence: Mapping[str, Evidence],
    *,
    name: str,
    target: str,
    text: str,
    every: Collection[str] = PATHS,
) -> Iterator[Paragraph]:
    """A finding with its evidence. `name` is what the evidence calls the template, `target` what the command line
    does, `text` the template, empty where it is not at hand; `every` are the paths that load it."""
    yield say(*finding_head(found), f" ({on_paths(found.engines, every)})", indent="    ", hyphens=False)
    yield from place_lines(target, text, found.line, found.column)
    pieces = [evidence[key] for key in found.evidence if key in evidence]
    yield from _difference(pieces)
    yield say(Part("mend: ", "good"), found.suggestion, first="  ", indent="    ", hyphens=False)
    commands = [f"jinjarun rule {found.code}", *_repeat(pieces, name, target)]
    yield say(Part("more: ", "faint"), Part(" or ".join(commands), "code"), first="  ", indent="    ", hyphens=False)


def place_lines(target: str, text: str, line: int | None, column: int | None) -> Iterator[Paragraph]:
    """`path:line:column`, the line of the template, and a caret below it."""
    if line is None:
        return
    place = ":".join(str(part) for part in (target, line, column) if part is not None)
    yield say(Part("--> ", "faint"), Part(place, "code"), first="  ", cut=True)
    lines = text.split("\n")
    if not 0 < line <= len(lines):
        return
    written = lines[line - 1]
    if not written.strip():
        return
    at = len(written) - len(written.lstrip()) if column is None else min(column - 1, len(written))
    start = max(0, at - 24)
    before, rest = visible(written[start:at].replace("\t", " ")), visible(written[at:].replace("\t", " "))
    before = ("..." if start else "") + before
    gutter = f"  {line} | "
    yield say(before, rest, first=gutter, cut=True)
    if column is not None:
        yield say(" " * len(before), Part("^", "bad"), first=f"{' ' * (len(gutter) - 2)}| ", cut=True)


def _difference(pieces: Sequence[Evidence]) -> Iterator[Paragraph]:
    """What was to be in the prompt, and what is there; or what was seen, in a line."""
    quoted = [piece for piece in pieces if piece.excerpt]
    if not quoted:
        return
    first = quoted[0]
    if first.excerpt.startswith(_NOT_WRITTEN):
        yield from sides(first.excerpt.removeprefix(_NOT_WRITTEN), "nothing of it in the prompt")
    elif became := _BECAME.fullmatch(first.excerpt):
        yield from sides(became[1], became[2])
    elif first.outcome == "differs" and len(quoted) > 1 and quoted[1].excerpt != first.excerpt:
        yield from sides(*(f"{_engine(piece)}: {piece.excerpt}" for piece in quoted[:2]))
    else:
        yield say(Part("seen: ", "faint"), first.excerpt, first="  ", cut=True)


def sides(left: str, right: str) -> Iterator[Paragraph]:
    """Two texts that part, a line each."""
    yield say(Part(left, "good"), first="  - ", cut=True)
    yield say(Part(right, "bad"), first="  + ", cut=True)


def _engine(piece: Evidence) -> str:
    path = f"{piece.engine}:{piece.path}"
    return PATH_NAMES.get(path, path)


def _repeat(pieces: Sequence[Evidence], name: str, target: str) -> list[str]:
    """The command that renders the first piece of evidence again, where it is short."""
    start = f"jinjarun render {shlex.quote(name)} "
    for piece in pieces:
        if piece.repeat.startswith(start) and len(piece.repeat) <= LONGEST_COMMAND:
            return [f"jinjarun render {shlex.quote(target)} {piece.repeat.removeprefix(start)}"]
    return []
