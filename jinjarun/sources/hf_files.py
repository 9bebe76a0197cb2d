"""Hugging Face's files: templates and tokens out of each, every field checked for its type."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jinjarun.sources.files import decode, read_bytes
from jinjarun.sources.json_data import JsonFile, type_name
from jinjarun.sources.precedence import Slot
from jinjarun.sources.source import DEFAULT, Candidate, Kind, Note
from jinjarun.sources.tokenizer_json import ADDED_TOKENS, added_token, token_id
from jinjarun.sources.tokens import Token, TokenData

if TYPE_CHECKING:
    from jinjarun.sources.tokenizer_json import TokenizerJson

KEY = "chat_template"

NAMES = ("bos", "eos", "eot", "eom", "pad", "unk", "sep", "cls", "mask")
"""The special tokens whose keys have a type that is checked. Keys of single models, such as `image_token`, vary."""

SPECIAL_TOKENS = 10_000
"""The most keys of one file that end in `_token`; real ones have some dozens."""
TEMPLATES = 100
"""The most templates of one file."""


def read_text(path: str, limit: int, inside: str | None = None) -> tuple[str, int, tuple[Note, ...]]:
    """A template file: its text, its size in bytes, notes. Line ends are kept as they are; a byte order mark is not."""
    data = read_bytes(path, limit, inside)
    text, had_bom = decode(path, data)
    return text, len(data), (bom_note(path),) if had_bom else ()


def bom_note(path: str) -> Note:
    return Note(path, None, "begins with a byte order mark: left out here, part of the text or an error elsewhere")


def json_notes(file: JsonFile) -> tuple[Note, ...]:
    """What another reader of this JSON file might see differently."""
    marks = (bom_note(file.path),) if file.had_bom else ()
    return marks + tuple(
        Note(file.path, key, "stands twice in one object: the last one counts, as in Python") for key in file.duplicates
    )


def template_slot(file: JsonFile, kind: Kind) -> tuple[Slot, tuple[Note, ...]]:
    """`chat_template` of a JSON file: a text, a list of `{name, template}`, an object by name, null, or absent."""
    if KEY not in file.value:
        return Slot("absent"), ()
    value = file.get(KEY, (str, list, dict), "a string, a list or null")
    if value is None:
        return Slot("null"), ()
    if isinstance(value, str):
        return Slot("string", (Candidate(DEFAULT, value, kind, file.path, KEY),)), ()
    if isinstance(value, dict):
        items = [(name, f"{KEY}.{name}", text) for name, text in value.items()]
    else:
        items = [_named(file, index, item) for index, item in enumerate(value[: TEMPLATES + 1])]
    if len(items) > TEMPLATES:
        file.fail(KEY, f"holds {len(items):,} templates, more than {TEMPLATES}")
    names = [name for name, _, _ in items]
    for _, place, text in items:
        if not isinstance(text, str):
            file.fail(place, f"should be a string, is {type_name(text)}")
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    notes = tuple(Note(file.path, KEY, f"has two templates called {name!r}: the last one counts") for name in twice)
    found = tuple(Candidate(name, text, kind, file.path, place) for name, place, text in items)
    return Slot("object" if isinstance(value, dict) else "list", found), notes


def _named(file: JsonFile, index: int, item: Any) -> tuple[str, str, Any]:
    place = f"{KEY}[{index}]"
    if not isinstance(item, dict):
        file.fail(place, f"should be an object with name and template, is {type_name(item)}")
    name = file.get("name", (str,), "a string", item, place)
    if name is None:
        file.fail(f"{place}.name", "is missing")
    if "template" not in item:
        file.fail(f"{place}.template", "is missing")
    return name, f"{place}.template", item["template"]


@dataclass(frozen=True)
class TokenFiles:
    """The files of a folder that speak of tokens, as far as they are there."""

    config: JsonFile | None = None
    special_tokens_map: JsonFile | None = None
    added_tokens: JsonFile | None = None
    tokenizer: TokenizerJson | None = None
    generation: JsonFile | None = None
    model: JsonFile | None = None


def read_tokens(files: TokenFiles, *, legacy_map: bool) -> TokenData:
    """What these files say together.

    `legacy_map`: special_tokens_map.json replaces what tokenizer_config.json says unless that has an
    `added_tokens_decoder`, as transformers 5.24 does (`_from_pretrained`); llama.cpp's converter never reads it.
    """
    config = files.config
    added = _added_tokens(files)
    vocabulary = None if files.tokenizer is None else files.tokenizer.vocabulary
    known = TokenData(added=tuple(added.values()), vocabulary=vocabulary)
    texts = {} if config is None else _special_texts(config)
    has_decoder = config is not None and config.value.get("added_tokens_decoder") is not None
    if files.special_tokens_map is not None and legacy_map and not has_decoder:
        texts.update(_special_texts(files.special_tokens_map))
    return TokenData(
        special={name: known.find(text) or Token(text) for name, text in texts.items()},
        generation_bos=_ids(files.generation, "bos_token_id", known),
        generation_eos=_ids(files.generation, "eos_token_id", known),
        generation_pad=_ids(files.generation, "pad_token_id", known),
        model_bos=_ids(files.model, "bos_token_id", known),
        model_eos=_ids(files.model, "eos_token_id", known),
        add_bos=None if config is None else config.get("add_bos_token", (bool,), "a boolean"),
        add_eos=None if config is None else config.get("add_eos_token", (bool,), "a boolean"),
        added=tuple(added.values()),
        post_processor=None if files.tokenizer is None else files.tokenizer.post_processor,
        vocabulary=vocabulary,
        tokenizer_class=None if config is None else config.get("tokenizer_class", (str,), "a string"),
    )


def _ids(file: JsonFile | None, key: str, known: TokenData) -> tuple[Token, ...] | None:
    """One id or a list of them; in config.json of a multimodal model also under `text_config`."""
    if file is None:
        return None
    inside, place = file.value, ""
    if key not in inside:
        inside = file.get("text_config", (dict,), "an object") or {}
        place = "text_config"
    if key not in inside:
        return None
    value = file.get(key, (int, list), "a number or a list of numbers", inside, place)
    values = [] if value is None else value if isinstance(value, list) else [value]
    where = f"{place}.{key}" if place else key
    ids = [token_id(file, item, where) for item in values]
    return tuple(known.token(id) or Token(id=id) for id in ids)


def _special_texts(file: JsonFile) -> dict[str, str]:
    """`bos_token` and its like: a string, or an object with `content`; names without `_token`. Null is left out."""
    texts: dict[str, str] = {}
    for key, value in file.value.items():
        name = key.removesuffix("_token")
        if name == key or key.startswith("add_"):
            continue
        if len(texts) == SPECIAL_TOKENS:
            file.fail(key, f"is one of more than {SPECIAL_TOKENS:,} special tokens")
        if name not in NAMES and not isinstance(value, (str, dict)):
            continue
        value = file.get(key, (str, dict), "a string, an object or null")
        if isinstance(value, dict):
            content = file.get("content", (str,), "a string", value, key)
            if content is None and name in NAMES:
                file.fail(f"{key}.content", "is missing")
            value = content
        if value is not None:
            texts[name] = value
    return texts


def _require_count(file: JsonFile, place: str, tokens: dict[str, Any]) -> None:
    if len(tokens) > ADDED_TOKENS:
        file.fail(place, f"has {len(tokens):,} added tokens, more than {ADDED_TOKENS:,}")


def _added_tokens(files: TokenFiles) -> dict[int, Token]:
    """By id: tokenizer.json's, then added_tokens.json's, then `added_tokens_decoder` of tokenizer_config.json."""
    added: dict[int, Token] = {}
    if files.tokenizer is not None:
        added.update(files.tokenizer.added)
    if files.added_tokens is not None:
        _require_count(files.added_tokens, "its object", files.added_tokens.value)
        for text, value in files.added_tokens.value.items():
            id = token_id(files.added_tokens, value, text)
            added.setdefault(id, Token(text, id))
    if files.config is not None:
        file = files.config
        decoder = file.get("added_tokens_decoder", (dict,), "an object") or {}
        _require_count(file, "added_tokens_decoder", decoder)
        for key, item in decoder.items():
            place = f"added_tokens_decoder.{key}"
            if not (key.isascii() and key.isdecimal() and len(key) <= 10):
                file.fail(place, "is no token id")
            if not isinstance(item, dict):
                file.fail(place, f"should be an object, is {type_name(item)}")
            id = token_id(file, int(key), place)
            added[id] = added_token(file, item, id, place)
    return dict(sorted(added.items()))
