"""GGUF headers: what gguf-py writes is read back, in both byte orders and both versions, and what nobody wrote is not
believed."""

from __future__ import annotations

import os
import pickle
import struct
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jinjarun.errors import SourceError
from jinjarun.sources import Source, Token, gguf, open_source
from jinjarun.sources.gguf import read_gguf
from tests.sources.support import TEMPLATE, checked, refused, steps, unusable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TEXTS = ["<unk>", "<s>", "</s>", "<|im_end|>", "<|eom|>", "\u0120hello", "\u2581there", "", "ä", "</s>"]
TYPES = [2, 3, 3, 4, 3, 1, 1, 5, 6, 1]


def write(
    path: Path,
    *,
    big: bool = False,
    templates: Any = TEMPLATE,
    tokens: Sequence[str] | None = TEXTS,
    merges: Sequence[str] = ("a b", "c d"),
) -> Path:
    """A header as llama.cpp's converter writes it."""
    library = pytest.importorskip("gguf")
    writer = library.GGUFWriter(path, "llama", endianess=library.GGUFEndian.BIG if big else library.GGUFEndian.LITTLE)
    writer.add_name("small")
    writer.add_array("general.tags", ["a", "b"])
    writer.add_uint8("a.uint8", 1)
    writer.add_int16("a.int16", -1)
    writer.add_float64("a.float64", 1.5)
    writer.add_bool("a.bool", True)
    writer.add_array("a.floats", [1.0, 2.0])
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    if tokens is not None:
        writer.add_token_list(list(tokens))
        writer.add_token_scores([0.0] * len(tokens))
        writer.add_token_types((TYPES + [1] * len(tokens))[: len(tokens)])
    writer.add_token_merges(list(merges))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_eot_token_id(3)
    writer.add_eom_token_id(4)
    writer.add_pad_token_id(0)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    if templates is not None:
        writer.add_chat_template(templates)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def same_in_version_2(path: Path) -> Path:
    """Versions 2 and 3 differ in the number alone; gguf-py writes only 3."""
    data = bytearray(path.read_bytes())
    order = "<" if data[4] == 3 else ">"
    data[4:8] = struct.pack(f"{order}I", 2)
    path.write_bytes(data)
    return path


