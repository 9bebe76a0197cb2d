"""Real tokenizer configurations come out as they were recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jinjarun.sources import Token, open_source
from tests.sources.support import SHARED, needs_shared, unusable

CORPUS = SHARED / "corpus"


def rows() -> list[dict[str, Any]]:
    file = CORPUS / "configs.jsonl"
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.is_file() else []


def text(token: Token | None) -> str | None:
    return None if token is None else token.text


@needs_shared
@pytest.mark.parametrize("row", rows(), ids=lambda row: str(row["config"]))
@pytest.mark.parametrize("form", ["file", "folder"])
def test_configuration(row: dict[str, Any], form: str) -> None:
    folder = CORPUS / "configs" / row["config"]
    source = open_source(folder / "tokenizer_config.json" if form == "file" else folder)
    assert source.form == row["form"]
    assert list(source.templates) == row["names"]
    assert text(source.tokens.bos) == row["bos_token"]
    assert text(source.tokens.eos) == row["eos_token"]
    assert source.tokens.add_bos == row["add_bos_token"]
    assert source.name == row["config"]
    if row["form"] == "absent":
        assert unusable(source).details["reason"] == "holds no chat template"
    else:
        raw = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))["chat_template"]
        expected = raw if isinstance(raw, str) else {item["name"]: item["template"] for item in raw}
        assert source.templates == ({"default": expected} if isinstance(expected, str) else expected)


@needs_shared
def test_there_are_rows() -> None:
    assert len(rows()) == 82
