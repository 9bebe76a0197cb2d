"""LLAMA_CPP reads what llama.cpp b11434 was recorded to read, and refuses what it was recorded to refuse."""

from __future__ import annotations

import pytest

from jinjarun.errors import TemplateSyntaxError
from jinjarun.limits import Limits
from jinjarun.syntax import nodes
from jinjarun.syntax.parser import parse
from jinjarun.syntax.rules import JINJA2, LLAMA_CPP
from tests.syntax.recordings import corpus, failed_to_parse, llamacpp_answers, needs_shared, rendered, snippets
from tests.syntax.shapes import our_body


def reads(source: str) -> bool:
    try:
        parse(source, LLAMA_CPP, Limits())
    except TemplateSyntaxError:
        return False
    return True


@needs_shared
def test_corpus() -> None:
    wrong = []
    for name, answers in llamacpp_answers().items():
        if any(map(rendered, answers)):
            expected = True
        elif all(map(failed_to_parse, answers)):
            expected = False
        else:
            continue
        if reads(corpus()[name]) != expected:
            wrong.append(name)
    assert wrong == []


@needs_shared
def test_snippets() -> None:
    rows = [row for row in snippets() if not row["llamacpp"].get("crash")]
    assert [row["template"] for row in rows if reads(row["template"]) == failed_to_parse(row["llamacpp"])] == []


def text(source: str) -> list[str]:
    body = parse(source, LLAMA_CPP, Limits()).body
    return [node.text for node in body if isinstance(node, nodes.Data)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a{% set x = 1 %}", []),  # one character before the first tag goes with the blanks that may follow it
        ("a  {% set x = 1 %}", []),
        ("\n  {% set x = 1 %}", []),
        ("ab  {% set x = 1 %}", ["ab  "]),
        ("a{{ x }}", ["a"]),
        ("a\n  {% set x = 1 %}\n  b", ["a\n", "  b"]),
        ("ab{{- x -}}\n \x0bb", ["ab", "\x0bb"]),
        ("{{ x }}\n a", ["\n a"]),
        ("{# c -#}\n a", ["a"]),
        ("{#-#}\n a", ["a"]),
        ("ab \n{#- c #}", ["ab"]),
        ("ab\r\ncd\ref\r\n", ["ab\ncd\nef"]),
        ("ab\r", ["ab\n"]),
        ("ab\n\n", ["ab\n"]),
        ("{% generation %}\na{% endgeneration %}b{% endgeneration %}", ["a", "b"]),
    ],
)
def test_text(source: str, expected: list[str]) -> None:
    assert text(source) == expected


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("{{ -5 }}", -5),
        ("{{ +5 }}", 5),
        ("{{--5}}", 5),
        ("{{+5}}", 5),
        ("{{ [-1.5] }}", -1.5),
        ("{{ 007 }}", 7),
        ("{{ -9223372036854775808 }}", -(2**63)),
        (r"{{ 'a\n\'\v\\' 'b' }}", "a\n'\v\\b"),
    ],
)
def test_literals(source: str, value: object) -> None:
    (output,) = parse(source, LLAMA_CPP, Limits()).body
    assert isinstance(output, nodes.Output)
    literal = output.value.items[0] if isinstance(output.value, nodes.ListExpr) else output.value
    assert isinstance(literal, nodes.Const)
    assert literal.value == value


@pytest.mark.parametrize(
    ("without", "with_commas"),
    [
        ("{{ f(a b=1 *c) }}", "{{ f(a, b=1 * c) }}"),
        ("{{ f(a 'b' not c) }}", "{{ f(a, 'b', not c) }}"),
        ("{{ [1 x [2]] }}", "{{ [1, x[2]] }}"),
        ("{{ {'a': 1 'b': 2} }}", "{{ {'a': 1, 'b': 2} }}"),
        ("{% macro m(a b=1,) %}{% endmacro %}", "{% macro m(a, b=1) %}{% endmacro %}"),
    ],
)
def test_commas_are_optional(without: str, with_commas: str) -> None:
    ours, theirs = parse(without, LLAMA_CPP, Limits()), parse(with_commas, JINJA2, Limits())
    assert our_body(ours.body) == our_body(theirs.body)


