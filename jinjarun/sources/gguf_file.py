"""A GGUF file as a source: its templates under llama.cpp's keys, its tokens by their ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinjarun.sources.gguf import IDS, TEMPLATE, GgufHeader, read_gguf
from jinjarun.sources.source import DEFAULT, Candidate, Kind, Note, Source
from jinjarun.sources.tokens import Token, TokenData

if TYPE_CHECKING:
    from collections.abc import Iterator

READER = "llama.cpp"


def open_gguf(
    path: str, *, name: str, kind: Kind = "gguf", revision: str | None = None, inside: str | None = None
) -> Source:
    """The templates and tokens of a GGUF file. Of the named templates llama-server uses only "tool_use"."""
    header = read_gguf(path, inside)
    candidates = tuple(
        Candidate(key.removeprefix(TEMPLATE).removeprefix(".") or DEFAULT, text, "gguf", path, key)
        for key, text in header.templates.items()
    )
    # `tokenizer.chat_template.default` is a key like any other: llama.cpp's default is the one without a name.
    chosen = {found.name: found for found in candidates if found.name != DEFAULT or found.key == TEMPLATE}
    return Source(
        kind=kind,
        path=path,
        name=name,
        reader=READER,
        form="absent" if not chosen else "string" if list(chosen) == [DEFAULT] else "list",
        chosen=chosen,
        candidates=candidates,
        tokens=_tokens(header),
        revision=revision,
        readings={READER: chosen},
        notes=tuple(_notes(header)),
    )


def _tokens(header: GgufHeader) -> TokenData:
    values = header.values
    found = {name: _token(header, values[key]) for name, key in IDS.items() if key in values}
    return TokenData(
        special={name: token for name, token in found.items() if token is not None},
        add_bos=values.get("tokenizer.ggml.add_bos_token"),
        add_eos=values.get("tokenizer.ggml.add_eos_token"),
        vocabulary=header.vocabulary,
        model=values.get("tokenizer.ggml.model"),
        pre=values.get("tokenizer.ggml.pre"),
    )


def _token(header: GgufHeader, id: int) -> Token | None:
    """An id outside of the vocabulary is ignored, as llama.cpp ignores it with a warning."""
    return Token(id=id) if header.vocabulary is None else header.vocabulary.token(id)


def _notes(header: GgufHeader) -> Iterator[Note]:
    if header.big_endian:
        yield Note(header.path, None, "is big-endian: llama.cpp loads it only on big-endian machines")
    for key, text in header.templates.items():
        if "\0" in text:
            yield Note(header.path, key, "holds a NUL byte: llama.cpp reads the template only up to it")
    for name in header.template_names:
        if f"{TEMPLATE}.{name}" not in header.templates:
            yield Note(header.path, "tokenizer.chat_templates", f"names {name!r}, which has no key of its own")
    for key in IDS.values():
        if key in header.values and _token(header, header.values[key]) is None:
            yield Note(header.path, key, f"is {header.values[key]}, which is no token: llama.cpp ignores it")
