"""Templates whose expressions have the types that they are used with, so that most of them render.

`template_strategies` writes any expression anywhere, which is best for errors and parsing; here a text is written only
where a text is wanted. A variable keeps its type: `t` and `ns.t` are texts, `k` is a number, `l` a list.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.template_strategies import KEYS, plain_text, quoted, scalars, short_text, tags, values

TEXT_FILTERS = [
    "capitalize",
    "center(9)",
    "default('d')",
    "e",
    "indent(2)",
    "indent(1, true, true)",
    "lower",
    "replace('a', 'b')",
    "replace('', '-', 2)",
    "reverse",
    "safe",
    "string",
    "title",
    "trim",
    "trim('ab')",
    "truncate(5)",
    "truncate(4, true, '')",
    "upper",
    "urlencode",
    "wordwrap(4)",
]
TEXT_METHODS = [
    "capitalize()",
    "center(7, '*')",
    "format(1, a=2)",
    "ljust(4)",
    "lstrip('a')",
    "partition('a')[0]",
    "removeprefix('a')",
    "replace('a', 'é')",
    "rstrip('\\n')",
    "split(' ')[0]",
    "strip()",
    "swapcase()",
    "title()",
    "zfill(3)",
]
LIST_FILTERS = ["list", "reverse|list", "batch(2)|list", "slice(2)|list", "unique|list", "map('string')|list"]
MESSAGE_FILTERS = [
    "map(attribute='role')|list",
    "map(attribute='name', default='?')|list",
    "selectattr('role', 'equalto', 'user')|list",
    "rejectattr('name')|list",
    "rejectattr('content', 'none')|list",
    "groupby('role')|map(attribute='grouper')|list",
    "sort(attribute='role')",
]
TYPE_TESTS = [
    "defined",
    "none",
    "string",
    "number",
    "mapping",
    "sequence",
    "iterable",
    "boolean",
    "integer",
    "callable",
]
BLOCK_FILTERS = ["upper", "trim", "title", "replace('a', 'b')", "indent(2)", "trim | upper", "e"]


def _format(pattern: str, *parts: SearchStrategy[Any]) -> SearchStrategy[str]:
    return st.builds(pattern.format, *parts)


def _one(choices: list[str]) -> SearchStrategy[str]:
    return st.sampled_from(choices)


small = st.integers(-3, 3).map(str)
texts: SearchStrategy[str] = st.deferred(lambda: _plain_texts | _made_texts)
numbers: SearchStrategy[str] = st.deferred(lambda: _plain_numbers | _made_numbers)
truths: SearchStrategy[str] = st.deferred(lambda: _plain_truths | _made_truths)
lists: SearchStrategy[str] = st.deferred(lambda: _plain_lists | _made_lists)
records = _one(["record", "messages[0]", "{}"]) | _format("{{'a': {}, 'b': {}}}", texts, numbers)
anything = texts | numbers | truths | lists | records | _one(["nothing", "x", "absent", "none", "loop", "item"])

_plain_texts: SearchStrategy[str] = short_text.map(quoted) | _one(
    ["text", "t", "ns.t", "messages[0].role", "messages[-1]['role']"]
)
_made_texts: SearchStrategy[str] = st.one_of(
    _format("({} ~ {})", texts, anything),
    _format("({} + {})", texts, texts),
    _format("({} * {})", texts, _one(["0", "2", "n"])),
    _format("({}|{})", texts, _one(TEXT_FILTERS)),
    _format("{}.{}", texts, _one(TEXT_METHODS)),
    _format("({})[{}:{}]", texts, small, small),
    _format("({})[::{}]", texts, _one(["-1", "2"])),
    _format("({} if {} else {})", texts, truths, texts),
    _format("({} or {})", texts, texts),
    _format("({}|join({}))", lists, texts),
    _format("({}|string)", anything),
    _format("(({})|tojson)", lists | records | texts | numbers),
    _format("('%s:%s'|format({}, {}))", texts, numbers),
    _format("(messages[0].content or {})", texts),
)
_plain_numbers: SearchStrategy[str] = st.integers(0, 12).map(str) | _one(["n", "k", "0.5", "2.25", "messages|length"])
_made_numbers: SearchStrategy[str] = st.one_of(
    _format("({} {} {})", numbers, _one(["+", "-"]), numbers),
    _format("({} {} {})", numbers, _one(["*", "//", "%", "/"]), _one(["2", "3", "0.5", "-2"])),
    _format("{}|length", texts | lists | records),
    _format("({})|{}", numbers, _one(["abs", "int", "float", "round", "round(1)", "round(method='ceil')"])),
    _format("-({})", numbers),
    _format("({}, {})|{}", numbers, numbers, _one(["min", "max", "sum"])),
    _format("({}).count('a')", texts),
    _format("{}|wordcount", texts),
)
_plain_truths: SearchStrategy[str] = _one(["flag", "true", "false", "messages", "nothing", "text"])
_made_truths: SearchStrategy[str] = st.one_of(
    _format("({} {} {})", numbers, _one(["<", "<=", ">", ">=", "==", "!="]), numbers),
    _format("({} {} {})", texts, _one(["==", "!=", "<", "in", "not in"]), texts),
    _format("({} in {})", anything, lists),
    _format("({} {} {})", truths, _one(["and", "or"]), truths),
    _format("(not {})", truths),
    _format("(({}) is {}{})", anything, _one(["", "not "]), _one(TYPE_TESTS)),
    _format("(({}) is divisibleby(2))", numbers),
    _format("({}).startswith({})", texts, texts),
)
_plain_lists: SearchStrategy[str] = _one(
    ["messages", "pairs", "range(n)|list", "l", "record.items()|list", "record|dictsort", "[]"]
)
_made_lists: SearchStrategy[str] = st.one_of(
    st.lists(anything, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
    _format("({} + {})", lists, lists),
    _format("({})[{}:{}]", lists, small, small),
    _format("(messages|{})", _one(MESSAGE_FILTERS)),
    _format("([{}, {}, {}]|sort)", numbers, numbers, numbers),
    _format("(({})|{})", st.lists(texts, max_size=3).map(lambda items: f"[{', '.join(items)}]"), _one(LIST_FILTERS)),
    _format("({}).split({})", texts, _one(["", "','", "'a', 1"])),
    _format("({}).splitlines()", texts),
)

_assignments = st.one_of(
    _format("set t = {}", texts),
    _format("set ns.t = {}", texts),
    _format("set k = {}", numbers),
    _format("set l = {}", lists),
    _format("set t, k = {}, {}", texts, numbers),
)
_leaves = st.one_of(
    plain_text,
    _format("{{{{ {} }}}}", anything),
    _format("{{{{- {} -}}}}", texts),
    _format("{{{{ {} }}}}", numbers),
    tags(_assignments),
)


def _block(opening: SearchStrategy[str] | str, body: SearchStrategy[str], closing: str) -> SearchStrategy[str]:
    return _format("{}{}{}", tags(opening), body, tags(closing))


def _statements(body: SearchStrategy[str]) -> SearchStrategy[str]:
    otherwise = st.just("") | _format("{}{}", tags("else"), body)
    elifs = st.just("") | _format("{}{}", tags(truths.map("elif {}".format)), body)
    leave = st.just("") | _format("{{% if {} %}}{{% {} %}}{{% endif %}}", truths, _one(["break", "continue"]))
    each = st.one_of(
        _format("for item in {}", lists),
        _format("for item in {} if {}", lists, truths),
        st.just("for a, b in pairs"),
        st.just("for key, item in record.items()"),
    )
    loop = _one(["{{ loop.index }}", "{{ loop.last }}", "{{ loop.cycle('a', 'b') }}", "{{ loop.previtem }}", ""])
    return st.one_of(
        _format("{}{}{}{}{}", tags(truths.map("if {}".format)), body, elifs, otherwise, tags("endif")),
        _format("{}{}{}{}{}{}", tags(each), loop, body, leave, otherwise, tags("endfor")),
        _block(_one(["set t", "set t | trim"]), body, "endset"),
        _block(_one(BLOCK_FILTERS).map("filter {}".format), body, "endfilter"),
        _block(_format("with t = {}, k = {}", texts, numbers), body, "endwith"),
        _block("generation", body, "endgeneration"),
        _format("{}{}{{% endmacro %}}{{{{ m({}) }}}}", tags(texts.map("macro m(t, k={})".format)), body, texts),
        _format(
            "{{% macro c() %}}[{{{{ caller({}) }}}}]{{% endmacro %}}{{% call(t) c() %}}{}{{% endcall %}}", texts, body
        ),
    )


_bodies = st.recursive(
    st.lists(_leaves, min_size=1, max_size=4).map("".join),
    lambda body: st.lists(_leaves | _statements(body), min_size=1, max_size=3).map("".join),
    max_leaves=6,
)
_START = "{% set ns = namespace(t='n') %}{% set t = text %}{% set k = n %}{% set l = [text, n] %}"


@st.composite
def typed_templates(draw: st.DrawFn) -> str:
    """Whole templates for `typed_contexts`."""
    return _START + draw(_bodies)


def typed_contexts() -> SearchStrategy[dict[str, Any]]:
    message = st.fixed_dictionaries(
        {"role": _one(["system", "user", "assistant"]), "content": short_text | st.none()},
        optional={"name": short_text},
    )
    return st.fixed_dictionaries(
        {
            "messages": st.lists(message, min_size=1, max_size=3),
            "n": st.integers(0, 5),
            "x": values,
            "flag": st.booleans(),
            "nothing": st.none(),
            "text": short_text,
            "pairs": st.lists(st.tuples(short_text, st.integers(0, 9)).map(list), max_size=3),
            "record": st.dictionaries(_one(KEYS), scalars, max_size=4),
        }
    )
