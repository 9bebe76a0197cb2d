"""Every family of `corpus/` renders in both dialects as its expected.json says, and is a sound tokenizer config."""

from __future__ import annotations

import json
import re

import pytest

from tests.conformance.golden import SHARED, have_shared
from tests.families import CORPUS, NAMES, WITH_TEMPLATE, WITHOUT_TEMPLATE, differences, family

PLAIN_TEXT_MARKERS = {"llama2": {"[INST]", "[/INST]"}}
"""Llama 2 was trained on these as ordinary text: its vocabulary has no such tokens."""


def test_there_are_the_families_of_the_design() -> None:
    assert len(WITH_TEMPLATE) >= 13
    assert WITHOUT_TEMPLATE in NAMES


@pytest.mark.parametrize("name", WITH_TEMPLATE)
def test_renders_and_caps(name: str) -> None:
    rows = differences(family(name))
    assert not rows, "\n".join(rows)


@pytest.mark.parametrize("name", NAMES)
def test_config(name: str) -> None:
    config = family(name).config
    added = {token["content"] for token in config["added_tokens_decoder"].values()}
    assert config["eos_token"] in added
    assert config["bos_token"] is None or config["bos_token"] in added
    assert family(name).expected["about"].endswith(".")


@pytest.mark.parametrize("name", WITH_TEMPLATE)
def test_markers_are_tokens(name: str) -> None:
    """What looks like a special token in a template is one in its vocabulary."""
    found = family(name)
    added = {token["content"] for token in found.config["added_tokens_decoder"].values()}
    written = set(re.findall(r"<\|[a-z_]+\|>|<｜[^｜]+｜>|\[/?[A-Z_]{3,}\]|</?think>", found.source))
    assert written - added == PLAIN_TEXT_MARKERS.get(name, set())


def test_the_base_model_has_no_template() -> None:
    found = family(WITHOUT_TEMPLATE)
    assert "chat_template" not in found.config
    assert found.expected == {**found.expected, "caps": None, "renders": {}, "error": "SourceError"}


@pytest.mark.skipif(not have_shared(), reason=f"the real templates are not beside this clone ({SHARED})")
def test_no_template_is_a_copy() -> None:
    """The templates were written for this project: none equals a real one, spaces and quotes aside."""

    def bare(text: str) -> str:
        return re.sub(r"[\s\"'-]", "", text)

    real = {bare(path.read_text(encoding="utf-8")) for path in (SHARED / "corpus" / "templates").glob("*.jinja")}
    copies = [name for name in WITH_TEMPLATE if bare(family(name).source) in real]
    assert not copies


def test_expected_files_are_written_by_the_tool() -> None:
    """So that a rewrite shows only what changed."""
    for name in NAMES:
        found = family(name)
        for file, data in (("tokenizer_config.json", found.config), ("expected.json", found.expected)):
            written = json.dumps(data, ensure_ascii=False, indent=2) + "\n"
            assert (CORPUS / name / file).read_text(encoding="utf-8") == written, f"{name}/{file}"
