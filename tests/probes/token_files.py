"""Model folders and GGUF files made for the tests: a tiny vocabulary of whole words, real files on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jinjarun.sources import open_source
from probes.rendering.renders import Renders
from tests.sources.support import write

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from jinjarun.sources import TokenData

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
INST = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]"
    "{% else %}{{ m.content }}{{ eos_token }}{% endif %}{% endfor %}"
)
SPECIAL = ("<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>")
"""The tokens of `tokenizer`, by id; ordinary words follow."""
WORDS = ("Use", "a", "StringBuilder", ".", "user", "assistant", "[", "]", "INST", "Thanks")


def tokenizer(*, special: Sequence[str] = SPECIAL, prepends: str | None = None) -> dict[str, Any]:
    """A tokenizer.json that both this project and the library `tokenizers` read."""
    texts = [*special, *WORDS]
    added = [
        {
            "id": id,
            "content": text,
            "special": True,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
        }
        for id, text in enumerate(special)
    ]
    pieces: list[dict[str, Any]] = [{"Sequence": {"id": "A", "type_id": 0}}]
    around = {}
    if prepends is not None:
        pieces.insert(0, {"SpecialToken": {"id": prepends, "type_id": 0}})
        around[prepends] = {"id": prepends, "ids": [texts.index(prepends)], "tokens": [prepends]}
    pair = [*pieces, {"Sequence": {"id": "B", "type_id": 1}}]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {"type": "TemplateProcessing", "single": pieces, "pair": pair, "special_tokens": around},
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": {text: id for id, text in enumerate(texts)}, "unk_token": "<unk>"},
    }


def model_folder(
    folder: Path,
    template: str | None,
    *,
    bos: str | None = None,
    eos: str | None = "<|im_end|>",
    stops: int | list[int] | None = None,
    special: Sequence[str] = SPECIAL,
    prepends: str | None = None,
    **config: Any,
) -> Path:
    """A folder with tokenizer_config.json, tokenizer.json, and with `stops` generation_config.json."""
    files: dict[str, Any] = {
        "tokenizer_config.json": {"bos_token": bos, "eos_token": eos, **config},
        "tokenizer.json": tokenizer(special=special, prepends=prepends),
    }
    if template is not None:
        files["chat_template.jinja"] = template
    if stops is not None:
        files["generation_config.json"] = {"eos_token_id": stops}
    return write(folder, files)


def gguf_file(
    path: Path,
    template: str | None,
    *,
    eos: int | None = 2,
    eot: int | None = None,
    add_bos: bool | None = None,
    special: Sequence[str] = SPECIAL,
    model: str = "gpt2",
    pre: str = "default",
) -> Path:
    """The header of a GGUF file with the same tokens."""
    library = pytest.importorskip("gguf")
    writer = library.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(model)
    writer.add_tokenizer_pre(pre)
    texts = [*special, *WORDS]
    writer.add_token_list(texts)
    writer.add_token_types([3] * len(special) + [1] * len(WORDS))
    writer.add_bos_token_id(1)
    if eos is not None:
        writer.add_eos_token_id(eos)
    if eot is not None:
        writer.add_eot_token_id(eot)
    if add_bos is not None:
        writer.add_add_bos_token(add_bos)
    if template is not None:
        writer.add_chat_template(template)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def opened(path: Path) -> tuple[Renders, TokenData]:
    """The template and the tokens of what was written, as a probe gets them."""
    source = open_source(path)
    tokens = source.tokens
    return rendering(source.template(), tokens), tokens


def rendering(template: str, tokens: TokenData | None) -> Renders:
    """A template with the special tokens of its model."""
    bos, eos = (None, None) if tokens is None else (tokens.bos, tokens.eos)
    return Renders(
        template,
        bos_token="" if bos is None else bos.text or "",
        eos_token="" if eos is None else eos.text or "",
    )
