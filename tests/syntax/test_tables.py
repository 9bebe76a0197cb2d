"""The grammar and the tables kept beside it."""

from __future__ import annotations

import logging
from importlib import resources

import lark
import pytest

from jinjarun.syntax import tables
from jinjarun.syntax.builder import Builder
from jinjarun.syntax.rules import JINJA2, LLAMA_CPP, SyntaxRules


@pytest.fixture(scope="module")
def grammar() -> str:
    return resources.files("jinjarun.syntax").joinpath("grammar.lark").read_text(encoding="utf-8")


def test_tables_are_those_of_the_grammar(grammar: str) -> None:
    """If this fails: python -c "from jinjarun.syntax.tables import write; write()"."""
    compiled, kept = tables.compile_grammar(grammar), tables.load()
    assert kept.digest == compiled.digest
    assert len(kept.states) == len(compiled.states)
    assert {tuple(rule) for rule in kept.rules} == set(compiled.rules)


def test_grammar_has_no_conflicts(grammar: str, caplog: pytest.LogCaptureFixture) -> None:
    lark.logger.addHandler(caplog.handler)
    lark.logger.setLevel(logging.DEBUG)
    try:
        lark.Lark(grammar, parser="lalr", lexer=_NoLexer, debug=True)
    finally:
        lark.logger.removeHandler(caplog.handler)
        lark.logger.setLevel(logging.CRITICAL)
    assert [record.getMessage() for record in caplog.records] == []


class _NoLexer(lark.lexer.Lexer):
    def __init__(self, conf: object) -> None:
        pass

    def lex(self, *_: object) -> object:
        raise NotImplementedError


def test_every_alias_is_built() -> None:
    aliases = {alias for _, _, alias in tables.load().rules if alias}
    assert {alias for alias in aliases if not hasattr(Builder, alias)} == set()


@pytest.mark.parametrize("rules", [JINJA2, LLAMA_CPP], ids=["jinja2", "llama.cpp"])
def test_what_a_dialect_is_without_exists(rules: SyntaxRules) -> None:
    compiled = tables.load()
    known = {alias for _, _, alias in compiled.rules}.union(*compiled.states)
    assert rules.without.keys() - known == set()
