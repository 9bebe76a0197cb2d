"""GGUF headers, read without trusting them and without reading the model.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. What is refused here llama.cpp refuses too
(ggml/src/gguf.cpp): version 1, keys that stand twice, arrays of arrays, lengths beyond the end of the file. The bounds
below are tighter than its own (2^30 bytes a string, 2^30 elements an array), and wider than any real model needs.

Values that nobody asks for are skipped, not read: an array of numbers by its size, an array of strings length by
length. Only the list of token texts is kept, as the bytes that it is in the file.
"""

from __future__ import annotations

import array
import contextlib
import struct
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property
from operator import sub
from typing import TYPE_CHECKING, Any, NoReturn

from jinjarun.sources.files import TEXT_BYTES, failure, open_regular
from jinjarun.sources.tokens import Token, TokenType, spellings

if TYPE_CHECKING:
    import io

MAGIC = b"GGUF"
VERSIONS = (2, 3)

KEYS = 16_384
KEY_BYTES = 1_024
STRINGS = 1_500_000
"""The most strings in all arrays together; Gemma 3, the largest known to us, has 777,000 (tokens and merges)."""
LIST_OF_TOKENS = 520_000
"""The most tokens; Gemma 3 has 262,000."""
STRING_BYTES = 1 << 30
READ_BYTES = 32_000_000
"""The most bytes of a file that are read; Gemma 3 needs 15 million."""
TOKEN_BYTES = 65_536
"""The longest token; real ones have some hundred bytes."""

_CHUNK = 1 << 16
_LARGEST_CHUNK = 1 << 20
_ID_BITS = 20
_LARGEST_ID = (1 << _ID_BITS) - 1
_LEAST_PAIR = 14
_LEAST_TENSOR = 24
_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_SIZES = {code: struct.calcsize("<" + letter) for code, letter in _SCALARS.items()}
_INTEGERS = frozenset({0, 1, 2, 3, 4, 5, 10, 11})
_BOOLEAN = 7

_TYPE_NAMES: dict[int, TokenType] = {
    1: "normal",
    2: "unknown",
    3: "control",
    4: "user_defined",
    5: "unused",
    6: "byte",
}

TEMPLATE = "tokenizer.chat_template"
TEMPLATE_NAMES = "tokenizer.chat_templates"
TOKENS = "tokenizer.ggml.tokens"
TOKEN_TYPES = "tokenizer.ggml.token_type"
TEXTS = frozenset({"tokenizer.ggml.model", "tokenizer.ggml.pre", "general.architecture", "general.name"})
BOOLEANS = frozenset({"tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token"})
IDS = {
    "bos": "tokenizer.ggml.bos_token_id",
    "eos": "tokenizer.ggml.eos_token_id",
    "eot": "tokenizer.ggml.eot_token_id",
    "eom": "tokenizer.ggml.eom_token_id",
    "pad": "tokenizer.ggml.padding_token_id",
    "unk": "tokenizer.ggml.unknown_token_id",
    "sep": "tokenizer.ggml.seperator_token_id",
    "cls": "tokenizer.ggml.cls_token_id",
    "mask": "tokenizer.ggml.mask_token_id",
}
"""The ids that this project asks for, by the name of the token. The format spells "seperator" so."""
_ID_KEYS = frozenset(IDS.values())
_ARRAYS = frozenset({TOKENS, TOKEN_TYPES, TEMPLATE_NAMES})


@dataclass(frozen=True)
class GgufVocabulary:
    """The list of token texts as it stands in the file: each a length of 8 bytes and the text, found by offset."""

    records: bytes
    starts: array.array[int]
    big_endian: bool = False
    types: bytes = b""

    def __len__(self) -> int:
        return len(self.starts)

    def find(self, text: str) -> Token | None:
        """Also in the spellings of byte-level BPE and SentencePiece; the first of several equal ones."""
        for spelling in spellings(text):
            raw = spelling.encode("utf-8", "surrogatepass")
            first = _hashed(raw) << _ID_BITS
            at = bisect_left(self._index, first)
            while at < len(self._index) and self._index[at] >> _ID_BITS == first >> _ID_BITS:
                id = self._index[at] & _LARGEST_ID
                if self._raw(id) == raw:
                    return self.token(id)
                at += 1
        return None

    @cached_property
    def _index(self) -> array.array[int]:
        """A hash of each text above its id, in order. Python's hash, since nobody can choose texts that collide in it:
        a search through the records would stop at every place where a token holds another one."""
        return array.array("Q", sorted(_hashed(self._raw(id)) << _ID_BITS | id for id in range(len(self.starts))))

    def __getstate__(self) -> dict[str, Any]:
        """Without the index, whose hashes hold in this process alone."""
        return {name: value for name, value in self.__dict__.items() if name != "_index"}

    def _raw(self, id: int) -> bytes:
        start = self.starts[id] + 8
        end = self.starts[id + 1] if id + 1 < len(self.starts) else len(self.records)
        return self.records[start:end]

    def token(self, id: int) -> Token | None:
        """Bytes that are not UTF-8 become U+FFFD."""
        if not 0 <= id < len(self.starts):
            return None
        return Token(self._raw(id).decode("utf-8", "replace"), id, self._type(id))

    def _type(self, id: int) -> TokenType | None:
        code = self.types[4 * id : 4 * id + 4]
        return _TYPE_NAMES.get(int.from_bytes(code, "big" if self.big_endian else "little")) if len(code) == 4 else None


