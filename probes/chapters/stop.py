"""At which tokens each engine stops, as far as the model's files tell.

transformers 5.24: `generate` stops at `eos_token_id` of generation_config.json, or of config.json where there is no
such file (generation/utils.py, `adjust_generation_fn`, `_prepare_special_tokens`). It does not ask the tokenizer.

vLLM: the same list, and the tokenizer's EOS beside it (sampling_params.py, `update_from_generation_config`).

llama.cpp: the end-of-generation set of `llama_vocab` (src/llama-vocab.cpp, commit 00ad355): the ids of EOS, EOT and
EOM, every token whose text is on a list, and three kinds of fill-in-the-middle tokens; less two exceptions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from probes.chapters.endings import CONTROL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jinjarun.sources import Token, TokenData
    from probes.chapters.endings import Ending

Verdict = Literal["stops", "never_stops", "unknown"]
ENGINES = ("transformers", "vllm", "llama.cpp")

EOG_TEXTS = (
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
)
"""Tokens with one of these texts end generation in llama.cpp, whatever their type."""

_FILL_IN = (
    ("<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"),
    ("<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"),
    ("<|file_sep|>",),
)
"""One token of each group ends generation too: where a vocabulary has several, llama.cpp takes any."""

_EXCEPTIONS: tuple[tuple[str, frozenset[str]], ...] = (
    ("<|end|>", frozenset({"<|return|>", "<|call|>"})),  # gpt-oss, where it ends a channel
    ("<|end|>", frozenset({"<|return|>", "<|calls|>"})),
    ("<|end|>", frozenset({"<|flush|>", "<|calls|>"})),  # Solar
    ("<|end|>", frozenset({"<|flush|>", "<|call|>"})),
    ("</s>", frozenset({"<|tool_response>"})),  # Gemma 4
)
"""Texts that are dropped again where all of the others are in the set."""

_DEFAULT_EOS = {"llama": 2, "gpt2": 11, "hybriddna": 11, "whitespace": 11, "t5": 1, "plamo2": 2}
"""The EOS id that llama.cpp assumes by `tokenizer.ggml.model` where the file names none."""

_SET_BY_CONVERTER = frozenset({"<|user|>", "<|observation|>", "<|endofassistant|>"})
"""Texts that llama.cpp's converter makes EOT or EOM for single architectures (GLM, and others): the tokenizer's files
do not tell whether it did."""


@dataclass(frozen=True, slots=True)
class StopSet:
    """The tokens at which an engine stops. `complete`: the files tell all of them, so that others can be excluded.
    `doubtful`: texts that may or may not be among them all the same."""

    tokens: tuple[Token, ...] = ()
    complete: bool = False
    doubtful: frozenset[str] = frozenset()

    @property
    def texts(self) -> list[str]:
        return [label(token) for token in self.tokens]

    def verdict(self, ending: Ending, tokens: TokenData) -> Verdict:
        """Whether generation stops where a turn ends so. A turn that no marker closes tells little: a model may have
        learned to end it with a token that the template does not write. Then only a control token that opens the next
        turn counts (GLM)."""
        markers = ending.markers
        if any(self._has(marker, tokens) for marker in markers):
            return "stops"
        if not ending.closing and not (ending.opening and CONTROL.fullmatch(ending.opening)):
            return "unknown"
        if all(tokens.is_token(marker) is False for marker in markers):
            return "never_stops"
        return "never_stops" if self.complete and not self.doubtful.intersection(markers) else "unknown"

    def _has(self, marker: str, tokens: TokenData) -> bool:
        if any(token.text == marker for token in self.tokens):
            return True
        found = tokens.find(marker)
        return found is not None and found.id is not None and any(token.id == found.id for token in self.tokens)


def stop_sets(tokens: TokenData) -> dict[str, StopSet]:
    """The stop set of each of `ENGINES`."""
    return {"transformers": _transformers(tokens), "vllm": _vllm(tokens), "llama.cpp": end_of_generation(tokens)}


def verdicts(engine: str, found: tuple[Ending, ...], tokens: TokenData) -> list[Verdict]:
    """The verdict of an engine on each ending.

    Of llama.cpp it is never said that it stops after answers and goes on after calls: where llama-server offered the
    tools, the grammar of the calls leaves nothing but an end after them.
    """
    stops = stop_sets(tokens)[engine]
    judged = [stops.verdict(ending, tokens) for ending in found]
    if engine == "llama.cpp" and "stops" in judged:
        return ["unknown" if verdict == "never_stops" else verdict for verdict in judged]
    return judged


def label(token: Token) -> str:
    """The text of a token, or its id where the files do not tell its text."""
    return token.text if token.text is not None else f"token {token.id}"


def is_gguf(tokens: TokenData) -> bool:
    return tokens.model is not None


def has_data(tokens: TokenData | None) -> bool:
    """Whether any file said anything about tokens. A template alone comes with empty token data."""
    if tokens is None:
        return False
    lists = (tokens.generation_eos, tokens.model_eos)
    return bool(tokens.special or tokens.added or tokens.vocabulary or any(found is not None for found in lists))


def _transformers(tokens: TokenData) -> StopSet:
    declared = _declared(tokens)
    return StopSet() if declared is None else StopSet(_distinct(declared), complete=True)


def _vllm(tokens: TokenData) -> StopSet:
    if is_gguf(tokens):
        return StopSet()
    declared = _declared(tokens)
    eos = () if tokens.eos is None else (tokens.eos,)
    return StopSet(_distinct((*eos, *(declared or ()))), complete=declared is not None)


def _declared(tokens: TokenData) -> tuple[Token, ...] | None:
    """`eos_token_id` of generation_config.json, or of config.json."""
    return tokens.generation_eos if tokens.generation_eos is not None else tokens.model_eos


def end_of_generation(tokens: TokenData) -> StopSet:
    """llama.cpp's set: of a GGUF file as it is, of Hugging Face's files as its converter would write them."""
    found = [*_named(tokens)]
    found += [token for group in _FILL_IN if (token := _one_of(tokens, group)) is not None]
    found += [token for text in EOG_TEXTS if (token := _exactly(tokens, text)) is not None]
    texts = {token.text for token in found}
    dropped = {text for text, others in _EXCEPTIONS if others <= texts}
    kept = _distinct(token for token in found if token.text not in dropped)
    doubtful = frozenset() if is_gguf(tokens) else _SET_BY_CONVERTER
    return StopSet(kept, complete=tokens.vocabulary is not None, doubtful=doubtful)


def _named(tokens: TokenData) -> Iterable[Token]:
    """EOS, EOT and EOM by their ids. The converter takes EOS of tokenizer_config.json, else of config.json."""
    eos = tokens.eos
    if eos is None and is_gguf(tokens) and (id := _DEFAULT_EOS.get(tokens.model or "")) is not None:
        eos = tokens.token(id)
    if eos is None and not is_gguf(tokens) and tokens.model_eos:
        eos = tokens.model_eos[0]
    named = (eos, tokens.eot, tokens.eom) if is_gguf(tokens) else (eos,)
    return (token for token in named if token is not None)


def _one_of(tokens: TokenData, texts: Iterable[str]) -> Token | None:
    return next((token for text in texts if (token := _exactly(tokens, text)) is not None), None)


def _exactly(tokens: TokenData, text: str) -> Token | None:
    """The token that is spelled exactly so in the vocabulary: llama.cpp compares bytes."""
    token = tokens.find(text)
    return token if token is not None and token.text == text else None


def _distinct(found: Iterable[Token]) -> tuple[Token, ...]:
    """Each once, in order; the same text or the same id is the same token."""
    kept: list[Token] = []
    for token in found:
        if not any(_same(token, other) for other in kept):
            kept.append(token)
    return tuple(kept)


def _same(a: Token, b: Token) -> bool:
    if a.id is not None and b.id is not None:
        return a.id == b.id
    return a.text is not None and a.text == b.text
