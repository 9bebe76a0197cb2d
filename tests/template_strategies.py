"""Templates that Jinja2 3.1.6 parses, and contexts of plain JSON to render them with.

They are cheap to run (no `**`, factors of 2 and 3 only, short ranges) and deterministic (no `random`, no clock).
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

NAMES = ["messages", "tools", "n", "x", "flag", "nothing", "text", "pairs", "record", "absent"]
KEYS = ["role", "content", "name", "a", "b", "items", "if"]
LOCALS = ["v", "w", "item", "_"]

_characters = st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")) | st.sampled_from(" \n\tab<>&'\"{}%#-")
short_text = st.text(_characters, max_size=6)

# ------------------------------------------------------------------------------------------------------------- contexts

scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from([0.5, -1.5, 2.0]) | short_text
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=5,
)
messages = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "user", "assistant", "tool"]), "content": short_text | st.none()},
        optional={"name": short_text, "tool_calls": st.lists(values, max_size=2)},
    ),
    max_size=3,
)


def contexts() -> SearchStrategy[dict[str, Any]]:
    """Variables for the names that templates() uses; `absent` is never among them."""
    return st.fixed_dictionaries(
        {
            "messages": messages,
            "tools": st.none() | st.lists(values, max_size=2),
            "n": st.integers(0, 5),
            "x": values,
            "flag": st.booleans(),
            "nothing": st.none(),
            "text": short_text,
            "pairs": st.lists(st.tuples(short_text, st.integers(0, 9)).map(list), max_size=3),
            "record": st.dictionaries(st.sampled_from(KEYS), values, max_size=4),
        }
    )


# ---------------------------------------------------------------------------------------------------------- expressions

_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n"}


def quoted(text: str) -> str:
    """A string literal of either engine."""
    return "'" + "".join(_ESCAPES.get(character, character) for character in text) + "'"


strings = short_text.map(quoted)
numbers = st.integers(0, 12).map(str) | st.sampled_from(["0.5", "1.0", "2.25"])
atoms = (
    st.sampled_from(NAMES)
    | st.sampled_from(LOCALS)
    | st.sampled_from(
        ["true", "false", "none", "messages[0].role", "messages[-1]['content']", "record.a", "loop.index"]
    )
    | strings
    | numbers
)

FILTERS = [
    "upper",
    "lower",
    "trim",
    "title",
    "capitalize",
    "length",
    "first",
    "last",
    "list",
    "string",
    "int",
    "float",
    "abs",
    "round",
    "sort",
    "unique",
    "reverse",
    "tojson",
    "join('-')",
    "default('d')",
    "default('d',true)",
    "replace('a','b')",
    "map(attribute='role')",
    "map('upper')",
    "items",
    "dictsort",
    "selectattr('role','equalto','user')",
    "rejectattr('content')",
    "select('defined')",
    "batch(2)",
    "sum",
    "min",
    "max",
    "wordcount",
    "indent(2)",
    "indent(2,first=true)",
    "safe",
    "e",
    "center(9)",
    "truncate(5)",
    "tojson(indent=2)",
    "groupby('role')",
    "attr('a')",
]
TESTS = [
    "defined",
    "undefined",
    "none",
    "string",
    "number",
    "mapping",
    "sequence",
    "iterable",
    "boolean",
    "integer",
    "float",
    "odd",
    "even",
    "true",
    "false",
    "callable",
    "divisibleby(2)",
    "eq(1)",
    "equalto('a')",
    "in([1,2])",
    "lower",
    "upper",
    "sameas(none)",
    "ge(1)",
]
BARE_TESTS = ["divisibleby 2", "eq 1", "equalto 'a'", "in [1, 2]", "sameas none", "in messages", "eq n"]
METHODS = [
    "strip(",
    "upper(",
    "split(','",
    "startswith('a'",
    "items(",
    "keys(",
    "get('a'",
    "get('a', 1",
    "rstrip('\\n')",
]
METHODS = [method if method.endswith(")") else method + ")" for method in METHODS]
COMPARISONS = ["==", "!=", "<", "<=", ">", ">=", "in", "not in"]
SPACES = ["", " ", " ", "  ", "\n"]


def _group(expression: str) -> str:
    return f"({expression})"


def _chain(operands: SearchStrategy[str], operators: list[str]) -> SearchStrategy[str]:
    tail = st.lists(st.tuples(st.sampled_from(operators), operands), min_size=1, max_size=3)
    return st.builds(lambda first, rest: first + "".join(f" {op} {operand}" for op, operand in rest), operands, tail)


def _filtered(operands: SearchStrategy[str]) -> SearchStrategy[str]:
    names = st.lists(st.sampled_from(FILTERS), min_size=1, max_size=3)
    return st.builds(
        lambda value, chain, bar: bar.join([value, *chain]), operands, names, st.sampled_from(["|", " | "])
    )


def _tested(operands: SearchStrategy[str]) -> SearchStrategy[str]:
    tests = st.sampled_from(TESTS) | st.sampled_from(BARE_TESTS)
    return st.builds("{} {} {}".format, operands, st.sampled_from(["is", "is not"]), tests)


def _conditional(operands: SearchStrategy[str]) -> SearchStrategy[str]:
    return st.builds("{} if {} else {}".format, operands, operands, operands) | st.builds(
        "{} if {}".format, operands, operands
    )


def _compound(operands: SearchStrategy[str]) -> SearchStrategy[str]:
    """Expressions that need parentheses to be an operand."""
    return st.one_of(
        _chain(operands, ["+", "-", "~", "~"]),
        _chain(operands | _filtered(operands), ["+", "-", "~", "/", "//", "%"]),
        st.builds("{} * {}".format, operands, st.sampled_from("23")),
        _chain(operands, COMPARISONS),
        _chain(operands | operands.map("not {}".format), ["and", "or"]),
        operands.map("not {}".format),
        operands.map("-{}".format),
        _filtered(operands),
        _tested(operands),
        _conditional(operands),
    )


def _closed(operands: SearchStrategy[str]) -> SearchStrategy[str]:
    """Expressions that are an operand as they stand."""
    lists = st.lists(operands, max_size=3)
    pairs = st.lists(st.builds("{}: {}".format, strings, operands), max_size=3)
    bound = st.just("") | st.integers(-3, 3).map(str)
    return st.one_of(
        _compound(operands).map(_group),
        lists.map(lambda items: f"[{', '.join(items)}]"),
        pairs.map(lambda items: f"{{{', '.join(items)}}}"),
        st.lists(operands, min_size=2, max_size=3).map(lambda items: f"({', '.join(items)})"),
        st.builds("{}.{}".format, st.sampled_from(NAMES + LOCALS), st.sampled_from(KEYS) | st.sampled_from(METHODS)),
        st.builds("{}[{}]".format, st.sampled_from(NAMES + LOCALS), operands),
        st.builds("{}[{}:{}]".format, st.sampled_from(NAMES + LOCALS), bound, bound),
        st.builds("{}[::{}]".format, st.sampled_from(NAMES), st.sampled_from(["-1", "2", ""])),
        st.builds("range({})".format, st.sampled_from(["n", "3", "1, n", "5, 0, -2"])),
        st.builds("dict(a={}, b={})".format, operands, operands),
    )


_operands = st.recursive(atoms, _closed, max_leaves=8)
_expressions = _operands | _compound(_operands)


@st.composite
def _operand(draw: st.DrawFn) -> str:
    return draw(_operands)


@st.composite
def _expression(draw: st.DrawFn) -> str:
    return draw(_expressions)


operands, expressions = _operand(), _expression()
"""Texts of expressions: those that can be an operand as they stand, and all."""

# ----------------------------------------------------------------------------------------------------------- statements


def _tag(content: str, left: str, right: str, space: str) -> str:
    return f"{{%{left}{space or ' '}{content}{space or ' '}{right}%}}"


def tags(content: SearchStrategy[str] | str) -> SearchStrategy[str]:
    """`{% content %}` with any whitespace control."""
    text = st.just(content) if isinstance(content, str) else content
    return st.builds(
        _tag, text, st.sampled_from(["", "", "-", "+"]), st.sampled_from(["", "", "-", "+"]), st.sampled_from(SPACES)
    )


outputs = st.builds(
    "{{{{{0}{1}{2}{1}{3}}}}}".format, st.sampled_from(["", "-"]), st.just(" "), expressions, st.sampled_from(["", "-"])
)
plain_text = st.text(st.sampled_from("ab \n\t<|>é"), min_size=1, max_size=8)
comments = st.builds(
    "{{#{}{}{}#}}".format,
    st.sampled_from(["", "-"]),
    st.sampled_from([" c ", "", "\n", " {{ x }} "]),
    st.sampled_from(["", "-"]),
)
raw_blocks = st.builds(
    "{}{}{}".format,
    st.sampled_from(["{% raw %}", "{%- raw -%}\n"]),
    st.sampled_from(["{{ x }}", " {% if %} ", ""]),
    tags("endraw"),
)
_targets = st.sampled_from(LOCALS) | st.sampled_from(["v, w", "(v, w)"])
simple_sets = st.builds("set {} = {}".format, st.sampled_from(LOCALS), expressions) | st.builds(
    "set v, w = {}, {}".format, operands, operands
)
namespaces = st.builds(
    "{{% set ns = namespace(a={}) %}}{{% set ns.a = {} %}}{{{{ ns.a }}}}".format, operands, expressions
)
leaves = st.one_of(
    plain_text, plain_text, outputs, outputs, outputs, comments, raw_blocks, tags(simple_sets), namespaces
)


def _block(opening: SearchStrategy[str] | str, body: SearchStrategy[str], closing: str) -> SearchStrategy[str]:
    return st.builds("{}{}{}".format, tags(opening), body, tags(closing))


def _statements(body: SearchStrategy[str]) -> SearchStrategy[str]:
    condition = expressions.filter(lambda text: " if " not in text)
    arms = st.lists(st.builds("{}{}".format, tags(condition.map("elif {}".format)), body), max_size=2).map("".join)
    otherwise = st.just("") | st.builds("{}{}".format, tags("else"), body)
    iteration = st.builds("for {} in {}{}".format, _targets, operands, st.just("") | operands.map(" if {}".format))
    leave = st.just("") | st.builds(
        "{}{}{}".format,
        tags(operands.map("if {}".format)),
        st.sampled_from(["{% break %}", "{% continue %}"]),
        tags("endif"),
    )
    macro = st.builds(
        "{}{}{}{{{{ m({}) }}}}".format,
        tags(operands.map("macro m(v, w={})".format)),
        body,
        tags("endmacro"),
        st.sampled_from(["1", "n, w=2", "'a'", "v=text"]),
    )
    call = st.builds(
        "{}{}{}{}".format,
        st.just("{% macro c() %}[{{ caller() }}]{% endmacro %}"),
        tags("call c()"),
        body,
        tags("endcall"),
    )
    return st.one_of(
        st.builds("{}{}{}{}{}".format, tags(condition.map("if {}".format)), body, arms, otherwise, tags("endif")),
        st.builds("{}{}{}{}{}".format, tags(iteration), body, leave, otherwise, tags("endfor")),
        _block(st.sampled_from(["set v", "set w | upper", "set v | trim | replace('a', 'b')"]), body, "endset"),
        _block(st.sampled_from(["filter upper", "filter trim | title", "filter replace('a', 'b')"]), body, "endfilter"),
        _block(st.builds("with v = {}".format, expressions), body, "endwith"),
        _block("generation", body, "endgeneration"),
        macro,
        call,
    )


_bodies = st.recursive(
    st.lists(leaves, min_size=1, max_size=3).map("".join),
    lambda body: st.lists(leaves | _statements(body), min_size=1, max_size=3).map("".join),
    max_leaves=5,
)


@st.composite
def templates(draw: st.DrawFn) -> str:
    """Whole templates."""
    return draw(_bodies)