@pytest.fixture(params=["3 little", "3 big", "2 little", "2 big"])
def small(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    version, order = request.param.split()
    path = write(tmp_path / "small.gguf", big=order == "big")
    return same_in_version_2(path) if version == "2" else path


def test_templates_and_tokens(small: Path) -> None:
    source = open_source(small)
    assert source.templates == {"default": TEMPLATE}
    assert source.report() == {"kind": "gguf", "path": str(small), "key": "tokenizer.chat_template", "revision": None}
    tokens = source.tokens
    assert tokens.special == {
        "bos": Token("<s>", 1, "control"),
        "eos": Token("</s>", 2, "control"),
        "eot": Token("<|im_end|>", 3, "user_defined"),
        "eom": Token("<|eom|>", 4, "control"),
        "pad": Token("<unk>", 0, "unknown"),
    }
    assert (tokens.add_bos, tokens.add_eos, tokens.model, tokens.pre) == (True, False, "llama", "default")
    assert tokens.vocabulary is not None
    assert len(tokens.vocabulary) == len(TEXTS)
    assert [tokens.token(id) for id in (-1, len(TEXTS))] == [None, None]
    assert [token.text for id in range(len(TEXTS)) if (token := tokens.token(id))] == TEXTS
    assert {note.message[:13] for note in source.notes} == (
        {"is big-endian"} if read_gguf(str(small)).big_endian else set()
    )


def test_is_this_text_one_token(small: Path) -> None:
    tokens = open_source(small).tokens
    assert tokens.find("</s>") == Token("</s>", 2, "control")
    assert tokens.find(" hello") == Token("\u0120hello", 5, "normal")
    assert tokens.find(" there") == Token("\u2581there", 6, "normal")
    assert tokens.is_token("") is False
    assert tokens.is_token("ä") is True
    assert tokens.is_token("im_end") is False
    assert tokens.is_token("\x03\x00\x00\x00\x00\x00\x00\x00<s>") is False


def test_named_templates(tmp_path: Path) -> None:
    named = [{"name": name, "template": name.upper() + TEMPLATE} for name in ("default", "tool_use", "rag")]
    source = open_source(write(tmp_path / "a.gguf", templates=named))
    assert source.templates == {item["name"]: item["template"] for item in named}
    assert source.report("tool_use")["key"] == "tokenizer.chat_template.tool_use"
    assert source.form == "list"
    assert source.notes == ()


def test_tool_use_serves_where_the_default_is_missing(tmp_path: Path) -> None:
    for text in (None, "", "chatml"):
        named = [{"name": "tool_use", "template": TEMPLATE}, {"name": "default", "template": text}]
        source = open_source(write(tmp_path / "a.gguf", templates=named))
        assert source.template() == TEMPLATE
        assert source.default == "tool_use"


def test_no_template(tmp_path: Path) -> None:
    source = open_source(write(tmp_path / "a.gguf", templates=None))
    assert source.form == "absent"
    assert unusable(source).details["reason"] == "holds no chat template"


def test_a_name_in_place_of_a_template(tmp_path: Path) -> None:
    error = unusable(open_source(write(tmp_path / "a.gguf", templates="llama2")))
    assert error.details["place"] == "tokenizer.chat_template"
    assert "built into llama.cpp" in error.details["reason"]


def test_no_vocabulary(tmp_path: Path) -> None:
    tokens = open_source(write(tmp_path / "a.gguf", tokens=None)).tokens
    assert tokens.bos == Token(id=1)
    assert tokens.is_token("<s>") is None


def test_ids_outside_of_the_vocabulary_are_ignored(tmp_path: Path) -> None:
    source = open_source(write(tmp_path / "a.gguf", tokens=TEXTS[:4]))
    assert source.tokens.eom is None
    assert [note.place for note in source.notes] == ["tokenizer.ggml.eom_token_id"]


def test_sources_are_picklable(small: Path) -> None:
    source = open_source(small)
    assert pickle.loads(pickle.dumps(source)) == source


def test_by_content_when_the_name_does_not_say(tmp_path: Path) -> None:
    path = write(tmp_path / "a.gguf").rename(tmp_path / "blob")
    assert open_source(path).kind == "gguf"


def test_a_folder_of_one(tmp_path: Path) -> None:
    write(tmp_path / "m-00001-of-00002.gguf")
    (tmp_path / "m-00002-of-00002.gguf").write_bytes(b"unread")
    (tmp_path / "mmproj-f16.gguf").write_bytes(b"unread")
    source = open_source(tmp_path)
    assert (source.kind, source.template()) == ("model_folder", TEMPLATE)
    write(tmp_path / "other.gguf")
    assert refused(tmp_path).details["hint"] == "name one of them"


# Headers that nobody wrote


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def pair(key: bytes, code: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", code) + value


def header(*pairs: bytes, count: int | None = None, tensors: int = 0, version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, len(pairs) if count is None else count) + b"".join(pairs)


def array(code: int, count: int, data: bytes = b"") -> bytes:
    return struct.pack("<IQ", code, count) + data


CHAT = b"tokenizer.chat_template"
TOKENS = b"tokenizer.ggml.tokens"

FALSE = {
    "empty": (b"", "ends in the middle"),
    "short": (b"GGU", "ends in the middle"),
    "other": (b"GGML" + bytes(40), "is not a GGUF file"),
    "version 1": (header(version=1), "has version 1"),
    "version 4": (header(version=4), "has version 4"),
    "no counts": (header()[:20], "ends in the middle"),
    "2^63 keys": (header(count=1 << 63), "keys, more than"),
    "2^63 tensors": (header(tensors=1 << 63), "tensors, more than fit"),
    "2^63 strings": (header(pair(b"x", 9, array(8, 1 << 63))), "claims 9,223,372,036,854,775,808 strings"),
    "2^63 tokens": (header(pair(TOKENS, 9, array(8, 1 << 63))), "claims 9,223,372,036,854,775,808 strings"),
    "2^63 numbers": (header(pair(b"x", 9, array(0, 1 << 63))), "numbers, more than fit"),
    "2^63 bytes": (header(pair(b"x", 8, struct.pack("<Q", 1 << 63))), "more than the file has left"),
    "2^63 bytes of template": (header(pair(CHAT, 8, struct.pack("<Q", 1 << 63))), "more than the file has left"),
    "2^63 bytes of key": (header(struct.pack("<Q", 1 << 63), bytes(20)), "more than the file has left"),
    "a long key": (header(pair(b"k" * 2000, 0, b"\0")), "more than 1,024"),
    "a long token": (header(pair(TOKENS, 9, array(8, 1, struct.pack("<Q", 100)))), "claims a string that is longer"),
    "empty key": (header(pair(b"", 10, bytes(8))), "empty key"),
    "a key twice": (header(pair(b"x", 0, b"\0"), pair(b"x", 0, b"\0")), "twice"),
    "unknown type": (header(pair(b"x", 13, bytes(8))), "unknown type 13"),
    "unknown type in a list": (header(pair(b"x", 9, array(13, 1, bytes(8)))), "list of the unknown type 13"),
    "list of lists": (header(pair(b"x", 9, array(9, 1, bytes(20)))), "list of lists"),
    "template of another type": (header(pair(CHAT, 0, b"\0")), "should be a string"),
    "template not UTF-8": (header(pair(CHAT, 8, text(b"\xff"))), "not UTF-8"),
    "key not UTF-8": (header(pair(b"\xff", 8, text(b"x"))), "not UTF-8"),
    "id of another type": (header(pair(b"tokenizer.ggml.bos_token_id", 8, text(b"1"))), "should be an integer"),
    "add_bos of another type": (header(pair(b"tokenizer.ggml.add_bos_token", 0, b"\1")), "should be a boolean"),
    "tokens of another type": (header(pair(TOKENS, 9, array(4, 1, bytes(4)))), "should be a list of strings"),
    "types of another type": (header(pair(b"tokenizer.ggml.token_type", 9, array(0, 1, b"\1"))), "32-bit integers"),
    "names of another type": (header(pair(b"tokenizer.chat_templates", 8, text(b"x"))), "should be a list"),
    "value cut off": (header(pair(b"x", 10, bytes(4))), "ends in the middle"),
}


@pytest.mark.parametrize("name", FALSE)
def test_false_headers(tmp_path: Path, name: str) -> None:
    data, reason = FALSE[name]
    path = tmp_path / "false.gguf"
    path.write_bytes(data)
    error = refused(path)
    assert reason in error.details["reason"]
    assert "byte" in error.details["place"]


def test_tokens_that_are_no_list(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(header(pair(TOKENS, 8, text(b"x"))))
    assert "should be a list" in refused(path).details["reason"]


@pytest.mark.parametrize("cut", range(0, 200, 7))
def test_truncated(tmp_path: Path, cut: int) -> None:
    path = write(tmp_path / "a.gguf")
    path.write_bytes(path.read_bytes()[:cut])
    refused(path)


def sparse(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    os.truncate(path, 40_000_000_000)
    return str(path)


def test_forty_gigabytes_are_not_read(tmp_path: Path) -> None:
    small = write(tmp_path / "a.gguf").read_bytes()
    path = sparse(tmp_path / "huge.gguf", small)
    assert open_source(path).template() == TEMPLATE
    assert read_gguf(path).bytes_read <= 1 << 16
    skipped = pair(b"x", 8, struct.pack("<Q", 1 << 30))
    path = sparse(tmp_path / "skipped.gguf", header(skipped, count=8))
    assert refused(path).details["reason"] == "has an empty key"


class Counted(gguf._Reader):
    last: Counted

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        Counted.last = self


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf, "_Reader", Counted)


@pytest.mark.parametrize(
    ("count", "stride", "reason"),
    [
        (1 << 32, 0, "claims 4,294,967,296 strings"),
        (gguf.STRINGS, 0, ""),
        (gguf.STRINGS, 1 << 17, f"needs more than {gguf.READ_BYTES:,} bytes"),
    ],
)
@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("key", [b"x", TOKENS])
def test_work_is_bounded(tmp_path: Path, key: bytes, count: int, stride: int, reason: str) -> None:
    if key == TOKENS:
        count = min(count, gguf.LIST_OF_TOKENS) if count == gguf.STRINGS else count
    path = sparse(tmp_path / "a.gguf", header(pair(key, 9, array(8, count, struct.pack("<Q", stride))), tensors=0))
    if stride:
        with open(path, "r+b") as file:
            for index in range(2_000):
                file.seek(24 + 8 + len(key) + 4 + 12 + index * (8 + stride))
                file.write(struct.pack("<Q", stride))
    if reason:
        assert reason in refused(path).details["reason"]
    else:
        open_source(path)
    assert Counted.last.bytes_read <= gguf.READ_BYTES


def records(*values: bytes) -> bytes:
    return b"".join(map(text, values))


@pytest.mark.parametrize(
    "filler",
    [
        records(b"<|im_end|>", b"a") * 500,
        records(b"<|im_end|>" * 2) * 300,
        records("\u0120hello".encode()) * 700,
        b"a" * 9_000,
    ],
)
def test_tokens_that_hold_records_of_others(tmp_path: Path, filler: bytes) -> None:
    """A search through the bytes would stop at each; the steps are those of the number of tokens."""

    def found(filler: bytes) -> tuple[int, list[Token | None]]:
        values = [filler] * 40 + [b"<|im_end|>", b"a", b"<|im_end|>", "\u0120hello".encode(), b""]
        path = tmp_path / "a.gguf"
        path.write_bytes(header(pair(TOKENS, 9, array(8, len(values), records(*values)))))
        tokens = open_source(path).tokens
        asked = ("<|im_end|>", "a", " hello", "none", "")
        answers: list[Token | None] = []
        return steps(lambda: answers.extend(map(tokens.find, asked))), answers

    count, answers = found(filler)
    assert [token and token.id for token in answers] == [40, 41, 43, None, None]
    assert count == found(b"x")[0]


def test_a_pickled_vocabulary_finds_its_tokens_in_another_process(tmp_path: Path) -> None:
    """Hashes differ from process to process, so the index of them does not travel."""
    tokens = open_source(write(tmp_path / "a.gguf")).tokens
    assert tokens.find("<s>") is not None
    assert b"_index" not in pickle.dumps(tokens)
    assert pickle.loads(pickle.dumps(tokens)).find("<s>") == Token("<s>", 1, "control")


TOO_MUCH = {
    "tokens": (pair(TOKENS, 9, array(8, 520_001, bytes(8 * 520_001))), "claims 520,001 tokens"),
    "types": (pair(b"tokenizer.ggml.token_type", 9, array(4, 520_001, bytes(4 * 520_001))), "520,001 token types"),
    "a large token": (pair(TOKENS, 9, array(8, 2, records(b"x" * 65_537, b"a"))), "a token of more than 65,536 bytes"),
    "a large last token": (pair(TOKENS, 9, array(8, 2, records(b"a", b"x" * 70_000))), "a token of more than 65,536"),
    "templates": (
        b"".join(pair(b"%b.%d" % (CHAT, n), 8, text("é".encode() * 700_000)) for n in range(3)),
        "templates of more than 4,000,000 bytes in all",
    ),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_too_much(tmp_path: Path, name: str) -> None:
    data, reason = TOO_MUCH[name]
    path = tmp_path / "a.gguf"
    path.write_bytes(header(data, count=3 if name == "templates" else 1))
    assert reason in refused(path).details["reason"]


@given(st.data())
def test_mutations_give_an_answer_or_a_source_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.getbasetemp() / "mutations"
    folder.mkdir(exist_ok=True)
    whole = folder / "whole.gguf"
    original = (whole if whole.exists() else write(whole)).read_bytes()
    mutated = bytearray(original)
    for at in data.draw(st.lists(st.integers(0, len(original) - 1), min_size=1, max_size=4)):
        mutated[at] = data.draw(st.integers(0, 255))
    path = folder / "mutated.gguf"
    path.write_bytes(mutated[: data.draw(st.integers(0, len(mutated)) | st.just(len(mutated)))])
    try:
        source = open_source(path)
    except SourceError as error:
        checked(error)
    else:
        assert isinstance(source, Source)
        assert all(isinstance(text, str) for text in source.templates.values())
