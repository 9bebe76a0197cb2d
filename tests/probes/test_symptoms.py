"""The table of symptoms names commands, rules and fields of the report that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from probes.chapters.stop import EOG_TEXTS
from probes.commands import program
from probes.report import ProbeReport, Stop, TokensChapter
from probes.rules import rules

TEXT = (Path(__file__).parents[2] / "docs" / "symptoms.md").read_text(encoding="utf-8")


def test_commands_exist() -> None:
    assert set(re.findall(r"`jinjarun ([a-z]+)", TEXT)) <= set(program.COMMANDS)


def test_rules_exist() -> None:
    assert set(re.findall(r"rule ([A-Z]{2}\d{3})", TEXT)) <= set(rules())


@pytest.mark.parametrize(("chapter", "model"), [("stop", Stop), ("tokens", TokensChapter)])
def test_fields_exist(chapter: str, model: type[Stop | TokensChapter]) -> None:
    assert chapter in ProbeReport.model_fields
    assert set(re.findall(rf"`{chapter}\.([a-z_]+)", TEXT)) <= set(model.model_fields)


def test_the_number_of_known_texts() -> None:
    assert f"one of {len(EOG_TEXTS)} known texts" in TEXT
