"""A render that has ended leaves nothing that only the garbage collector can free, however it ended."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterator

import pytest

from jinjarun import JinjarunError, Template, chat_template_caps
from tests.bench.children import forget_peak, in_child, peak_megabytes
from tests.conformance.golden import ENGINES

CONTEXT = {"messages": [{"role": "user", "content": "x"}], "add_generation_prompt": True}
PROMPT = "{% if add_generation_prompt %}{{ n }}{% endif %}"

NAMESPACE = "{% set n = namespace() %}"
HOLD_THEMSELVES = (
    NAMESPACE + "{% set g=[n,n]|map(attribute='g') %}{% set n.g = g|map('string') %}{{ n.g|first }}",
    NAMESPACE + "{% set g=[n,n,n]|map(attribute='g') %}{% set n.g = g|select %}{{ n.g|first is defined }}",
    NAMESPACE + "{% for i in [n,n,n]|map(attribute='l', default=1) %}{% set n.l = loop %}"
    "{% set n.m = loop.changed(loop) %}{{ loop.index }}{% endfor %}",
    NAMESPACE + "{% for i in [n,n,n]|map(attribute='l', default=1) if i %}"
    "{% set n.l = loop %}{{ loop.nextitem }}{% break %}{% endfor %}",
    "{% for i in [1,2] %}{{ loop.changed(loop) }}{% endfor %}",
    "{% set l=[] %}{% for i in [1,2] %}{% set x = l.append(loop) %}{% set x = l.append(l) %}{% endfor %}",
    "{% set l=messages %}{% for i in [l,l] %}{% set x = l.append(loop) %}{% endfor %}",
    NAMESPACE + "{% set n.n=n %}",
    NAMESPACE + "{% set n.n=[n] %}{{ n.n[0].n }}",
    "{% macro m() %}{{ x }}{% endmacro %}{{ m() }}",
    "{% macro m() %}{% macro k() %}{% endmacro %}{{ k() }}{% endmacro %}{{ m() }}{{ m() }}",
    "{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}{% set x = caller %}a{% endcall %}",
    NAMESPACE + "{% macro m() %}{% set n.c = caller %}{{ caller() }}{% endmacro %}{% call m() %}a"
    "{% endcall %}{{ n.c() }}",
    NAMESPACE + "{% macro m(a) %}{% set n.c = kwargs %}{% set n.v = varargs %}{% set n.m = m %}"
    "{% endmacro %}{{ m(1,n,m,c=m) }}",
    NAMESPACE + "{% for i in [1,2] %}{% set n.l = loop %}{% set n.p = loop.previtem %}{% endfor %}",
    NAMESPACE + "{% for i in [[1,[2]],[3]] recursive %}{% set n.l = loop %}"
    "{% if i is not number %}{{ loop(i) }}{% endif %}{% endfor %}",
    NAMESPACE + "{% for i in [n, n] if i.x is not defined %}{% set n.l = loop %}{% endfor %}",
    NAMESPACE + "{% for i in [n, n] if i.x is not defined %}{% set n.l = loop %}{% break %}{% endfor %}",
    NAMESPACE + "{% set n.g = [n]|map(attribute='g') %}",
    NAMESPACE + "{% set n.g = [n,n]|map(attribute='g') %}{{ n.g|first is defined }}",
    NAMESPACE + "{% set n.g = [n,n]|select('defined')|map('string')|batch(2) %}{% for x in n.g %}{{ x }}{% endfor %}",
    NAMESPACE + "{% set n.g = [n,n]|groupby('x') %}{% set n.c = cycler(n, n.g) %}"
    "{% set n.j = joiner(n) %}{{ n.c.next() }}",
    "{% block b %}{% set x = self %}{{ z }}{% endblock %}{{ self.b() }}",
    "{% block b scoped %}{% macro m() %}{% endmacro %}{% endblock %}{% set s = self %}",
    "{% set x = [] %}{% set _ = x.append(x) %}",
    "{% set x = {} %}{% set x.y = x %}",
    "{% set x = {} %}{% set x.y = [x] %}{{ x.y[0].nope.nope }}",
    "{% set _ = messages.append(messages) %}",
    "{% set _ = messages[0].update(messages[0]) %}",
    NAMESPACE + "{% set n.u = n.nope %}{% set n.v = [n][5] %}{% set n.w = n.pop %}{% set n.b = n.v is defined %}",
    NAMESPACE + "{% set n.f = [n].append %}{% set n.k = {'a':n}.items() %}{% set n.z = 'abc'.upper %}",
    NAMESPACE + "{% set n.n=n %}{{ raise_exception('x') }}",
    "{% macro m() %}{{ 1 + none }}{% endmacro %}{{ m() }}",
    "{% macro m() %}{% for x in [1]|map('int') %}{{ x.foo.bar.baz }}{% endfor %}{% endmacro %}{{ m() }}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{% for i in [1]|map('nosuch') %}{% endfor %}",
    NAMESPACE + "{% for i in range(5) %}{% set n.g = [n, n.g]|map('list') %}{% endfor %}{{ n.g|list }}",
    "{% for i in range(90000) %}{% for j in range(90000) %}{% macro m() %}{% endmacro %}{% endfor %}{% endfor %}",
    "{% set x %}{% macro m() %}{% endmacro %}{% endset %}{% filter upper %}{% macro m() %}"
    "{% endmacro %}{% endfilter %}",
    "{% with a = 1 %}{% macro m() %}{{ a }}{% endmacro %}{{ m() }}{% endwith %}",
    "{% generation %}{% macro m() %}{% endmacro %}{{ m() }}{% endgeneration %}",
    "{% macro m(a, b=m) %}{{ b }}{% endmacro %}{{ m() }}",
    "{% macro m() %}{% set q = caller %}{{ caller() }}{% endmacro %}{% macro k() %}"
    "{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{% call k() %}x{% endcall %}",
    "{{ '%s' % messages }}{{ messages|tojson }}{{ messages|pprint }}",
    "{{ messages|sort(attribute='x') }}",
    "{{ [3,messages,'a']|sort }}",
    "{{ 'abc'|replace(1) }}",
    "{{ {}|dictsort(1,2,3,4) }}",
    "{{ x.y.z }}",
    "{{ 1/0 }}",
    "{{ [1]|first.nope() }}",
    "{{ [1,2]|sum(start=[]) }}",
    "{{ '{0.a}'.format(messages) }}",
    "{{ 'x'|int('y') }}{{ []|random }}{{ 'a'|wordwrap(0) }}",
)


def left_over(source: str, dialect: str) -> int:
    """Objects that the collector finds after everything that can be asked of a template."""
    with contextlib.suppress(JinjarunError):
        Template(source, dialect).render_context(CONTEXT)
    with contextlib.suppress(JinjarunError):
        Template(source, dialect).render_context(CONTEXT, spans=True, generations=True)
    with contextlib.suppress(JinjarunError):
        Template(source + PROMPT, dialect).render_generation_prompts(CONTEXT, [True, None, False])
    if dialect == "llama.cpp":
        with contextlib.suppress(JinjarunError):
            chat_template_caps(source)
    return gc.collect()


@pytest.mark.parametrize("dialect", ENGINES)
@pytest.mark.parametrize("source", HOLD_THEMSELVES)
def test_nothing_is_left(source: str, dialect: str) -> None:
    left_over(source, dialect)  # what is made once: tables and patterns
    gc.disable()
    try:
        assert left_over(source, dialect) == 0
    finally:
        gc.enable()


HOLDS_MUCH = "{% set n = namespace(t=big|upper) %}"
IN_A_ROW, MEGABYTES = 1000, 50


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
@pytest.mark.parametrize("dialect", ENGINES)
def test_a_thousand_renders_in_a_row_need_no_more_memory_than_one(dialect: str) -> None:
    """Each holds 2 MB in what holds itself, and nothing collects: one in 40 that stays would be seen."""
    holders = [source for source in HOLD_THEMSELVES if source.startswith(NAMESPACE) and " recursive " not in source]
    templates = [Template(source.replace(NAMESPACE, HOLDS_MUCH), dialect) for source in holders]
    context = {**CONTEXT, "big": "ab" * 1_000_000}

    def render(number: int) -> None:
        with contextlib.suppress(JinjarunError):
            templates[number % len(templates)].render_context(context)

    def peak() -> Iterator[float]:
        gc.disable()
        for number in range(len(templates)):
            render(number)
        forget_peak()
        before = peak_megabytes()
        for number in range(IN_A_ROW):
            render(number)
        yield peak_megabytes() - before

    (megabytes,) = in_child(peak)
    assert megabytes < MEGABYTES
