"""From what a user names to every template in it, in an order that only the names decide."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jinjarun.errors import JinjarunError, SourceError, quote
from jinjarun.sources import open_source
from jinjarun.sources.files import boundary, failure, is_inside
from jinjarun.sources.hf_cache import cache_folder, find_snapshot, is_repository
from jinjarun.sources.precedence import FILES, JSON_PLACES
from probes.chats.corpus import corpus_folder
from probes.scanner.found import LINE_BYTES, Found, printable, unreadable
from probes.scanner.records import parquet, record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

STDIN = "-"
CACHE = "hf-cache"
FAMILY = "family:"
RECORDS = (".jsonl", ".ndjson")
PARQUET = ".parquet"
PATH_BYTES = 4_096
"""The longest name of a file on a line."""


def find(paths: Iterable[str], *, follow_symlinks: bool = False, stdin: BinaryIO | None = None) -> Iterator[Found]:
    """Everything in `paths`, each of them one of

    - a folder: all files below it that `jinjarun.sources` knows by their names, sorted;
    - a file, read as `open_source` reads it; JSON Lines or Parquet of records, see `scanner.records`;
    - `org/name[@revision]` in the local Hugging Face cache, and `hf-cache` for all of it; `family:NAME`;
    - `-`: `stdin`, a path or a record on each line.

    Links to files are followed where they stay in the folder (the Hugging Face cache is made of them); of those that
    leave it the first is an error that says so, and the others are left out. With `follow_symlinks` all links are
    followed, and those to folders too.
    """
    for path in paths:
        if path == STDIN:
            yield from _listed(stdin, follow_symlinks)
        elif path == CACHE:
            yield from _folder(cache_folder(), follow_symlinks)
        else:
            yield from _named(path, follow_symlinks)


def count(paths: Iterable[str], *, follow_symlinks: bool = False) -> int | None:
    """How many files `find` will look at, None where only reading tells."""
    total = 0
    for path in paths:
        if path == STDIN or path.endswith((*RECORDS, PARQUET)):
            return None
        folder = cache_folder() if path == CACHE else path
        if os.path.isdir(folder):
            total += sum(1 for _ in _walk(folder, follow_symlinks))
        else:
            total += 1
    return total


def _named(path: str, follow_symlinks: bool) -> Iterator[Found]:
    try:
        if os.path.isdir(path):
            yield from _folder(path, follow_symlinks)
            return
        if path.endswith(RECORDS):
            with open(path, "rb") as file:
                yield from _records(path, file)
            return
        if path.endswith(PARQUET):
            yield from parquet(path)
            return
        if not os.path.lexists(path) and not path.startswith(FAMILY) and is_repository(path):
            snapshot = find_snapshot(path)
            if snapshot is not None:
                yield from _folder(snapshot.path, follow_symlinks)
                return
    except OSError as error:
        yield unreadable(path, "file", failure(path, (error.strerror or type(error).__name__).lower()))
        return
    except ValueError as error:  # a NUL byte in the name
        yield unreadable(path, "file", failure(path, f"is no file name ({error})"))
        return
    except SourceError as error:
        yield unreadable(path, "file", error)
        return
    yield from _file(path)


def _listed(stream: BinaryIO | None, follow_symlinks: bool) -> Iterator[Found]:
    if stream is None:
        yield unreadable(STDIN, "stdin", failure(STDIN, "there is no standard input"))
        return
    for line, place in _lines(STDIN, stream):
        if isinstance(line, Found):
            yield line
        elif line.startswith((b"{", b"[")):
            yield from record(line, place)
        elif len(line) > PATH_BYTES:
            yield unreadable(place, "file", failure(place, "is neither a record nor the name of a file"))
        else:
            path = os.fsdecode(line)
            yield from _named(os.path.join(".", path) if path == STDIN else path, follow_symlinks)


def _records(path: str, stream: BinaryIO) -> Iterator[Found]:
    for line, place in _lines(path, stream):
        if isinstance(line, Found):
            yield line
        else:
            yield from record(line, place)


def _lines(name: str, stream: BinaryIO) -> Iterator[tuple[bytes | Found, str]]:
    """Each line that is not empty, with `NAME:NUMBER`; a row in its place where it is too long to be read."""
    number = 0
    while line := stream.readline(LINE_BYTES + 1):
        number += 1
        place = f"{name}:{number}"
        if len(line) > LINE_BYTES:
            while line and not line.endswith(b"\n"):
                line = stream.readline(LINE_BYTES)
            yield unreadable(place, "record", failure(place, f"is longer than {LINE_BYTES:,} bytes")), place
        elif line := line.strip(b" \t\r\n"):
            yield line, place


def _folder(path: str, follow_symlinks: bool) -> Iterator[Found]:
    inside = None if follow_symlinks else boundary(path)
    for file, trouble in _walk(path, follow_symlinks):
        if trouble is None:
            yield from _file(file, inside)
        else:
            yield unreadable(file, "folder", failure(file, trouble))


def _walk(root: str, follow_symlinks: bool) -> Iterator[tuple[str, str | None]]:
    """Files below `root` with names that sources know, sorted within each folder; or a folder and what is wrong."""
    stack: list[tuple[str, frozenset[tuple[int, int]]]] = [(root, frozenset())]
    inside, left = boundary(root), 0
    while stack:
        folder, above = stack.pop()
        try:
            status = os.stat(folder)
            here = (status.st_dev, status.st_ino)
            if here in above:
                yield folder, "is a link back to a folder above it"
                continue
            with os.scandir(folder) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError as error:
            yield folder, (error.strerror or type(error).__name__).lower()
            continue
        below = []
        for entry in entries:
            if _is_folder(entry, follow_symlinks):
                below.append((entry.path, above | {here}))
            elif is_source(entry.name):
                if follow_symlinks or not entry.is_symlink() or is_inside(entry.path, inside):
                    yield entry.path, None
                elif not left:
                    left += 1
                    yield entry.path, f"is a link that leads out of {quote(root)}, and is not followed, as no other is"
        stack.extend(reversed(below))


def _is_folder(entry: os.DirEntry[str], follow_symlinks: bool) -> bool:
    """A link to a folder is one only if links are followed; else it is nothing, whatever it is called."""
    try:
        return entry.is_dir(follow_symlinks=follow_symlinks)
    except OSError:
        return False


def is_source(name: str) -> bool:
    """Whether a file of this name can hold a template. `MODEL-tokenizer_config.json` is one, preprocessor_config.json
    is none."""
    if name.endswith((".jinja", ".gguf")):
        return True
    return name.endswith(_JSON) and (name in _JSON or name.endswith(_JSON_WITH_PREFIX))


_JSON = tuple(FILES[place] for place in JSON_PLACES)
_JSON_WITH_PREFIX = tuple(f"{mark}{name}" for name in _JSON for mark in "-_.")


def _file(path: str, inside: str | None = None) -> Iterator[Found]:
    try:
        source = open_source(path, corpus=corpus_folder(), vocabulary=False, inside=inside)
    except JinjarunError as error:
        yield unreadable(path, _kind(path), error)
        return
    shown = printable(path)
    for name, found in source.chosen.items():
        yield Found(shown, found.kind, found.key, name, source.form, found.text)
    if not source.chosen:
        yield Found(shown, source.kind, form=source.form)


def _kind(path: str) -> str:
    """The sort of a file that could not be read, by its name."""
    if path.endswith(".gguf"):
        return "gguf"
    return next((place for place in JSON_PLACES if path.endswith(FILES[place])), "jinja_file")
