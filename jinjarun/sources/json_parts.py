"""A JSON file in parts: what is wanted is made into objects, a piece at a time; the rest is checked and passed over.

Python's parser makes objects of everything, which costs ten times the bytes of a file. Here regular expressions pass
over runs of values that hold no deeper ones, and a stack holds what is open. Time is linear in the bytes; memory is
that of the file and of what the caller keeps.
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, Any, NoReturn

from jinjarun.sources.files import BOM, failure
from jinjarun.sources.json_data import DEPTH, JsonBounds, load_json

if TYPE_CHECKING:
    from collections.abc import Iterator

VALUE = JsonBounds(1_000_000, 20_000, 50_000)
"""What one value may hold that is made into objects."""

RUN = 500
"""The most entries of a piece, and its most bytes."""
RUN_BYTES = 4_000_000

DEEP_VALUES = 100_000
"""The most values that hold deeper ones and are passed over. A run costs next to nothing, each of these some
microseconds; real files have a few dozen."""

_CHUNK = 1 << 20
_BYTES_OF_BOM = BOM.encode()

SPACE = rb"[ \t\n\r]*+"
TEXT = rb'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"'
NUMBER = rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+"
SCALAR = rb"(?:%b|%b|true|false|null)" % (TEXT, NUMBER)
COLON = rb"%b:%b" % (SPACE, SPACE)
COMMA = rb"%b,%b" % (SPACE, SPACE)
_FLAT_LIST = rb"\[%b(?:%b(?:%b%b)*+)?+%b\]" % (SPACE, SCALAR, COMMA, SCALAR, SPACE)
_MEMBER = TEXT + COLON + SCALAR
FLAT_OBJECT = rb"\{%b(?:%b(?:%b%b)*+)?+%b\}" % (SPACE, _MEMBER, COMMA, _MEMBER, SPACE)
_FLAT = rb"(?:%b|%b|%b)" % (SCALAR, _FLAT_LIST, FLAT_OBJECT)

_space = re.compile(SPACE)
_text = re.compile(TEXT)
_colon = re.compile(COLON)
_flat = re.compile(_FLAT)
_items = re.compile(rb"(?:%b%b)*+" % (_FLAT, COMMA))
_members = re.compile(rb"(?:%b%b%b%b)*+" % (TEXT, COLON, _FLAT, COMMA))
_TYPES = {b"{": "an object", b"[": "a list", b'"': "a string", b"t": "a boolean", b"f": "a boolean", b"n": "null"}
_CLOSERS = {b"{": b"}", b"[": b"]"}


class JsonParts:
    """A place in the bytes of a JSON file, at a value. Whoever walks `members` takes each value by one of the
    methods before the next. All raise `SourceError` where the bytes are no JSON."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.data = data
        self.had_bom = data.startswith(_BYTES_OF_BOM)
        self.at = len(_BYTES_OF_BOM) if self.had_bom else 0
        self.runs_ended = True
        self._deep_values = 0
        self._require_utf8()
        self._pass_space()
        if self.at == len(data):
            raise failure(path, "is empty")

    def type(self) -> str:
        """The JSON name of the value's type, with its article."""
        return _TYPES.get(self._byte(), "a number")

    def members(self) -> Iterator[str]:
        """The keys of an object, each with the place at its value."""
        self._take(b"{")
        self._pass_space()
        more = self._byte() != b"}"
        while more:
            yield self.key()
            more = self._comma()
        self._take(b"}")

    def key(self) -> str:
        """Passes over a key and its colon."""
        key: str = load_json(self.path, self._pass_key().decode(), VALUE)[0]
        return key

    def value(self, place: str) -> Any:
        """The value as Python has it, within `VALUE`. NaN is none."""
        start = self.at
        self.skip()
        if self.at - start > VALUE.bytes:
            raise failure(self.path, f"is larger than {VALUE.bytes:,} bytes", place=place)
        return load_json(self.path, self.data[start : self.at].decode(), VALUE)[0]

    def runs(self, entry: bytes) -> Iterator[str]:
        """The inside of an object or a list, a piece of at most `RUN` entries at a time, as text.

        `entry`: the pattern of one. Where something else follows, the iteration ends with the place at it, and
        `runs_ended` is false.
        """
        closer = _CLOSERS[self._byte()]
        run, last = _compiled(entry)
        self.at += 1
        self._pass_space()
        self.runs_ended = self._byte() == closer
        while not self.runs_ended:
            start = self.at
            found = run.match(self.data, start) or last.match(self.data, start)
            if found is None:
                return
            self.runs_ended = found.re is last
            self.at = found.end()
            if self.at - start > RUN_BYTES:
                reason = f"has entries that are too large: {RUN} of them may have {RUN_BYTES:,} bytes"
                raise failure(self.path, reason, place=f"byte {start}")
            yield self.data[start : self.at].decode().rstrip(" \t\n\r,")
        self._take(closer)

    def skip(self) -> None:
        """Passes over a value, however deep, and checks that it is one."""
        closers: list[bytes] = []
        while True:
            if found := _flat.match(self.data, self.at):
                self.at = found.end()
                while closers and not self._comma():
                    self._take(closers.pop())
                if not closers:
                    return
            else:
                opener = self._byte()
                if opener not in _CLOSERS:
                    self._fail()
                closers.append(_CLOSERS[opener])
                if len(closers) > DEPTH:
                    reason = f"is nested too deeply: more than {DEPTH} lists and objects in one another"
                    raise failure(self.path, reason, place=f"byte {self.at}")
                self._deep_values += 1
                if self._deep_values > DEEP_VALUES:
                    raise failure(self.path, f"holds too much: more than {DEEP_VALUES:,} nested lists and objects")
                self.at += 1
                self._pass_space()
            run = _members if closers[-1] == b"}" else _items
            if found := run.match(self.data, self.at):
                self.at = found.end()
            if closers[-1] == b"}":
                self._pass_key()

    def end(self) -> None:
        """The file must end here."""
        self._pass_space()
        if self.at < len(self.data):
            self._fail()

    def _pass_key(self) -> bytes:
        key = _text.match(self.data, self.at)
        colon = key and _colon.match(self.data, key.end())
        if key is None or colon is None:
            self._fail()
        self.at = colon.end()
        return key[0]

    def _comma(self) -> bool:
        """Whether another entry follows; the place is then at it."""
        self._pass_space()
        if self._byte() != b",":
            return False
        self.at += 1
        self._pass_space()
        return True

    def _take(self, mark: bytes) -> None:
        self._pass_space()
        if self._byte() != mark:
            self._fail()
        self.at += 1

    def _byte(self) -> bytes:
        return self.data[self.at : self.at + 1]

    def _pass_space(self) -> None:
        if found := _space.match(self.data, self.at):
            self.at = found.end()

    def _fail(self) -> NoReturn:
        what = "is not JSON" if self.at < len(self.data) else "is not JSON (it ends too early)"
        raise failure(self.path, what, place=f"byte {self.at}")

    def _require_utf8(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")()
        for start in range(0, len(self.data), _CHUNK):
            pending = len(decoder.getstate()[0])
            chunk = self.data[start : start + _CHUNK]
            try:
                decoder.decode(chunk, final=start + _CHUNK >= len(self.data))
            except UnicodeDecodeError as error:
                where = f"byte {start - pending + error.start}"
                raise failure(self.path, f"is not UTF-8 ({error.reason})", place=where) from None


def _compiled(entry: bytes) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """A run of entries with a comma after each, and the last entry of all."""
    return re.compile(rb"(?:%b%b){1,%d}+" % (entry, COMMA, RUN)), re.compile(entry)
