"""A template beside its tokens: the lesson's Examples 13 and 14 on real files, and each verdict at its edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jinjarun.errors import SourceError
from jinjarun.sources import Token, TokenData, open_source
from probes.chapters.stop import end_of_generation, stop_sets
from probes.chapters.tokens import (
    APPLIED,
    BOS_PATHS,
    SERVER,
    SERVER_TEXT,
    TEXT_THEN_TOKENIZE,
    double_bos,
    llama_cpp_adds_bos,
    null_tokens,
    stop_chapter,
    tokens_chapter,
    undeclared_stops,
    unknown_markers,
)
from probes.prober import probe
from probes.rendering.renders import EvidenceBook, Renders
from probes.report import TokensChapter
from probes.rules.st201_stop_token_not_declared import RULE as ST201
from probes.rules.st202_marker_not_in_vocabulary import RULE as ST202
from probes.rules.st203_double_bos import RULE as ST203
from probes.rules.st204_null_special_token import RULE as ST204
from probes.rules.view import Facts, Hit
from tests.probes.token_files import CHATML, INST, SPECIAL, gguf_file, model_folder, opened, rendering

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from probes.rules.base import Rule

IM_END, END_OF_TEXT, EOT = SPECIAL.index("<|im_end|>"), SPECIAL.index("<|endoftext|>"), SPECIAL.index("<|eot_id|>")
STREAM = ["Use", " a", " StringBuilder", ".", "<|im_end|>", "\n", "<|im_start|>", "user", "\n", "Thanks", "<|im_end|>"]
STREAM += ["\n", "<|im_start|>", "assistant", "\n", "You", "'re", " welcome", ".", "<|im_end|>"]
"""What a model that was trained on ChatML generates if nobody stops it."""

EVERYWHERE = {"transformers": "stops", "vllm": "stops", "llama.cpp": "stops"}
NOWHERE = dict.fromkeys(EVERYWHERE, "unknown")


def generated(stops: Iterable[str], limit: int) -> tuple[str, int, bool]:
    """The answer of an engine that stops at these texts: its text, its tokens, whether it hit the limit."""
    pieces: list[str] = []
    for piece in STREAM[:limit]:
        if piece in stops:
            return "".join(pieces), len(pieces), False
        pieces.append(piece)
    return "".join(pieces), len(pieces), True


# Example 13: a right stop, a wrong one, a doubled BOS


def test_the_right_stop_token(tmp_path: Path) -> None:
    renders, tokens = opened(model_folder(tmp_path, CHATML, stops=[IM_END, END_OF_TEXT]))
    stop = stop_chapter(renders, tokens)
    assert stop.written == ["<|im_end|>"]
    assert stop.by_engine == EVERYWHERE
    assert stop.client_should_set == []
    assert stop.declared.generation_config == ["<|im_end|>", "<|endoftext|>"]
    for engine in stop_sets(tokens).values():
        assert generated(engine.texts, 40) == ("Use a StringBuilder.", 4, False)
    assert not undeclared_stops(renders, tokens)


def test_the_wrong_stop_token(tmp_path: Path) -> None:
    """The engine was configured for Llama 3; llama.cpp alone knows <|im_end|> by its text."""
    renders, tokens = opened(model_folder(tmp_path, CHATML, eos="<|eot_id|>", stops=EOT))
    stop = stop_chapter(renders, tokens)
    assert stop.by_engine == {"transformers": "never_stops", "vllm": "never_stops", "llama.cpp": "stops"}
    assert stop.client_should_set == ["<|im_end|>"]
    endless = "Use a StringBuilder.<|im_end|>\n<|im_start|>user\nThanks<|im_end|>\n"
    assert generated(stop_sets(tokens)["vllm"].texts, 12) == (endless, 12, True)
    [found] = undeclared_stops(renders, tokens)
    assert (found.marker, found.engines, found.stopping) == ("<|im_end|>", ("transformers", "vllm"), ("llama.cpp",))
    assert found.declared == {"transformers": ["<|eot_id|>"], "vllm": ["<|eot_id|>"]}


def test_a_doubled_bos(tmp_path: Path) -> None:
    """The template writes BOS and the tokenizer adds one: twice wherever the text is tokenized by itself."""
    folder = model_folder(tmp_path, INST, bos="<s>", eos="</s>", prepends="<s>", add_bos_token=True)
    renders, tokens = opened(folder)
    expected = {TEXT_THEN_TOKENIZE: True, APPLIED: False, SERVER: False, SERVER_TEXT: True}
    assert double_bos(renders, tokens) == expected
    library = pytest.importorskip("tokenizers")
    encoder = library.Tokenizer.from_file(str(folder / "tokenizer.json"))
    text = renders.render("transformers:raw", {"messages": [{"role": "user", "content": "Use"}]}).text
    assert encoder.encode(text).tokens[:3] == ["<s>", "<s>", "["]
    assert encoder.encode(text, add_special_tokens=False).tokens[:2] == ["<s>", "["]


# Example 14: the template inside a GGUF file, and the lack of one


def test_a_gguf_file_with_its_template(tmp_path: Path) -> None:
    renders, tokens = opened(gguf_file(tmp_path / "m.gguf", INST, add_bos=True))
    stop = stop_chapter(renders, tokens)
    assert stop.written == ["</s>"]
    assert stop.by_engine == {"transformers": "unknown", "vllm": "unknown", "llama.cpp": "stops"}
    expected = {TEXT_THEN_TOKENIZE: None, APPLIED: None, SERVER: False, SERVER_TEXT: True}
    assert double_bos(renders, tokens) == expected


def test_a_gguf_file_that_never_stops(tmp_path: Path) -> None:
    special = ["<|end_of_turn|>" if text == "<|im_end|>" else text for text in SPECIAL]
    template = CHATML.replace("<|im_end|>", "<|end_of_turn|>")
    renders, tokens = opened(gguf_file(tmp_path / "never.gguf", template, special=special))
    assert stop_chapter(renders, tokens).by_engine["llama.cpp"] == "never_stops"
    renders, tokens = opened(gguf_file(tmp_path / "stops.gguf", template, special=special, eot=IM_END))
    assert stop_chapter(renders, tokens).by_engine["llama.cpp"] == "stops"


@pytest.mark.parametrize("kind", ["folder", "gguf"])
def test_a_missing_template(tmp_path: Path, kind: str) -> None:
    path = model_folder(tmp_path, None) if kind == "folder" else gguf_file(tmp_path / "m.gguf", None)
    source = open_source(path)
    assert source.tokens.eos is not None
    with pytest.raises(SourceError, match="no chat template"):
        source.template()


# Without files nothing is clean


@pytest.mark.parametrize("tokens", [None, TokenData()], ids=["none", "empty"])
def test_without_token_data_nothing_is_clean(tokens: TokenData | None) -> None:
    renders = Renders(CHATML)
    unknown = dict.fromkeys(BOS_PATHS)
    empty = TokensChapter(available=False, not_in_vocabulary=[], not_single_token=[], double_bos=unknown)
    assert tokens_chapter(renders, tokens) == empty
    stop = stop_chapter(renders, tokens)
    assert (stop.written, stop.by_engine, stop.client_should_set) == (["<|im_end|>"], NOWHERE, ["<|im_end|>"])
    report = probe(CHATML, tokens=tokens)
    assert report.stop == stop
    assert "stop and tokens" in [missing.what for missing in report.not_evaluated]


def test_generate_does_not_ask_the_tokenizer(tmp_path: Path) -> None:
    """Without generation_config.json and config.json the list of transformers is unknown, vLLM has the tokenizer's."""
    renders, tokens = opened(model_folder(tmp_path, CHATML))
    assert stop_chapter(renders, tokens).by_engine == EVERYWHERE | {"transformers": "unknown"}
    renders, tokens = opened(model_folder(tmp_path, CHATML, stops=END_OF_TEXT))
    assert stop_chapter(renders, tokens).by_engine == EVERYWHERE | {"transformers": "never_stops"}


