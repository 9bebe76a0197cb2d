"""Hugging Face's files: templates and tokens out of each, every field checked for its type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jinjarun.sources.files import decode, read_bytes
from jinjarun.sources.json_data import JsonFile, type_name
from jinjarun.sources.precedence import Slot
from jinjarun.sources.source import DEFAULT, Candidate, Kind, Note
from jinjarun.sources.tokens import PostProcessor, Token, TokenData, TokenType, spellings

if TYPE_CHECKING:
    from collections.abc import Mapping

KEY = "chat_template"

NAMES = ("bos", "eos", "eot", "eom", "pad", "unk", "sep", "cls", "mask")
"""The special tokens whose keys have a type that is checked. Keys of single models, such as `image_token`, vary."""

LARGEST_ID = (1 << 31) - 1
_SEQUENCE_DEPTH = 4


def read_text(path: str, limit: int) -> tuple[str, tuple[Note, ...]]:
    """A template file. Line ends are kept as they are; a byte order mark is not."""
    text, had_bom = decode(path, read_bytes(path, limit))
    return text, (bom_note(path),) if had_bom else ()


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
        items = [_named(file, index, item) for index, item in enumerate(value)]
    names = [name for name, _, _ in items]
    for _, place, text in items:
        if not isinstance(text, str):
            file.fail(place, f"should be a string, is {type_name(text)}")
    twice = sorted({name for name in names if names.count(name) > 1}) if len(names) < 100 else []
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
    tokenizer: JsonFile | None = None
    generation: JsonFile | None = None
    model: JsonFile | None = None


def read_tokens(files: TokenFiles, *, legacy_map: bool) -> TokenData:
    """What these files say together.

    `legacy_map`: special_tokens_map.json replaces what tokenizer_config.json says unless that has an
    `added_tokens_decoder`, as transformers 5.24 does (`_from_pretrained`); llama.cpp's converter never reads it.
    """
    config = files.config
    added = _added_tokens(files)
    vocabulary = None if files.tokenizer is None else _vocabulary(files.tokenizer)
    known = _Known(added, vocabulary)
    texts = {} if config is None else _special_texts(config)
    has_decoder = config is not None and config.value.get("added_tokens_decoder") is not None
    if files.special_tokens_map is not None and legacy_map and not has_decoder:
        texts.update(_special_texts(files.special_tokens_map))
    return TokenData(
        special={name: known.by_text(text) for name, text in texts.items()},
        generation_bos=known.ids(files.generation, "bos_token_id"),
        generation_eos=known.ids(files.generation, "eos_token_id"),
        generation_pad=known.ids(files.generation, "pad_token_id"),
        model_bos=known.ids(files.model, "bos_token_id"),
        model_eos=known.ids(files.model, "eos_token_id"),
        add_bos=None if config is None else config.get("add_bos_token", (bool,), "a boolean"),
        add_eos=None if config is None else config.get("add_eos_token", (bool,), "a boolean"),
        added=tuple(added.values()),
        post_processor=None if files.tokenizer is None else _post_processor(files.tokenizer),
        vocabulary=vocabulary,
        tokenizer_class=None if config is None else config.get("tokenizer_class", (str,), "a string"),
    )


@dataclass(frozen=True)
class _Known:
    """Texts to ids and back, through the added tokens and then the vocabulary."""

    added: Mapping[int, Token]
    vocabulary: JsonVocabulary | None

    def by_text(self, text: str) -> Token:
        for token in self.added.values():
            if token.text == text:
                return token
        found = None if self.vocabulary is None else self.vocabulary.find(text)
        return found or Token(text)

    def by_id(self, id: int) -> Token:
        found = self.added.get(id) or (None if self.vocabulary is None else self.vocabulary.token(id))
        return found or Token(id=id)

    def ids(self, file: JsonFile | None, key: str) -> tuple[Token, ...] | None:
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
        return tuple(self.by_id(_id(file, item, where)) for item in values)


def _id(file: JsonFile, value: Any, place: str) -> int:
    """A token id. Some configurations write -1 for "none": it is passed on, since no token has it."""
    if not isinstance(value, int) or isinstance(value, bool):
        file.fail(place, f"should be a token id, is {type_name(value)}")
    if not -1 <= value <= LARGEST_ID:
        file.fail(place, "is no token id")
    return value


def _special_texts(file: JsonFile) -> dict[str, str]:
    """`bos_token` and its like: a string, or an object with `content`; names without `_token`. Null is left out."""
    texts: dict[str, str] = {}
    for key, value in file.value.items():
        name = key.removesuffix("_token")
        if name == key or key.startswith("add_"):
            continue
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


def _added_tokens(files: TokenFiles) -> dict[int, Token]:
    """By id: tokenizer.json's, then added_tokens.json's, then `added_tokens_decoder` of tokenizer_config.json."""
    added: dict[int, Token] = {}
    if files.tokenizer is not None:
        file = files.tokenizer
        for index, item in enumerate(file.get("added_tokens", (list,), "a list") or []):
            place = f"added_tokens[{index}]"
            if not isinstance(item, dict):
                file.fail(place, f"should be an object, is {type_name(item)}")
            id = _id(file, item.get("id"), f"{place}.id")
            added[id] = _added_token(file, item, id, place)
    if files.added_tokens is not None:
        for text, value in files.added_tokens.value.items():
            id = _id(files.added_tokens, value, text)
            added.setdefault(id, Token(text, id))
    if files.config is not None:
        file = files.config
        decoder = file.get("added_tokens_decoder", (dict,), "an object") or {}
        for key, item in decoder.items():
            place = f"added_tokens_decoder.{key}"
            if not (key.isascii() and key.isdecimal() and len(key) <= 10):
                file.fail(place, "is no token id")
            if not isinstance(item, dict):
                file.fail(place, f"should be an object, is {type_name(item)}")
            id = _id(file, int(key), place)
            added[id] = _added_token(file, item, id, place)
    return dict(sorted(added.items()))


def _added_token(file: JsonFile, item: dict[str, Any], id: int, place: str) -> Token:
    text = file.get("content", (str,), "a string", item, place)
    if text is None:
        file.fail(f"{place}.content", "is missing")
    special = file.get("special", (bool,), "a boolean", item, place)
    types: dict[bool | None, TokenType | None] = {True: "control", False: "user_defined", None: None}
    return Token(text, id, types[special])


@dataclass(frozen=True)
class JsonVocabulary:
    """`model.vocab` of a tokenizer.json: ids by text."""

    ids: Mapping[str, int]
    texts: Mapping[int, str]

    def __len__(self) -> int:
        return len(self.ids)

    def find(self, text: str) -> Token | None:
        for spelling in spellings(text):
            if spelling in self.ids:
                return Token(spelling, self.ids[spelling], "normal")
        return None

    def token(self, id: int) -> Token | None:
        return Token(self.texts[id], id, "normal") if id in self.texts else None


def _vocabulary(file: JsonFile) -> JsonVocabulary | None:
    """BPE, WordPiece and WordLevel hold an object of ids by text; Unigram a list of `[text, score]` in order of id."""
    model = file.get("model", (dict,), "an object")
    if model is None:
        return None
    vocab = file.get("vocab", (dict, list), "an object or a list", model, "model")
    if vocab is None:
        return None
    if isinstance(vocab, dict):
        for text, value in vocab.items():
            if type(value) is not int:
                file.fail(f"model.vocab.{text}", f"should be a token id, is {type_name(value)}")
        ids = vocab
    else:
        ids = {}
        for id, item in enumerate(vocab):
            if not (isinstance(item, list) and item and isinstance(item[0], str)):
                file.fail(f"model.vocab[{id}]", "should be a list of a text and a score")
            ids.setdefault(item[0], id)
    return JsonVocabulary(ids, {id: text for text, id in ids.items()})


def _post_processor(file: JsonFile) -> PostProcessor:
    """What the post-processor puts around a text; nothing where it is null."""
    item = file.get("post_processor", (dict,), "an object")
    return PostProcessor() if item is None else _processed(file, item, "post_processor", _SEQUENCE_DEPTH)


def _processed(file: JsonFile, item: dict[str, Any], place: str, depth: int) -> PostProcessor:
    kind = file.get("type", (str,), "a string", item, place)
    if kind == "Sequence" and depth:
        for index, inner in enumerate(file.get("processors", (list,), "a list", item, place) or []):
            where = f"{place}.processors[{index}]"
            if not isinstance(inner, dict):
                file.fail(where, f"should be an object, is {type_name(inner)}")
            around = _processed(file, inner, where, depth - 1)
            if around != PostProcessor():
                return around
        return PostProcessor()
    if kind in {"BertProcessing", "RobertaProcessing"}:
        return PostProcessor((_pair_text(file, item, "cls", place),), (_pair_text(file, item, "sep", place),))
    if kind == "TemplateProcessing":
        return _template_processing(file, item, place)
    return PostProcessor()


def _pair_text(file: JsonFile, item: dict[str, Any], key: str, place: str) -> str:
    pair = file.get(key, (list,), "a list of a text and an id", item, place)
    if not (pair and isinstance(pair[0], str)):
        file.fail(f"{place}.{key}", "should be a list of a text and an id")
    return pair[0]


def _template_processing(file: JsonFile, item: dict[str, Any], place: str) -> PostProcessor:
    """`single` is a list of `{"SpecialToken": {"id": ...}}` around one `{"Sequence": ...}`."""
    before: list[str] = []
    after: list[str] = []
    side = before
    for index, piece in enumerate(file.get("single", (list,), "a list", item, place) or []):
        where = f"{place}.single[{index}]"
        if not isinstance(piece, dict):
            file.fail(where, f"should be an object, is {type_name(piece)}")
        if "Sequence" in piece:
            side = after
            continue
        token = file.get("SpecialToken", (dict,), "an object", piece, where) or {}
        text = file.get("id", (str,), "a string", token, f"{where}.SpecialToken")
        if text is None:
            file.fail(f"{where}.SpecialToken.id", "is missing")
        side.append(text)
    return PostProcessor(tuple(before), tuple(after))
