"""Where templates live: files, configurations, model folders, the Hugging Face cache, GGUF, running servers.

`open_source` takes what people type and gives a `Source`: the template texts by name, where each came from, what other
engines would have taken instead, and what the files say of the tokens. No engine, no library, and no network unless
the address of a server is given; files are opened read-only and within bounds, and whatever is wrong with them is a
`SourceError` that names file, place and reason.

    source = open_source("my-model/")
    source.template()                  # the text that a request without tools gets
    source.templates                   # {"default": ..., "tool_use": ...}
    source.report()                    # {"kind": "model_folder", "path": ..., "key": "chat_template", "revision": None}
    source.tokens.eos                  # Token(text='<|im_end|>', id=151645, type='control')
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from jinjarun.errors import nearest, quote
from jinjarun.sources import hf_files
from jinjarun.sources.files import (
    TEXT_BYTES,
    decode,
    failure,
    is_directory,
    is_file,
    list_names,
    read_stream,
    starts_with,
)
from jinjarun.sources.folder import TOKEN_JSON, TOKENIZER, Folder, open_folder
from jinjarun.sources.gguf import MAGIC
from jinjarun.sources.gguf_file import open_gguf
from jinjarun.sources.hf_cache import cache_folder, find_snapshot, is_repository
from jinjarun.sources.json_data import read_json
from jinjarun.sources.not_a_template import not_a_template
from jinjarun.sources.precedence import FILES, JSON_PLACES, READS_AS
from jinjarun.sources.source import DEFAULT, Candidate, Form, Kind, Note, Source
from jinjarun.sources.tokens import PostProcessor, Token, TokenData, TokenType, Vocabulary

if TYPE_CHECKING:
    from typing import BinaryIO

__all__ = [
    "READS_AS",
    "SCHEMES",
    "Candidate",
    "Form",
    "Kind",
    "Note",
    "PostProcessor",
    "Source",
    "Token",
    "TokenData",
    "TokenType",
    "Vocabulary",
    "not_a_template",
    "open_source",
]

STDIN = "-"
FAMILY = "family:"
SCHEMES = ("http://", "https://")
"""Targets that begin so are running servers."""

FILE_ENDINGS = (".jinja", ".json", ".gguf")
"""Targets that end so are files, whether or not they exist, and no repositories."""
ALONE = "the file itself"


def open_source(
    target: str | os.PathLike[str],
    *,
    reads_as: str = "transformers",
    name: str | None = None,
    corpus: str | os.PathLike[str] | None = None,
    stdin: BinaryIO | None = None,
    vocabulary: bool = True,
    inside: str | None = None,
) -> Source:
    """Find the templates and tokens of a target. Where there is no template `Source.templates` is empty, and only
    asking for one is an error.

    `target`: a template file; a tokenizer_config.json, chat_template.json or processor_config.json; a GGUF file; a
    model folder; `org/name` or `org/name@revision` in the local Hugging Face cache; `family:NAME`, a folder of
    `corpus`; `-`, standard input (`stdin` in its place); `http://host:port` of a running llama-server (see `server`). A
    file that exists is taken before a repository of that name. A single file is read alone: what its neighbours say of
    tokens is found by giving the folder.
    `reads_as`: whose order of precedence decides in a folder, a key of `READS_AS`. GGUF is read as llama.cpp reads it,
    and in a single file there is nothing to decide.
    `name`: what to call it; by default the repository, the folder or the file.
    `vocabulary`: whether to read tokenizer.json (tens of megabytes), which stop verdicts need and rendering does not.
    `inside`: for a file that was found in a folder, that folder as `files.boundary` gives it: links that lead out of it
    are refused. A link that the caller names is followed. In a folder, links that lead out of it always are refused; in
    the cache, out of the repository.

    Raises `SourceError`.
    """
    if reads_as not in READS_AS:
        raise failure(str(reads_as), "is no reader", hint=f"choose one of {', '.join(READS_AS)}")
    path = os.fspath(target)
    if path == STDIN:
        return _open_stdin(name or "stdin", stdin or sys.stdin.buffer)
    if path.startswith(SCHEMES):
        from jinjarun.sources.server import RunningServer  # noqa: PLC0415  (an HTTP client, for this kind alone)

        return RunningServer(path).source(name)
    if path.startswith(FAMILY):
        family = path.removeprefix(FAMILY)
        folder = Folder(_family_folder(path, family, corpus), name or family, "family")
    elif is_directory(path):
        folder = Folder(path, name or _base(path), "model_folder")
    elif is_file(path) or path.endswith(FILE_ENDINGS) or not is_repository(path):
        return _open_file(path, name, inside)
    else:
        snapshot = find_snapshot(path)
        if snapshot is None:
            hint = f"download it first: hf download {path.partition('@')[0]}"
            raise failure(path, f"is no file and no repository in the cache at {quote(cache_folder())}", hint=hint)
        folder = Folder(snapshot.path, name or snapshot.repository, "hf_cache", snapshot.revision)
    return open_folder(folder, reads_as=reads_as, vocabulary=vocabulary)


def _open_file(path: str, name: str | None, inside: str | None) -> Source:
    """By its ending; a configuration by its whole name, before which others often stand."""
    base = os.path.basename(path)
    if base.endswith(".json"):
        return _open_json(path, base, name, inside)
    if base.endswith(".gguf") or (not base.endswith(".jinja") and starts_with(path, MAGIC, inside)):
        return open_gguf(path, name=name or base, inside=inside)
    text, _, notes = hf_files.read_text(path, TEXT_BYTES, inside)
    return _from_text(text, "jinja_file", path, name or base.removesuffix(".jinja"), notes)


def _open_json(path: str, base: str, name: str | None, inside: str | None) -> Source:
    if base == TOKENIZER or base in TOKEN_JSON.values():
        raise failure(path, "holds no template", hint="give the folder that it is in")
    kind = next((place for place in JSON_PLACES if base.endswith(FILES[place])), JSON_PLACES[0])
    file = read_json(path, inside=inside)
    slot, notes = hf_files.template_slot(file, kind)
    tokens = hf_files.TokenFiles(file if kind == "tokenizer_config" else None)
    if name is None:
        name = _base(os.path.dirname(os.path.abspath(path))) if base == FILES[kind] else base
    return Source(
        kind=kind,
        path=path,
        name=name,
        reader=ALONE,
        form=slot.form,
        chosen={found.name: found for found in slot.found},
        candidates=slot.found,
        tokens=hf_files.read_tokens(tokens, legacy_map=False),
        notes=hf_files.json_notes(file) + notes,
    )


def _open_stdin(name: str, stream: BinaryIO) -> Source:
    text, had_bom = decode(STDIN, read_stream(STDIN, stream, TEXT_BYTES))
    return _from_text(text, "stdin", STDIN, name, (hf_files.bom_note(STDIN),) if had_bom else ())


def _from_text(text: str, kind: Kind, path: str, name: str, notes: tuple[Note, ...]) -> Source:
    found = Candidate(DEFAULT, text, kind, path)
    return Source(
        kind=kind,
        path=path,
        name=name,
        reader=ALONE,
        form="string",
        chosen={found.name: found},
        candidates=(found,),
        notes=notes,
    )


def _family_folder(target: str, family: str, corpus: str | os.PathLike[str] | None) -> str:
    if corpus is None:
        raise failure(target, "cannot be found without the corpus of families")
    root = os.fspath(corpus)
    families = [entry for entry in list_names(root) if is_directory(os.path.join(root, entry))]
    if family not in families:
        raise failure(
            target,
            f"is no family of the corpus{nearest(family, families)}",
            hint=f"there are {', '.join(families)}" if families else None,
        )
    return os.path.join(root, family)


def _base(path: str) -> str:
    return os.path.basename(os.path.abspath(path))
