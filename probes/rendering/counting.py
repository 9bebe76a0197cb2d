"""Lengths in code points, or in tokens where the model's tokenizer is there.

What prefix figures and training masks need: how long a text is, how much of its start two texts share, and how much of
it lies in given places. Tokens need a tokenizer.json and the extra `tokens` (`pip install 'jinjarun[tokens]'`).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, Protocol

from jinjarun.errors import InputError, LimitExceeded
from jinjarun.sequences import common_prefix
from jinjarun.sources.files import failure, is_directory, is_file, read_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

TOKENIZER = "tokenizer.json"
TOKENIZER_BYTES = 64_000_000
"""The largest tokenizer.json that is loaded; Gemma 3's has 33 million bytes."""
COUNTED = 1_000_000
"""The most code points of a text that are tokenized."""

Unit = Literal["code_points", "tokens"]
SHOWN: dict[str, str] = {"code_points": "characters", "tokens": "tokens"}
"""What people call each unit."""


class Counter(Protocol):
    """A unit of length. Places in a text are always in code points."""

    @property
    def unit(self) -> Unit: ...

    def count(self, text: str) -> int:
        """The length of a text."""

    def shared(self, a: str, b: str) -> int:
        """The length of the common start of two texts: what a KV cache can keep."""

    def within(self, text: str, places: Sequence[tuple[int, int]]) -> int:
        """How much of a text lies in `places`, whole or in part: what a training mask covers."""


class CodePoints:
    """Counts Unicode code points."""

    unit: Unit = "code_points"

    def count(self, text: str) -> int:
        return len(text)

    def shared(self, a: str, b: str) -> int:
        return common_prefix(a, b)

    def within(self, text: str, places: Sequence[tuple[int, int]]) -> int:
        return sum(max(0, min(end, len(text)) - max(0, start)) for start, end in places)


class Tokens:
    """Counts the tokens of a tokenizer, special tokens parsed and none added, as engines encode a rendered prompt.

    `encoder` is a `tokenizers.Tokenizer`. A text of more than `COUNTED` code points is `LimitExceeded`.
    """

    unit: Unit = "tokens"

    def __init__(self, encoder: Any) -> None:
        self._encoder = encoder

    def count(self, text: str) -> int:
        return len(self._encode(text).ids)

    def shared(self, a: str, b: str) -> int:
        return common_prefix(self._encode(a).ids, self._encode(b).ids)

    def within(self, text: str, places: Sequence[tuple[int, int]]) -> int:
        """A token counts where it overlaps a place (transformers 5.24, `return_assistant_tokens_mask`)."""
        offsets = self._encode(text).offsets
        return sum(any(first < end and last > start for start, end in places) for first, last in offsets)

    def _encode(self, text: str) -> Any:
        if len(text) > COUNTED:
            raise LimitExceeded(
                f"a text of {len(text):,} code points is too long to tokenize", limit="counted", allowed=COUNTED
            )
        return self._encoder.encode(text, add_special_tokens=False)


def counter(target: str | os.PathLike[str] | None = None) -> Counter:
    """A counter of tokens for a tokenizer.json or the folder that holds one, of code points for None.

    Raises `SourceError` where there is no usable tokenizer.json, and `InputError` with the command to type where the
    library is not installed. The library reads the file in this process: strangers' files belong into `isolation`.
    """
    if target is None:
        return CodePoints()
    path = os.fspath(target)
    if is_directory(path):
        path = os.path.join(path, TOKENIZER)
    if not is_file(path):
        raise failure(path, "is not there", hint="token counts need a tokenizer.json")
    data = read_bytes(path, TOKENIZER_BYTES)
    try:
        from tokenizers import Tokenizer  # noqa: PLC0415  # an extra
    except ImportError:
        message = "token counts need the library tokenizers: pip install 'jinjarun[tokens]'"
        raise InputError(message, path="counter") from None
    try:
        encoder = Tokenizer.from_buffer(data)
    except Exception as error:  # the library raises bare Exceptions
        raise failure(path, f"is no tokenizer ({error})") from None
    encoder.no_truncation()
    encoder.no_padding()
    return Tokens(encoder)
