"""JINJA2 reads what Jinja2 reads, and builds the tree that Jinja2 builds."""

from __future__ import annotations

from pathlib import Path

import jinja2
import pytest
from hypothesis import HealthCheck, given, settings

from jinjarun.errors import TemplateSyntaxError
from jinjarun.limits import Limits
from jinjarun.syntax.parser import parse
from jinjarun.syntax.rules import JINJA2
from tests.syntax.recordings import corpus, needs_shared, snippets
from tests.syntax.shapes import JINJA2_ENVIRONMENT, Shape, jinja2_shape, our_body
from tests.template_strategies import templates


def our_shape(source: str) -> list[Shape] | None:
    """None where the source is refused."""
    try:
        return our_body(parse(source, JINJA2, Limits()).body)
    except TemplateSyntaxError:
        return None


def their_shape(source: str) -> list[Shape] | None:
    try:
        return jinja2_shape(source)
    except jinja2.TemplateSyntaxError:
        return None


@needs_shared
def test_corpus() -> None:
    assert [name for name, source in corpus().items() if our_shape(source) != their_shape(source)] == []


@needs_shared
def test_snippets() -> None:
    sources = [row["template"] for row in snippets()]
    assert [source for source in sources if our_shape(source) != their_shape(source)] == []


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(templates())
def test_any_template(source: str) -> None:
    shape = their_shape(source)
    assert shape is not None
    assert our_shape(source) == shape


READ_ALIKE = Path(__file__).with_name("read_alike.txt").read_text(encoding="utf-8").split("\n")[:-1]
"""One template a line; "⏎" stands for a line break."""


@pytest.mark.parametrize("source", [line.replace("⏎", "\n") for line in READ_ALIKE])
def test_read_alike(source: str) -> None:
    assert our_shape(source) == their_shape(source)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    "source", ["a\n", "a\n\n", "{% if x %}\n a\n{% endif %}\n", "\n{{ 'b\nc' }}\n\n", "  {# c #}\n", "\n"]
)
def test_newlines(source: str, newline: str) -> None:
    source = source.replace("\n", newline)
    assert our_shape(source) == their_shape(source)


COMPILED = """
{% for x in y %}{% break %}{% endfor %}
{% for x in y %}{% if x %}{% continue %}{% endif %}{% else %}{% break %}{% endfor %}
{% for x in y %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}
{% for x in y %}{% call f() %}{% break %}{% endcall %}{% endfor %}
{% for x in y %}{% generation %}{% break %}{% endgeneration %}{% endfor %}
{% for x in y %}{% filter upper %}{% break %}{% endfilter %}{% endfor %}
{% for loop in y %}{% endfor %}
{% for x in y %}{% set loop = 1 %}{% endfor %}
{% for x in y %}{% with loop = 1 %}{% endwith %}{% endfor %}
{% set loop = 1 %}
{% macro m(a, a) %}{% endmacro %}
{{ f(a=1, a=2) }}
{% block a %}{% endblock %}{% block a %}{% endblock %}
{% if x %}{% extends 'a' %}{% endif %}
{% for x in y %}{% extends 'a' %}{% endfor %}
""".strip().splitlines()


@pytest.mark.parametrize("source", COMPILED)
def test_refused_by_the_compiler(source: str) -> None:
    """What Jinja2 parses and then fails to compile is refused here as well."""
    try:
        compile(JINJA2_ENVIRONMENT.compile(source, raw=True), "template", "exec")
    except (jinja2.TemplateSyntaxError, SyntaxError):
        assert our_shape(source) is None
    else:
        assert our_shape(source) is not None
