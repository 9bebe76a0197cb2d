"""The reference: that it answers as the recorded engine did, and how it fails."""

from __future__ import annotations

import copy
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice

import pytest

from jinjarun.errors import JinjarunError, RenderError, SandboxViolation, TemplateRaised, TemplateSyntaxError
from jinjarun.reference import Reference
from tests.conformance.golden import snippets

NOON = datetime(2026, 10, 3, 12, 0)


def rendered(source, **context):
    return Reference(source).render_context(context, now=NOON)


def test_as_recorded():
    """Every fifth of the recorded snippets."""
    for case in islice(snippets("transformers"), 0, None, 5):
        if not case.deterministic:
            continue
        try:
            answer = Reference(case.source).render_context(case.context, now=case.now)
        except JinjarunError:
            answer = None
        assert answer == case.output, case.source


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ {'b': '<é>', 'a': 1}|tojson }}", '{"b": "<é>", "a": 1}'),
        ("{{ {'b': 'é', 'a': 1}|tojson(ensure_ascii=true, sort_keys=true) }}", '{"a": 1, "b": "\\u00e9"}'),
        ("{{ [1]|tojson(indent=2, separators=(';', '=')) }}", "[\n  1\n]"),
        ("{% generation %}{% set x = 1 %}<{{ x }}>{% endgeneration %}{{ x }}", "<1>"),
        ("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "01"),
        ("  {% if true %}\nx\n  {% endif %}\n", "x\n"),
        ("{{ strftime_now('%d %B %Y %H:%M') }}", "03 October 2026 12:00"),
        ("{{ dict(a=1) }}{{ dict.fromkeys('ab', 1) }}", "{'a': 1}{'a': 1, 'b': 1}"),
        ("{% set n = namespace(self=1) %}{% set n.x = 2 %}{{ n.self }}{{ n.x }}", "12"),
    ],
)
def test_configuration(source, text):
    assert rendered(source) == text


@pytest.mark.parametrize(
    ("source", "error", "line"),
    [
        ("a\n{% if %}", TemplateSyntaxError, 2),
        ("{% nope %}", TemplateSyntaxError, 1),
        ("\n{{ 1|nope }}", RenderError, 2),
        ("\n\n{{ x.y.z }}", RenderError, 3),
        ("\n{{ 1 + 'a' }}", RenderError, 2),
        ("{{ raise_exception('no\x00good') }}", TemplateRaised, 1),
        ("\n{{ ''.__class__.__mro__ }}", SandboxViolation, 2),
        ("{{ [].append(1) }}", SandboxViolation, 1),
        ("{{ namespace(_x=1) }}", SandboxViolation, 1),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", JinjarunError, None),
    ],
)
def test_errors(source, error, line):
    with pytest.raises(error) as caught:
        rendered(source)
    assert caught.value.line == line


def test_what_the_template_raised_is_quoted():
    with pytest.raises(TemplateRaised) as caught:
        rendered("{{ raise_exception('no\x00' ~ 'x' * 1000) }}")
    assert str(caught.value).startswith("no\\x00xxx")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("now", "text"),
    [
        (0, "1970-01-01 00:00 "),
        (NOON, "2026-10-03 12:00 "),
        (NOON.replace(tzinfo=UTC), "2026-10-03 12:00 "),
        (NOON.replace(tzinfo=timezone(timedelta(hours=5))), "2026-10-03 12:00 "),
    ],
)
def test_clock(now, text):
    """transformers asks for the local time without a zone."""
    assert Reference("{{ strftime_now('%Y-%m-%d %H:%M %Z') }}").render_context({}, now=now) == text


def test_each_thread_has_its_clock():
    reference = Reference("{{ strftime_now('%Y') }}")
    with ThreadPoolExecutor(8) as pool:
        years = range(1990, 2090)
        answers = pool.map(lambda year: reference.render_context({}, now=datetime(year, 1, 1)), years)
    assert list(answers) == [str(year) for year in years]


def test_the_data_stay_as_they_are():
    context = {"messages": [{"content": ["a"]}]}
    before = copy.deepcopy(context)
    with pytest.raises(RenderError):
        Reference("{{ messages[0].content|indent }}").render_context(context)
    assert context == before


def test_does_without_transformers():
    code = "import sys, jinjarun.reference; sys.exit('transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
