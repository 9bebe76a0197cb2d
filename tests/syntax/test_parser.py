"""Errors, limits and places; whatever the source, nothing else leaves parse()."""

from __future__ import annotations

import pickle
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jinjarun.errors import LimitExceeded, TemplateSyntaxError
from jinjarun.limits import Limits
from jinjarun.syntax import nodes
from jinjarun.syntax.parser import parse
from jinjarun.syntax.rules import JINJA2, LLAMA_CPP, SyntaxRules
from tests.template_strategies import templates

BOTH = pytest.mark.parametrize("rules", [JINJA2, LLAMA_CPP], ids=["jinja2", "llama.cpp"])


def error(source: str, rules: SyntaxRules = JINJA2) -> TemplateSyntaxError:
    with pytest.raises(TemplateSyntaxError) as caught:
        parse(source, rules, Limits())
    return caught.value


@pytest.mark.parametrize(
    ("source", "rules", "line", "column", "hint"),
    [
        ("a\n{% do x %}", JINJA2, 2, 1, "transformers does not enable `do`"),
        ("{% if x %}\n\n{% for y in z %}", JINJA2, 3, 17, "`{% for %}` of line 3 needs its `{% endfor %}`"),
        ("{% if x %}\n{% endfor %}", LLAMA_CPP, 2, 1, "`{% if %}` of line 1 needs its `{% endif %}`"),
        ("{{ a // b }}", LLAMA_CPP, 1, 6, "llama.cpp has no `//`"),
        ("{{ .System }}", JINJA2, 1, 5, "Go template"),
        ("{{ .System }}", LLAMA_CPP, 1, 5, "Go template"),
        ("{% raw %}", LLAMA_CPP, 1, 1, "no raw blocks"),
        ("{{ a && b }}", JINJA2, 1, 6, "write `and`"),
        ("{{ (a\n}}", JINJA2, 2, 1, "`(a` was opened in line 1, column 4"),
        ("x {{ a", JINJA2, 1, 3, "end it with `}}`"),
        ("{% set x = 'a %}", JINJA2, 1, 12, "end it with '"),
        ("{{ x is a is b }}", JINJA2, 1, 11, "join them with `and`"),
        ("{{ '\\x4' }}", JINJA2, 1, 4, "write a backslash as"),
        ("{% if a, b %}{% endif %}", LLAMA_CPP, 1, 8, "one condition"),
    ],
)
def test_errors_say_where_and_what_to_do(source: str, rules: SyntaxRules, line: int, column: int, hint: str) -> None:
    found = error(source, rules)
    assert (found.line, found.column) == (line, column)
    assert hint in found.details["hint"]


def test_excerpt_points_at_the_place() -> None:
    found = error("{{ x }}\n\t{{ a b }}")
    assert found.details["excerpt"] == "\\t{{ a b }}\n       ^"


def test_excerpt_of_a_long_line_is_cut() -> None:
    excerpt = error(f"{'x' * 500}{{{{ a b }}}}{'y' * 500}").details["excerpt"]
    line, caret = excerpt.split("\n")
    assert line[caret.index("^")] == "b"
    assert len(line) < 120


def test_errors_survive_pickling() -> None:
    found = error("{{ a b }}")
    assert str(pickle.loads(pickle.dumps(found))) == str(found)


@BOTH
@pytest.mark.parametrize(
    ("limit", "source"),
    [
        ("source_bytes", "é" * 600),
        ("tokens", "{{ x }}" * 20),
        ("tokens", f"{{{{ [{'1,' * 50}] }}}}"),
        ("brackets", f"{{{{ {'(' * 11}x{')' * 11} }}}}"),
        ("depth", f"{'{% if x %}' * 8}{'{% endif %}' * 8}"),
    ],
)
def test_limits(rules: SyntaxRules, limit: str, source: str) -> None:
    with pytest.raises(LimitExceeded) as caught:
        parse(source, rules, Limits(source_bytes=1000, tokens=50, brackets=10, depth=7))
    assert caught.value.limit == limit


@BOTH
@pytest.mark.parametrize(
    "source",
    [
        f"{{{{ {'not ' * 9000}x }}}}",
        f"{{{{ x{'.a' * 9000} }}}}",
        f"{{{{ {'a if b else ' * 5000}c }}}}",
        f"{{{{ {'x ~ ' * 9000}x }}}}",
        f"{{{{ {chr(39) * 2 * 9000} }}}}",
        f"{{% if x %}}{'{% elif x %}' * 9000}{{% endif %}}",
    ],
    ids=["not", "attributes", "inline if", "operators", "strings", "elif"],
)
def test_long_sources_need_no_stack(rules: SyntaxRules, source: str) -> None:
    assert parse(source, rules, Limits()).body


@pytest.mark.parametrize("digits", [2000, 100_000])
def test_long_integers(digits: int) -> None:
    with pytest.raises(LimitExceeded) as caught:
        parse(f"{{{{ {'9' * digits} }}}}", JINJA2, Limits())
    assert caught.value.limit == "integer_bits"
    assert "64 bits" in error(f"{{{{ {'9' * digits} }}}}", LLAMA_CPP).details["hint"]


def only_our_errors(source: str) -> None:
    for rules in (JINJA2, LLAMA_CPP):
        with suppress(TemplateSyntaxError, LimitExceeded):
            parse(source, rules, Limits())


@given(st.text(st.characters() | st.sampled_from("{%#}-+ '\"\\\n.|()[]"), max_size=40))
def test_any_text(source: str) -> None:
    only_our_errors(source)
    only_our_errors(f"{{{{ {source} }}}}")


DAMAGE = ["", "'", "}", "{{", " if ", "\ud800", "\0", " é "]


@given(templates(), st.data())
def test_any_damaged_template(source: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(source)))
    end = data.draw(st.integers(start, min(len(source), start + 12)))
    only_our_errors(
        source[:start] + data.draw(st.sampled_from(["", "'", "}", "{{", "if", "\ud800", "\0"])) + source[end:]
    )


def test_nodes_know_where_they_begin() -> None:
    data, output, statement = parse("a\n{{ x.y + (z) }}\n {% set\n v = [1] %}", JINJA2, Limits()).body[:3]
    assert (data.line, data.column) == (1, 1)
    assert (output.line, output.column) == (2, 1)
    assert isinstance(output, nodes.Output)
    assert isinstance(output.value, nodes.Binary)
    assert (output.value.line, output.value.column) == (2, 4)
    assert (output.value.rest[0][1].line, output.value.rest[0][1].column) == (2, 11)
    assert isinstance(statement, nodes.Data)
    tag = parse("{{ x }}\n{% set\n v = [1] %}", JINJA2, Limits()).body[-1]
    assert isinstance(tag, nodes.Set)
    assert (tag.line, tag.column) == (2, 1)
    assert (tag.value.line, tag.value.column) == (3, 6)
