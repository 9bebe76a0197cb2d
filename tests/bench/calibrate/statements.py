"""The worst cases of the statements and scopes of both dialects.

What a statement costs depends on the names that are in sight where it begins a scope, on the names that it hides or
begins anew, and on the text that it captures; never on what stands in a branch that is not taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jinjarun.dialects import NAMES
from tests.bench.calibrate.harness import Case

JINJA = ("transformers",)
"""The dialects that have `with`, `block` and other tags."""
NAMED = 5_000
"""About as many names as the tokens of a template have room for."""


def _names(count: int, value: str = "1") -> str:
    return "".join(f"{{% set v{i}={value} %}}" for i in range(count))


def _cases(
    name: str,
    text: Callable[[int], str],
    most: int = NAMED,
    context: Callable[[int], dict[str, Any]] = lambda _: {},
    dialects: tuple[str, ...] = NAMES,
    *,
    repeat: bool = True,
    steps: Callable[[int], float] | None = None,
) -> list[Case]:
    def make(size: int) -> tuple[str, dict[str, Any]]:
        return text(size), context(size)

    return [Case(f"statement {name}", dialect, make, most, steps, repeat) for dialect in dialects]


def _loop(body: str, times: int = 20_000) -> str:
    return f"{{% for _ in range({times}) %}}{body}{{% endfor %}}"


def _in_sight(body: str) -> Callable[[int], str]:
    """`body` where `n` names are in sight, often."""
    return lambda n: _names(n) + _loop(body, 3_000)


CASES: tuple[Case, ...] = (
    *_cases("data", lambda n: "x" * n, 200_000),
    *_cases("data::astral", lambda n: "𝒳" * n, 60_000),
    *_cases("output", lambda n: "{{ a }}" * n, 9_000, lambda _: {"a": "x"}),
    *_cases("output::constant", lambda n: "{{ 'a' }}" * n, 9_000),
    *_cases("output::number", lambda n: "{{ 1 }}" * n, 9_000),
    *_cases("output::text", lambda _: "{{ a }}", 1_000_000, lambda n: {"a": "é" * n}),
    *_cases("output::undefined", lambda n: "{{ a }}" * n, 9_000),
    *_cases("output::markup", lambda n: "{% set a = 'x'|safe %}" + "{{ a }}b" * n, 7_000, dialects=JINJA),
    *_cases("output::parts", lambda n: "{% set a = '" + "x" * n + "' %}{% set b = a ~ c ~ a ~ c %}" + "{{ b }}" * 200,
            900, lambda _: {"c": "y"}),
    *_cases("if", lambda n: "{% if a %}{% endif %}" * n, 4_000),
    *_cases("if::elif", lambda n: "{% if a %}" + "{% elif a %}" * n + "{% else %}{% endif %}", 6_000),
    *_cases("if::names", lambda n: "{% if a %}" + _names(n) + "{% else %}b{% endif %}"),
    *_cases("for", lambda n: "{% for i in a %}{% endfor %}", 100_000, lambda n: {"a": [1] * n}, steps=lambda n: n),
    *_cases("for::empty", lambda n: "{% for i in a %}{% endfor %}" * n, 2_500),
    *_cases("for::loop", lambda n: "{% for i in a %}{{ loop.index }}{% endfor %}", 50_000, lambda n: {"a": [1] * n}),
    *_cases("for::names", lambda n: "{% for i in a %}" + _names(n) + "{% endfor %}"),
    *_cases("for::anew", lambda n: "{% for i in a %}{% if b %}" + _names(n) + "{% endif %}{% endfor %}",
            context=lambda _: {"a": [1] * 100}),
    *_cases("for::skipped", lambda n: "{% for i in a %}{% continue %}" + _names(n) + "{% endfor %}",
            context=lambda _: {"a": [1] * 100}),
    *_cases("for::in-sight", _in_sight("{% for i in [] %}{% endfor %}"), repeat=False),
    *_cases("for::filtered", lambda _: "{% for i in a if i %}{% endfor %}", 50_000, lambda n: {"a": [0] * n},
            steps=lambda n: n),
    *_cases("for::filtered-in-sight", _in_sight("{% for i in [] if i %}{% endfor %}"), repeat=False),
    *_cases("for::unpacked", lambda n: "{% for " + ", ".join(f"v{i}" for i in range(n)) + " in a %}{% endfor %}", 5_000,
            lambda n: {"a": [[1] * n] * 4} if n > 1 else {"a": []}),
    *_cases("for::else", lambda n: "{% for i in [] %}{% else %}" + _names(n) + "{% endfor %}"),
    *_cases("for::else-skipped", lambda n: "{% for i in [1] %}{% else %}" + _names(n) + "{% endfor %}"),
    *_cases("for::recursive", lambda n: _names(n) + "{% for i in a recursive %}{{ loop([]) }}{% endfor %}",
            context=lambda _: {"a": [1] * 200}, dialects=JINJA),
    *_cases("for::objects", lambda _: "{% for k, v in a.items() %}{% endfor %}", 50_000,
            lambda n: {"a": {str(i): i for i in range(n)}}),
    *_cases("set", lambda n: "{% set v = a %}" * n),
    *_cases("set::names", _names),
    *_cases("set::long-name", lambda n: "{% set " + "a" * n + " = 1 %}{% set x = " + "a" * n + " %}", 100_000),
    *_cases("set::unpacked", lambda n: "{% set " + ", ".join(f"v{i}" for i in range(n)) + " = a %}", 7_000,
            lambda n: {"a": [1] * n}),
    *_cases("set::attribute", lambda n: "{% set n = namespace() %}"
            + "".join(f"{{% set n.v{i} = a %}}" for i in range(n)), 4_000, lambda _: {"a": [1]}),
    *_cases("set::namespaces", lambda n: _loop("{% set n = namespace() %}{% set n.a = [n] %}", n), 60_000,
            repeat=False),
    *_cases("set block", lambda n: "{% set a %}" + _names(n) + "{% endset %}"),
    *_cases("set block::text", lambda _: "{% set a %}{{ t }}{% endset %}", 3_000_000, lambda n: {"t": "x" * n}),
    *_cases("set block::astral", lambda _: "{% set a %}{{ t }}{% endset %}", 900_000, lambda n: {"t": "𝒳" * n}),
    *_cases("set block::pieces", lambda n: "{% set a %}" + "{{ t }}" * n + "{% endset %}", 9_000, lambda _: {"t": "x"}),
    *_cases("set block::in-sight", _in_sight("{% set a %}{% endset %}"), repeat=False),
    *_cases("macro", lambda n: "{% macro m() %}{% endmacro %}" * n, 2_500),
    *_cases("macro::kept", lambda n: _loop("{% macro m() %}{% endmacro %}", n), 90_000, repeat=False),
    *_cases("macro::kept-by-calls", lambda n: "{% macro m() %}{% macro k() %}{% endmacro %}{% endmacro %}"
            + _loop("{{ m() }}", n), 40_000, repeat=False),
    *_cases("macro::called", lambda n: "{% macro m() %}{% endmacro %}" + "{{ m() }}" * n, 4_000),
    *_cases("macro::names", lambda n: "{% macro m() %}" + _names(n) + "{% endmacro %}{{ m() }}"),
    *_cases("macro::names-not-reached", lambda n: "{% macro m() %}{% if a %}{% set x = 1 %}{% else %}" + _names(n)
            + "{% endif %}{% endmacro %}{{ m() }}", context=lambda _: {"a": 1}),
    *_cases("macro::parameters", lambda n: "{% macro m(" + ", ".join(f"v{i}=1" for i in range(n)) + ") %}{% endmacro %}"
            + "{{ m() }}" * 5),
    *_cases("macro::missing", lambda n: "{% macro m(" + ", ".join(f"𝒳{'𝒳' * 30}{i}" for i in range(n))
            + ") %}{% endmacro %}" + "{{ m() }}" * 5, 1_500, dialects=JINJA),
    *_cases("macro::missing-kept", lambda n: "{% macro m(" + ", ".join(f"𝒳{'𝒳' * 50}{i}" for i in range(n))
            + ") %}{% macro k() %}{% endmacro %}{% endmacro %}" + _loop("{{ m() }}", 4_000), 1_000, dialects=JINJA,
            repeat=False),
    *_cases("macro::keywords", lambda n: "{% macro m() %}{{ kwargs is defined }}{% endmacro %}{{ m("
            + ", ".join(f"v{i}=1" for i in range(n)) + ") }}", dialects=JINJA),
    *_cases("macro::spread", lambda n: "{% macro m() %}{{ varargs is defined }}{% endmacro %}{{ m(*a) }}", 50_000,
            lambda n: {"a": [1] * n}, dialects=JINJA, steps=lambda n: n),
    *_cases("macro::text", lambda _: "{% macro m() %}{{ t }}{% endmacro %}{% set x = m() %}", 3_000_000,
            lambda n: {"t": "x" * n}),
    *_cases("macro::in-sight", lambda n: _names(n) + "{% macro m() %}{% endmacro %}" + _loop("{{ m() }}", 3_000),
            repeat=False),
    *_cases("call block", lambda n: "{% macro m() %}{{ caller() }}{% endmacro %}" + "{% call m() %}{% endcall %}" * n,
            2_500),
    *_cases("call block::names", lambda n: "{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}" + _names(n)
            + "{% endcall %}"),
    *_cases("call block::in-sight", lambda n: "{% macro m() %}{{ caller() }}{% endmacro %}" + _names(n)
            + _loop("{% call m() %}{% endcall %}", 3_000), repeat=False),
    *_cases("filter block", lambda n: "{% filter upper %}" + _names(n) + "{% endfilter %}"),
    *_cases("filter block::text", lambda _: "{% filter upper %}{{ t }}{% endfilter %}", 1_000_000,
            lambda n: {"t": "x" * n}),
    *_cases("filter block::in-sight", _in_sight("{% filter upper %}{% endfilter %}"), repeat=False),
    *_cases("with", lambda n: "{% with %}" + _names(n) + "{% endwith %}", dialects=JINJA),
    *_cases("with::not-taken", lambda n: "{% with %}{% if a %}{% set x = 1 %}{% elif b %}" + _names(n)
            + "{% endif %}{% endwith %}", dialects=JINJA, context=lambda _: {"a": 1}),
    *_cases("with::assigned", lambda n: "{% with " + ", ".join(f"v{i}=1" for i in range(n)) + " %}{% endwith %}",
            dialects=JINJA),
    *_cases("with::in-sight", _in_sight("{% with %}{% endwith %}"), dialects=JINJA, repeat=False),
    *_cases("block", lambda n: "".join(f"{{% block b{i} %}}{{% endblock %}}" for i in range(n)), 2_500, dialects=JINJA,
            repeat=False),
    *_cases("block::names", lambda n: "{% block b %}" + _names(n) + "{% endblock %}" + _loop("{{ self.b() }}", 50),
            dialects=JINJA, repeat=False),
    *_cases("block::many", lambda n: "".join(f"{{% block b{i} %}}{{% endblock %}}" for i in range(n))
            + _loop("{{ self.b0() }}", 9_000), 2_500, dialects=JINJA, repeat=False),
    *_cases("block::in-sight", lambda n: _names(n) + "{% block b %}{% endblock %}" + _loop("{{ self.b() }}", 3_000),
            dialects=JINJA, repeat=False),
    *_cases("autoescape", lambda n: "{% autoescape true" + " and true" * n + " %}" + "{{ a }}" * 1_000
            + "{% endautoescape %}", 5_000, lambda _: {"a": "<"}, dialects=JINJA),
    *_cases("autoescape::text", lambda _: "{% autoescape true %}{{ a }}{% endautoescape %}", 700_000,
            lambda n: {"a": "<" * n}, dialects=JINJA),
    *_cases("autoescape::names", lambda n: "{% autoescape false %}" + _names(n) + "{% endautoescape %}",
            dialects=JINJA),
    *_cases("generation", lambda n: "{% generation %}" + _names(n) + "{% endgeneration %}", dialects=JINJA),
    *_cases("generation::in-sight", _in_sight("{% generation %}{% set x = 1 %}{% endgeneration %}"), dialects=JINJA,
            repeat=False),
    *_cases("load", lambda n: "{% if a %}{% include 'x' %}{% endif %}" * n, 3_500, dialects=JINJA),
    *_cases("break", lambda _: _loop("{% for i in a %}{% break %}{% endfor %}", 100), 90_000, lambda n: {"a": [1] * n}),
    *_cases("break::text", lambda n: _loop("{% for i in [1] %}{% if i %}" + "a{{ b }}" * n
            + "{% break %}{% endif %}{% endfor %}", 10), 2_000),
    *_cases("continue", lambda _: "{% for i in a %}{% continue %}{% endfor %}", 90_000, lambda n: {"a": [1] * n}),
)  # fmt: skip
