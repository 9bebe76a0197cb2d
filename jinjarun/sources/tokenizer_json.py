"""tokenizer.json: its added tokens, its vocabulary and its post-processor.

These files have up to 34 MB (Gemma 3), most of it merges, which nobody here asks for. What is asked for is taken out a
piece at a time, see `json_parts`.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from sys import getsizeof
from typing import TYPE_CHECKING, Any, NoReturn

from jinjarun.sources.files import failure, read_bytes
from jinjarun.sources.json_data import NOTED, TOKENIZER, JsonFile, type_name
from jinjarun.sources.json_parts import COLON, COMMA, FLAT_OBJECT, SCALAR, SPACE, TEXT, JsonParts
from jinjarun.sources.tokens import PostProcessor, Token, spellings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TOKENS = 520_000
"""The most tokens of a vocabulary. LaBSE has 501,000; of chat models, those of Gemma 3 have the most, 262,000."""

ADDED_TOKENS = 70_000
"""The most added tokens. The most known to us are 65,536, for speech."""

TEXT_BYTES = 32_000_000
"""How much memory the texts of a vocabulary may take; Gemma 3's take some 18 million bytes."""

KEYS = 1_000
"""The most keys of the file itself and of its model."""

LARGEST_ID = (1 << 31) - 1
_SEQUENCE_DEPTH = 4
_ID_BY_TEXT = TEXT + COLON + rb"-?(?:0|[1-9][0-9]{0,9})(?=[ \t\n\r,}])"
_TEXT_AND_MORE = rb"\[%b%b(?:%b%b)*+%b\]" % (SPACE, TEXT, COMMA, SCALAR, SPACE)


@dataclass(frozen=True)
class JsonVocabulary:
    """`model.vocab` of a tokenizer.json: ids by text."""

    ids: Mapping[str, int]

    def __len__(self) -> int:
        return len(self.ids)

    def find(self, text: str) -> Token | None:
        for spelling in spellings(text):
            if spelling in self.ids:
                return Token(spelling, self.ids[spelling], "normal")
        return None

    def token(self, id: int) -> Token | None:
        return Token(self._texts[id], id, "normal") if id in self._texts else None

    @cached_property
    def _texts(self) -> dict[int, str]:
        return {id: text for text, id in self.ids.items()}


@dataclass(frozen=True, slots=True)
class TokenizerJson:
    """What is asked of a tokenizer.json. `file` holds no values: it names the file in notes and errors."""

    file: JsonFile
    added: Mapping[int, Token]
    vocabulary: JsonVocabulary | None
    post_processor: PostProcessor


def read_tokenizer(path: str, inside: str | None = None) -> TokenizerJson:
    """Reads the file; `inside` as in `open_regular`. Costs at most 150 MB, Gemma 3's 100 MB.

    Raises `SourceError`.
    """
    data = read_bytes(path, TOKENIZER.bytes, inside)
    if data.count(b"[") + data.count(b"{") > TOKENIZER.containers or data.count(b",") > TOKENIZER.values:
        limits = f"{TOKENIZER.containers:,} lists and objects and {TOKENIZER.values:,} values"
        raise failure(path, f"holds too much: {limits} are read at most")
    return _Reader(path, JsonParts(path, data)).tokenizer()


