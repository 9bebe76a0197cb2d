"""A model folder: its five places for templates, its files about tokens, and the order that a reader sees in them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jinjarun.sources import gguf_file, hf_files
from jinjarun.sources.files import (
    TEXT_BYTES,
    boundary,
    failure,
    is_directory,
    is_file,
    list_names,
    require_inside,
)
from jinjarun.sources.json_data import CONFIG, JsonFile, read_json
from jinjarun.sources.precedence import FILES, JSON_PLACES, READERS, Place, Slot, choose, read
from jinjarun.sources.source import DEFAULT, Candidate, Kind, Note, Source
from jinjarun.sources.tokenizer_json import TokenizerJson, read_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator

SUFFIX = ".jinja"
TOKEN_JSON = {
    "special_tokens_map": "special_tokens_map.json",
    "added_tokens": "added_tokens.json",
    "generation": "generation_config.json",
    "model": "config.json",
}
"""The JSON files about tokens that are read as a whole, by their field in `TokenFiles`."""

TOKENIZER = "tokenizer.json"


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder and how it was reached."""

    path: str
    name: str
    kind: Kind
    revision: str | None = None


def open_folder(folder: Folder, *, reads_as: str, vocabulary: bool = True) -> Source:
    """The folder as `reads_as` reads it; a folder with GGUF files and no Hugging Face files is read as its GGUF file.

    Without `vocabulary` the largest file, tokenizer.json, is left unread.
    """
    path, inside = folder.path, boundary(folder.path)
    notes: list[Note] = []
    slots: dict[Place, Slot] = {}
    found = _JsonFiles(path, inside, notes)
    slots.update(_Jinja(path, inside, notes).slots())
    config: JsonFile | None = None
    for place in JSON_PLACES:
        file = found.read(FILES[place])
        if file is None:
            continue
        slot, more = hf_files.template_slot(file, place)
        notes.extend(more)
        config = file if place == "tokenizer_config" else config
        if file.value or place != "tokenizer_config":  # the converter takes an empty one for a missing one
            slots[place] = slot
    tokens = hf_files.TokenFiles(
        config,
        **{field: found.read(file, constants=field == "model") for field, file in TOKEN_JSON.items()},
        tokenizer=found.tokenizer() if vocabulary else None,
    )
    if not found.any and not slots and (models := _gguf_files(path)):
        first = _first(path, models)
        return gguf_file.open_gguf(first, name=folder.name, kind=folder.kind, revision=folder.revision, inside=inside)
    reading = choose(reads_as, slots)
    return Source(
        kind=folder.kind,
        path=path,
        name=folder.name,
        reader=reading.reader,
        form=reading.form,
        chosen=reading.chosen,
        candidates=tuple(candidate for slot in slots.values() for candidate in slot.found),
        tokens=hf_files.read_tokens(tokens, legacy_map=reads_as != "llama.cpp"),
        revision=folder.revision,
        readings={reader.name: read(reader, slots).chosen for reader in READERS},
        notes=tuple(notes),
        refusal=reading.refusal,
    )


class _JsonFiles:
    """Reads what is there within the bounds of one model, and keeps the notes."""

    def __init__(self, folder: str, inside: str, notes: list[Note]) -> None:
        self.folder = folder
        self.inside = inside
        self.notes = notes
        self.left = CONFIG
        self.any = False

    def read(self, name: str, *, constants: bool = False) -> JsonFile | None:
        """config.json is where Infinity is usual (`time_step_limit` of Mamba), so only there it is let pass."""
        path = self._there(name)
        if path is None:
            return None
        file = read_json(path, self.left, constants=constants, inside=self.inside)
        self.left = self.left.less(file.spent)
        self.notes.extend(hf_files.json_notes(file))
        return file

    def tokenizer(self) -> TokenizerJson | None:
        path = self._there(TOKENIZER)
        if path is None:
            return None
        found = read_tokenizer(path, self.inside)
        self.notes.extend(hf_files.json_notes(found.file))
        return found

    def _there(self, name: str) -> str | None:
        path = os.path.join(self.folder, name)
        if not is_file(path):
            return None
        self.any = True
        return path


class _Jinja:
    """Reads the .jinja files of a folder, which together may have as many bytes as one template."""

    def __init__(self, folder: str, inside: str, notes: list[Note]) -> None:
        self.folder = folder
        self.inside = inside
        self.notes = notes
        self.left = TEXT_BYTES

    def slots(self) -> Iterator[tuple[Place, Slot]]:
        path = os.path.join(self.folder, FILES["jinja"])
        if is_file(path):
            yield "jinja", Slot("string", (self._read(path, DEFAULT),))
        additional = os.path.join(self.folder, FILES["additional"])
        if not is_directory(additional):
            return
        require_inside(additional, self.inside)
        files = [file for file in list_names(additional) if file.endswith(SUFFIX)]
        if len(files) > hf_files.TEMPLATES:
            raise failure(additional, f"has {len(files):,} templates, more than {hf_files.TEMPLATES}")
        if files:
            found = [self._read(os.path.join(additional, file), file.removesuffix(SUFFIX)) for file in files]
            yield "additional", Slot("list", tuple(found))

    def _read(self, path: str, name: str) -> Candidate:
        text, size, more = hf_files.read_text(path, self.left, self.inside)
        self.left -= size
        self.notes.extend(more)
        return Candidate(name, text, "jinja_file", path)


def _gguf_files(path: str) -> list[str]:
    return [name for name in list_names(path) if name.endswith(".gguf") and not name.startswith("mmproj")]


def _first(folder: str, models: list[str]) -> str:
    """The one model: several parts of a split file are one, and their header is in the first."""
    parts = [name for name in models if "-of-" not in name or "-00001-of-" in name]
    if len(parts) != 1:
        raise failure(folder, f"holds {len(models)} GGUF files", hint="name one of them")
    return os.path.join(folder, parts[0])
