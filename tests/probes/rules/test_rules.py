"""What every rule must hold: a documented module of the right name, and templates that show what it hits."""

from __future__ import annotations

import importlib
import pkgutil
import re
from typing import TYPE_CHECKING

import pytest

import probes.rules
from probes.rules import rules
from probes.rules.base import CODE, NAME
from tests.bench.rules_over_corpus import PAGE, filled, rules_table
from tests.probes.rules.support import linted

if TYPE_CHECKING:
    from pathlib import Path

    from probes.rules import Rule

STARRED = re.findall(
    r"\w+",
    "SY001 SY002 RL101 RL103 RL106 CT101 CT102 CT104 TL101 TL102 TL104 TL106 TL108 RS101 "
    "PS101 PS102 PS104 ST201 ST202 PT101 SC104 PK301",
)
SECTIONS = ("What it does", "Why it is bad", "Example", "Use instead", "References")
every_rule = pytest.mark.parametrize("rule", rules().values(), ids=list(rules()))


def test_the_starred_rules_are_there() -> None:
    assert set(STARRED) <= rules().keys()
    assert not [code for code in STARRED if rules()[code].preview]


def test_every_module_with_a_code_is_a_rule() -> None:
    modules = [module.name for module in pkgutil.iter_modules(probes.rules.__path__)]
    coded = [name for name in modules if CODE.match(name.partition("_")[0].upper())]
    assert len(coded) == len(rules())
    for name in coded:
        rule: Rule = importlib.import_module(f"probes.rules.{name}").RULE
        assert name == f"{rule.code.lower()}_{rule.name.replace('-', '_')}"


@every_rule
def test_code_name_and_words(rule: Rule) -> None:
    assert CODE.fullmatch(rule.code)
    assert NAME.fullmatch(rule.name)
    assert rule.summary.endswith(".")
    assert rule.suggestion
    assert not rule.suggestion.endswith(".")


def test_names_are_taken_once() -> None:
    names = [rule.name for rule in rules().values()]
    assert len(set(names)) == len(names)


@every_rule
def test_documented_in_full(rule: Rule) -> None:
    paragraphs = [text.strip() for text in rule.documentation.strip().split("\n\n")]
    assert paragraphs[0].endswith(".")
    found = [text.partition(":")[0] for text in paragraphs[1:]]
    assert [name for name in found if name in SECTIONS] == list(SECTIONS)
    for text in paragraphs[1:]:
        assert len(text.partition(":")[2].split()) >= 5, text


@every_rule
def test_hits_its_example(rule: Rule, tmp_path: Path) -> None:
    result = linted(rule, rule.triggers, tmp_path)
    assert {found.code for found in result.findings} == {rule.code}
    for found in result.findings:
        assert found.engines
        assert found.message.isprintable()
        assert set(found.evidence) <= result.evidence.keys()
        assert re.fullmatch(rf"{rule.code}:[0-9a-f]{{8}}:\d+", found.fingerprint)


@every_rule
@pytest.mark.parametrize("form", ["repaired", "healthy"])
def test_does_not_hit(rule: Rule, form: str, tmp_path: Path) -> None:
    result = linted(rule, getattr(rule, form), tmp_path)
    assert result.findings == []
    assert result.not_evaluated == []


@every_rule
def test_the_repair_is_the_smallest(rule: Rule) -> None:
    """What is repaired is the same template: most of its text stays."""
    if rule.needs in {"source", "files"}:
        return
    pieces = re.findall(r"\w+", rule.triggers)
    kept = [piece for piece in pieces if piece in rule.repaired]
    assert len(kept) >= len(pieces) // 2


def test_the_page_of_rules_is_the_registry() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == filled(text, "rules", rules_table()), "docs/rules.md: each rule has its row, as rules_table has it"
