"""The worst cases of the builtins and operators of the llama.cpp dialect.

A builtin is filter and method alike. One that always fails, as the engine's does, is only reached, not called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.bench.calibrate.harness import Case

Context = Callable[[int], dict[str, Any]]

MUCH = 3_000_000
"""Bytes of a string that may be taken in, changed and given back within the usual limits."""
MANY = 60_000
"""Items of a list."""


def _case(
    name: str,
    text: str | Callable[[int], str],
    context: Context | None = None,
    most: int = 1,
    steps: Callable[[int], float] | None = None,
) -> Case:
    def make(size: int) -> tuple[str, dict[str, Any]]:
        return text if isinstance(text, str) else text(size), {} if context is None else context(size)

    return Case(name, "llama.cpp", make, most, steps)


def _set(expression: str) -> str:
    return f"{{% set r = {expression} %}}"


def _chain(count: int) -> list[int]:
    """Integers that Python's dict puts one behind the other: a key that falls on the first is compared with all."""
    keys = [7]
    while len(keys) < count:
        keys.append((5 * keys[-1] + 1) % 65_536)
    return keys


_KEYS = "{% set d = dict(pairs) %}"


def _pairs(keys: list[Any]) -> dict[str, Any]:
    return {"pairs": [[key, 1] for key in keys]}


