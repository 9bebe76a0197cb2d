"""Every character of the output has an origin."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jinjarun import Limits, Template
from jinjarun.runtime.clock import resolve_now
from jinjarun.runtime.run import Run
from jinjarun.runtime.text import Origin, Text, derived, map_parts, strip_parts

BOTH = ("transformers", "llama.cpp")
INPUT, LITERAL = Origin(is_input=True, place="x"), Origin(is_input=False, place="line 1")


def spans(source: str, dialect: str, **context: Any) -> list[tuple[str, bool, str]]:
    rendered = Template(source, dialect).render_context(context, now=0, spans=True)
    return [(span.text, span.is_input, span.origin) for span in rendered.spans]


@pytest.mark.parametrize("dialect", BOTH)
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a{{ x }}b", [("a", False, "line 1"), ("Hi", True, "x"), ("b", False, "line 1")]),
        ("{{ '<' + x + '>' }}", [("<", False, "line 1"), ("Hi", True, "x"), (">", False, "line 1")]),
        ("{{ (' ' + x + ' ')|trim }}", [("Hi", True, "x")]),
        ("\n{{ x|upper }}", [("\n", False, "line 1"), ("HI", True, "x")]),
        ("{{ x|replace('H', 'J') }}", [("Ji", True, "x")]),
        ("{{ x|length }}", [("2", False, "line 1")]),
        ("{{ x|tojson }}", [('"Hi"', False, "line 1")]),
        ("{{ d.k[0].v }}", [("deep", True, "d.k[0].v")]),
        ("{% set y %}<{{ x }}{% endset %}{{ y }}", [("<", False, "line 1"), ("Hi", True, "x")]),
        ("{% macro m(a) %}[{{ a }}{% endmacro %}{{ m(x) }}", [("[", False, "line 1"), ("Hi", True, "x")]),
        ("{{ x[1:] }}", [("i", True, "x")]),
    ],
)
def test_origins(dialect: str, source: str, expected: list[tuple[str, bool, str]]) -> None:
    assert spans(source, dialect, x="Hi", d={"k": [{"v": "deep"}]}) == expected


@pytest.mark.parametrize("dialect", BOTH)
def test_spans_change_nothing_else(dialect: str) -> None:
    source = "{% for m in messages %}{{ loop.index ~ m.role|upper + ': ' ~ m.content|trim }}\n{% endfor %}é"
    template = Template(source, dialect)
    messages = [{"role": "user", "content": " ä ☃ "}, {"role": "assistant", "content": ""}]
    plain, watched = template.render(messages), template.render(messages, spans=True)
    assert (plain.text, plain.data) == (watched.text, watched.data)
    assert plain.spans == ()


def test_a_character_cut_in_two_belongs_to_where_it_ends() -> None:
    rendered = Template("{{ x[0] }}{{ x[1] }}!").render_context({"x": "é"}, spans=True)
    assert rendered.text == "é!"
    assert "".join(span.text for span in rendered.spans) == "é!"
    assert Template("{{ x[0] }}!").render_context({"x": "é"}, spans=True).text == "\N{REPLACEMENT CHARACTER}!"


TEXTS = st.text(alphabet=st.sampled_from("aB é☃\n'\"<"), max_size=6)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(BOTH), TEXTS, TEXTS, st.sampled_from(["upper", "trim", "replace('a', 'é')", "string", "tojson"]))
def test_spans_concatenate_to_the_text(dialect: str, x: str, y: str, name: str) -> None:
    source = f"[{{{{ (x + '-' ~ y)|{name} }}}}{{{{ x|{name} }}}}{{% for c in y.split('a') %}}{{{{ c }}}}{{% endfor %}}"
    rendered = Template(source, dialect).render_context({"x": x, "y": y}, spans=True)
    assert "".join(span.text for span in rendered.spans) == rendered.text
    starts = [span.start for span in rendered.spans]
    assert starts == [0, *(span.end for span in rendered.spans[:-1])][: len(starts)]


def test_parts() -> None:
    run = Run(Limits(), resolve_now(0))
    text = Text.joined([("  a", LITERAL), ("b ", INPUT), (" ", LITERAL)])
    assert strip_parts(run, text, " ", left=True, right=True) == "ab"
    assert strip_parts(run, text, " ", left=True, right=True).parts == (("a", LITERAL), ("b", INPUT))  # type: ignore[attr-defined]
    assert map_parts(run, str.upper, text).parts[1] == ("B ", INPUT)  # type: ignore[attr-defined]
    assert derived("z", Text.of("b", INPUT)).parts == (("z", INPUT),)  # type: ignore[attr-defined]
    assert derived("z", text).parts[0][1].is_input is False  # type: ignore[attr-defined]
    assert type(derived("z", "plain")) is str
