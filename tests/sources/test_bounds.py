"""What a hostile file may cost is counted before it is spent, and work grows as the file does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jinjarun.errors import SourceError
from jinjarun.sources import Source, Token, TokenData, json_parts, open_source, tokenizer_json
from jinjarun.sources.json_data import JsonBounds, load_json
from jinjarun.sources.json_parts import JsonParts
from tests.sources.support import checked, refused, steps, write

CONFIG = "tokenizer_config.json"
Make = Callable[[int], dict[str, Any]]


def added(count: int) -> dict[str, Any]:
    return {str(id): {"content": f"t{id}", "special": True} for id in range(count)}


# Each as large as its number says. Before, the first four took the square of it.
GROWING: dict[str, Make] = {
    "added tokens and names": lambda n: {
        CONFIG: {"added_tokens_decoder": added(n)} | {f"n{id}_token": f"t{n - id}" for id in range(n)}
    },
    "names that are no added tokens": lambda n: {
        CONFIG: {"added_tokens_decoder": added(n)} | {f"n{id}_token": f"none{id}" for id in range(n)}
    },
    "special_tokens_map.json": lambda n: {
        CONFIG: {},
        "special_tokens_map.json": {f"n{id}_token": {"content": f"t{id}"} for id in range(n)},
        "added_tokens.json": {f"t{id}": id for id in range(n)},
    },
    "ids that end generation": lambda n: {
        CONFIG: {"added_tokens_decoder": added(n)},
        "generation_config.json": {"eos_token_id": list(range(n, 0, -1))},
        "config.json": {"text_config": {"eos_token_id": list(range(n))}},
    },
    "tokenizer.json": lambda n: {
        "tokenizer.json": {
            "added_tokens": [{"id": id, "content": f"t{id}", "special": False} for id in range(n)],
            "model": {"vocab": {f"v{id}": id for id in range(n)}, "merges": [["a", "b"]] * n},
        }
    },
    "scores": lambda n: {"tokenizer.json": {"model": {"vocab": [[f"v{id % 7}", -1.5] for id in range(n)]}}},
    "keys": lambda n: {CONFIG: {f"k{id}": [] for id in range(n)}},
}


@pytest.mark.parametrize("name", GROWING)
def test_work_grows_as_the_file_does(tmp_path: Path, name: str) -> None:
    counts = []
    for size in (300, 600):
        folder = write(tmp_path / str(size), GROWING[name](size))
        counts.append(steps(lambda folder=folder: asked(open_source(folder), 300)))  # type: ignore[misc]
    assert counts[1] < 2.2 * counts[0]


def asked(source: Source, count: int) -> None:
    for id in range(count):
        source.tokens.find(f"t{id}")
        source.tokens.token(id)


def test_the_first_of_equal_tokens_is_found() -> None:
    tokens = TokenData(added=(Token("a", 1), Token("a", 2), Token("b", 2)))
    assert (tokens.find("a"), tokens.token(2), tokens.find("")) == (Token("a", 1), Token("a", 2), None)


def test_a_text_longer_than_any_token_has_one_spelling(tmp_path: Path) -> None:
    source = open_source(write(tmp_path, {CONFIG: {"bos_token": " " * 2_000_000}}))
    assert source.tokens.bos == Token(" " * 2_000_000)


TOO_MUCH: dict[str, tuple[Any, str]] = {
    "objects": (f'{{"x":[{"{},{}," * 60_000}1]}}', "holds too much"),
    "lists in the template": ({"chat_template": [[]] * 100_001}, "holds too much"),
    "keys": ("{" + ",".join(f'"{n}":1' for n in range(300_002)) + "}", "holds too much"),
    "objects behind brackets in strings": (f'{{"x":"]]]]","y":[{"{}," * 100_000}1]}}', "holds too much"),
    "depth": ('{"x":' + "[" * 501 + "]" * 501 + "}", "is nested too deeply"),
    "depth of objects": ('{"x":' * 502 + "1" + "}" * 502, "is nested too deeply"),
    "depth behind closing brackets in strings": ('{"x":' + '["]",' * 600 + "1" + "]" * 600 + "}", "nested too deeply"),
    "depth behind escapes": ('{"x":' + '["\\\\\\"]",' * 600 + "1" + "]" * 600 + "}", "is nested too deeply"),
    "depth without an end": ('{"x":' + "[{" * 100_000, "is nested too deeply"),
    "digits": (f'{{"x":-{"1" * 4_301}}}', "too many digits"),
    "digits in a list": (f'{{"x":[{"7" * 100_000},1]}}', "too many digits"),
    "templates": ({"chat_template": [{"name": "a", "template": "b"}] * 101}, "101 templates, more than 100"),
    "templates by name": ({"chat_template": {str(n): "" for n in range(5_000)}}, "5,000 templates, more than 100"),
    "special tokens": ({f"n{n}_token": "x" for n in range(10_001)}, "more than 10,000 special tokens"),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_too_much_is_refused_before_it_is_parsed(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content, reason = TOO_MUCH[name]
    error = refused(write(tmp_path, {CONFIG: content}) / CONFIG)
    assert reason in error.details["reason"]
    if reason.startswith(("holds", "is nested")):
        monkeypatch.setattr(json, "loads", lambda *_, **__: pytest.fail("it was parsed"))
        refused(tmp_path / CONFIG)


@pytest.mark.parametrize(
    "content",
    [
        {"chat_template": "{[" * 400_000 + "," * 400_000},
        {"chat_template": '"{[,' * 200_000},
        {"x": [[]] * 99_000},
        '{"x":' + "[" * 499 + "]" * 499 + "}",
        {"x": "1" * 5_000, "chat_template": "\\" * 5_000},
    ],
)
def test_what_is_within_bounds_is_read(tmp_path: Path, content: Any) -> None:
    assert open_source(write(tmp_path, {CONFIG: content})).kind == "model_folder"


@given(st.recursive(st.text('[]{},"\\a', max_size=6), st.lists, max_leaves=30), st.integers(1, 5), st.integers(1, 20))
def test_counts_are_those_of_the_values(value: Any, containers: int, values: int) -> None:
    """Brackets and commas in strings count for nothing."""

    def lists(item: Any) -> int:
        return 1 + sum(map(lists, item)) if isinstance(item, list) else 0

    def commas(item: Any) -> int:
        return max(0, len(item) - 1) + sum(map(commas, item)) if isinstance(item, list) else 0

    within = lists(value) <= containers and commas(value) <= values
    try:
        assert load_json("x", json.dumps(value), JsonBounds(10_000, containers, values))[0] == value
        assert within
    except SourceError:
        assert not within


def test_the_files_of_one_model_count_together(tmp_path: Path) -> None:
    bulk: dict[str, Any] = {"x": [{}] * 60_000}
    write(tmp_path, {CONFIG: bulk, "chat_template.json": bulk})
    assert open_source(tmp_path / CONFIG).form == "absent"
    error = refused(tmp_path)
    assert error.details["path"] == str(tmp_path / "chat_template.json")
    assert "with the files beside it" in error.details["reason"]
    text = {CONFIG: {"x": "x" * 5_000_000}, "config.json": {"x": "x" * 5_000_000}}
    error = refused(write(tmp_path / "b", text))
    assert "of at most 2,99" in error.details["reason"]
    assert "count together" in error.details["hint"]


def test_the_templates_of_a_folder_count_together(tmp_path: Path) -> None:
    files = {f"additional_chat_templates/{n}.jinja": "x" * 1_500_000 for n in range(3)}
    assert "is too large" in refused(write(tmp_path, files)).details["reason"]


@pytest.mark.parametrize(
    "files",
    [
        {"added_tokens.json": {f"t{n}": n for n in range(70_001)}},
        {CONFIG: '{"added_tokens_decoder": {' + ",".join(f'"{n}":1' for n in range(70_001)) + "}}"},
    ],
)
def test_numbers_of_added_tokens(tmp_path: Path, files: dict[str, Any]) -> None:
    assert "70,001 added tokens, more than 70,000" in refused(write(tmp_path, files)).details["reason"]


# tokenizer.json


TOKENIZERS: dict[str, tuple[str, str]] = {
    "objects": ('{"x":[' + "{}," * 1_000_001 + "1]}", "holds too much"),
    "values": ('{"x":[' + "1," * 3_000_001 + "1]}", "holds too much"),
    "depth": ('{"x":' + "[" * 600 + "]" * 600 + "}", "is nested too deeply"),
    "depth of objects": ('{"x":' + '{"a":' * 600 + "1" + "}" * 600 + "}", "is nested too deeply"),
    "nested lists": ('{"x":[' + "[[1]]," * 100_001 + "1]}", "more than 100,000 nested"),
    "a large token": ('{"model":{"vocab":{"' + "x" * 4_000_001 + '":1}}}', "too large"),
    "a large entry": ('{"model":{"vocab":[["' + "x" * 4_000_001 + '",1]]}}', "too large"),
    "a large added token": ('{"added_tokens":[{"id":1,"content":"' + "x" * 4_000_001 + '"}]}', "too large"),
    "a large post-processor": ('{"post_processor":{"x":"' + "x" * 1_000_001 + '"}}', "is larger than"),
    "keys": ("{" + ",".join(f'"{n}":1' for n in range(1_001)) + "}", "more than 1,000 keys"),
    "keys of the model": ('{"model":{' + ",".join(f'"{n}":1' for n in range(1_001)) + "}}", "more than 1,000 keys"),
    "a nested added token": ('{"added_tokens":[{"id":1,"content":[]}]}', "has lists or objects inside"),
    "empty": (" ", "is empty"),
    "a list": ("[]", "should hold a JSON object, holds a list"),
    "a number": ("1", "should hold a JSON object, holds a number"),
    "two values": ("{}{}", "is not JSON"),
    "cut off": ('{"model":{"vocab":{"a":1,', "is not JSON"),
    "cut off in a key": ('{"mod', "is not JSON"),
    "a comma too many": ('{"x":[1,]}', "is not JSON"),
    "a comma too many in nested lists": ('{"x":[[[1],]]}', "is not JSON"),
    "NaN": ('{"x":NaN}', "is not JSON"),
    "a large id": ('{"model":{"vocab":{"a":99999999999}}}', "should be a token id"),
    "a fraction": ('{"model":{"vocab":{"a":1.5}}}', "should be a token id"),
    "not UTF-8": ('{"x":"\udcff"}', "is not UTF-8"),
}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_tokenizers_that_are_refused(tmp_path: Path, name: str) -> None:
    text, reason = TOKENIZERS[name]
    error = refused(write(tmp_path, {"tokenizer.json": text.encode("utf-8", "surrogateescape")}))
    assert reason in error.details["reason"]


@pytest.mark.parametrize("constant", ["TOKENS", "ADDED_TOKENS", "TEXT_BYTES"])
def test_numbers_of_tokens(tmp_path: Path, constant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = [{"id": n, "content": str(n)} for n in range(20)]
    folder = write(tmp_path, {"tokenizer.json": {"added_tokens": tokens, "model": {"vocab": {"a": 1, "b": 2, "c": 3}}}})
    open_source(folder)
    monkeypatch.setattr(tokenizer_json, constant, 2)
    assert "2" in refused(folder).details["reason"]


def test_a_tokenizer_of_many_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces end anywhere, and only a piece at a time becomes objects."""
    sizes: list[int] = []
    real = json.loads

    def loads(text: str, **options: Any) -> Any:
        sizes.append(len(text))
        return real(text, **options)

    monkeypatch.setattr(json, "loads", loads)
    vocab = {f"t{n}é\n😀": n for n in range(1_700)}
    merges = [["a", "b"]] * 5_000
    for indent in (None, 2):
        for content in (vocab, [[text, -1.5] for text in vocab]):
            model: dict[str, Any] = {"vocab": content, "merges": merges, "deep": [{"a": [[{}]]}]}
            write(tmp_path, {"tokenizer.json": json.dumps({"model": model}, indent=indent)})
            found = open_source(tmp_path).tokens
            assert found.vocabulary == tokenizer_json.JsonVocabulary(vocab)
            assert found.token(1_699) == Token("t1699é\n😀", 1_699, "normal")
    assert max(sizes) < 40_000


