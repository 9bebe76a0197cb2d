"""Lengths in code points and in tokens."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jinjarun.errors import InputError, LimitExceeded, SourceError
from jinjarun.sequences import common_prefix
from probes.chapters.tokens import tokens_chapter
from probes.rendering import counting
from probes.rendering.counting import CodePoints, counter
from tests.probes.token_files import CHATML, model_folder, opened, tokenizer
from tests.sources.support import write

if TYPE_CHECKING:
    from pathlib import Path


@given(st.text(), st.text(), st.text())
def test_the_common_start_of_texts(start: str, a: str, b: str) -> None:
    shared = common_prefix(start + a, start + b)
    assert shared >= len(start)
    assert (start + a)[:shared] == (start + b)[:shared]
    assert (start + a)[shared : shared + 1] != (start + b)[shared : shared + 1] or shared == len(start + a)


def test_code_points() -> None:
    points = counter()
    assert isinstance(points, CodePoints)
    assert points.unit == "code_points"
    assert points.count("né🙂") == 3
    assert points.within("0123456789", [(2, 4), (8, 20)]) == 4


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pytest.importorskip("tokenizers")
    return model_folder(tmp_path, CHATML, prepends="<s>")


def test_tokens(folder: Path) -> None:
    """Special tokens are parsed and none is added."""
    tokens = counter(folder)
    assert tokens.unit == "tokens"
    assert tokens.count("<|im_start|>user\nUse a StringBuilder.<|im_end|>\n") == 7
    assert tokens.shared("<|im_start|>user Use", "<|im_start|>user Thanks a") == 2
    assert counter(folder / "tokenizer.json").count("<|im_start|>user") == 2


def test_a_mask_counts_each_token_that_overlaps(folder: Path) -> None:
    text = "Use a StringBuilder.<|im_end|>"
    tokens = counter(folder)
    assert tokens.within(text, [(0, len(text))]) == 5
    assert tokens.within(text, [(4, 7)]) == 2
    assert tokens.within(text, [(3, 4)]) == 0  # the space between two words
    assert tokens.within(text, [(0, 3), (19, 20)]) == 2


def test_long_texts_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "COUNTED", 10)
    with pytest.raises(LimitExceeded, match="too long"):
        counter(folder).count("x" * 11)


def test_markers_that_the_tokenizer_splits(tmp_path: Path) -> None:
    """A marker of the vocabulary that is no added token falls into the pieces of its pre-tokenizer."""
    pytest.importorskip("tokenizers")
    files = tokenizer()
    files["added_tokens"] = [token for token in files["added_tokens"] if token["content"] != "<|im_end|>"]
    folder = model_folder(tmp_path, CHATML, eos="<|endoftext|>")
    write(folder, {"tokenizer.json": files})
    renders, tokens = opened(folder)
    assert tokens_chapter(renders, tokens).not_single_token == []
    assert tokens_chapter(renders, tokens, counter=counter(folder)).not_single_token == ["<|im_end|>"]


@pytest.mark.parametrize("content", ["{}", "no JSON", '{"model": 1}'])
def test_what_is_no_tokenizer(tmp_path: Path, content: str) -> None:
    pytest.importorskip("tokenizers")
    with pytest.raises(SourceError, match=r"tokenizer\.json"):
        counter(write(tmp_path, {"tokenizer.json": content}))


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is not there"):
        counter(tmp_path)


def test_without_the_library_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(InputError, match=r"pip install 'jinjarun\[tokens\]'"):
        counter(write(tmp_path, {"tokenizer.json": "{}"}))
