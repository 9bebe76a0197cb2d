"""The real transformers, answering the same calls: a tokenizer built in memory, one token a character, no model."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from tests.families import NOW

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

REASON = "transformers is not installed: python -m pip install -e '.[oracles]'"
transformers = pytest.importorskip("transformers", reason=REASON)
tokenizers = pytest.importorskip("tokenizers", reason=REASON)

if not transformers.__version__.startswith("5.24."):
    pytest.skip(f"transformers is {transformers.__version__}, not 5.24", allow_module_level=True)

from transformers.utils import chat_template_utils  # noqa: E402

UNKNOWN = "[UNK]"


class _Clock:
    """`datetime` for the real strftime_now."""

    @staticmethod
    def now() -> datetime:
        return datetime.fromtimestamp(NOW, UTC)


@contextmanager
def frozen_clock() -> Iterator[None]:
    original = chat_template_utils.datetime
    chat_template_utils.datetime = _Clock
    try:
        yield
    finally:
        chat_template_utils.datetime = original


@cache
def _tokenizer(special_tokens: tuple[tuple[str, str], ...]) -> Any:
    engine = tokenizers.Tokenizer(tokenizers.models.WordLevel({UNKNOWN: 0}, unk_token=UNKNOWN))
    every_character = tokenizers.Regex(r"[\s\S]")
    engine.pre_tokenizer = tokenizers.pre_tokenizers.Split(every_character, behavior="isolated")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=engine, **dict(special_tokens))


def real_tokenizer(source: str | Mapping[str, str] | None, special_tokens: Mapping[str, str]) -> Any:
    found = _tokenizer(tuple(special_tokens.items()))
    found.chat_template = source
    return found


def real_prompt(
    source: str | Mapping[str, str], messages: Any, *, special_tokens: Mapping[str, str], **call: Any
) -> str:
    """What `apply_chat_template` answers; whatever it raises flies."""
    with frozen_clock():
        answer: str = real_tokenizer(source, special_tokens).apply_chat_template(messages, tokenize=False, **call)
    return answer


def real_spans(
    source: str, messages: Any, *, special_tokens: Mapping[str, str], **call: Any
) -> tuple[str, list[tuple[int, int]]]:
    """The text, and where `{% generation %}` blocks are, before they are mapped to tokens."""
    with frozen_clock():
        texts, spans = chat_template_utils.render_jinja_template(
            conversations=[messages],
            chat_template=source,
            return_assistant_tokens_mask=True,
            **special_tokens,
            **call,
        )
    return texts[0], spans[0]


def real_mask(source: str, messages: Any, **call: Any) -> list[int]:
    """For each token whether an assistant wrote it. Without special tokens, a token is a character."""
    with frozen_clock():
        answer = real_tokenizer(source, {}).apply_chat_template(
            messages, tokenize=True, return_dict=True, return_assistant_tokens_mask=True, **call
        )
    mask: list[int] = answer["assistant_masks"]
    return mask


def real_tool(function: Any) -> dict[str, Any]:
    answer: dict[str, Any] = chat_template_utils.get_json_schema(function)
    return answer
