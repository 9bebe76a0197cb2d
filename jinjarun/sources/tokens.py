"""The tokens that a template is right or wrong with: which text, which id, special or not, and who adds what."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

TokenType = Literal["normal", "unknown", "control", "user_defined", "unused", "byte"]
"""llama.cpp's token types. In Hugging Face's files only `control` (an added token that is special), `user_defined`
(one that is not) and `normal` (one of the model's vocabulary) occur."""


@dataclass(frozen=True, slots=True)
class Token:
    """One token as far as the files tell: null is unknown, never "none"."""

    text: str | None = None
    id: int | None = None
    type: TokenType | None = None

    @property
    def special(self) -> bool | None:
        """Hugging Face's flag of this name: a control token, which is no text to a reader."""
        return None if self.type is None else self.type == "control"


class Vocabulary(Protocol):
    """Every token that a model has, for questions about single texts and ids."""

    def __len__(self) -> int: ...

    def find(self, text: str) -> Token | None:
        """The token that is exactly this text, or None. A normal one may still be split by the rules of its
        tokenizer; a control or user-defined one never is."""

    def token(self, id: int) -> Token | None:
        """The token of this id, or None if there is none."""


@dataclass(frozen=True, slots=True)
class PostProcessor:
    """What tokenizer.json's post-processor puts around a text that is encoded on its own: token texts, in order.

    Read from `TemplateProcessing` (its `single`), `BertProcessing` and `RobertaProcessing`; in a `Sequence` from the
    first of them (a second one sees the pieces of the first as a pair, in tokenizers 0.23).
    """

    prepends: tuple[str, ...] = ()
    appends: tuple[str, ...] = ()


@dataclass(frozen=True)
class TokenData:
    """What the files of a model say of its tokens. Null where they say nothing or were not read.

    `special`: by name ("bos", "eos", "image"), the keys of tokenizer_config.json that end in `_token` (and where
    transformers reads it, of special_tokens_map.json), or the ids of a GGUF header.
    `generation_eos`: `eos_token_id` of generation_config.json, which ends generation in transformers and vLLM;
    `model_eos`: the same key of config.json, which llama.cpp's converter falls back to, and transformers where there is
    no generation_config.json. Empty tuple: the key is null.
    `add_bos`, `add_eos`: `add_bos_token`, `add_eos_token`. transformers 5.24 ignores both where there is a
    tokenizer.json (`_from_pretrained` drops them), and `post_processor` decides. llama.cpp uses the key of the GGUF.
    `added`: the tokens added to the vocabulary, by id.
    `model`, `pre`: a GGUF's tokenizer (`llama`, `gpt2`, ...) and pre-tokenizer; with them llama.cpp chooses what it
    assumes for keys that are absent. `tokenizer_class`: the key of that name.
    """

    special: Mapping[str, Token] = field(default_factory=dict)
    generation_bos: tuple[Token, ...] | None = None
    generation_eos: tuple[Token, ...] | None = None
    generation_pad: tuple[Token, ...] | None = None
    model_bos: tuple[Token, ...] | None = None
    model_eos: tuple[Token, ...] | None = None
    add_bos: bool | None = None
    add_eos: bool | None = None
    added: tuple[Token, ...] = ()
    post_processor: PostProcessor | None = None
    vocabulary: Vocabulary | None = None
    model: str | None = None
    pre: str | None = None
    tokenizer_class: str | None = None

    @property
    def bos(self) -> Token | None:
        return self.special.get("bos")

    @property
    def eos(self) -> Token | None:
        return self.special.get("eos")

    @property
    def eot(self) -> Token | None:
        return self.special.get("eot")

    @property
    def eom(self) -> Token | None:
        return self.special.get("eom")

    @property
    def pad(self) -> Token | None:
        return self.special.get("pad")

    def find(self, text: str) -> Token | None:
        """The token that is exactly this text: an added one, or one of the vocabulary. No text is no token."""
        if not text:
            return None
        found = self._added_by_text.get(text)
        return found or (None if self.vocabulary is None else self.vocabulary.find(text))

    def token(self, id: int) -> Token | None:
        """The token of this id."""
        found = self._added_by_id.get(id)
        return found or (None if self.vocabulary is None else self.vocabulary.token(id))

    @cached_property
    def _added_by_text(self) -> dict[str | None, Token]:
        return {token.text: token for token in reversed(self.added)}

    @cached_property
    def _added_by_id(self) -> dict[int | None, Token]:
        return {token.id: token for token in reversed(self.added)}

    def is_token(self, text: str) -> bool | None:
        """Whether this text is a token of its own; None where the vocabulary was not read, so nobody can say no."""
        if self.find(text) is not None:
            return True
        return None if self.vocabulary is None else False


TOKEN_CHARACTERS = 10_000
"""No token is longer: real ones have a few hundred characters."""


def byte_level(text: str) -> str:
    """A text as byte-level BPE vocabularies (`gpt2`) spell it: every byte that does not print is moved up to one that
    does, a space to U+0120, a line break to U+010A (the scheme of GPT-2's tokenizer)."""
    return "".join(map(_BYTE_LEVEL.__getitem__, text.encode("utf-8", "surrogatepass")))


def _byte_level_table() -> list[str]:
    kept = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    moved = iter(range(0x100, 0x200))
    return [chr(byte if byte in kept else next(moved)) for byte in range(0x100)]


_BYTE_LEVEL = _byte_level_table()


def spellings(text: str) -> tuple[str, ...]:
    """How a vocabulary may spell a text: as it is (added tokens), byte-level (BPE), with U+2581 for a space
    (SentencePiece). A text longer than any token has one spelling."""
    if len(text) > TOKEN_CHARACTERS:
        return (text,)
    return tuple(dict.fromkeys((text, byte_level(text), text.replace(" ", "\u2581"))))