READ = r"""
{{ x is t 1 }}
{{ x is t [1] }}
{{ x is t1 and x is t2 }}
{{ x is none if }}
{{ x[] }}
{{ x[1_000] }}
{{ x[0:1:1:1] }}
{{ x[1 2] }}
{{ x|f(1).y }}
{{ x|'f' }}
{{ x.'y' }}
{{ x is (t)(1).y }}
{{ f('a'=1, *b) }}
{{ or }}
{{ f({} -1) }}
{{ x.0 }}
{{ x.if }}
{{ if }}
{{ a if b }}
{{ (a, b) }}
{{ -x }}
{{ - 7 }}
{{ f(a, b=1, c, *d) }}
{{ x[::2] }}
{{ x|f(1)|g }}
{% set a, b = 1, 2 %}
{% set a.b.c = 1 %}
{% set x[0].y = 1 %}
{% set x[0] = 1 %}
{% set true = 1 %}
{% set x %}{% endset %}
{% set x | upper %}{% endset %}
{% set x == 1 %}{% endset %}
{% macro f(1) %}{% endmacro %}
{% macro 'f'() %}{% endmacro %}
{% call(1) m() %}{% endcall %}
{% for 1 in y %}{% endfor %}
{% filter f(1).x %}{% endfilter %}
{% generation}}
{% for in in x %}{% endfor %}
{% for x in a if b else c %}{% endfor %}
{% for x in (a if b) %}{% else %}{% endfor %}
{% for (a, b) in c %}{% endfor %}
{% if a if b else c %}{% elif d %}{% else %}{% endif %}
{% call(a b) m() %}{% endcall %}
{% filter f(1) %}{% endfilter %}
{% break %}{% continue %}
{# c #}
""".strip().splitlines()

REFUSED = r"""
{{ a // b }}
{{ a ** b }}
{{ 1e3 }}
{{ 1_000 }}
{{ 0x1 }}
{{ 9223372036854775808 }}
{{ {} - 1 }}
{{ a and -1 }}
{{ naïve }}
{{ '\x41' }}
{{ '\/' }}
{{ 'a }}
{{ a, b }}
{{ () }}
{{ (a,) }}
{{ (a b) }}
{{ x[1, 2] }}
{{ x is t1 is t2 }}
{{ x is string if y else z }}
{{ x is t|f }}
{{ x is a.b }}
{{ x|a.b }}
{{ a if b if c else d }}
{{ {{'a': 1}: 2} }}
{{ x +}}
{% if a, b %}{% endif %}
{% if -1 %}{% endif %}
{% if a: %}{% endif %}
{% for x[0] in y %}{% endfor %}
{% for x in a, b %}{% endfor %}
{% for x in a recursive %}{% endfor %}
{% for x in a if b if c else d %}{% endfor %}
{% call m.n() %}{% endcall %}
{% filter f|g %}{% endfilter %}
{% generation x %}
{%+ if x %}{% endif %}
{% raw %}{% endraw %}
{% with %}{% endwith %}
{% include 'a' %}
{% do x %}
{% endif %}
{% %}
{#
{{
{%
""".strip().splitlines()


@pytest.mark.parametrize("source", READ)
def test_read(source: str) -> None:
    assert reads(source)


@pytest.mark.parametrize("source", REFUSED)
def test_refused(source: str) -> None:
    assert not reads(source)


def test_a_filter_in_parentheses_is_the_loops() -> None:
    (loop,) = parse("{% for x in (y if x) %}{% endfor %}", LLAMA_CPP, Limits()).body
    assert isinstance(loop, nodes.For)
    assert isinstance(loop.test, nodes.Name)
