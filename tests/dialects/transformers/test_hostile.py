"""Builtins under attack: each call ends at once, in a limit or a refusal."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path

import pytest

from jinjarun.errors import REFUSAL_LIMIT, LimitExceeded, RenderError, SandboxViolation, TemplateRaised
from jinjarun.limits import Limits
from tests.dialects.transformers.engine import render

SHARED = Path(__file__).resolve().parents[4] / "shared" / "hostile"
RUNAWAY_SECONDS = 15
"""Of CPU: ten times what is allowed. What it really takes, the bench measures."""


def ended(template, context):
    """How a render ended and the CPU seconds that it took."""
    start = time.process_time()
    try:
        end = ("ok", render(template, context))
    except LimitExceeded as error:
        end = ("limit", error.limit)
    except Exception as error:
        end = ("error", error)
    return end, time.process_time() - start


def hostile_rows():
    if not SHARED.exists():
        return []
    spec = importlib.util.spec_from_file_location("read", SHARED / "read.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    classes = {"attr_walk", "format_width", "filters", "mutation", "strftime", "mul_pow"}
    return [row for row in module.rows(SHARED / "hostile.jsonl") if row["class"] in classes]


@pytest.mark.skipif(not SHARED.exists(), reason="the hostile templates are not beside this clone")
def test_recorded():
    for row in hostile_rows():
        if row["context"].keys() & {"arr", "nan"}:
            continue  # no JSON, refused where the caller's data comes in
        (kind, detail), seconds = ended(row["template"], row["context"])
        assert kind in row["expect"]["transformers"], (row["id"], kind, detail)
        assert seconds < RUNAWAY_SECONDS, (row["id"], seconds)


SLOW = (
    "{{ (('a' * 2000000)|wordwrap(1))|length }}",
    "{{ ('a-' * 200000)|wordwrap(3)|length }}",
    "{{ ('<!---->' * 200000)|striptags }}",
    "{{ ('<' * 1000000)|striptags }}",
    "{{ ('&' * 1000000)|e|e|e|length }}",
    "{{ ('a' * 1000000).strip('b' * 100000 + 'a')|length }}",
    "{{ ('ab' * 1000000)|title|length }}",
    "{{ ('http://a.b/ ' * 50000)|urlize|length }}",
    "{{ ('www.' * 50000)|urlize|length }}",
    "{{ ('(' * 100000 + ')' * 100000)|urlize|length }}",
    "{{ ('&lt;' * 100000)|urlize|length }}",
    "{{ 'a'|urlize(rel='x ' * 100000)|length }}",
    "{{ range(0, 2305843009213693951 * 90000, 2305843009213693951)|unique|list|length }}",
    "{{ dict.fromkeys(range(0, 2305843009213693951 * 90000, 2305843009213693951))|length }}",
    "{{ dict(range(0, 2305843009213693951 * 90000, 2305843009213693951)|batch(2))|length }}",
    "{{ range(99999)|map('string')|map('length')|sum }}",
    "{{ range(99999)|select('divisibleby', 100000)|list }}",
    "{{ range(99999)|map('center', 5000)|join|length }}",
    "{{ range(99999)|list|string|length }}",
    "{{ range(99999)|list|pprint|length }}",
    "{{ ([[[[[[1] * 9] * 9] * 9] * 9] * 9])|pprint|length }}",
    "{{ ([[[[[[1] * 9] * 9] * 9] * 9] * 9])|tojson(indent=200)|length }}",
    "{{ ([[[[[[1] * 9] * 9] * 9] * 9] * 9])|tojson(separators=(',' * 1000, ':'))|length }}",
    "{{ (['x' * 100000] * 100000)|sort|length }}",
    "{{ (['x' * 100000] * 100000)|unique|list|length }}",
    "{{ ([['x' * 100] * 100] * 1000)|sort|length }}",
    "{{ ([['x' * 100] * 100] * 1000)|groupby(0)|length }}",
    "{{ ['x'] * 50000 in [['x'] * 50000] * 50000 }}",
    "{{ ([['x'] * 50000] * 50000).count(['x'] * 50000) }}",
    "{{ 5|round(-1000000000) }}{{ 5|round(1000000000, 'floor') }}",
    "{{ 'a'|round(9, 'ceil') }}{{ 'aaaa'|round(9, 'floor') }}",
    "{{ ('9' * 2000000)|int(0, 16) }}",
    "{{ ('9' * 4000)|int }}",
    "{{ ('%s' * 300000) % (('x',) * 99999) }}",
    "{{ ('{}' * 300000).format(1) }}",
    "{{ ('{0}' * 300000).format('x' * 1000) }}",
    "{{ '{:{}}'.format(1, '9' * 1000) }}",
    "{{ '{:010000000d}'.format(1) }}",
    "{{ '{0!r:>99999999}'.format([1]) }}",
    "{{ ('\t' * 1000000).expandtabs(1000000) }}",
    "{{ 'x'.ljust(10 ** 9) }}{{ 'x'.zfill(10 ** 9) }}",
    "{{ ('a' * 1000000).split('a')|length }}",
    "{{ ('\n' * 1000000).splitlines()|length }}",
    "{{ ('a' * 1000000).partition('b')|length }}",
    "{{ ({'a': 'b' * 4000000}|xmlattr)|length }}",
    "{{ (['&' * 100000] * 100)|map('e')|join|length }}",
    "{{ ('é' * 1000000)|urlencode|length }}",
    "{{ range(99999)|slice(99999)|list|length }}",
    "{{ [1]|batch(99999, 'x')|map('length')|list }}",
    "{{ (range(9999)|list)|map('default', 'x' * 1000)|list|tojson|length }}",
    "{{ cycler(*(range(99999)|list)).next() }}",
    "{{ namespace(**dict.fromkeys(range(9999)|map('string')|list))|string|length }}",
    "{{ ('a' * 3000000)|replace('a', 'aa')|length }}",
    "{{ ('a' * 3000000)|upper|length }}",
    "{{ 'ŉ' * 1500000 }}{{ ('ŉ' * 1500000)|upper|length }}",
    "{{ range(99999)|list|join(', ')|length }}",
    "{{ range(99999)|min }}{{ range(99999)|sum }}{{ range(99999)|last }}",
    "{{ strftime_now('%c' * 40) }}",
)


@pytest.mark.parametrize("template", SLOW)
def test_ends_soon(template):
    (kind, detail), seconds = ended(template, {})
    assert seconds < RUNAWAY_SECONDS, (kind, detail, seconds)
    assert (
        kind != "error" or not isinstance(detail, (RecursionError, MemoryError, RenderError)) or "codec" in str(detail)
    )


REFUSED = (
    "{{ ''.__class__ }}",
    "{{ ''['__class__'] }}",
    "{{ {}.__class__ }}",
    "{{ [1]['__class__'] }}",
    "{{ [{'a': 1}]|map(attribute='__class__')|list }}",
    "{{ [{'a': 1}]|map(attribute='a.__class__')|list }}",
    "{{ [{'a': 1}]|sum('__class__') }}",
    "{{ [{'a': 1}]|groupby('__class__') }}",
    "{{ [{'a': 1}]|selectattr('__class__')|list }}",
    "{{ {}|attr('__class__') }}",
    "{{ '{0.__class__}'.format(1) }}",
    "{{ '{0[__class__]}'.format(1) }}",
    "{{ '{a.__class__}'.format_map({'a': 1}) }}",
    "{{ ('{0.__class__}'|safe).format(1) }}",
    "{{ ('{0.__class__}'|attr('format'))(1) }}",
    "{{ namespace(_x=1) }}",
    "{{ namespace({'_x': 1}) }}",
    "{{ range.__globals__ }}",
    "{{ nothing.__class__ }}",
    "{{ [].append(1) }}",
    "{{ {}.update({}) }}",
    "{{ [1]['pop'](0) }}",
    "{{ ([1]|attr('clear'))() }}",
    "{% for x in [1] %}{{ loop._iterator }}{% endfor %}",
)


@pytest.mark.parametrize("template", REFUSED)
def test_refused(template):
    with pytest.raises(SandboxViolation):
        render(template, {})


def test_keys_with_an_underscore_are_ordinary():
    template = "{{ d['_id'] }}{{ d['__v'] }}{{ d.get('_id') }}{% for k, v in d.items() %}{{ k }}{{ d[k] }}{% endfor %}"
    assert render(template, {"d": {"_id": 1, "__v": 2}}) == "121_id1__v2"


def test_nested_iterators():
    template = "{% set g = [1] %}" + "{% set g = g|map('string') %}" * 600 + "{{ g|list }}"
    with pytest.raises(LimitExceeded) as caught:
        render(template, {})
    assert caught.value.limit == "depth"


def test_iterators_inside_lists_count_too():
    template = "{% set g = [[1]|map('list')] %}" + "{% set g = [g|map('list')] %}" * 100 + "{{ g|map('list')|list }}"
    with pytest.raises(LimitExceeded) as caught:
        render(template, {}, limits=Limits(depth=50))
    assert caught.value.limit == "depth"


def test_the_message_is_bounded():
    with pytest.raises(TemplateRaised) as caught:
        render("{{ raise_exception('x' * 100000 ~ '\u202e') }}", {})
    assert len(str(caught.value)) < REFUSAL_LIMIT + 100