def _alike(size: int) -> dict[str, Any]:
    """A text and what is not in it, which is seen only at the last but one character."""
    return {"s": "a" * size, "t": "a" * (size // 2) + "ba", "u": "a" * max(size - 2_000, 1) + "ba"}


def _scrambled(size: int) -> list[int]:
    return [number * 7_919 % 99_991 for number in range(size)]


def _many_parts(size: int) -> str:
    """A string of so many parts, half of them input."""
    return f"{{% set y = (p ~ ' B') * {size // 2 + 1} %}}"


# ------------------------------------------------------------------------------------------------------------- strings


def _strings() -> Iterator[Case]:
    for name in ("capitalize", "lower", "title", "upper"):
        subject = f"method str.{name}"
        yield _case(f"{subject}::ascii", _set(f"s|{name}"), lambda n: {"s": "Xy" * (n // 2)}, MUCH, _sixteenth)
        yield _case(f"{subject}::beyond", _set(f"s|{name}"), lambda n: {"s": "É" * (n // 2)}, MUCH, _sixteenth)
        yield _case(f"{subject}::words", _set(f"s|{name}"), lambda n: {"s": "a é " * (n // 5)}, 1_000_000, _sixteenth)
        yield _case(
            f"{subject}::parts", lambda n, name=name: _many_parts(n) + _set(f"y|{name}"), lambda _: {"p": "a b"}, MANY
        )
    for name in ("lstrip", "rstrip", "strip"):
        subject = f"method str.{name}"
        yield _case(subject, _set(f"s|{name}"), lambda n: {"s": " " * n + "x"}, MUCH, _sixteenth)
        yield _case(f"{subject}::chars", _set(f"s.{name}(t)"), lambda n: {"s": "", "t": "b" * n}, MUCH, _sixteenth)
        yield _case(
            f"{subject}::both", _set(f"s.{name}(chars=t)"), lambda n: {"s": "a" * n, "t": "b" * n + "a"}, 10_000
        )
        yield _case(
            f"{subject}::parts",
            lambda n, name=name: _many_parts(n) + _set(f"y.{name}(t)"),
            lambda n: {"p": "B", "t": "b" * n + "B "},
            1_000,
        )
    for name in ("split", "rsplit", "replace"):
        subject, filling = f"method str.{name}", ", 'x'" if name == "replace" else ""
        yield _case(f"{subject}::alike", _set(f"s.{name}(t{filling})"), _alike, 2_400)
        yield _case(
            f"{subject}::short", _set(f"s.{name}(t{filling})"), lambda n: _alike(n) | {"t": "a" * 97 + "ba"}, 29_000
        )
        yield _case(f"{subject}::long", _set(f"s.{name}(t{filling})"), _alike, MUCH)
        yield _case(f"{subject}::both long", _set(f"s.{name}(u{filling})"), _alike, MUCH)
        yield _case(f"{subject}::unused", _set(f"''.{name}(t{filling})"), _alike, MUCH)
        yield _case(f"{subject}::found", _set(f"s.{name}('a'{filling})"), lambda n: {"s": "a" * n}, MANY)
        yield _case(
            f"{subject}::parts", lambda n, f=filling, name=name: _many_parts(n) + _set(f"y.{name}('B'{f})"), _part, MANY
        )
    yield _case(
        "method str.replace::nothing", _set("s.replace('', 'yy')"), lambda n: {"s": "a" * n}, 1_000_000, _eighth
    )
    for name in ("startswith", "endswith"):
        yield _case(f"method str.{name}", _set(f"s.{name}(s)"), lambda n: {"s": "a" * n}, MUCH, _sixteenth)
    yield _case(
        "method str.format", lambda n: _set(f"s.format({', '.join(['s'] * n)})"), lambda n: {"s": "{}" * n}, 900
    )
    yield _case("method str.format::floats", _set("'{}{}'.format(x, x)"), lambda _: {"x": 1.7e308})
    yield _case("method str.format::parts", lambda n: _many_parts(n) + _set("'{}'.format(y)"), _part, MANY)
    yield _case("method str.format::list", _set("'{}'.format(l)"), lambda n: {"l": ["'"] * n}, MANY, _items)
    yield _case("method str.indent", _set("s|indent(1, true, true)"), lambda n: {"s": "\n" * n}, 500_000, _eighth)
    yield _case("method str.indent::lines", _set("s.indent('é')"), lambda n: {"s": "a\n" * n}, 500_000, _eighth)
    yield _case("method str.indent::wide", _set("s|indent(w)"), lambda n: {"s": "a\nb", "w": n}, 1_900_000, _eighth)
    yield _case("method str.indent::parts", lambda n: _many_parts(n) + _set("y|indent"), lambda _: {"p": "\n"}, MANY)
    yield _case("method str.int", _set("s|int"), lambda n: {"s": " " * n + "É" * n}, 1_500_000, _eighth)
    yield _case("method str.int::digits", _set("s.int(0, 36)"), lambda n: {"s": "Z" * n}, MUCH, _sixteenth)
    for name, digits in (("decimal", "9"), ("zeros", "0."), ("hexadecimal", "0xf"), ("spaces", " "), ("nan", "nan(")):
        yield _case(
            f"method str.float::{name}", _set("s|float"), lambda n, d=digits: {"s": d + d[-1] * n}, 5_000, _sixteenth
        )
    yield _case("method str.slice", _set("s.slice(0, n, 1)"), lambda n: {"s": "a" * n, "n": n}, MUCH, _sixteenth)
    yield _case("method str.slice::backwards", _set("s[::-3]"), lambda n: {"s": "é" * (n // 2)}, MUCH)
    yield _case("method str.slice::parts", lambda n: _many_parts(n) + _set("y[1:]"), _part, MANY)
    yield _case("method str.tojson::controls", _set("s|tojson"), lambda n: {"s": "\x01" * n}, 600_000, _sixteenth)
    yield _case("method str.tojson::mixed", _set("s|tojson"), lambda n: {"s": '"\né' * (n // 4)}, 1_000_000, _sixteenth)
    yield _case(
        "method str.tojson::ascii", _set("s|tojson(true)"), lambda n: {"s": "éa" * (n // 3)}, 600_000, _sixteenth
    )
    yield _case(
        "method str.tojson::astral", _set("s|tojson(true)"), lambda n: {"s": "😀" * (n // 4)}, 600_000, _sixteenth
    )
    yield _case("method str.tojson::separators", _set("1|tojson(separators=[s, s])"), lambda n: {"s": "a" * n}, MUCH)
    yield _case("method str.tojson::parts", lambda n: _many_parts(n) + _set("y|tojson"), _part, MANY)
    for name in ("length", "safe", "string"):
        yield _case(f"method str.{name}", _set(f"s|{name}"), lambda n: {"s": "é" * n}, MUCH)
    yield _case("method str.default", _set("s.default('', true)"), lambda n: {"s": "é" * n}, MUCH)
    yield _case("method str.join", _set("s.join"), lambda n: {"s": "é" * n}, MUCH)


def _part(_size: int) -> dict[str, Any]:
    return {"p": "A"}


def _sixteenth(size: int) -> float:
    """A step for 16 bytes; short of that, nothing."""
    return size // 32


def _eighth(size: int) -> float:
    return size // 8


def _items(size: int) -> float:
    return size


# -------------------------------------------------------------------------------------------------------------- arrays


def _arrays(kind: str, suffix: str) -> Iterator[Case]:
    """`suffix` makes a tuple of the list `l`, which is in the context, where it can."""

    def case(name: str, expression: str, context: Context, most: int = MANY, steps: Any = None) -> Case:
        return _case(f"method {kind}.{name}", suffix + _set(expression), context, most, steps)

    def numbers(size: int) -> dict[str, Any]:
        return {"l": _scrambled(size)}

    def floats(size: int) -> dict[str, Any]:
        return {"l": [1.7e308] * size, "x": 1.7e308}

    def objects(size: int) -> dict[str, Any]:
        return {"l": [{"a": number} for number in _scrambled(size)]}

    def texts(size: int) -> dict[str, Any]:
        return {"l": ["a" * 2_000 + str(number) for number in _scrambled(size)]}

    yield case("default", "l.default(1, true)", numbers)
    for name in ("first", "last", "length"):
        yield case(name, f"l|{name}", numbers)
    for name in ("list", "reverse"):
        yield case(name, f"l|{name}", numbers, steps=_items)
    yield case("join", "l|join(', ')", numbers, steps=_items)
    yield case("join::floats", "l|join", floats, 10_000, _items)
    yield case("join::attribute", "l.join('', 'a')", objects, steps=_items)
    yield case("join::nothing", "[]|join(s)", lambda n: {"l": [], "s": "a" * n}, MUCH)
    yield case("join::of a list", "[1, 2]|join(l)", lambda n: {"l": ["'"] * n}, MANY // 3)
    yield case("map", "l|map(attribute='a')", objects, steps=_items)
    yield case("map::digits", "[l, l]|map(attribute=s)", lambda n: {"l": [1], "s": "1" * n}, MUCH)
    yield case("map::long key", "[{'a': 1}]|map(attribute=s)", lambda n: {"l": [1], "s": "k" * n}, MUCH)
    for name in ("max", "min"):
        yield case(name, f"l|{name}", numbers, steps=_items)
        yield case(f"{name}::attribute", f"l|{name}(attribute='a')", objects, steps=_items)
        yield case(f"{name}::floats", f"['1', x, '1', x]|{name}", floats, 10)
    yield case("sort", "l|sort", numbers, 20_000, _items)
    yield case("sort::texts", "l|sort(reverse=true)", texts, 1_000, _items)
    yield case("sort::floats", "['1', x, '1', x, '1', x]|sort", floats, 10)
    yield case("sort::attribute", "l|sort(attribute='a')", objects, 20_000, _items)
    yield case("sort::digits", "[[1], [2], l]|sort(attribute=s)", lambda n: {"l": [1], "s": "1" * n}, MUCH)
    yield case("sort::nothing to compare", "l|sort", lambda n: {"l": [None] * n}, 20_000, _items)
    for name in ("select", "reject", "selectattr", "rejectattr"):
        yield case(name, f"l|{name}('odd', 1)", numbers, steps=_items)
        yield case(f"{name}::attribute", f"l|{name}('a')", objects, steps=_items)
        yield case(f"{name}::test", f"l.{name}('a', 'lt', 5)", objects, steps=_items)
        yield case(f"{name}::in text", f"[t, t, t]|{name}('in', s)", lambda n: _alike(n) | {"l": []}, 2_400)
    yield case("slice", "l[1:]", numbers, steps=lambda n: n - 1)
    yield case("slice::backwards", "l[::-1]", numbers, steps=_items)
    yield case("string", "l|string", numbers, MANY, _items)
    yield case("string::floats", "l|string", floats, 10_000, _items)
    yield case("string::quotes", "l|string", lambda n: {"l": ["'\n\x01é"] * n}, MANY, _items)
    yield case("string::shared", "l|string", lambda n: {"l": [[[1] * 30] * 30] * n}, 100, _items)
    yield case("tojson", "l|tojson", numbers, MANY, _items)
    yield case("tojson::indent", "l|tojson(indent=2)", lambda n: {"l": [[[]]] * n}, MANY // 3, _items)
    yield case("tojson::deep", "l|tojson(indent=100)", lambda n: {"l": _nested(n)}, 90, _items)
    yield case("unique", "l.unique", numbers)
    if kind == "list":
        yield case("append", "l.append(1)", lambda n: {"l": [1] * n}, MANY)
        yield case("append::objects", "l.append({'a': 1})", lambda _: {"l": []}, 1)
        yield case("append::builtins", "l.append(l.append)", lambda _: {"l": []}, 1)
        yield _case("method list.pop", _set("l.pop(0)") + _set("l.append(1)"), lambda n: {"l": [1] * n}, MANY)
        yield _case("method list.tojson::itself", _itself, most=90_000, steps=_items)
        yield _case("method list.string::itself", lambda n: _itself(n).replace("tojson", "string"), most=90_000)
    else:
        yield case("append", "l.append", numbers)
        yield case("pop", "l.pop", numbers)


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def _itself(size: int) -> str:
    """A list whose first item leads back to it: all of its members are met again and again before any is written."""
    back = "{% set n.l = l %}" if size > 8 else ""
    return f"{{% set n = namespace() %}}{{% set l = [n] + range({size}) %}}{back}{{% set r = l|tojson %}}"


# ------------------------------------------------------------------------------------------------------------- objects


def _objects() -> Iterator[Case]:
    def case(name: str, expression: str, context: Context, most: int = MANY, steps: Any = None) -> Case:
        return _case(f"method dict.{name}", _set(expression), context, most, steps)

    def entries(size: int) -> dict[str, Any]:
        return {"d": {str(number): number for number in _scrambled(size)}}

    for name in ("items", "keys", "values"):
        yield case(name, f"d.{name}()", entries, steps=_items)
    yield case("length", "d|length", entries)
    yield case("join", "d.join", entries)
    yield case("string", "d|string", entries, MANY, _items)
    yield case("string::long keys", "[d, d]|string", lambda n: {"d": {"'" * n: 1}}, 1_000_000, _eighth)
    yield case("tojson", "d|tojson(indent=1)", entries, MANY // 3, _items)
    yield case("tojson::long keys", "[d, d]|tojson", lambda n: {"d": {"é" * (n // 2): 1}}, 1_000_000, _eighth)
    yield case("get", "d.get(s, 1)", lambda n: {"d": {"a": 1}, "s": "k" * n}, MUCH)
    yield case("dictsort", "d|dictsort", entries, 20_000, _items)
    yield case("dictsort::by value", "d|dictsort(by='value', reverse=true)", entries, 20_000, _items)
    yield _case("global dict", _set("dict(l)"), lambda n: {"l": [[str(i), i] for i in range(n)]}, MANY, _items)
    yield _case("global dict::of an object", _set("dict(d, a=1)"), entries, MANY, _items)
    yield _case("global dict::alike", _set("dict(pairs)"), lambda n: _pairs(_chain(n)), 900)
    yield _case(
        "global dict::alike tuples",
        lambda n: _tuples(n // 2) + _set("dict(l)"),
        most=16,
    )
    yield _case("global namespace", _set("namespace(a=1)"))
    yield _case("global namespace::of an object", _set("namespace(d)"), entries, MANY, _items)
    yield _case(
        "expression dict", lambda n: _set("{" + ", ".join(f"'a{number}': 1" for number in range(n)) + "}"), most=3_000
    )
    yield _case(
        "expression dict::alike", lambda n: _set("{" + ", ".join(f"{key}: 1" for key in _chain(n)) + "}"), most=600
    )
    yield _case("expression item::alike", _KEYS + _set("d[65543]") * 50, lambda n: _pairs(_chain(n)), 700)
    yield _case("operator in::alike keys", _KEYS + _set("65543 in d") * 50, lambda n: _pairs(_chain(n)), 700)


def _tuples(size: int) -> str:
    """2**size tuples of one hash in pairs: -1 and -2 have the same."""
    loops = "".join(f"{{% for a{number} in [-1, -2] %}}" for number in range(size))
    pair = f"[(0, 0{''.join(f', a{number}' for number in range(size))}), 1]"
    return "{% set l = [] %}" + loops + f"{{% set x = l.append({pair}) %}}" + "{% endfor %}" * size


# ------------------------------------------------------------------------------------------------------------- scalars


def _scalars() -> Iterator[Case]:
    numbers = ("abs", "default(1)", "float", "int", "safe", "string", "tojson")
    nothing = ("items", "map", "reject", "rejectattr", "select", "selectattr", "unique", "default(1)", "safe", "string")
    for kind, value, names in (
        ("int", -(2**63), numbers),
        ("float", -1.7e308, numbers),
        ("bool", True, numbers[1:]),
        ("NoneType", None, (*nothing, "tojson")),
    ):
        for name in names:
            yield _case(f"method {kind}.{name.split('(')[0]}", _set(f"v|{name}"), lambda _, value=value: {"v": value})
    lists = ("first", "last", "max", "min", "length", "list", "reverse", "sort", "sum", "wordcount")
    texts = ("capitalize", "join", "lower", "replace", "strip", "title", "truncate", "upper")
    for name in (*nothing, *lists, *texts):
        yield _case(f"method Undefined.{name.split('(')[0]}", _set(f"absent|{name}"))
    yield _case("unary -", _set("-x"), lambda _: {"x": -(2**63)})
    yield _case("unary +", _set("+x"), lambda _: {"x": 1.7e308})


# ----------------------------------------------------------------------------------------------------------- operators


def _operators() -> Iterator[Case]:
    for op in ("-", "*", "/", "%", "<", "<=", ">", ">=", "+"):
        yield _case(f"operator {op}::numbers", _set(f"x {op} y"), lambda _: {"x": 2**62 + 1, "y": 1.7e308})
    yield _case("operator *", _set("s * n"), lambda n: {"s": "ab", "n": n}, 1_500_000, _eighth)
    yield _case("operator *::parts", lambda n: _many_parts(n) + _set("y * 2"), _part, MANY)
    yield _case("operator +", _set("l + l"), lambda n: {"l": [1] * n}, MANY // 2, _items)
    for op in ("+", "~"):
        yield _case(f"operator {op}::strings", _set(f"s {op} s"), lambda n: {"s": "é" * (n // 2)}, 1_900_000, _eighth)
        yield _case(f"operator {op}::floats", _set(f"'' {op} x"), lambda _: {"x": 1.7e308})
        yield _case(f"operator {op}::list", _set(f"'' {op} l"), lambda n: {"l": ["'"] * n}, MANY, _items)
        yield _case(f"operator {op}::parts", lambda n, op=op: _many_parts(n) + _set(f"y {op} y"), _part, MANY)
    for op in ("==", "!="):
        yield _case(f"operator {op}::strings", _set(f"[s, t][0] {op} t"), _twice("a"), MUCH)
        yield _case(f"operator {op}::lists", _set(f"l {op} m"), lambda n: {"l": [1] * n, "m": [1] * n}, MANY, _items)
        yield _case(f"operator {op}::objects", _set(f"l {op} m"), _equal_objects, MANY, _items)
        yield _case(f"operator {op}::shared", lambda n, op=op: _doubled(n) + _set(f"n.a {op} n.b"), most=60)
    for op in ("in", "not in"):
        yield _case(f"operator {op}::list", _set(f"'x' {op} l"), lambda n: {"l": [1] * n}, MANY, _items)
        yield _case(f"operator {op}::texts", _set(f"s {op} l"), _almost_equal, 1_000)
        yield _case(f"operator {op}::alike", _set(f"t {op} s"), _alike, 2_400)
        yield _case(f"operator {op}::short", _set(f"t {op} s"), lambda n: _alike(n) | {"t": "a" * 97 + "ba"}, 29_000)
        yield _case(f"operator {op}::long", _set(f"t {op} s"), _alike, MUCH)
        yield _case(f"operator {op}::both long", _set(f"u {op} s"), _alike, MUCH)
        yield _case(f"operator {op}::key", _set(f"s {op} d"), lambda n: {"d": {"a": 1}, "s": "k" * n}, MUCH)
        yield _case(
            f"operator {op}::shared", lambda n, op=op: _doubled(n) + _set("{}") + _set(f"n.a {op} {{1: 1}}"), most=60
        )
    yield _case("expression item", _set("l[5]") + _set("s[5]"), lambda n: {"l": [1] * n, "s": "é" * n}, MANY)
    yield _case("expression item::long key", _set("d[s]"), lambda n: {"d": {"a": 1}, "s": "k" * n}, MUCH)
    yield _case("expression item::tuple", lambda n: _doubled(n) + _set("{}[n.a]"), most=60)
    yield _case(
        "expression attribute", _set("d.a") + _set("s.upper") + _set("d.absent"), lambda n: {"d": {}, "s": "é" * n}
    )
    yield _case("expression slice", _set("l[1:n:2]"), lambda n: {"l": [1] * n, "n": n}, MANY, lambda n: n // 2 - 1)
    yield _case("expression call", "{% macro m(a, b=1) %}{% endmacro %}" + _set("m(1, b=2)") * 20)
    yield _case("expression call::arguments", lambda n: _set(f"'{{}}'.format({', '.join(['1'] * n)})"), most=900)


def _twice(letter: str) -> Context:
    return lambda n: {"s": letter * n, "t": letter * n}


def _equal_objects(size: int) -> dict[str, Any]:
    return {"l": {str(i): i for i in range(size)}, "m": {str(i): i for i in range(size)}}


def _almost_equal(size: int) -> dict[str, Any]:
    return {"s": "a" * 3_000 + "c", "l": ["a" * 3_000 + "b"] * size}


def _doubled(times: int) -> str:
    """Two equal tuples that hold the same tuple twice, so many levels deep; small ones when few."""
    return (
        "{% set n = namespace(a=(1, 2), b=(1, 2)) %}"
        f"{{% for i in range({times}) %}}{{% set n.a = (n.a, n.a) %}}{{% set n.b = (n.b, n.b) %}}{{% endfor %}}"
    )


# ---------------------------------------------------------------------------------------------------- tests and globals


def _tests() -> Iterator[Case]:
    for name in ("boolean", "callable", "defined", "false", "float", "integer", "iterable", "mapping", "none"):
        yield _case(f"test {name}", _set(f"s is {name}"), lambda n: {"s": "é" * n}, MUCH)
    for name in ("number", "sequence", "string", "true", "undefined"):
        yield _case(f"test {name}", _set(f"s is {name}"), lambda n: {"s": "é" * n}, MUCH)
    for name in ("even", "odd"):
        yield _case(f"test {name}", _set(f"x is {name}"), lambda _: {"x": 2**62 + 1})
    yield _case("test divisibleby", _set("x is divisibleby(3)"), lambda _: {"x": 2**62 + 1})
    for name in ("eq", "equalto", "ge", "greaterthan", "gt", "lessthan", "lt", "ne"):
        yield _case(f"test {name}", _set(f"s is {name}(t)"), _twice("é"), 1_500_000, _eighth)
        yield _case(f"test {name}::float", _set(f"x is {name}('1')"), lambda _: {"x": 1.7e308})
    yield _case("test in", _set("u is in(s)"), _alike, MUCH)
    yield _case("test in::alike", _set("t is in(s)"), _alike, 2_400)
    yield _case("test in::list", _set("1 is in(l)"), lambda n: {"l": ["x"] * n}, MANY, _items)
    yield _case("test sameas", _set("s is sameas(t)"), _twice("é"), MUCH)
    yield _case("test test", _set("s is test"), _twice("é"), MUCH)
    yield _case("test lower", _set("s is lower"), _twice("é"), 1_500_000, _eighth)
    yield _case("test upper", _set("s is upper"), _twice("a"), MUCH, _sixteenth)
    for name in ("escaped", "filter"):
        yield _case(f"test {name}", _set(f"test_is_{name}"))


def _globals() -> Iterator[Case]:
    yield _case("global range", _set("range(n)"), lambda n: {"n": n}, 100_000, _items)
    yield _case("global range::huge steps", _set("range(0, -9223372036854775807, -922337203685477)"))
    yield _case("global tojson", _set("tojson(l)"), lambda n: {"l": _scrambled(n)}, MANY, _items)
    yield _case("global strftime_now", _set("strftime_now('%c%c')"))
    yield _case("global strftime_now::directives", _set("strftime_now('" + "%V" * 32 + "')"))
    yield _case("global raise_exception", _set("raise_exception"))


CASES: tuple[Case, ...] = (
    *_strings(),
    *_arrays("list", ""),
    *_arrays("tuple", ""),
    *_objects(),
    *_scalars(),
    *_operators(),
    *_tests(),
    *_globals(),
)
