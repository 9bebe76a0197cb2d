"""Stop verdicts of real configurations, against what a person read in them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jinjarun.sources import open_source
from probes.chapters.tokens import stop_chapter
from probes.report import Stop
from tests.probes.token_files import rendering

CONFIGS = Path(__file__).parents[3] / "shared" / "corpus" / "configs"
ROWS = json.loads(Path(__file__).with_name("stop_by_hand.json").read_text(encoding="utf-8"))["rows"]

pytestmark = pytest.mark.skipif(not CONFIGS.is_dir(), reason=f"the real configurations are not here ({CONFIGS})")


def judged(row: dict[str, Any], *, eos_alone: bool) -> Stop:
    source = open_source(CONFIGS / row["config"])
    tokens = source.tokens
    if eos_alone:
        assert tokens.eos is not None
        tokens = replace(tokens, generation_eos=(tokens.eos,))
    return stop_chapter(rendering(source.template(), tokens), tokens)


def test_there_are_twenty_and_each_says_why() -> None:
    assert len(ROWS) >= 20
    assert all(row["why"].endswith(".") for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["config"])
def test_configuration_alone(row: dict[str, Any]) -> None:
    stop = judged(row, eos_alone=False)
    assert stop.written == row["written"]
    assert stop.by_engine == {"transformers": "unknown", "vllm": row["vllm"], "llama.cpp": row["llama.cpp"]}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["config"])
def test_with_a_generation_config_of_eos_alone(row: dict[str, Any]) -> None:
    stop = judged(row, eos_alone=True)
    assert stop.by_engine == {"transformers": row["eos_alone"], "vllm": row["eos_alone"], "llama.cpp": row["llama.cpp"]}
