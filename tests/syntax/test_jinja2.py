"""JINJA2 reads what Jinja2 reads, and builds the tree that Jinja2 builds."""

from __future__ import annotations

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


READ_ALIKE = (
    r"""
{{ 1_000 }}|{{ 0x_fF }}|{{ 0b1_0 }}|{{ 0o17 }}|{{ 00 }}|{{ 1e3 }}|{{ 1_0.2_5e-3 }}|{{ 007 }}|{{ 1.e5 }}|{{ .5 }}|{{ 5. }}
{{ x.0 }}|{{ x.0.5 }}|{{ x.0.y }}|{{ 1if x else 2 }}|{{ x . y }}|{{ x.if }}|{{ x|if }}|{{ f(if=1, in=2, not=3) }}|{{ if }}
{{ 'a' "b" 'c' }}|{{ 'a\x41\u00e9\101\N{BULLET}\d\
b' }}|{{ '\x4' }}|{{ '\N{no such name}' }}|{{ '\é' }}|{{ "a'b" }}|{{ 'a }}
{{ -1 ** 2 }}|{{ - -x }}|{{ -x|abs }}|{{ -x.y[0] }}|{{ 2 ** 3 ** 4 }}|{{ a ~ b + c ~ d - e }}|{{ a < b == c in d not in e }}
{{ not a in b }}|{{ not not a }}|{{ a or b and not c }}|{{ a if b }}|{{ a if b else c if d else e }}|{{ a if b if c else d }}
{{ x is t }}|{{ x is not t }}|{{ x is t 1 }}|{{ x is t y.z[0](1) }}|{{ x is t [1] }}|{{ x is t "a" "b" }}|{{ x is t (1) }}
{{ x is t|f }}|{{ x is t is u }}|{{ x is t(1) is u }}|{{ x is a.b }}|{{ x is t if y }}|{{ 1 if x is t if y else z }}
{{ x is t in y }}|{{ x is t not in y }}|{{ x is not in y }}|{{ x is in y }}|{{ x is t and y }}|{{ x is t -1 }}|{{ x is not not }}
{{ x|f.g }}|{{ x|f(1)(2) }}|{{ x|f|g(a=1) }}|{{ x|f.y(1) }}|{{ x|f(1).y }}|{{ x|f(1)[0] }}|{{ x is t(1)(2)|f }}|{{ x|(f) }}
{{ a, b }}|{{ a, }}|{{ () }}|{{ (a,) }}|{{ (a, b,) }}|{{ , }}|{{ [a,] }}|{{ [,] }}|{{ {} }}|{{ {'a': 1,} }}|{{ {'a'} }}
{{ x[1:2] }}|{{ x[:] }}|{{ x[::2] }}|{{ x[1::] }}|{{ x[:2:] }}|{{ x[1, 2:3] }}|{{ x[] }}|{{ x[1,] }}|{{ x[1 2] }}|{{ x[:::] }}
{{ f(a, *b, c=1, **d) }}|{{ f(a=1, *b) }}|{{ f(*a, b) }}|{{ f(a=1, b) }}|{{ f(**a, b=1) }}|{{ f(*a, *b) }}|{{ f(a,) }}|{{ f(,) }}
{% if a, b %}{% endif %}|{% if a, %}{% endif %}|{% if a if b %}{% endif %}|{% if a: %}{% else: %}{% endif %}|{% if %}{% endif %}
{% for a, b in c %}{% endfor %}|{% for (a, b), in c %}{% endfor %}|{% for a in b, c %}{% endfor %}|{% for a.b in c %}{% endfor %}
{% for a in b if c if d else e recursive %}{% endfor %}|{% for a in b if c else d %}{% endfor %}|{% for a in b %}{% else %}{% endfor %}
{% for in in x %}{% endfor %}|{% for a in b is defined recursive %}{% endfor %}|{% for [a] in b %}{% endfor %}|{% for true in x %}{% endfor %}
{% set a, b = 1, 2 %}|{% set a.b = 1 %}|{% set a.b.c = 1 %}|{% set (a, b) = c %}|{% set a[0] = 1 %}|{% set true = 1 %}|{% set a, = 1 %}
{% set a %}{% endset %}|{% set a | f | g(1) %}{% endset %}|{% set a, %}{% endset %}|{% set a = 1 %}{% endset %}|{% set 1 = 2 %}
{% macro m(a, b=1) %}{% endmacro %}|{% macro m(a=1, b) %}{% endmacro %}|{% macro m(a,) %}{% endmacro %}|{% macro m %}{% endmacro %}
{% call m() %}{% endcall %}|{% call(a, b=1) m.n(1) %}{% endcall %}|{% call m %}{% endcall %}|{% call (x)(y) %}{% endcall %}
{% filter f.g(1)|h %}{% endfilter %}|{% filter %}{% endfilter %}|{% with %}{% endwith %}|{% with a = 1, b = 2 %}{% endwith %}
{% with a, b = c %}{% endwith %}|{% with a.b = 1 %}{% endwith %}|{% block a scoped required %} {% endblock a %}|{% block a %}{% endblock b %}
{% block a required %}x{% endblock %}|{% block a required scoped %}{% endblock %}|{% autoescape a %}{% endautoescape %}|{% print a, b %}
{% print %}|{% print a, %}|{% include 'a' ignore missing with context %}|{% include a without context %}|{% import 'a' as b %}
{% from 'a' import b, c as d with context %}|{% from a import with context %}|{% from a import _b %}|{% from a import b, %}|{% extends a %}
{% generation %}x{% endgeneration %}|{% continue x %}|{% do x %}|{% %}|{% 1 %}|{% endif %}|{% if x %}|{% raw %}|{#|{{|{%
{% raw %}{{ {% endraw %}|{%- raw -%}
 a {% endraw -%} b|{% raw +%}{% endraw %}|{# a #}|{#- a -#} b|{#-#} b|{#+ a +#}
b|{{- x -}} b|{{+ x }}|{{ x +}}|a {%+ if x %} b {%- endif %}|a
  {% if x %}
  b
  {%- endif +%}
c|{{ {'a': {'b': {}}} }}|{{ {{}: 1} }}|{{ '}}' }}|{{ (x }}|{{ x] }}|{{ {'a': 1 -}} }}|{{ x ; y }}|{{ x && y }}|{{ naïve }}|{{ x.é|ü }}|{{ a→b }}
""".strip()
    .replace("\n{", "|{")
    .split("|{")
)


@pytest.mark.parametrize("source", [s if s.startswith("{") or i == 0 else "{" + s for i, s in enumerate(READ_ALIKE)])
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
