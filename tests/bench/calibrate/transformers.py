"""The worst cases of the builtins and operators of the transformers dialect."""
# ruff: noqa: E501 - a row of a table is a line

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.bench.calibrate.harness import Case

Context = Callable[[int], dict[str, Any]]
Steps = Callable[[int], float]

FULL = 4_000_000
"""Characters of the longest string that is allowed."""
MANY = 100_000
"""Items of the longest list that is allowed."""
CHAIN = 38_000
"""Integers of `chained` that fill one table."""


def none(_size: int) -> dict[str, Any]:
    return {}


def text(char: str) -> Context:
    return lambda size: {"s": (char * (size // len(char) + 1))[:size]}


def items(value: Any) -> Context:
    return lambda size: {"l": [value] * size}


def numbers(size: int) -> dict[str, Any]:
    return {"l": list(range(size))}


def chained(size: int) -> dict[str, Any]:
    """Integers, each of which stands where Python looks next for the one before."""
    found, key = [], 7
    for _ in range(size):
        found.append(key)
        key = (5 * key + 1) % 65536
    return {"l": found, "k": key}


def colliding(size: int) -> dict[str, Any]:
    """Integers that hash alike."""
    return {"l": [number * (2**61 - 1) for number in range(1, size + 1)]}


def alike(share: int) -> Context:
    """A text, and one sought in it that is `share` hundredths as long and differs from it near its end alone."""

    def context(size: int) -> dict[str, Any]:
        length = max(size * share // 100, 4)
        return {"s": "a" * size, "t": "a" * (length - 2) + "ba"}

    return context


def reversed_alike(size: int) -> dict[str, Any]:
    return {"s": "a" * size, "t": "ab" + "a" * (size // 2)}


def close(size: int) -> dict[str, Any]:
    """The same, so nearly as long that no more than 2,000 places are left."""
    length = max(size - 2_000, size // 2)
    return {"s": "a" * size, "t": "a" * (length - 2) + "ba"}


def floats(size: int) -> dict[str, Any]:
    return {"l": [1.7976931348623157e308 / (number + 1) for number in range(size)]}


def words(length: int) -> Context:
    return lambda size: {"s": ("x" * length + " ") * (size // (length + 1) + 1)}


def digits(size: int) -> dict[str, Any]:
    return {"i": 10 ** min(size, 1_200) + 7, "j": 10 ** min(size // 2, 600) + 3}


def path(size: int) -> dict[str, Any]:
    return {"p": ",".join(["a"] * size), "l": [{"a": number} for number in range(10)]}


def deep_path(size: int) -> dict[str, Any]:
    value: Any = 1
    for _ in range(90):
        value = {"a": value}
    return {"p": ".".join(["a"] * min(size, 90)), "l": [value] * max(size // 90, 1)}


_TESTS_OF_EQUALITY = {"==", "!=", "eq", "equalto", "ne"}
_TESTS_OF_ORDER = {"<", "<=", ">", ">=", "ge", "greaterthan", "gt", "le", "lessthan", "lt"}
_TESTS_OF_KIND = (
    "boolean callable defined escaped false float integer iterable mapping none number sequence string true undefined"
)
_READING = "alnum alpha ascii decimal digit identifier lower numeric printable space title upper"
_CASE = "capitalize casefold lower swapcase title upper"


def whole_path(size: int) -> dict[str, Any]:
    """The same, to the end."""
    return {**deep_path(size), "p": ".".join(["a"] * 90)}


_LOOKED_THROUGH = {"decimal": "1", "digit": "1", "numeric": "1", "space": " ", "title": "A ", "upper": "A"}
"""What `isdecimal` and so on read to the end."""


def deep_list(depth: int, width: int) -> Any:
    value: Any = [1] * width
    for _ in range(depth):
        value = [value]
    return value


Row = tuple[str, str, Context, int] | tuple[str, str, Context, int, Steps]

ROWS: list[Row] = [
    # Expressions
    ("expression attribute", "{{ l[0].a.b.c is defined }}", items({"a": {"b": {}}}), 1),
    ("expression item", "{{ d[s] is defined }}", lambda size: {"d": {"x" * size: 1}, "s": "x" * size}, FULL, lambda n: n / 64),
    ("expression item::chain", "{% set d = dict.fromkeys(l) %}{% for i in range(50) %}{{ d[k] }}{% endfor %}", chained, CHAIN),
    ("expression item::tuple", "{{ {}[(l, l)] }}", items(1), MANY, lambda n: n),
    ("expression slice", "{{ s[::-1]|length }}", text("é"), FULL // 2, lambda n: n / 16),
    ("expression slice::list", "{{ l[1:]|length }}", numbers, MANY, lambda n: n),
    ("expression call", "{{ cycler(*l)|string }}", numbers, MANY, lambda n: n),
    ("expression dict", "{{ {l[0]: 1, l[-1]: 2, 1.5: 3, (1, 2): 4, 'a': 5, 7: 6} }}", numbers, 1_000),
    # Operators
    ("operator +", "{{ (s + s)|length }}", text("é"), FULL // 5, lambda n: n / 8),
    ("operator +::list", "{{ (l + l)|length }}", numbers, MANY // 2, lambda n: 2 * n),
    ("operator +::markup", "{{ (s|safe + s)|length }}", text("&"), FULL // 6, lambda n: n / 4),
    ("operator -", "{{ i - j }}", digits, 1_200),
    ("operator *", "{{ (s * 2)|length }}", text("é"), FULL // 5, lambda n: n / 4),
    ("operator *::big", "{% set x = j * j %}", digits, 1_200),
    ("operator *::list", "{{ (l * 2)|length }}", numbers, MANY // 2, lambda n: 2 * n),
    ("operator /", "{% set x = i / j %}", digits, 300),
    ("operator //", "{% set x = i // j %}", digits, 1_200),
    ("operator %", "{% set x = i % j %}", digits, 1_200),
    ("operator %::keys", "{{ (('%(l)s' * 50) % {'l': l})|length }}", items([]), 10_000, lambda n: 50 * n),
    ("operator %::width", "{{ ('%' ~ w ~ 'd') % 1 }}", lambda size: {"w": size}, FULL, lambda n: n / 16),
    ("operator %::float", "{{ '%.1000f' % f }}", lambda size: {"f": 1e308 / size}, 1_000),
    ("operator %::many", "{{ (s % ((1,) * n))|length }}", lambda size: {"s": "%d" * size, "n": size}, MANY, lambda n: n),
    ("operator %::markup", "{{ ((s|safe) % ((t,) * n))|length }}", lambda size: {"s": "%s" * size, "n": size, "t": "&<"}, 20_000),
    ("operator **", "{% set x = 3 ** n %}", lambda size: {"n": size}, 2_500),
    ("operator ~", "{{ (s ~ 1 ~ s)|length }}", text("é"), FULL // 5, lambda n: n / 4),
    ("operator ~::list", "{{ (l ~ '')|length }}", floats, MANY, lambda n: n),
    ("operator in", "{{ t in s }}", alike(50), FULL, lambda n: n / 16),
    ("operator in::short", "{{ t in s }}", lambda size: {"s": "a" * size, "t": "a" * 90 + "ba"}, 29_999, lambda n: max(n - 92, 0) * 90 / 128),
    ("operator in::close", "{{ t in s }}", close, 40_000, lambda n: min(n // 2, 2_000) * n / 300),
    ("operator in::list", "{{ s in l }}", lambda size: {"s": "x" * 70, "l": ["x" * 69 + "y"] * size}, MANY, lambda n: n),
    ("operator in::numbers", "{{ -1 in l }}", floats, MANY, lambda n: n),
    ("operator in::range", "{{ 1.5 in range(n) }}", lambda size: {"n": size}, MANY, lambda n: n),
    ("operator in::chain", "{% set d = dict.fromkeys(l) %}{{ l|select('in', d)|list|length }}", chained, CHAIN),
    ("operator in::items", "{% set d = dict.fromkeys(l).items() %}{{ (k, 1) in d }}", chained, CHAIN),
    ("operator not in", "{{ t not in s }}", alike(30), FULL, lambda n: n / 16),
    ("unary -", "{% set x = -i %}", digits, 1_200),
    ("unary +", "{% set x = +i %}", digits, 1_200),
    # Filters
    ("filter abs", "{% set x = (-i)|abs %}", digits, 1_200),
    ("filter attr", "{{ ''|attr(s) is defined }}", text("a"), FULL, lambda n: n / 64),
    ("filter batch", "{{ l|batch(1)|list|length }}", numbers, MANY, lambda n: n),
    ("filter batch::fill", "{{ [1]|batch(n, 'x')|list|length }}", lambda size: {"n": size}, MANY, lambda n: n),
    ("filter d", "{{ x|d(1) }}", none, 1),
    ("filter default", "{{ x|default(l, true)|length }}", numbers, 1_000),
    ("filter dictsort", "{{ dict(l|batch(2, 0))|dictsort|length }}", numbers, MANY // 4),
    ("filter dictsort::values", "{{ d|dictsort(by='value')|length }}", lambda size: {"d": {f"k{i}": "x" * 500 + str(i) for i in range(size)}}, 3_000),
    ("filter e", "{{ s|e|length }}", text("&"), FULL // 5, lambda n: 5 * n / 16),
    ("filter escape", "{{ s|escape|length }}", text("'"), FULL // 5, lambda n: 5 * n / 16),
    ("filter forceescape", "{{ s|safe|forceescape|length }}", text("&"), FULL // 5, lambda n: 5 * n / 16),
    ("filter filesizeformat", "{{ i|filesizeformat }}", digits, 300),
    ("filter filesizeformat::text", "{{ s|filesizeformat|length }}", text("9"), FULL, lambda n: n / 16),
    ("filter first", "{{ l|first }}", numbers, 1_000),
    ("filter float", "{{ s|float }}", text("9"), FULL, lambda n: n / 16),
    ("filter format", "{{ s|format(*l)|length }}", lambda size: {"s": "%s" * size, "l": ["x"] * size}, MANY, lambda n: n),
    ("filter groupby", "{{ l|groupby('a')|length }}", lambda size: {"l": [{"a": i * 7919 % size} for i in range(size)]}, MANY // 8, lambda n: n),
    ("filter groupby::text", "{{ l|groupby('a')|length }}", lambda size: {"l": [{"a": "X" * 300 + str(i)} for i in range(size)]}, 4_000),
    ("filter groupby::path", "{{ l|groupby(p)|length }}", deep_path, 90_000),
    ("filter indent", "{{ s|indent(1, true, true)|length }}", text("\n"), FULL // 8, lambda n: n / 16),
    ("filter int", "{{ s|int }}", text("9"), 1_200, lambda n: n / 16),
    ("filter int::base", "{{ s|int(0, 16) }}", text(" f"), FULL, lambda n: n / 16),
    ("filter int::long", "{{ s|int }}", text("9"), 4_300, lambda n: n / 16),
    ("filter items", "{{ d|items|list|length }}", lambda size: {"d": {f"k{i}": i for i in range(size)}}, MANY, lambda n: n),
    ("filter join", "{{ l|join(',')|length }}", floats, MANY, lambda n: n),
    ("filter join::attribute", "{{ l|join(',', p)|length }}", deep_path, 90_000),
    ("filter last", "{{ l|last }}", numbers, 1_000),
    ("filter count", "{{ l|count }}", numbers, 1_000),
    ("filter length", "{{ l|length }}", numbers, 1_000),
    ("filter list", "{{ s|list|length }}", text("é"), MANY, lambda n: n),
    ("filter map", "{{ l|map('string')|list|length }}", floats, MANY, lambda n: n),
    ("filter map::nested", "{{ l" + "|map('string')" * 20 + "|list|length }}", items(1), 10_000, lambda n: n),
    ("filter map::attribute", "{{ l|map(attribute=p)|list|length }}", deep_path, 90_000),
    ("filter max", "{{ l|max }}", numbers, MANY, lambda n: n),
    ("filter max::attribute", "{{ l|max(attribute=p) }}", deep_path, 90_000),
    ("filter min", "{{ l|min }}", lambda size: {"l": ["X" * 100 + str(i) for i in range(size)]}, MANY // 4, lambda n: n),
    ("filter pprint", "{{ l|pprint|length }}", floats, MANY // 4, lambda n: n),
    ("filter pprint::keys", "{{ d|pprint|length }}", lambda size: {"d": {f"k{i * 7919 % size}-{i}": i for i in range(size)}}, 10_000),
    ("filter pprint::text", "{{ s|pprint|length }}", words(3), FULL // 10, lambda n: n),
    ("filter pprint::deep", "{{ l|pprint|length }}", lambda size: {"l": deep_list(90, max(size // 90, 1))}, 9_000),
    ("filter random", "{{ l|random }}", numbers, 8),
    ("filter reject", "{{ l|reject('gt', 5)|list|length }}", numbers, MANY, lambda n: n),
    ("filter rejectattr", "{{ l|rejectattr(p)|list|length }}", deep_path, 90_000),
    ("filter select", "{{ l|select('none')|list|length }}", numbers, MANY, lambda n: n),
    ("filter selectattr", "{{ l|selectattr(p, 'eq', 2)|list|length }}", deep_path, 90_000),
    ("filter replace", "{{ s|replace('a', 'bb')|length }}", text("a"), FULL // 4, lambda n: n / 8),
    ("filter replace::alike", "{{ s|replace(t, 'c')|length }}", alike(50), FULL, lambda n: n / 16),
    ("filter replace::close", "{{ s|replace(t, 'c')|length }}", close, 40_000),
    ("filter replace::tiny", "{{ s|replace('abcdef', 'abcdeg')|length }}", text("abcdef"), FULL // 4, lambda n: n / 16),
    ("filter reverse", "{{ s|reverse|length }}", text("é"), FULL // 2, lambda n: n / 8),
    ("filter reverse::list", "{{ l|reverse|list|length }}", numbers, MANY, lambda n: n),
    ("filter round", "{% set x = i|round(-n) %}", lambda size: {"n": size // 2, **digits(size)}, 1_200),
    ("filter round::floor", "{% set x = j|round(n, 'floor') %}", lambda size: {"n": size // 3, **digits(size)}, 300),
    ("filter round::precise", "{{ 0.1|round(n) }}", lambda size: {"n": size}, MANY),
    ("filter safe", "{{ s|safe|length }}", text("é"), FULL // 2, lambda n: n / 8),
    ("filter slice", "{{ l|slice(n)|list|length }}", lambda size: {"n": size, "l": list(range(size))}, MANY // 4, lambda n: n),
    ("filter sort", "{{ l|sort|length }}", lambda size: {"l": [i * 7919 % 99991 for i in range(size)]}, MANY // 4, lambda n: n),
    ("filter sort::text", "{{ l|sort|length }}", lambda size: {"l": ["x" * 300 + str(i * 7919 % 9973) for i in range(size)]}, 3_000),
    ("filter sort::lists", "{{ l|sort|length }}", lambda size: {"l": [[0] * 50 + [i * 7919 % 9973] for i in range(size)]}, 1_000),
    ("filter sort::path", "{{ l|sort(attribute=p)|length }}", path, 4_000, lambda n: 10 * n),
    ("filter sort::commas", "{{ [1]|sort(attribute=s)|length }}", text(","), 50_000, lambda n: n),
    ("filter string", "{{ l|string|length }}", floats, MANY, lambda n: n),
    ("filter striptags", "{{ s|striptags|length }}", text("a<!---->"), FULL // 4, lambda n: n / 8),
    ("filter striptags::open", "{{ s|striptags|length }}", text("<!--"), FULL // 4, lambda n: n / 8),
    ("filter striptags::words", "{{ s|striptags|length }}", text("ab "), FULL // 4, lambda n: n / 8),
    ("filter striptags::references", "{{ s|striptags|length }}", text("&abcdefghijklmnopqrstuvwxyzabcdefghij"), MANY, lambda n: n / 8),
    ("filter sum", "{{ l|sum }}", floats, MANY, lambda n: n),
    ("filter sum::attribute", "{{ l|sum(attribute=p) }}", whole_path, 90_000),
    ("filter sum::lists", "{{ l|sum(start=[])|length }}", items([1, 2]), 400, lambda n: n * n / 2),
    ("filter title", "{{ s|title|length }}", text("a\u3000"), MANY * 4, lambda n: n),
    ("filter title::plain", "{{ s|title|length }}", text("a "), MANY * 4, lambda n: n),
    ("filter capitalize", "{{ s|capitalize|length }}", text("ǆ"), FULL // 4, lambda n: n / 8),
    ("filter center", "{{ 'a'|center(n)|length }}", lambda size: {"n": size}, FULL, lambda n: n / 16),
    ("filter lower", "{{ s|lower|length }}", text("İ"), FULL // 4, lambda n: n / 8),
    ("filter upper", "{{ s|upper|length }}", text("ŉ"), FULL // 4, lambda n: n / 8),
    ("filter tojson", "{{ l|tojson|length }}", floats, MANY, lambda n: n),
    ("filter tojson::text", "{{ s|tojson(true)|length }}", text("\U0001f600"), FULL // 16, lambda n: n / 8),
    ("filter tojson::indent", "{{ l|tojson(indent=1)|length }}", lambda size: {"l": deep_list(90, max(size // 90, 1))}, 20_000),
    ("filter tojson::sort", "{{ d|tojson(sort_keys=true)|length }}", lambda size: {"d": {f"k{i * 7919 % size}-{i}": i for i in range(size)}}, 20_000),
    ("filter trim", "{{ s|trim|length }}", text(" "), FULL, lambda n: n / 16),
    ("filter trim::chars", "{{ s|trim(t)|length }}", lambda size: {"s": "a" * size, "t": "b" * size + "a"}, 10_000),
    ("filter truncate", "{{ s|truncate(n)|length }}", lambda size: {"s": "a" * (size + 9), "n": size + 1}, FULL // 2, lambda n: n / 16),
    ("filter unique", "{{ l|unique|list|length }}", chained, CHAIN, lambda n: n),
    ("filter unique::alike", "{{ l|unique|list|length }}", colliding, 2_000, lambda n: n * n / 16),
    ("filter unique::floats", "{{ l|unique|list|length }}", floats, 2_000),
    ("filter unique::tuples", "{{ l|map('batch', 1)|map('first')|map('list')|map('join')|unique|list|length }}", items("ab"), MANY // 8),
    ("filter unique::ranges", "{% set ns = namespace(l=[]) %}{% for i in l %}{% set ns.l = ns.l + [range(i)] %}{% endfor %}{{ ns.l|unique|list|length }}", numbers, 600),
    ("filter unique::path", "{{ l|unique(attribute=p)|list|length }}", whole_path, 90_000),
    ("filter urlencode", "{{ s|urlencode|length }}", text("é"), FULL // 12, lambda n: n / 4),
    ("filter urlencode::pairs", "{{ d|urlencode|length }}", lambda size: {"d": {f"k{i}": "v" for i in range(size)}}, MANY // 4),
    ("filter urlize", "{{ s|urlize|length }}", words(3), MANY, lambda n: n),
    ("filter urlize::long words", "{{ s|urlize|length }}", lambda size: {"s": (")" * 998 + "a. ") * max(size // 1001, 1)}, MANY, lambda n: n),
    ("filter urlize::links", "{{ s|urlize(target=t)|length }}", lambda size: {"s": "http://a.bc " * (size // 12), "t": "x" * 50}, MANY),
    ("filter urlize::mail", "{{ s|urlize|length }}", lambda size: {"s": "a@" + "a." * (size // 2) + "!"}, 3_000),
    ("filter wordcount", "{{ s|wordcount }}", text("a "), FULL // 8, lambda n: n / 2),
    ("filter wordwrap", "{{ s|wordwrap(1)|length }}", text("a"), 20_000, lambda n: n),
    ("filter wordwrap::words", "{{ s|wordwrap(20)|length }}", words(3), MANY, lambda n: n),
    ("filter wordwrap::lines", "{{ s|wordwrap|length }}", text("\n"), MANY, lambda n: n),
    ("filter wordwrap::hyphens", "{{ s|wordwrap(3)|length }}", text("a-"), MANY, lambda n: n),
    ("filter xmlattr", "{{ d|xmlattr|length }}", lambda size: {"d": {f"k{i}": "&" for i in range(size)}}, MANY // 8, lambda n: n),
    # Globals
    ("global cycler", "{{ cycler(*l).next() }}", numbers, MANY, lambda n: n),
    ("global dict", "{{ dict(l|batch(2, 0))|length }}", numbers, MANY // 4, lambda n: n),
    ("global dict::alike", "{{ dict(l|batch(2, 0))|length }}", colliding, 4_000),
    ("global dict::copy", "{% set d = dict.fromkeys(l) %}{{ dict(d)|length }}", chained, CHAIN),
    ("global dict.fromkeys", "{{ dict.fromkeys(l)|length }}", chained, CHAIN, lambda n: n),
    ("global joiner", "{{ joiner()() }}", none, 1),
    ("global lipsum", "{{ lipsum() }}", none, 1),
    ("global namespace", "{{ namespace(**d) is defined }}", lambda size: {"d": {f"k{i}": i for i in range(size)}}, MANY, lambda n: n),
    ("global raise_exception", "{{ raise_exception(s) }}", text("a"), FULL),
    ("global range", "{{ range(n)|length }}", lambda size: {"n": size}, MANY),
    ("global strftime_now", "{{ strftime_now(s) }}", lambda size: {"s": "%c" * min(size, 32)}, 32),
    # Methods
    ("method Cycler.next", "{{ c.next() if c else cycler(1, 2).next() }}", none, 1),
    ("method Cycler.reset", "{{ cycler(1, 2).reset() }}", none, 1),
    ("method Loop.changed", "{% for x in [1, 2, 3] %}{{ loop.changed(l) }}{% endfor %}", numbers, MANY // 8, lambda n: n),
    ("method Loop.cycle", "{% for x in [1, 2, 3] %}{{ loop.cycle(*l) }}{% endfor %}", numbers, MANY // 8, lambda n: n),
    ("method Markup.striptags", "{{ (s|safe).striptags()|length }}", text("<a>b "), FULL // 4, lambda n: n / 8),
    ("method Markup.unescape", "{{ (s|safe).unescape()|length }}", text("&#x41;"), MANY, lambda n: n / 8),
    ("method dict.copy", "{% set d = dict.fromkeys(l) %}{{ d.copy()|length }}", chained, CHAIN),
    ("method dict.fromkeys", "{{ {}.fromkeys(l)|length }}", chained, CHAIN, lambda n: n),
    ("method dict.get", "{% set d = dict.fromkeys(l) %}{% for i in range(50) %}{{ d.get(k) }}{% endfor %}", chained, CHAIN),
    ("method dict.items", "{{ d.items()|length }}", lambda size: {"d": {f"k{i}": i for i in range(size)}}, 1_000),
    ("method dict.keys", "{{ d.keys()|length }}", lambda size: {"d": {f"k{i}": i for i in range(size)}}, 1_000),
    ("method dict.values", "{{ d.values()|length }}", lambda size: {"d": {f"k{i}": i for i in range(size)}}, 1_000),
    ("method dict_items.isdisjoint", "{{ d.items().isdisjoint(l) }}", lambda size: {"d": {f"k{i}": i for i in range(size)}, "l": [1] * size}, MANY // 2),
    ("method dict_keys.isdisjoint", "{% set d = dict.fromkeys(l) %}{{ d.keys().isdisjoint([k] * 50) }}", chained, CHAIN),
    ("method float.as_integer_ratio", "{{ f.as_integer_ratio()|length }}", lambda size: {"f": 5e-324 * size}, 8),
    ("method float.conjugate", "{{ f.conjugate() }}", lambda size: {"f": 1.5 * size}, 8),
    ("method float.fromhex", "{{ 1.5.fromhex(s) }}", lambda size: {"s": "0x1" + "0" * size + "p-" + str(4 * size)}, FULL, lambda n: n / 16),
    ("method float.hex", "{{ f.hex() }}", lambda size: {"f": 1e308 / size}, 8),
    ("method float.is_integer", "{{ f.is_integer() }}", lambda size: {"f": 1.5 * size}, 8),
    ("method int.as_integer_ratio", "{% set x = i.as_integer_ratio() %}", digits, 1_200),
    ("method int.bit_count", "{{ i.bit_count() }}", digits, 1_200),
    ("method int.bit_length", "{{ i.bit_length() }}", digits, 1_200),
    ("method int.conjugate", "{% set x = i.conjugate() %}", digits, 1_200),
    ("method int.from_bytes", "{{ 1.from_bytes('') }}", none, 1),
    ("method int.to_bytes", "{{ 1.to_bytes() }}", none, 1),
    ("method list.copy", "{{ l.copy()|length }}", numbers, MANY, lambda n: n),
    ("method list.count", "{{ l.count([1, 2]) }}", items([1, 2]), MANY // 8, lambda n: n),
    ("method list.index", "{{ (l + ['x' * 99]).index('x' * 99) }}", items("x" * 98 + "y"), MANY // 2, lambda n: n),
    ("method range.count", "{{ range(n).count(1.5) }}", lambda size: {"n": size}, MANY, lambda n: n),
    ("method range.index", "{{ range(n).index(n - 1) }}", lambda size: {"n": size}, MANY, lambda n: n),
    ("method tuple.count", "{{ ((1.5,) * n).count(1) }}", lambda size: {"n": size}, MANY // 2, lambda n: n),
    ("method tuple.index", "{{ ((1.5,) * n + (1,)).index(1) }}", lambda size: {"n": size}, MANY // 2, lambda n: n),
    *[(f"method str.{name}", f"{{{{ s.{name}()|length }}}}", text("ŉ"), FULL // 4, lambda n: n / 8) for name in _CASE.split()],
    *[(f"method str.{name}::ascii", f"{{{{ s.{name}()|length }}}}", text("aB "), FULL, lambda n: n / 16) for name in _CASE.split()],
    *[(f"method str.is{name}", f"{{{{ s.is{name}() }}}}", text(_LOOKED_THROUGH.get(name, "a")), FULL, lambda n: n / 16) for name in _READING.split()],
    *[(f"method str.{name}", f"{{{{ 'a'.{name}(n)|length }}}}", lambda size: {"n": size}, FULL, lambda n: n / 16) for name in ("center", "ljust", "rjust", "zfill")],
    *[(f"method str.{name}", f"{{{{ s.{name}(t) }}}}", alike(50), FULL, lambda n: n / 16) for name in ("count", "find")],
    *[(f"method str.{name}::short", f"{{{{ s.{name}(t) }}}}", alike(40), 2_400, lambda n: n * n / 1_500) for name in ("count", "find")],
    ("method str.index", "{{ (s ~ t).index(t) }}", alike(40), 2_400),
    *[(f"method str.{name}", f"{{{{ s.{name}(t) }}}}", reversed_alike, 10_000, lambda n: n * n / 1_024) for name in ("rfind",)],
    ("method str.rindex", "{{ (t ~ s).rindex(t) }}", reversed_alike, 6_000),
    ("method str.partition", "{{ s.partition(t)|length }}", alike(40), 2_400),
    ("method str.partition::long", "{{ s.partition('b')|length }}", text("a"), FULL, lambda n: n / 16),
    ("method str.rpartition", "{{ s.rpartition(t)|length }}", reversed_alike, 8_000),
    ("method str.split", "{{ s.split('a')|length }}", text("a"), MANY - 1, lambda n: n),
    ("method str.split::words", "{{ s.split()|length }}", words(2), MANY * 2, lambda n: n / 3),
    ("method str.split::alike", "{{ s.split(t)|length }}", close, 40_000),
    ("method str.rsplit", "{{ s.rsplit(t)|length }}", reversed_alike, 8_000),
    ("method str.splitlines", "{{ s.splitlines()|length }}", text("a\u2028"), MANY, lambda n: n / 2),
    ("method str.replace", "{{ s.replace(t, '')|length }}", alike(1), FULL // 2, lambda n: n / 16),
    ("method str.encode", "{{ s.encode() }}", text("a"), 8),
    ("method str.startswith", "{{ s.startswith((t,) * 100) }}", lambda size: {"s": "a" * size, "t": "a" * size + "b"}, MANY, lambda n: 100 * n / 16),
    ("method str.endswith", "{{ s.endswith((s,) * n) }}", lambda size: {"s": "a", "n": size}, MANY // 2, lambda n: n),
    ("method str.expandtabs", "{{ s.expandtabs(1)|length }}", text("\t"), FULL, lambda n: n / 16),
    ("method str.join", "{{ s.join(l)|length }}", lambda size: {"s": "é", "l": ["x"] * size}, MANY, lambda n: n),
    *[(f"method str.{name}", f"{{{{ s.{name}(t)|length }}}}", lambda size: {"s": "a" * size, "t": "b" * size + "a"}, 10_000) for name in ("lstrip", "rstrip", "strip")],
    ("method str.maketrans", "{{ s.maketrans(s, s)|length }}", lambda size: {"s": "".join(map(chr, range(0x4E00, 0x4E00 + size)))}, 20_000),
    ("method str.removeprefix", "{{ s.removeprefix(s[1:])|length }}", text("a"), FULL // 8, lambda n: n / 16),
    ("method str.removesuffix", "{{ s.removesuffix('a')|length }}", text("a"), FULL, lambda n: n / 16),
    ("method str.translate", "{{ s.translate({97: 'bb'})|length }}", text("a"), FULL // 4, lambda n: n / 8),
    ("method str.translate::chain", "{{ s.translate(dict.fromkeys(l, 'x'))|length }}", lambda size: {"s": "".join(chr(0x4E00 + i) for i in range(20_000)), **chained(size)}, CHAIN),
]  # fmt: skip


def _comparisons() -> list[Row]:
    """Equality and order of strings, of deep lists and of objects with integer keys, as operators and as tests."""

    def same(size: int) -> dict[str, Any]:
        return {"s": "x" * size, "t": "x" * size}

    def lists(size: int) -> dict[str, Any]:
        return {"s": [[1.5]] * size, "t": [[1.5]] * size}

    found: list[Row] = []
    for name in ("==", "!=", "<", "<=", ">", ">="):
        found.append((f"operator {name}", f"{{{{ s {name} t }}}}", same, FULL, lambda n: n / 16))
        found.append((f"operator {name}::lists", f"{{{{ s {name} t }}}}", lists, MANY // 2, lambda n: n))
        found.append(
            (
                f"operator {name}::keys",
                f"{{% set d = dict.fromkeys(l) %}}{{{{ d.keys() {name} d.keys() }}}}",
                chained,
                CHAIN,
            )
        )
    for name in sorted(_TESTS_OF_EQUALITY | _TESTS_OF_ORDER):
        found.append(
            (f"test {name}", f"{{{{ l|select('{name}', 's')|list|length }}}}", items("s" * 15), MANY, lambda n: n)
        )
    return found


def _tests() -> list[Row]:
    found: list[Row] = [(f"test {name}", f"{{{{ l is {name} }}}}", numbers, 1_000) for name in _TESTS_OF_KIND.split()]
    big = [(name, f"{{{{ i is {name} }}}}") for name in ("odd", "even")] + [
        ("divisibleby", "{{ i is divisibleby(j) }}")
    ]
    found += [(f"test {name}", source, digits, 1_200) for name, source in big]
    found += [
        (f"test {name}", f"{{{{ s is {name} }}}}", text("é" if name == "lower" else "É"), FULL // 2, lambda n: n / 16)
        for name in ("lower", "upper")
    ]
    found += [
        (f"test {name}", f"{{{{ s is {name} }}}}", text("a"), FULL, lambda n: n / 64) for name in ("filter", "test")
    ]
    found += [
        ("test in", "{{ t is in(s) }}", alike(40), 2_400),
        ("test sameas", "{{ l is sameas(l) }}", numbers, 1_000),
    ]
    return found


FAILING = frozenset(
    {"filter random", "global lipsum", "global raise_exception", "method str.encode"}
    | {"method int.from_bytes", "method int.to_bytes"}
)
"""What the dialect refuses, or whose work it is to fail."""


def _case(name: str, source: str, context: Context, most: int, steps: Steps | None = None) -> Case:
    return Case(name, "transformers", lambda size: (source, context(size)), most, steps, fails=name in FAILING)


CASES: tuple[Case, ...] = tuple(_case(*row) for row in [*ROWS, *_comparisons(), *_tests()])
