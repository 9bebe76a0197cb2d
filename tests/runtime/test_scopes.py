"""Variables, macros and loops: where the two engines agree, and where they do not."""

from __future__ import annotations

from typing import Any

import pytest

from jinjarun import LimitExceeded, RenderError, Template, TemplateSyntaxError
from jinjarun.reference import Reference

BOTH = ("transformers", "llama.cpp")


def render(source: str, dialect: str, **context: Any) -> str:
    return Template(source, dialect).render_context(context, now=0).text


@pytest.mark.parametrize("dialect", BOTH)
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}", "2"),
        ("{% set x = 1 %}{% for i in [1, 2] %}{% set x = 5 %}{% endfor %}{{ x }}", "1"),
        ("{% set ns = namespace(n=0) %}{% for i in [1, 2] %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}", "3"),
        ("{% for k, v in {'a': 1}.items() %}{{ k }}{{ v }}{% endfor %}", "a1"),
        ("{% for i in [1, 2, 3] if i != 2 %}{{ loop.index }}{{ i }}{{ loop.last }} {% endfor %}", "11False 23True "),
        ("{% for i in [] %}x{% else %}none{% endfor %}", "none"),
        ("{% for i in [1] %}{% continue %}{% else %}no whole iteration{% endfor %}", "no whole iteration"),
        ("{% for i in [1, 2, 3] %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "1"),
        ("{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=4, a=5) }}", "121354"),
        ("{% macro w() %}<{{ caller() }}>{% endmacro %}{% call w() %}in{% endcall %}", "<in>"),
        ("{% macro f(n) %}{{ n }}{% if n %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}", "3210"),
        ("{% set x %}a{{ 1 + 1 }}{% endset %}{{ x }}", "a2"),
        ("{% filter upper %}a{% endfilter %}", "A"),
        ("{{ missing is defined }}{{ missing }}{{ none is defined }}", "FalseTrue"),
    ],
)
def test_what_both_engines_do(dialect: str, source: str, expected: str) -> None:
    assert render(source, dialect) == expected


@pytest.mark.parametrize(
    ("source", "transformers", "llamacpp"),
    [
        # a set inside a loop lives for one iteration in Jinja2, for the loop in llama.cpp
        ("{% for i in [1, 2] %}{{ y is defined }} {% set y = i %}{% endfor %}", "False False ", "False True "),
        # a macro sees where it was defined, or where it is called
        ("{% macro m() %}{{ i }}{% endmacro %}{% for i in [7] %}{{ m() }}{% endfor %}", "", "7"),
        # a set block is a scope, or not
        ("{% set a %}{% set b = 1 %}{% endset %}{{ b }}", "", "1"),
        # what an if wrote before a break in it stays, or goes
        ("{% for i in [1] %}a{% if true %}b{% break %}{% endif %}{% endfor %}", "ab", "a"),
        # a name that is set later is undefined to a macro called before, whatever the caller passed
        ("{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% set x = 1 %}{{ m() }}", "1", "caller's1"),
        ("{{ 1 < 2 < 3 }}{{ 3 > 2 > 1 }}", "TrueTrue", None),
        # Jinja2 hands on what the filter gave, and fails when it joins the text
        ("{% filter length %}abc{% endfilter %}", None, "3"),
        ("{{ 'a' ~ 1 + 2 }}", None, "a12"),
        ("{{ [1, 2] }}{{ none }}{{ {'a': 1} }}", "[1, 2]None{'a': 1}", "12"),
        ("{{ 'é'|length }}", "1", "2"),
    ],
)
def test_where_they_differ(source: str, transformers: str | None, llamacpp: str | None) -> None:
    for dialect, expected in (("transformers", transformers), ("llama.cpp", llamacpp)):
        if expected is None:
            with pytest.raises(RenderError):
                render(source, dialect, x="caller's")
        else:
            assert render(source, dialect, x="caller's") == expected


def test_an_unknown_filter_fails_at_once_or_when_reached() -> None:
    with pytest.raises(TemplateSyntaxError, match="nosuch"):
        Template("{{ 1|nosuch }}", "transformers")
    template = Template("{% if x %}{{ 1|nosuch }}{% endif %}ok", "transformers")
    assert template.render_context({"x": False}).text == "ok"
    with pytest.raises(RenderError, match="nosuch"):
        template.render_context({"x": True})


def test_an_error_tells_the_innermost_place() -> None:
    source = "a\n{% for m in messages %}\n  {{ m.content +\n   raise_exception('no') }}\n{% endfor %}"
    with pytest.raises(Exception, match="no") as failed:
        Template(source, "transformers").render([{"role": "user", "content": "x"}])
    assert (failed.value.line, failed.value.column) == (4, 4)


def test_branches_tell_what_was_reached() -> None:
    template = Template("{% if a %}1\n{% elif b %}2\n{% else %}3\n{% endif %}\n{% for x in xs %}{% endfor %}")
    assert template.branches == [(1, "if"), (2, "elif"), (3, "else"), (5, "for")]
    assert template.render_context({"b": 1, "xs": []}).reached == bytes([0, 1, 0, 0])
    assert template.render_context({"xs": [1]}).reached == bytes([0, 0, 1, 1])


