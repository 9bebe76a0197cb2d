"""Bad input is a `SourceError` that names file, place and reason, and nothing blocks or grows."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jinjarun.errors import SourceError, quote
from jinjarun.sources import files, json_data, open_source
from tests.sources.support import TEMPLATE, checked, refused, unusable, write

CONFIG = "tokenizer_config.json"


def test_a_template_file_is_read_exactly(tmp_path: Path) -> None:
    text = "{{ x }}\r\n\u2028\x00\n  "
    path = write(tmp_path, {"a.jinja": text}) / "a.jinja"
    source = open_source(path)
    assert source.templates == {"default": text}
    assert source.report() == {"kind": "jinja_file", "path": str(path), "key": None, "revision": None}
    assert (source.name, source.form, source.notes) == ("a", "string", ())
    assert open_source(str(path), name="mine").name == "mine"


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    source = open_source("-", stdin=io.BytesIO(TEMPLATE.encode()))
    assert source.report() == {"kind": "stdin", "path": "-", "key": None, "revision": None}
    assert source.template() == TEMPLATE
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff")))
    assert refused("-").details["place"] == "byte 0"
    monkeypatch.setattr(files, "TEXT_BYTES", 3)
    monkeypatch.setattr("jinjarun.sources.TEXT_BYTES", 3)
    assert "more than that of at most 3 bytes" in refused("-", stdin=io.BytesIO(b"four")).details["reason"]


@pytest.mark.parametrize("name", ["a.jinja", CONFIG])
def test_a_byte_order_mark_is_left_out(tmp_path: Path, name: str) -> None:
    content = TEMPLATE if name == "a.jinja" else json.dumps({"chat_template": TEMPLATE})
    source = open_source(write(tmp_path, {name: content.encode("utf-8-sig")}) / name)
    assert source.template() == TEMPLATE
    assert "byte order mark" in source.notes[0].message


@pytest.mark.parametrize("name", ["a.jinja", CONFIG])
@pytest.mark.parametrize(
    ("content", "place", "hint"),
    [
        (b"{\xff", "byte 1", None),
        ("ä".encode("utf-16"), "byte 0", "save it as UTF-8"),
        (b"{\xed\xa0\x80", "byte 1", None),
    ],
)
def test_not_utf8(tmp_path: Path, name: str, content: bytes, place: str, hint: str | None) -> None:
    error = refused(write(tmp_path, {name: content}) / name)
    assert error.details["place"] == place
    assert "is not UTF-8" in error.details["reason"]
    assert hint is None or hint in error.details["hint"]


def test_nothing_there(tmp_path: Path) -> None:
    assert refused(tmp_path / "a.jinja").details["reason"] == "no such file or directory"
    assert refused(tmp_path / "no such folder").details["reason"] == "no such file or directory"
    assert refused("a\0.jinja").details["reason"].startswith("is no file name")
    assert refused("x" * 5_000).details["reason"] == "file name too long"
    assert unusable(open_source(tmp_path)).details["reason"] == "holds no chat template"


@pytest.mark.parametrize(
    "target", ["http://localhost:8080", "https://huggingface.co/a/b", "a b", "../a/b/c", "org/../x"]
)
def test_what_is_neither_file_nor_repository(target: str) -> None:
    refused(target)


@pytest.mark.parametrize("name", ["chat_template.jinja", CONFIG, "tokenizer.json", "additional_chat_templates"])
def test_links_in_circles(tmp_path: Path, name: str) -> None:
    (tmp_path / name).symlink_to(tmp_path / name)
    error = refused(tmp_path)
    assert error.details["path"] == str(tmp_path / name)
    assert "symbolic links" in error.details["reason"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("name", ["chat_template.jinja", CONFIG, "a.gguf"])
def test_pipes_do_not_block(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    assert refused(tmp_path / name).details["reason"] == "is a named pipe, not a file"
    if not name.endswith(".gguf"):
        assert refused(tmp_path).details["path"] == str(tmp_path / name)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no /dev/zero here")
def test_devices_are_not_read() -> None:
    assert refused("/dev/zero").details["reason"] == "is a device, not a file"


def test_a_pipe_that_took_the_place_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, {"a.jinja": TEMPLATE}) / "a.jinja"
    before = os.stat(path)
    path.unlink()
    os.mkfifo(path)
    monkeypatch.setattr(os, "stat", lambda _: before)
    assert refused(path).details["reason"] == "is a named pipe, not a file"


def test_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, {"a.jinja": TEMPLATE}) / "a.jinja"
    path.chmod(0)
    if os.access(path, os.R_OK):  # the superuser may

        def denied(*_: Any) -> int:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(os, "open", denied)
    assert refused(path).details["reason"] == "permission denied"


def test_errors_while_reading() -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError(5, "Input/output error")

    assert refused("-", stdin=Broken()).details["reason"] == "input/output error"


def test_large_files_are_not_read(tmp_path: Path) -> None:
    for name in ("a.jinja", CONFIG):
        path = tmp_path / name
        path.touch()
        os.truncate(path, 40_000_000_000)
        assert "40,000,000,000 of at most" in refused(path).details["reason"]


def test_a_template_of_100_megabytes_in_a_configuration(tmp_path: Path) -> None:
    error = refused(write(tmp_path, {CONFIG: {"chat_template": "x" * 100_000_000}}))
    assert "of at most 8,000,000 bytes" in error.details["reason"]


def test_a_file_that_grows_while_it_is_read(tmp_path: Path) -> None:
    stream = io.BytesIO(b"x" * 100)
    with pytest.raises(SourceError, match="more than that of at most 99 bytes"):
        files.read_stream("a", stream, 99)


def test_directories_with_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {f"additional_chat_templates/{number}.jinja": "x" for number in range(101)})
    assert "101 templates" in refused(tmp_path).details["reason"]
    monkeypatch.setattr(files, "LISTED_FILES", 100)
    assert "more than 100 entries" in refused(tmp_path).details["reason"]


JSON = {
    "empty": ("", "is empty", "line 1, column 1"),
    "truncated": ('{"chat_template": "a', "is not JSON", "line 1, column 19"),
    "comment": ("{\n// x\n}", "is not JSON", "line 2, column 1"),
    "list": ("[]", "should hold a JSON object, holds a list", None),
    "string": ('"a"', "should hold a JSON object, holds a string", None),
    "null": ("null", "should hold a JSON object, holds null", None),
    "deep": ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "is nested too deeply", None),
    "NaN": ('{"a": "NaN \\" NaN",\n "b": NaN}', "NaN is not JSON", "line 2, column 7"),
    "Infinity": ('{"b": -Infinity}', "-Infinity is not JSON", "line 1, column 7"),
    "digits": ('{"a": ' + "9" * 5_000 + "}", "too many digits", None),
    "containers": ('{"a": [' + "[]," * 200_000 + "[]]}", "holds too much", None),
    "values": ('{"a": [' + "1," * 1_000_001 + "1]}", "holds too much", None),
    "surrogate": ('{"chat_template": "\\ud800"}', None, None),
    "number": ('{"chat_template": "x", "model_max_length": 1000000000000000019884624838656}', None, None),
}


@pytest.mark.parametrize("name", JSON)
def test_json(tmp_path: Path, name: str) -> None:
    text, reason, place = JSON[name]
    path = write(tmp_path, {CONFIG: text}) / CONFIG
    if reason is None:
        open_source(path)
        return
    error = refused(path)
    assert reason in error.details["reason"]
    assert error.details["place"] == place
    assert refused(tmp_path).details == error.details


def test_infinity_is_usual_in_config_json(tmp_path: Path) -> None:
    source = open_source(write(tmp_path, {"config.json": '{"time_step_limit": [0.0, Infinity], "eos_token_id": 2}'}))
    assert source.tokens.model_eos is not None
    assert [token.id for token in source.tokens.model_eos] == [2]


def test_keys_that_stand_twice(tmp_path: Path) -> None:
    source = open_source(write(tmp_path, {CONFIG: '{"chat_template": "a", "chat_template": "b"}'}))
    assert source.template() == "b"
    assert [(note.place, "the last one counts" in note.message) for note in source.notes] == [("chat_template", True)]


WRONG: list[tuple[str, Any, str]] = [
    (CONFIG, {"chat_template": 5}, "chat_template"),
    (CONFIG, {"chat_template": True}, "chat_template"),
    (CONFIG, {"bos_token": 5}, "bos_token"),
    (CONFIG, {"eos_token": ["</s>"]}, "eos_token"),
    (CONFIG, {"eos_token": {"content": 5}}, "eos_token.content"),
    (CONFIG, {"eos_token": {}}, "eos_token.content"),
    (CONFIG, {"add_bos_token": "yes"}, "add_bos_token"),
    (CONFIG, {"add_eos_token": 1}, "add_eos_token"),
    (CONFIG, {"tokenizer_class": {}}, "tokenizer_class"),
    (CONFIG, {"added_tokens_decoder": []}, "added_tokens_decoder"),
    (CONFIG, {"added_tokens_decoder": {"x": {}}}, "added_tokens_decoder.x"),
    (CONFIG, {"added_tokens_decoder": {"-1": {}}}, "added_tokens_decoder.-1"),
    (CONFIG, {"added_tokens_decoder": {"9" * 5_000: {}}}, quote(f"added_tokens_decoder.{'9' * 5_000}")),
    (CONFIG, {"added_tokens_decoder": {"9999999999": {"content": "a"}}}, "added_tokens_decoder.9999999999"),
    (CONFIG, {"added_tokens_decoder": {"1": "a"}}, "added_tokens_decoder.1"),
    (CONFIG, {"added_tokens_decoder": {"1": {}}}, "added_tokens_decoder.1.content"),
    (CONFIG, {"added_tokens_decoder": {"1": {"content": "a", "special": 1}}}, "added_tokens_decoder.1.special"),
    ("chat_template.json", {"chat_template": 5}, "chat_template"),
    ("processor_config.json", {"chat_template": 5}, "chat_template"),
    ("special_tokens_map.json", {"bos_token": 5}, "bos_token"),
    ("added_tokens.json", {"a": "b"}, "a"),
    ("added_tokens.json", {"a": 1 << 40}, "a"),
    ("generation_config.json", {"eos_token_id": "a"}, "eos_token_id"),
    ("generation_config.json", {"eos_token_id": ["a"]}, "eos_token_id"),
    ("generation_config.json", {"eos_token_id": [True]}, "eos_token_id"),
    ("generation_config.json", {"eos_token_id": -2}, "eos_token_id"),
    ("generation_config.json", {"eos_token_id": 1.5}, "eos_token_id"),
    ("config.json", {"text_config": []}, "text_config"),
    ("config.json", {"text_config": {"eos_token_id": {}}}, "text_config.eos_token_id"),
    ("tokenizer.json", {"added_tokens": {}}, "added_tokens"),
    ("tokenizer.json", {"added_tokens": ["a"]}, "added_tokens[0]"),
    ("tokenizer.json", {"added_tokens": [{"content": "a"}]}, "added_tokens[0].id"),
    ("tokenizer.json", {"added_tokens": [{"id": 0}]}, "added_tokens[0].content"),
    ("tokenizer.json", {"model": []}, "model"),
    ("tokenizer.json", {"model": {"vocab": "a"}}, "model.vocab"),
    ("tokenizer.json", {"model": {"vocab": {"a": "b"}}}, "model.vocab.a"),
    ("tokenizer.json", {"model": {"vocab": [["a", 1.0], [1]]}}, "model.vocab[1]"),
    ("tokenizer.json", {"post_processor": []}, "post_processor"),
    ("tokenizer.json", {"post_processor": {"type": 1}}, "post_processor.type"),
    ("tokenizer.json", {"post_processor": {"type": "BertProcessing", "cls": ["a", 1]}}, "post_processor.sep"),
    ("tokenizer.json", {"post_processor": {"type": "BertProcessing", "cls": [1]}}, "post_processor.cls"),
    ("tokenizer.json", {"post_processor": {"type": "TemplateProcessing", "single": {}}}, "post_processor.single"),
    ("tokenizer.json", {"post_processor": {"type": "TemplateProcessing", "single": [1]}}, "post_processor.single[0]"),
    (
        "tokenizer.json",
        {"post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {}}]}},
        "post_processor.single[0].SpecialToken.id",
    ),
    ("tokenizer.json", {"post_processor": {"type": "Sequence", "processors": [1]}}, "post_processor.processors[0]"),
]


@pytest.mark.parametrize(("name", "content", "place"), WRONG, ids=lambda value: str(value)[:60])
def test_wrong_types(tmp_path: Path, name: str, content: Any, place: str) -> None:
    with pytest.raises(SourceError) as caught:
        open_source(write(tmp_path, {name: content}))
    assert caught.value.details["path"] == str(tmp_path / name)
    assert caught.value.details["place"] == place


@pytest.mark.parametrize(
    "name",
    sorted({name for name, _, _ in WRONG if name not in {CONFIG, "chat_template.json", "processor_config.json"}}),
)
def test_files_without_templates(tmp_path: Path, name: str) -> None:
    assert refused(write(tmp_path, {name: {}}) / name).details["hint"] == "give the folder that it is in"


def test_messages_are_safe_to_print(tmp_path: Path) -> None:
    error = refused(write(tmp_path, {CONFIG: {"added_tokens_decoder": {"\x1b[31m" + "x" * 1_000: {}}}}))
    assert str(error).isprintable()
    assert len(str(error)) < 600


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text("ab0", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["content", "id", "name", "template", "type", "single", "processors", "vocab", "SpecialToken", "1"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
KEYS = [
    *(
        "chat_template",
        "bos_token",
        "eos_token",
        "image_token",
        "add_bos_token",
        "added_tokens_decoder",
        "eos_token_id",
    ),
    *("text_config", "added_tokens", "model", "post_processor", "tokenizer_class"),
]
NAMES = sorted({name for name, _, _ in WRONG})


@given(st.dictionaries(st.sampled_from(NAMES), st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4), max_size=4))
def test_any_values_give_an_answer_or_a_source_error(
    tmp_path_factory: pytest.TempPathFactory, contents: dict[str, Any]
) -> None:
    folder = tmp_path_factory.getbasetemp() / "any-values"
    folder.mkdir(exist_ok=True)
    for name in NAMES:
        (folder / name).unlink(missing_ok=True)
    write(folder, contents)
    for reads_as in ("transformers", "llama.cpp"):
        try:
            source = open_source(folder, reads_as=reads_as)
            source.template()
        except SourceError as error:
            checked(error)


def test_each_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contents: dict[str, Any] = {name: {} for name in NAMES} | {
        "chat_template.jinja": TEMPLATE,
        "additional_chat_templates/a.jinja": TEMPLATE,
    }
    write(tmp_path, contents)
    opened: list[str] = []
    real = os.open

    def counting(path: Any, flags: int, *rest: Any) -> int:
        if str(path).startswith(str(tmp_path)):
            assert not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            opened.append(os.path.relpath(path, tmp_path))
        return real(path, flags, *rest)

    monkeypatch.setattr(os, "open", counting)
    open_source(tmp_path)
    assert sorted(opened) == sorted(contents)
    opened.clear()
    open_source(tmp_path, vocabulary=False)
    assert "tokenizer.json" not in opened


def test_bounds_hold_what_is_real() -> None:
    assert json_data.CONFIG.bytes > 5 * 1_200_000
    assert json_data.TOKENIZER.bytes > 1.5 * 33_400_000