class _Reader:
    def __init__(self, path: str, parts: JsonParts) -> None:
        self.parts = parts
        self.file = JsonFile(path, {}, parts.had_bom, ())
        self.duplicates: dict[str, None] = {}

    def tokenizer(self) -> TokenizerJson:
        added: dict[int, Token] = {}
        vocabulary: JsonVocabulary | None = None
        post_processor = PostProcessor()
        if self.parts.type() != "an object":
            raise failure(self.file.path, f"should hold a JSON object, holds {self.parts.type()}")
        for key in self.keys():
            if key == "added_tokens":
                added = self.added_tokens()
            elif key == "model":
                vocabulary = self.model()
            elif key == "post_processor":
                post_processor = _post_processor(self.file, self.parts.value(key))
            else:
                self.parts.skip()
        self.parts.end()
        return TokenizerJson(replace(self.file, duplicates=tuple(self.duplicates)), added, vocabulary, post_processor)

    def keys(self) -> Iterator[str]:
        """The keys of the object at hand, noting those that stand twice."""
        seen: set[str] = set()
        for key in self.parts.members():
            if key in seen:
                self.note_twice([key])
            seen.add(key)
            if len(seen) > KEYS:
                raise failure(self.file.path, f"has more than {KEYS:,} keys in one object")
            yield key

    def note_twice(self, keys: list[str]) -> None:
        room = max(0, NOTED - len(self.duplicates))
        self.duplicates.update(dict.fromkeys(keys[:room]))

    def found(self, place: str, *types: str) -> str | None:
        """The type of the value at hand; None if it is null, which is passed over."""
        type = self.parts.type()
        if type == "null":
            self.parts.skip()
            return None
        if type not in types:
            self.file.fail(place, f"should be {' or '.join(types)}, is {type}")
        return type

    def added_tokens(self) -> dict[int, Token]:
        added: dict[int, Token] = {}
        if self.found("added_tokens", "a list") is None:
            return added
        index = 0
        for piece in self.parts.runs(FLAT_OBJECT):
            for item in json.loads(f"[{piece}]"):
                place = f"added_tokens[{index}]"
                id = token_id(self.file, item.get("id"), f"{place}.id")
                added[id] = added_token(self.file, item, id, place)
                index += 1
            if index > ADDED_TOKENS:
                self.file.fail("added_tokens", f"has more than {ADDED_TOKENS:,} entries")
        if not self.parts.runs_ended:
            place = f"added_tokens[{index}]"
            found = type_name(self.parts.value(place))
            what = "has lists or objects inside" if found == "an object" else f"should be an object, is {found}"
            self.file.fail(place, what)
        return added

    def model(self) -> JsonVocabulary | None:
        vocabulary: JsonVocabulary | None = None
        if self.found("model", "an object") is not None:
            for key in self.keys():
                if key == "vocab":
                    vocabulary = self.vocabulary()
                else:
                    self.parts.skip()
        return vocabulary

    def vocabulary(self) -> JsonVocabulary | None:
        """BPE, WordPiece and WordLevel hold an object of ids by text; Unigram a list of `[text, score]` in order of
        id, the first of which counts where a text stands twice."""
        type = self.found("model.vocab", "an object", "a list")
        if type is None:
            return None
        by_text = type == "an object"
        ids: dict[str, int] = {}
        size = passed = 0
        for piece in self.parts.runs(_ID_BY_TEXT if by_text else _TEXT_AND_MORE):
            if by_text:
                pairs: list[tuple[str, int]] = json.loads(f"{{{piece}}}", object_pairs_hook=list)
                new = dict(pairs)
                if len(new) < len(pairs) or not new.keys().isdisjoint(ids.keys()):
                    times = Counter(text for text, _ in pairs)
                    self.note_twice([text for text, count in times.items() if count > 1 or text in ids])
            else:
                pairs = [(item[0], id) for id, item in enumerate(json.loads(f"[{piece}]"), passed)]
                new = {text: id for text, id in reversed(pairs) if text not in ids}
            ids.update(new)
            passed += len(pairs)
            size += sum(map(getsizeof, new))
            if passed > TOKENS or size > TEXT_BYTES:
                limits = f"{TOKENS:,} tokens of {TEXT_BYTES:,} bytes in all"
                self.file.fail("model.vocab", f"holds too much: {limits} are read at most")
        if not self.parts.runs_ended:
            self.refuse_entry(passed, by_text=by_text)
        return JsonVocabulary(ids)

    def refuse_entry(self, index: int, *, by_text: bool) -> NoReturn:
        """What is wrong with the entry of the vocabulary at hand."""
        text = self.parts.key() if by_text else None
        found = type_name(self.parts.value("model.vocab"))
        if text is None:
            self.file.fail(f"model.vocab[{index}]", "should be a list of a text and a score")
        self.file.fail(f"model.vocab.{text}", f"should be a token id, is {found}")


def token_id(file: JsonFile, value: Any, place: str) -> int:
    """A token id. Some configurations write -1 for "none": it is passed on, since no token has it."""
    if not isinstance(value, int) or isinstance(value, bool):
        file.fail(place, f"should be a token id, is {type_name(value)}")
    if not -1 <= value <= LARGEST_ID:
        file.fail(place, "is no token id")
    return value


def added_token(file: JsonFile, item: dict[str, Any], id: int, place: str) -> Token:
    """An added token, as tokenizer.json and `added_tokens_decoder` hold it."""
    text = file.get("content", (str,), "a string", item, place)
    if text is None:
        file.fail(f"{place}.content", "is missing")
    special = file.get("special", (bool,), "a boolean", item, place)
    return Token(text, id, None if special is None else "control" if special else "user_defined")


def _post_processor(file: JsonFile, item: Any) -> PostProcessor:
    """What the post-processor puts around a text; nothing where it is null."""
    if item is None:
        return PostProcessor()
    if not isinstance(item, dict):
        file.fail("post_processor", f"should be an object, is {type_name(item)}")
    return _processed(file, item, "post_processor", _SEQUENCE_DEPTH)


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