def test_a_marker_that_is_no_token_stops_nobody(tmp_path: Path) -> None:
    special = [text for text in SPECIAL if "im_" not in text]
    renders, tokens = opened(model_folder(tmp_path, CHATML, eos="<|endoftext|>", special=special))
    assert set(stop_chapter(renders, tokens).by_engine.values()) == {"never_stops"}
    chapter = tokens_chapter(renders, tokens)
    assert chapter.not_in_vocabulary == ["<|im_start|>", "<|im_end|>"]
    assert [(found.text, found.ends_turn) for found in unknown_markers(renders, tokens)] == [
        ("<|im_start|>", False),
        ("<|im_end|>", True),
    ]


def test_ordinary_text_between_turns_is_not_judged(tmp_path: Path) -> None:
    flat = "{% for m in messages %}{{ '\\n' + m.role }}: {{ m.content }}{% endfor %}"
    renders, tokens = opened(model_folder(tmp_path, flat, stops=IM_END))
    stop = stop_chapter(renders, tokens)
    assert (stop.written, stop.by_engine, stop.client_should_set) == ([], NOWHERE, ["\nuser:"])


def test_tags_are_a_fact_and_no_defect(tmp_path: Path) -> None:
    template = CHATML.replace("{{ m.content }}", "<tools>{{ m.content }}</tools>")
    renders, tokens = opened(model_folder(tmp_path, template))
    chapter = tokens_chapter(renders, tokens)
    assert chapter.not_in_vocabulary == []
    assert chapter.not_single_token == ["<tools>", "</tools>"]