def _hashed(text: bytes) -> int:
    return hash(text) & (1 << 64 - _ID_BITS) - 1


@dataclass
class GgufHeader:
    """What was asked for. `values`: texts, booleans and ids under their keys. `bytes_read`: what it cost."""

    path: str
    version: int = 3
    big_endian: bool = False
    values: dict[str, Any] = field(default_factory=dict)
    templates: dict[str, str] = field(default_factory=dict)
    template_names: list[str] = field(default_factory=list)
    vocabulary: GgufVocabulary | None = None
    bytes_read: int = 0


def read_gguf(path: str, inside: str | None = None) -> GgufHeader:
    """The header of a GGUF file, or `SourceError` with the key and the byte at which it cannot be true; `inside` as in
    `open_regular`."""
    with open_regular(path, inside) as (file, size):
        return _Reader(path, file, size).header()


class _Reader:
    """A position in the file and the bytes around it. Nothing is read before its length was checked."""

    def __init__(self, path: str, file: io.FileIO, size: int) -> None:
        self.path = path
        self.file = file
        self.size = size
        self.at = 0
        self.key = ""
        self.order = "<"
        self.strings = 0
        self.template_bytes = 0
        self.bytes_read = 0
        self._buffer = bytearray()
        self._start = 0

    def header(self) -> GgufHeader:
        if self.take(4) != MAGIC:
            self.fail("is not a GGUF file")
        version = self.number("I")
        if version & 0xFFFF == 0:
            self.order = ">"
            version = int.from_bytes(version.to_bytes(4, "little"), "big")
        if version not in VERSIONS:
            hint = "convert the model again" if version == 1 else None
            self.fail(f"has version {version}; 2 and 3 are read", hint)
        found = GgufHeader(self.path, version, self.order == ">")
        tensors = self.number("Q")
        pairs = self.number("Q")
        room = self.size - self.at
        if tensors * _LEAST_TENSOR > room:
            self.fail(f"claims {tensors:,} tensors, more than fit into the file")
        if pairs * _LEAST_PAIR > room or pairs > KEYS:
            self.fail(f"claims {pairs:,} keys, more than {'fit into the file' if pairs <= KEYS else f'{KEYS:,}'}")
        types = b""
        seen: set[bytes] = set()
        for _ in range(pairs):
            self.key = ""
            key = self.text("key", KEY_BYTES)
            if not key:
                self.fail("has an empty key")
            if key.encode() in seen:
                self.fail(f"has the key {key} twice")
            seen.add(key.encode())
            self.key = key
            types = self.pair(key, found) or types
        if found.vocabulary is not None and types:
            vocabulary = found.vocabulary
            found.vocabulary = GgufVocabulary(vocabulary.records, vocabulary.starts, found.big_endian, types)
        found.bytes_read = self.bytes_read
        return found

    def pair(self, key: str, found: GgufHeader) -> bytes:
        """Read or skip one value; the types of the tokens are returned, everything else goes into `found`."""
        code = self.number("I")
        if key == TEMPLATE or key.startswith(TEMPLATE + "."):
            self.require(code == _STRING, "a string")
            text = self.text("template", TEXT_BYTES)
            self.template_bytes += len(text.encode())
            if self.template_bytes > TEXT_BYTES:
                self.fail(f"has templates of more than {TEXT_BYTES:,} bytes in all")
            found.templates[key] = text
        elif key in TEXTS:
            self.require(code == _STRING, "a string")
            found.values[key] = self.text("text", KEY_BYTES)
        elif key in _ID_KEYS:
            self.require(code in _INTEGERS, "an integer")
            found.values[key] = self.number(_SCALARS[code])
        elif key in BOOLEANS:
            self.require(code == _BOOLEAN, "a boolean")
            found.values[key] = bool(self.number("B"))
        elif code != _ARRAY:
            self.require(key not in _ARRAYS, "a list")
            self.skip_scalar(code)
        else:
            return self.list_value(key, found)
        return b""

    def list_value(self, key: str, found: GgufHeader) -> bytes:
        """Read, keep or skip one array; the types of the tokens are returned."""
        code = self.number("I")
        count = self.number("Q")
        if code == _STRING:
            self.check_strings(count)
            if key == TOKENS:
                if count > LIST_OF_TOKENS:
                    self.fail(f"claims {count:,} tokens, more than {LIST_OF_TOKENS:,}")
                begin = self.at
                starts = self.walk(count, keep=True)
                self.fill(0, begin)
                ends = starts[1:]
                ends.append(self.at - begin)
                if max(map(sub, ends, starts), default=0) > 8 + TOKEN_BYTES:
                    self.fail(f"has a token of more than {TOKEN_BYTES:,} bytes")
                records = bytes(memoryview(self._buffer)[begin - self._start : self.at - self._start])
                found.vocabulary = GgufVocabulary(records, starts, self.order == ">")
            elif key == TEMPLATE_NAMES:
                if count > KEY_BYTES:
                    self.fail(f"names {count:,} templates, more than {KEY_BYTES:,}")
                found.template_names = [self.text("name", KEY_BYTES) for _ in range(count)]
            else:
                self.walk(count, keep=False)
            return b""
        self.require(key not in {TOKENS, TEMPLATE_NAMES}, "a list of strings")
        if code not in _SIZES:
            self.fail("is a list of lists" if code == _ARRAY else f"has a list of the unknown type {code}")
        length = count * _SIZES[code]
        if length > self.size - self.at:
            self.fail(f"claims {count:,} numbers, more than fit into the file")
        if key == TOKEN_TYPES:
            self.require(code in {4, 5}, "a list of 32-bit integers")
            if count > LIST_OF_TOKENS:
                self.fail(f"claims {count:,} token types, more than {LIST_OF_TOKENS:,}")
            return self.take(length)
        self.at += length
        return b""

    def require(self, good: bool, expected: str) -> None:
        if not good:
            self.fail(f"should be {expected}")

    def skip_scalar(self, code: int) -> None:
        if code == _STRING:
            self.length(STRING_BYTES, "string", skip=True)
        elif code in _SIZES:
            self.skip(_SIZES[code])
        else:
            self.fail(f"has the unknown type {code}")

    def skip(self, length: int) -> None:
        if length > self.size - self.at:
            self.fail("ends in the middle of a value")
        self.at += length

    def length(self, limit: int, what: str, *, skip: bool = False) -> int:
        length = self.number("Q")
        if length > self.size - self.at:
            self.fail(f"claims a {what} of {length:,} bytes, more than the file has left")
        if length > limit:
            self.fail(f"has a {what} of {length:,} bytes, more than {limit:,}")
        if skip:
            self.at += length
        return length

    def text(self, what: str, limit: int) -> str:
        data = self.take(self.length(limit, what))
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            self.fail(f"has a {what} that is not UTF-8 ({error.reason})")

    def check_strings(self, count: int) -> None:
        self.strings += count
        if count * 8 > self.size - self.at:
            self.fail(f"claims {count:,} strings, more than fit into the file")
        if self.strings > STRINGS:
            self.fail(f"claims {count:,} strings, more than {STRINGS:,} in all lists")

    def walk(self, count: int, *, keep: bool) -> array.array[int]:
        """Pass `count` strings; where each starts, counted from the first. `keep`: leave them all in the buffer.

        Big headers spend their time here, so the loop itself checks nothing: a length that leads out of the buffer,
        by a little or by 2^63, makes the next `unpack` raise, and then it is judged.
        """
        unpack = struct.Struct(self.order + "Q").unpack_from
        starts = array.array("Q")
        note = starts.append
        begin = self.at
        while len(starts) < count:
            self.fill(8, begin if keep else self.at)
            buffer, at, offset = self._buffer, self.at - self._start, self._start - begin
            with contextlib.suppress(struct.error, OverflowError):
                for _ in range(count - len(starts)):
                    length = unpack(buffer, at)[0]
                    note(at + offset)
                    at += length + 8
            if self._start + at > self.size:
                self.fail("claims a string that is longer than what the file has left")
            self.at = self._start + at
        return starts

    def number(self, letter: str) -> int:
        size = struct.calcsize("<" + letter)
        value: int = struct.unpack(self.order + letter, self.take(size))[0]
        return value

    def take(self, length: int) -> bytes:
        self.fill(length, self.at)
        start = self.at - self._start
        self.at += length
        return bytes(self._buffer[start : start + length])

    def fill(self, length: int, since: int) -> None:
        """Have the bytes from `since` to `length` after the position at hand, and forget those before `since`."""
        end = self.at + length
        if end > self.size:
            self.fail("ends in the middle of a value")
        have = self._start + len(self._buffer)
        if since >= self._start and end <= have:
            return
        if self._start <= since < have:
            del self._buffer[: since - self._start]
        else:
            self._buffer.clear()
        self._start = since
        start = since + len(self._buffer)
        wanted = min(max(end - start, _CHUNK, len(self._buffer)), self.size - start)
        if self.bytes_read + wanted > READ_BYTES:
            self.fail(f"needs more than {READ_BYTES:,} bytes for its header")
        self.file.seek(start)
        while wanted and (chunk := self.file.read(min(wanted, _LARGEST_CHUNK))):
            self._buffer += chunk
            wanted -= len(chunk)
            self.bytes_read += len(chunk)
        if self._start + len(self._buffer) < end:
            self.fail("became shorter while it was read")

    def fail(self, reason: str, hint: str | None = None) -> NoReturn:
        place = f"{self.key}, byte {self.at}" if self.key else f"byte {self.at}"
        raise failure(self.path, reason, place=place, hint=hint)