def test_keys_of_a_tokenizer_that_stand_twice(tmp_path: Path) -> None:
    """Also where a text comes again after many others."""
    entries = ",".join(f'"t{n % 1_200}":{n}' for n in range(1_201))
    text = f'{{"model":{{"vocab":{{"a":1,"a":2,{entries}}}}}, "x":1, "x":2, "model":{{"type":"BPE"}}}}'
    source = open_source(write(tmp_path, {"tokenizer.json": text}))
    assert [note.place for note in source.notes] == ["a", "t0", "x", "model"]
    assert source.tokens.vocabulary is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=25,
)


@given(VALUES, st.sampled_from([None, 0, 3]), st.booleans())
def test_any_value_is_passed_over(value: Any, indent: int | None, ascii_only: bool) -> None:
    data = json.dumps([value, 1], indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    try:
        parts = JsonParts("x", data)
    except SourceError:
        assert b"\xed" in data, "a lone surrogate is no UTF-8"
        return
    parts.skip()
    parts.end()


@given(VALUES, st.data())
def test_what_the_parser_of_python_refuses_is_refused(value: Any, data: st.DataObject) -> None:
    """And the other way round: a text with one character more or less is JSON for both or for neither."""
    text = json.dumps(value)
    at = data.draw(st.integers(0, len(text)))
    changed = text[:at] + data.draw(st.sampled_from('[]{},:"0-. \\tnu\x01')) + text[at + data.draw(st.integers(0, 1)) :]
    try:
        json.loads(changed, parse_constant=pytest.fail)
        good = True
    except ValueError:
        good = False
    try:
        parts = JsonParts("x", changed.encode())
        parts.skip()
        parts.end()
        assert good
    except SourceError as error:
        checked(error)
        assert not good


@pytest.mark.parametrize("body", ["[[1]],", '{"a":[[1]]},', "[1],", '"a",', '{"a":{"b":{}}},'])
def test_passing_over_takes_steps_for_nested_values_alone(body: str) -> None:
    def count(times: int) -> int:
        parts = JsonParts("x", f"[{body * times}1]".encode())
        return steps(parts.skip)

    assert count(600) < 2.1 * count(300)
    assert json_parts.DEEP_VALUES <= 100_000
