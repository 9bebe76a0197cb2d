"""What the files of a model say of its tokens, and the libraries' own answers to the same."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from jinjarun.sources import PostProcessor, Token, TokenData, open_source
from jinjarun.sources.tokens import byte_level
from tests.sources.support import write

if TYPE_CHECKING:
    from pathlib import Path


def added(content: str, special: bool = True) -> dict[str, Any]:
    return {"content": content, "special": special, "lstrip": False, "rstrip": False, "normalized": False}


CONFIG = {
    "bos_token": {"__type": "AddedToken", "content": "<s>"},
    "eos_token": "<|im_end|>",
    "pad_token": None,
    "unk_token": "<unk>",
    "image_token": "<image>",
    "audio_token": 5,
    "add_bos_token": False,
    "add_eos_token": None,
    "tokenizer_class": "LlamaTokenizer",
    "added_tokens_decoder": {"7": added("<|im_end|>"), "3": added("<tool_call>", special=False)},
}


def tokens(folder: Path, files: dict[str, Any], **options: Any) -> TokenData:
    return open_source(write(folder, files), **options).tokens


def test_configuration(tmp_path: Path) -> None:
    found = tokens(tmp_path, {"tokenizer_config.json": CONFIG})
    assert found.special == {
        "bos": Token("<s>"),
        "eos": Token("<|im_end|>", 7, "control"),
        "unk": Token("<unk>"),
        "image": Token("<image>"),
    }
    assert (found.bos, found.pad) == (Token("<s>"), None)
    assert (found.add_bos, found.add_eos, found.tokenizer_class) == (False, None, "LlamaTokenizer")
    assert found.added == (Token("<tool_call>", 3, "user_defined"), Token("<|im_end|>", 7, "control"))
    assert [token.special for token in found.added] == [False, True]
    assert found.is_token("<tool_call>") is True
    assert found.is_token("<other>") is None
    assert (found.generation_eos, found.model_eos, found.post_processor, found.vocabulary) == (None, None, None, None)


def test_generation(tmp_path: Path) -> None:
    files = {
        "tokenizer_config.json": CONFIG,
        "generation_config.json": {"eos_token_id": [7, 9], "bos_token_id": 1, "pad_token_id": None},
        "config.json": {"eos_token_id": 7, "text_config": {"bos_token_id": 2, "eos_token_id": 9}},
    }
    found = tokens(tmp_path, files)
    assert found.generation_eos == (Token("<|im_end|>", 7, "control"), Token(id=9))
    assert found.generation_bos == (Token(id=1),)
    assert found.generation_pad == ()
    assert found.model_eos == (Token("<|im_end|>", 7, "control"),)
    assert found.model_bos == (Token(id=2),)


@pytest.mark.parametrize(
    ("reads_as", "decoder", "eos"),
    [("transformers", False, "map"), ("transformers", True, "config"), ("llama.cpp", False, "config")],
)
def test_special_tokens_map(tmp_path: Path, reads_as: str, decoder: bool, eos: str) -> None:
    config: dict[str, Any] = {"eos_token": "config"} | ({"added_tokens_decoder": {}} if decoder else {})
    files = {
        "tokenizer_config.json": config,
        "special_tokens_map.json": {"eos_token": {"content": "map"}, "additional_special_tokens": ["<x>"]},
    }
    assert tokens(tmp_path, files, reads_as=reads_as).special == {"eos": Token(eos)}


@pytest.mark.parametrize("decoder", [False, True])
def test_special_tokens_map_as_in_transformers(tmp_path: Path, decoder: bool) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    files = {
        "tokenizer.json": tokenizers.Tokenizer(tokenizers.models.WordLevel({"config": 0, "map": 1}, "config")).to_str(),
        "tokenizer_config.json": {"eos_token": "config"}
        | ({"added_tokens_decoder": {"0": added("config")}} if decoder else {}),
        "special_tokens_map.json": {"eos_token": "map"},
    }
    found = tokens(tmp_path, files)
    assert found.eos is not None
    assert found.eos.text == transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path).eos_token


def test_added_tokens_json(tmp_path: Path) -> None:
    found = tokens(tmp_path, {"added_tokens.json": {"<a>": 5}, "tokenizer_config.json": {"eos_token": "<a>"}})
    assert found.eos == Token("<a>", 5)
    assert found.token(5) == Token("<a>", 5)
    assert found.token(6) is None


POST_PROCESSORS = {
    "none": (None, [], []),
    "template": (("TemplateProcessing", "<s> $A </s>"), ["<s>"], ["</s>"]),
    "prefix": (("TemplateProcessing", "<s> <t> $A"), ["<s>", "<t>"], []),
    "bert": (("BertProcessing", None), ["<s>"], ["</s>"]),
    "roberta": (("RobertaProcessing", None), ["<s>"], ["</s>"]),
    "bytes": (("ByteLevel", None), [], []),
    "sequence": (("Sequence", None), ["<t>"], []),
}


@pytest.mark.parametrize("name", POST_PROCESSORS)
def test_post_processor_as_the_library_runs_it(tmp_path: Path, name: str) -> None:
    """The library writes the file, and encodes a text with it."""
    library = pytest.importorskip("tokenizers")
    vocab = {"x": 0, "<s>": 1, "</s>": 2, "<t>": 3}
    tokenizer = library.Tokenizer(library.models.WordLevel(vocab, "x"))
    kinds = library.processors
    made, prepends, appends = POST_PROCESSORS[name]
    special = [(text, vocab[text]) for text in ("<s>", "</s>", "<t>")]
    if made is not None:
        kind, pattern = made
        if kind == "TemplateProcessing":
            tokenizer.post_processor = kinds.TemplateProcessing(single=pattern, special_tokens=special)
        elif kind == "ByteLevel":
            tokenizer.post_processor = kinds.ByteLevel()
        elif kind == "Sequence":
            inner = kinds.TemplateProcessing(single="<t> $A", special_tokens=special)
            outer = kinds.TemplateProcessing(single="<s> $A", special_tokens=special)
            tokenizer.post_processor = kinds.Sequence([kinds.ByteLevel(), inner, outer])
        else:
            tokenizer.post_processor = getattr(kinds, kind)(("</s>", 2), ("<s>", 1))
    found = tokens(tmp_path, {"tokenizer.json": tokenizer.to_str()})
    assert found.post_processor == PostProcessor(tuple(prepends), tuple(appends))
    assert tokenizer.encode("x").tokens == [*prepends, "x", *appends]


def bpe() -> dict[str, Any]:
    return {"type": "BPE", "vocab": {"a": 0, byte_level(" hello"): 1, "ab": 2}, "merges": []}


@pytest.mark.parametrize(
    ("model", "text", "expected"),
    [
        (bpe(), "ab", Token("ab", 2, "normal")),
        (bpe(), " hello", Token("\u0120hello", 1, "normal")),
        (bpe(), "hello", None),
        (
            {"type": "Unigram", "vocab": [["<unk>", 0.0], ["\u2581there", -1.0]]},
            " there",
            Token("\u2581there", 1, "normal"),
        ),
    ],
)
def test_vocabulary(tmp_path: Path, model: dict[str, Any], text: str, expected: Token | None) -> None:
    files = {"tokenizer.json": {"added_tokens": [{"id": 9} | added("<s>")], "model": model}}
    found = tokens(tmp_path, files)
    assert found.find(text) == expected
    assert found.is_token(text) is (expected is not None)
    assert found.find("<s>") == Token("<s>", 9, "control")
    assert found.vocabulary is not None
    assert len(found.vocabulary) == len(model["vocab"])
    assert expected is None or found.token(expected.id or 0) == expected
    assert found.token(1_000) is None
    unread = open_source(tmp_path, vocabulary=False).tokens
    assert (unread.vocabulary, unread.is_token(text), unread.post_processor) == (None, None, None)


def test_byte_level_as_the_library_spells_it() -> None:
    library = pytest.importorskip("tokenizers")
    alphabet = {byte_level(chr(code)) for code in range(0x80)}
    assert alphabet <= set(library.pre_tokenizers.ByteLevel.alphabet())
    text = "".join(map(chr, range(1, 0x250))) + "ä中😀"
    pieces = library.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text)
    assert "".join(piece for piece, _ in pieces) == byte_level(text)


def test_picklable(tmp_path: Path) -> None:
    source = open_source(write(tmp_path, {"tokenizer_config.json": CONFIG, "tokenizer.json": {"model": bpe()}}))
    assert pickle.loads(pickle.dumps(source)) == source


def test_a_single_configuration_is_read_alone(tmp_path: Path) -> None:
    write(tmp_path, {"tokenizer_config.json": CONFIG, "generation_config.json": json.dumps({"eos_token_id": 1})})
    assert open_source(tmp_path / "tokenizer_config.json").tokens.generation_eos is None
