"""Facts of llama.cpp's engine that no recording holds: found by asking its code the same made-up snippets."""

from __future__ import annotations

from typing import Any

import pytest

from jinjarun import RenderError, Template

CONTEXT: dict[str, Any] = {"num": "42", "ints": [3, 1, 2], "three": 3, "nothing": None}


def render(source: str) -> str:
    return Template(source, "llama.cpp").render_context(CONTEXT, now=0).text


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        # a choice in parentheses is the filter of the loop only where the loop has no other
        ("{% for x in (ints if x == 1) %}{{ x }}{% else %}E{% endfor %}", "1"),
        ("{% for x in (ints if x == 1) if true %}{{ x }}{% else %}E{% endfor %}", "E"),
        ("{% for x in (ints % 3 if 0) if x %}{{ x }}{% else %}E{% endfor %}", "E"),
        # neither is below zero
        ("{{ (0 / 0)|abs }}", "-nan"),
        ("{{ (-0.0)|abs }}", "-0.0"),
        # empty parentheses are a call, and a call makes no string of what is none
        ("{{ three|upper }}", "3"),
        ("{{ nothing|lower }}", "none"),
        ("{{ num|upper() }}", "42"),
    ],
)
def test_it_writes(source: str, expected: str) -> None:
    assert render(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        # the first item is compared with itself too, and two booleans have no order
        "{{ [false]|max }}",
        "{{ [false, 1]|max }}",
        "{{ [true, none]|min }}",
        "{{ [true, false]|max }}",
        "{{ [false, true]|min }}",
        "{{ three|upper() }}",
        "{{ nothing|lower() }}",
        "{{ ints|title() }}",
        "{{ num|default }}",
        "{{ num|d() }}",
    ],
)
def test_it_fails(source: str) -> None:
    with pytest.raises(RenderError):
        render(source)


@pytest.mark.parametrize(
    ("source", "is_input"),
    [
        ("{% set y %}{{ num }}{% endset %}{{ y.replace('a', 'b') }}", True),
        ("{% set y %}{{ num }}{{ absent }}{% endset %}{{ y.replace('a', 'b') }}", True),
        ("{% filter replace('a', 'b') %}{{ absent }}{{ num }}{% endfilter %}", True),
        ("{% set y %}{{ num }}{{ '' }}{% endset %}{{ y.replace('a', 'b') }}", False),
    ],
)
def test_undefined_is_not_even_an_empty_part(source: str, is_input: bool) -> None:
    rendered = Template(source, "llama.cpp").render_context(CONTEXT, now=0, spans=True)
    assert [(span.text, span.is_input) for span in rendered.spans] == [("42", is_input)]
