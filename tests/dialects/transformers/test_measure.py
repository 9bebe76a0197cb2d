"""Sizes found beforehand, and printing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jinjarun.dialects.transformers.filters import FILTERS
from jinjarun.dialects.transformers.measure import measure, to_text
from jinjarun.dialects.transformers.values import Namespace
from jinjarun.errors import LimitExceeded
from jinjarun.limits import Limits, utf8_size
from tests.dialects.transformers.engine import new_run, render

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
CONTAINERS = st.lists(JSON) | st.dictionaries(st.text(), JSON)


@given(CONTAINERS)
def test_the_size_is_at_most_that_of_the_text(value):
    """So nothing is refused that would have fit."""
    size = measure(new_run(), value).size
    assert size <= utf8_size(str(value))
    assert size <= utf8_size(json.dumps(value, ensure_ascii=False)) + 2


@given(JSON)
def test_prints_as_python(value):
    assert to_text(new_run(), value) == str(value)


@given(
    JSON,
    st.booleans(),
    st.none() | st.integers(-1, 4) | st.sampled_from(["\t", "--"]),
    st.none() | st.tuples(st.text(max_size=3), st.text(max_size=3)),
    st.booleans(),
)
def test_json_as_python(value, ascii_only, indent, separators, sort_keys):
    options = {"ensure_ascii": ascii_only, "indent": indent, "separators": separators, "sort_keys": sort_keys}
    assert FILTERS["tojson"](new_run(), value, **options) == json.dumps(value, **options)


@given(CONTAINERS)
def test_every_item_is_paid_for(value):
    run = new_run()
    items = measure(run, value).items
    assert run.spent >= items


def test_extent():
    assert measure(new_run(), [["ab", 1], {"c": []}])[1:] == (6, 3)


def test_a_value_inside_itself():
    namespace = Namespace({})
    namespace.set("me", namespace)
    with pytest.raises(LimitExceeded) as caught:
        to_text(new_run(), namespace)
    assert caught.value.limit == "data_depth"


@pytest.mark.parametrize("limits", [Limits(string_bytes=1000), Limits(steps=500)])
def test_shared_text_is_counted_as_often_as_it_is_printed(limits):
    with pytest.raises(LimitExceeded):
        to_text(new_run(limits), ["x" * 900] * 11)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ 'x'.upper }}", "<built-in method upper of str object>"),
        (
            "{{ [range, namespace, dict] }}",
            "[<function safe_range>, <class 'TemplateNamespace'>, <TemplateDict object>]",
        ),
        ("{{ dict.fromkeys }}", "<bound method fromkeys>"),
        ("{{ [1]|map('string') }}", "<generator object sync_do_map>"),
        ("{{ [1]|select }}{{ [1]|unique }}", "<generator object select_or_reject><generator object sync_do_unique>"),
        ("{{ [1]|reverse }}", "<list_reverseiterator object>"),
        ("{{ cycler(1) }}{{ joiner() }}", "<jinja2.utils.Cycler object><jinja2.utils.Joiner object>"),
        ("{{ namespace(a=[nothing]) }}", "<Namespace {'a': [Undefined]}>"),
        ("{{ {'a': 1}.items() }}", "dict_items([('a', 1)])"),
    ],
)
def test_no_addresses(template, text):
    assert render(template, {}) == text


def test_an_iterator_is_spent_once():
    assert (
        render("{% set i = [1, 2]|map('string') %}{{ i|first }}{{ i|list }}{{ i|list }}{{ i and 1 }}", {})
        == "1['2'][]1"
    )


def test_an_iterator_fails_only_when_asked():
    assert render("{% set i = 5|map('nosuch') %}{{ i is iterable }}{{ []|map|list }}", {}) == "True[]"