@pytest.mark.parametrize(
    "source",
    [
        "{{ self.a() }}{% block a %}r{% endblock %}",
        "{% if false %}{% block a %}x{% endblock %}{% endif %}{{ self.a()|upper }}",
        "{% set z = 3 %}{% block a %}{{ z }}{% set z = 4 %}{{ z }}{% endblock %}{{ z }}{% set z = 5 %}{{ self.a() }}",
        "{% macro m() %}{{ self.a() }}{% endmacro %}{% block a %}q{% endblock %}{{ m() }}",
        "{% block a %}{{ self.b() }}{% block b %}in{% endblock %}{% endblock %}",
        "{% for i in [1, 2] %}{% block a scoped %}{{ i }}{% endblock %}{% endfor %}[{{ self.a() }}]",
        "{{ self }}{{ self is defined }}{{ self.b is defined }}{{ self.a is callable }}{% block a %}{% endblock %}",
        "{% set self = 3 %}{{ self }}",
        "{% autoescape true %}{{ '<' }}{% block b %}{{ '<' }}{% endblock %}{% endautoescape %}",
        "{% block a %}{{ self.a(1) }}{% endblock %}",
        "{% autoescape true %}{% set q = '<' %}{{ q }}{% endautoescape %}[{{ q }}]",
        "{% set q = 0 %}{% autoescape true %}{{ q }}{% set q = 1 %}{{ q }}{% endautoescape %}[{{ q }}]",
        "{% for i in [1, 2] %}{% autoescape true %}{{ q }}{% set q = i %}{% endautoescape %}{{ q }}{% endfor %}",
        "{% for i in [1, 2] %}{% autoescape true %}{% if i == 2 %}{% break %}{% endif %}<{% endautoescape %}"
        "{% endfor %}",
        "{% macro m() %}1{% endmacro %}{% block b %}{% with x = 1 %}{{ m() }}{% endwith %}{% macro m() %}{% endmacro %}"
        "{% endblock %}",
        "{% set y = 1 %}{% block b %}{{ y }}{% set y = 2 %}{{ y }}{% endblock %}{{ y }}",
        "{% set y = 1 %}{% block b %}{% if true %}{{ y }}{% endif %}{% set y = 2 %}{{ y }}{% endblock %}{{ y }}",
        "{% macro m() %}{% block b %}{{ kwargs }}{{ varargs }}{{ caller }}{% endblock %}{% endmacro %}{{ m(a=1) }}",
        "{% for i in [1, 2] %}{% block b scoped %}{{ loop.index }}{% endblock %}{% endfor %}",
        "{% for i in [1, 2] %}{% block b %}{{ loop is defined }}{% endblock %}{% endfor %}",
    ],
)
def test_blocks_are_those_of_jinja2(source: str) -> None:
    try:
        theirs = Reference(source).render_context({})
    except RenderError:
        with pytest.raises(RenderError):
            render(source, "transformers")
    else:
        assert render(source, "transformers") == theirs


def test_a_block_that_calls_itself_ends() -> None:
    with pytest.raises(LimitExceeded, match="depth"):
        render("{% block a %}{{ self.a() }}{% endblock %}", "transformers")


@pytest.mark.parametrize(
    "inside",
    [
        "{{ 1|nothing }}",
        "{{ 1|nothing if x }}",
        "{% for i in [1]|nothing %}{% endfor %}",
        "{% for i in [1] %}{{ i|nothing }}{% endfor %}",
        "{% for i in [1] if i|nothing %}{% endfor %}",
        "{% for i in [] %}{% else %}{{ 1|nothing }}{% endfor %}",
        "{% set y %}{{ 1|nothing }}{% endset %}",
        "{% set y | nothing %}{% endset %}",
        "{% set y = 1|nothing %}",
        "{% filter nothing %}{% endfilter %}",
        "{% filter upper %}{{ 1|nothing }}{% endfilter %}",
        "{% macro m(a=1|nothing) %}{% endmacro %}",
        "{% macro m() %}{{ 1|nothing }}{% endmacro %}",
        "{% call x(1|nothing) %}{% endcall %}",
        "{% call x() %}{{ 1|nothing }}{% endcall %}",
        "{% with a = 1|nothing %}{% endwith %}",
        "{% with a = 1 %}{{ a|nothing }}{% endwith %}",
        "{% generation %}{{ 1|nothing }}{% endgeneration %}",
        "{% block b %}{{ 1|nothing }}{% endblock %}",
        "{% autoescape 1|nothing %}{% endautoescape %}",
        "{% if x %}{% else %}{{ 1 is nothing }}{% endif %}",
    ],
)
@pytest.mark.parametrize("around", ["%s", "{%% if x %%}%s{%% endif %%}", "{%% for i in [] %%}%s{%% endfor %%}"])
def test_an_unknown_filter_fails_when_jinja2_says_so(around: str, inside: str) -> None:
    """At once, or only where it is reached: under a condition, unless Jinja2 makes a frame inside of it."""
    source = around % inside
    try:
        theirs = Reference(source).render_context({})
    except (TemplateSyntaxError, RenderError):
        with pytest.raises((TemplateSyntaxError, RenderError), match="nothing"):
            render(source, "transformers")
    else:
        assert render(source, "transformers") == theirs