def test_markers_in_the_users_text_are_not_the_templates(tmp_path: Path) -> None:
    renders, tokens = opened(model_folder(tmp_path, "{% for m in messages %}{{ m.content }}</s>{% endfor %}"))
    assert unknown_markers(renders, tokens) == []


# The set of llama.cpp


def gguf_tokens(texts: Iterable[str], **fields: Any) -> TokenData:
    added = tuple(Token(text, id, "control") for id, text in enumerate(texts))
    return TokenData(added=added, model="gpt2", pre="default", **fields)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["<|end|>", "<|im_end|>"], {"<|end|>", "<|im_end|>"}),
        (["<|end|>", "<|return|>", "<|call|>"], {"<|return|>", "<|call|>"}),
        (["<|end|>", "<|return|>"], {"<|end|>", "<|return|>"}),
        (["<|end|>", "<|flush|>", "<|calls|>"], {"<|flush|>", "<|calls|>"}),
        (["</s>", "<turn|>"], {"</s>", "<turn|>"}),
        (["</s>", "<turn|>", "<|tool_response>"], {"<turn|>", "<|tool_response>"}),
        (["<|fim_pad|>", "<|file_sep|>", "<|repo_name|>", "<|eot|>"], {"<|fim_pad|>", "<|file_sep|>", "<|repo_name|>"}),
        (["<|eot|>", "<|user|>"], set()),
    ],
)
def test_end_of_generation_by_text(texts: list[str], expected: set[str]) -> None:
    assert set(end_of_generation(gguf_tokens(texts)).texts) == expected


def test_end_of_generation_by_id() -> None:
    texts = [f"t{i}" for i in range(12)]
    assert end_of_generation(gguf_tokens(texts)).texts == ["t11"]  # what gpt2 vocabularies are assumed to have
    special = {"eos": Token("t1", 1), "eot": Token("t2", 2), "eom": Token("t3", 3)}
    assert end_of_generation(gguf_tokens(texts, special=special)).texts == ["t1", "t2", "t3"]


def test_two_names_of_one_token_are_one_token() -> None:
    tokens = gguf_tokens(["</s>"], special={"eos": Token("</s>", 0), "eot": Token("</s>", 0)})
    assert end_of_generation(tokens).texts == ["</s>"]


@pytest.mark.parametrize(
    ("model", "pre", "add_bos", "expected"),
    [
        ("llama", None, None, True),
        ("llama", None, False, False),
        ("gpt2", "qwen2", None, False),
        ("gpt2", "llama-bpe", None, True),
        ("gpt2", "tekken", False, False),
        ("gpt2", "gemma4", False, True),
        ("gemma4", None, False, True),
        ("t5", None, None, False),
    ],
)
def test_what_llama_cpp_assumes_of_bos(model: str, pre: str | None, add_bos: bool | None, expected: bool) -> None:
    assert llama_cpp_adds_bos(TokenData(model=model, pre=pre, add_bos=add_bos)) is expected


# BOS at its edges


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("", {TEXT_THEN_TOKENIZE: False, APPLIED: False, SERVER: False, SERVER_TEXT: False}),
        ("{{ bos_token }}", {TEXT_THEN_TOKENIZE: True, APPLIED: False, SERVER: False, SERVER_TEXT: True}),
        ("\n{{ bos_token }}", {TEXT_THEN_TOKENIZE: True, APPLIED: False, SERVER: True, SERVER_TEXT: True}),
        ("{{ bos_token }}{{ bos_token }}", dict.fromkeys(BOS_PATHS, True)),
    ],
    ids=["none", "one", "after-a-line-break", "two"],
)
def test_bos_by_path(tmp_path: Path, start: str, expected: dict[str, bool]) -> None:
    """llama-server trims one BOS, and only where it is the very first thing."""
    template = start.replace("\n", "{{ '\\n' }}") + CHATML
    renders, tokens = opened(model_folder(tmp_path, template, bos="<s>", prepends="<s>"))
    assert double_bos(renders, tokens) == expected


def test_bos_is_unknown_where_no_file_tells(tmp_path: Path) -> None:
    folder = model_folder(tmp_path, INST, bos="<s>", eos="</s>")
    (folder / "tokenizer.json").unlink()
    expected = {TEXT_THEN_TOKENIZE: None, APPLIED: False, SERVER: False, SERVER_TEXT: None}
    assert double_bos(*opened(folder)) == expected


# Special tokens that are null


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ bos_token }}" + CHATML, [("bos_token", "nothing", False)]),
        ("{{ bos_token + '\\n' }}" + CHATML, [("bos_token", "raises", False)]),
        ("{% if bos_token %}{{ bos_token }}{% endif %}" + CHATML, []),
        ("{% if bos_token is defined %}{{ bos_token }}{% endif %}" + CHATML, []),
        ("{% set bos_token = '' %}{{ bos_token }}" + CHATML, []),
        (CHATML.replace("<|im_end|>", "{{ eot_token }}"), [("eot_token", "nothing", True)]),
        (CHATML, []),
    ],
)
def test_null_tokens(tmp_path: Path, template: str, expected: list[tuple[str, str, bool]]) -> None:
    found = null_tokens(*opened(model_folder(tmp_path, template)))
    assert [(token.name, token.effect, token.ends_turn) for token in found] == expected


# The rules


def hits(rule: Rule, template: str, tokens: TokenData | None) -> list[Hit]:
    renders = rendering(template, tokens)
    facts = Facts(
        source=template,
        renders=renders,
        book=EvidenceBook("x"),
        engines=[],
        observed={},
        contract=None,
        shape=None,
        stop=None,
        tokens_chapter=None,
        prefix=None,
        tokens=tokens,
    )
    found = rule.check(facts)
    assert all(evidence in facts.book.entries for hit in found for evidence in hit.evidence)
    assert all(hit.message.isprintable() and hit.engines for hit in found)
    return found


@pytest.mark.parametrize(
    ("rule", "tokens", "severity"),
    [
        (ST201, {"eos": "<|endoftext|>", "stops": END_OF_TEXT}, "error"),
        (ST202, {"eos": "<|im_end|>"}, "error"),
        (ST203, {"bos": "<s>", "eos": "</s>", "prepends": "<s>"}, None),
        (ST204, {"eos": "</s>"}, "error"),
    ],
    ids=["ST201", "ST202", "ST203", "ST204"],
)
def test_rules(tmp_path: Path, rule: Rule, tokens: dict[str, Any], severity: str | None) -> None:
    """Its example is hit once, the repair and the healthy form are not, and without token data nothing is."""
    _, data = opened(model_folder(tmp_path, CHATML, **tokens))
    [hit] = hits(rule, rule.triggers, data)
    assert hit.severity == severity
    assert hits(rule, rule.repaired, data) == []
    assert hits(rule, rule.healthy, data) == []
    assert hits(rule, rule.triggers, None) == []


def test_one_engine_of_several_is_a_warning(tmp_path: Path) -> None:
    _, data = opened(model_folder(tmp_path, CHATML, stops=END_OF_TEXT))
    [hit] = hits(ST201, CHATML, data)
    assert (hit.severity, hit.engines) == ("warning", ["transformers:apply_chat_template"])
    assert "vllm and llama.cpp stop" in hit.message


def test_a_format_of_ordinary_markers_is_info(tmp_path: Path) -> None:
    """Zephyr writes <|user|> as text by design; what ends its turns is a token."""
    zephyr = "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}{{ eos_token }}\n{% endfor %}"
    special = [text for text in SPECIAL if "|" not in text]
    _, data = opened(model_folder(tmp_path, zephyr, eos="</s>", special=special))
    assert {hit.severity for hit in hits(ST202, zephyr, data)} == {"info"}
    assert hits(ST201, zephyr, data) == []
