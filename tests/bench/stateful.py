"""Templates that make values, grow them and use them later, at random: `python -m tests.bench.stateful [--cases N]`.

Each case is drawn from `--seed` and its number alone. It makes a few values, grows them (in loops, by doubling, by
namespace attributes, by append, by macros), and then prints, compares, searches, sorts, formats them or takes them as
keys. It is rendered with few steps allowed; a case that costs more than SECONDS_A_STEP or BYTES_A_STEP, and one of
EVERY others, is rendered again with the usual limits and larger numbers, in a process of its own. There it must end
within the bounds of a hostile template, and nothing but our errors may leave: else it is made smaller and written to
`--out` as a row for tests/data/attacks.jsonl. Exit code 1 where there is one. Linux only (it reads /proc).
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from jinjarun.dialects.llamacpp import BUILTINS
from jinjarun.dialects.llamacpp.tests import TESTS as LLAMACPP_TESTS
from jinjarun.dialects.transformers.filters import FILTERS
from jinjarun.dialects.transformers.methods import METHODS
from jinjarun.dialects.transformers.tests import TESTS
from jinjarun.errors import JinjarunError, LimitExceeded
from jinjarun.limits import Allowance, Limits, utf8_size
from jinjarun.template import Template
from tests.bench.children import RUNAWAY_SECONDS, forget_peak, in_child, peak_megabytes
from tests.conformance.golden import ENGINES
from tests.conformance.hostile import CPU_SECONDS, MEGABYTES

USUAL = Limits()
FEW = replace(USUAL, steps=4_000)

SECONDS_A_STEP = CPU_SECONDS / USUAL.steps
BYTES_A_STEP = MEGABYTES * 1e6 / USUAL.steps
"""What a step may cost where all steps that are allowed are to stay within the bounds."""
_LEAST_STEPS = 2_000
_BASE_MEGABYTES = 4
"""To begin a render costs something: what it counts at the least, and memory that is not counted a step."""
EVERY = 200
"""One of so many cases is rendered with the usual limits whatever it cost."""
BATCH = 400
"""Cases that one child renders before the next is forked."""

SMALL_NUMBERS = (1, 2, 5, 20, 60, 300, 1_500)
LARGE_NUMBERS = (1, 2, 8, 40, 100, 3_000, 100_000)
SMALL_SIZES = (0, 1, 8, 120, 2_400, 8_000, 30_000)
LARGE_SIZES = (0, 1, 8, 120, 2_400, 29_000, 3_000_000)
"""What the sizes of a case mean: how often a loop runs, how long a text of the context is."""


@dataclass(frozen=True, slots=True)
class Case:
    """`fragments` are lines of a template, each whole in itself, with `#3` for the fourth of the numbers; `texts` of
    the context by name: what is repeated, the number of a size, and an ending."""

    dialect: str
    fragments: tuple[str, ...]
    texts: dict[str, tuple[str, int, str]]
    spans: bool

    def source(self, numbers: tuple[int, ...]) -> str:
        text = "\n".join(self.fragments)
        for i, number in enumerate(numbers):
            text = text.replace(f"#{i}", str(number))
        return text

    def context(self, sizes: tuple[int, ...]) -> dict[str, Any]:
        context: dict[str, Any] = {
            name: repeated(text, sizes[size]) + end for name, (text, size, end) in self.texts.items()
        }
        words = ["b", "a", "", "é", "10", "c'd"]
        context["l"] = [3, 1.5, "b", None, True, [1, 2], {"a": 1}]
        context["words"] = words
        context["d"] = {"a": 1, "b": [1], "c": {"a": "x"}, "1": 2}
        context["x"], context["big"] = 1.7e308, 2**62 + 1
        # no texts: objects that hold many of them have more steps
        context["many"] = [{"a": i * 7919 % 9973, "b": i % 3} for i in range(sizes[6] // 1_000)]
        return context


def repeated(text: str, size: int) -> str:
    """About `size` bytes of UTF-8."""
    return text * (size // utf8_size(text))


@dataclass(frozen=True, slots=True)
class Cost:
    """`ended`: "ok", the limit that was hit, "error", or what must never leave the library."""

    ended: str
    steps: int
    seconds: float
    megabytes: float
    foreign: bool = False
    line: int | None = None

    @property
    def seconds_a_step(self) -> float:
        return self.seconds / max(self.steps, _LEAST_STEPS)

    @property
    def bytes_a_step(self) -> float:
        return max(self.megabytes - _BASE_MEGABYTES, 0) * 1e6 / max(self.steps, _LEAST_STEPS)

    @property
    def fails(self) -> bool:
        return self.foreign or self.seconds > CPU_SECONDS or self.megabytes > MEGABYTES

    @property
    def is_dear(self) -> bool:
        return self.fails or self.seconds_a_step > SECONDS_A_STEP or self.bytes_a_step > BYTES_A_STEP


# ---------------------------------------------------------------------------------------------------------- generation


def drawn(seed: int, number: int) -> Case:
    """The case of this number."""
    return _Drawing(random.Random(f"{seed} {number}")).case()


VARIABLES = {
    "text": ("n.a", "n.a", "n.a", "s", "t", "u", "v"),
    "list": ("n.c", "n.c", "n.c", "l", "words", "many"),
    "object": ("n.d", "n.d", "d", "n"),
    "number": ("n.b", "x", "big"),
    "any": ("n.e", "n.e", "n.a", "n.c", "n.d"),
}
"""By kind of value: `n` holds what grows, and others are of the context."""

ARGUMENTS = {
    "text": """capitalize center:number count:text default:any endswith:text expandtabs:number find:text float
        format:any index:text indent:number int:number join:list ljust:number lower lstrip:text
        partition:text replace:text,text rfind:text rindex:text rjust:number rpartition:text rsplit:text
        rstrip:text safe slice:number,number,number split:text splitlines startswith:text string strip:text
        title tojson translate:object upper zfill:number length forceescape escape striptags urlize
        truncate:number wordcount wordwrap:number filesizeformat list trim reverse removeprefix:text
        removesuffix:text swapcase casefold isalpha isdigit isspace xmlattr pprint attr:text urlencode first
        last sort""",
    "list": """append:any batch:number count:any default:any extend:list first groupby:name index:any
        insert:number,any join:text join:text,name last length list map:name max min pop:number reject:test
        rejectattr:name remove:any reverse select:test selectattr:name slice:number sort sort:name string
        sum tojson unique pprint copy random clear map:filter urlencode selectattr:name,test,any
        select:test,any""",
    "object": """copy default:any dictsort get:text items keys length pop:text,any setdefault:text,any string tojson
        update:object values list xmlattr pprint fromkeys:list sort join:text urlencode popitem items""",
    "number": """abs default:any filesizeformat float int round:number string tojson is_integer as_integer_ratio hex
        bit_length bit_count conjugate format:any""",
    "any": "default:any string tojson length list",
}
"""By kind of receiver, the builtins of either dialect and the arguments that they take; others are tried without."""


class _Drawing:
    """Values mostly of the kind that is wanted: what fails at once finds nothing."""

    def __init__(self, random: random.Random) -> None:
        self.random = random
        self.dialect = random.choice(sorted(ENGINES))
        self.transformers = self.dialect == "transformers"

    def case(self) -> Case:
        pick = self.random
        fragments = ["{% set n = namespace(a='ab', b=1, c=[], d={'a': 1}, e='') %}", self.macro()]
        fragments += [self.make() for _ in range(pick.randint(1, 4))]
        for _ in range(pick.randint(1, 3)):
            fragments += [self.grow() for _ in range(pick.randint(1, 3))]
            fragments += [self.use() for _ in range(pick.randint(1, 3))]
        letters = ("a", "é", "ab", " ", "a ", "1", ".", "\n", "<b", "{}", "'", "\x01", "😀", "%s", "http://a.b ", "&")
        endings = ("", "", "ba", "b", " ")
        texts = {
            name: (pick.choice(letters), pick.choice((1, 2, 3, 4, 4, 5, 6)), pick.choice(endings)) for name in "stu"
        }
        if pick.random() < 0.4:  # alike, and perhaps about as long
            texts["t"] = (texts["s"][0], pick.choice((texts["s"][1], 4)), "ba")
        return Case(self.dialect, tuple(fragments), texts, spans=pick.random() < 0.5)

    def number(self) -> str:
        return f"#{self.random.choice((0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6))}"

    def kind(self) -> str:
        return self.random.choice(("text", "text", "list", "list", "object", "number", "any"))

    def atom(self, kind: str) -> str:
        pick = self.random
        if pick.random() < 0.03:
            kind = self.kind()
        if pick.random() < 0.75:
            return pick.choice(VARIABLES[kind])
        literals = {
            "text": ("'a'", "''", "','", "'ba'", "' '", "'1'", "'a' ~ s", "s ~ t"),
            "list": ("[]", "[n.a]", "[n.c, n.c]", "(n.e, 1)", "range(5)", "[n]", "[{'a': n.a}]"),
            "object": ("{}", "{'a': n.a}", "{'k': n.c}", "{1: 2}", "namespace(a=n.a)"),
            "number": ("1", "-1", "0.5", self.number(), self.number(), "n.a|length"),
            "any": ("none", "true", "absent", "n.a.upper", "m", "{}[n.a]", "absent_function", "''"),
        }
        return pick.choice(literals[kind])

    def value(self, kind: str, depth: int = 2) -> str:
        pick = self.random
        if depth == 0 or pick.random() < 0.25:
            return self.atom(kind)
        deeper = depth - 1
        forms: dict[str, tuple[Callable[[], str], ...]] = {
            "text": (
                lambda: f"({self.value('text', deeper)} ~ {self.value('any', deeper)})",
                lambda: f"({self.value('text', deeper)} + {self.value('text', deeper)})",
                lambda: f"({self.value('text', deeper)} * {self.value('number', 0)})",
                lambda: f"({self.value('any', deeper)}|string)",
                lambda: f"({self.value('any', deeper)}|tojson)",
                lambda: self.sliced("text", deeper),
                lambda: f"m({self.value('any', deeper)}, {self.value('any', deeper)})",
                lambda: f"({self.value('list', deeper)}|join({self.atom('text')}))",
                lambda: self.builtin("text", deeper),
            ),
            "list": (
                lambda: f"[{self.value('any', deeper)}, {self.value('any', deeper)}]",
                lambda: f"({self.value('any', deeper)}, {self.value('any', deeper)})",
                lambda: f"({self.value('list', deeper)} + {self.value('list', deeper)})",
                lambda: f"range({self.number()})",
                lambda: self.sliced("list", deeper),
                lambda: f"{self.value('text', deeper)}.split({self.atom('text')})",
                lambda: f"({self.value('list', deeper)}|list)",
                lambda: self.builtin("list", deeper),
            ),
            "object": (
                lambda: f"{{'k': {self.value('any', deeper)}, 'm': {self.value('any', deeper)}}}",
                lambda: f"{{{self.value('text', deeper)}: {self.value('any', deeper)}}}",
                lambda: f"{{{self.value('number', deeper)}: 1, ({self.atom('any')}, 2): 3}}",
                lambda: f"namespace(a={self.value('any', deeper)}, b={self.value('any', deeper)})",
                lambda: f"dict([[{self.value('text', deeper)}, {self.value('any', deeper)}]])",
                lambda: "dict(n.c)",
                lambda: self.builtin("object", deeper),
            ),
            "number": (
                lambda: f"({self.value('any', deeper)}|length)",
                lambda: self.between("number", "+-*/%", "number", deeper),
                lambda: f"({self.value('text', deeper)}|{pick.choice(('int', 'float', 'length'))})",
                lambda: self.builtin("number", deeper),
            ),
            "any": (
                lambda: self.value(self.kind(), depth),
                lambda: self.tested(deeper),
                lambda: self.between("any", ("==", "!=", "and", "or"), "any", deeper),
                lambda: self.between("text", ("in", "not in"), "text", deeper),
                lambda: self.between("any", ("in", "not in"), "list", deeper),
                lambda: self.between("any", ("in",), "object", deeper),
                lambda: f"({self.value('any', deeper)} if {self.value('any', deeper)} else {self.atom('any')})",
                lambda: f"{self.value('object', deeper)}[{self.value('any', deeper)}]",
                lambda: f"{self.value('list', deeper)}[{self.value('number', deeper)}]",
                lambda: f"{self.value('any', deeper)}.{pick.choice(('x', 'a', 'k', 'items', 'append', 'upper'))}",
                lambda: f"{{}}[{self.value('any', deeper)}]",
                lambda: self.builtin(self.kind(), deeper),
            ),
        }
        return pick.choice(forms[kind])()

    def between(self, left: str, operators: Sequence[str], right: str, depth: int) -> str:
        return f"({self.value(left, depth)} {self.random.choice(operators)} {self.value(right, depth)})"

    def sliced(self, kind: str, depth: int) -> str:
        step = self.random.choice(("", ":2", ":-1"))
        return f"{self.value(kind, depth)}[{self.bound()}:{self.bound()}{step}]"

    def bound(self) -> str:
        return self.random.choice(("", "1", "-1", self.number()))

    def builtin(self, kind: str, depth: int) -> str:
        """A filter or a method of a value of this kind."""
        pick = self.random
        name, _, wanted = pick.choice(ARGUMENTS[kind].split()).partition(":")
        arguments = [self.argument(one, depth) for one in wanted.split(",") if one]
        if arguments and pick.random() < 0.1:
            arguments.pop()
        if pick.random() < 0.05:
            name, arguments = pick.choice(_NAMES[self.dialect]), [self.atom(self.kind())]
        as_filter = name in FILTERS if self.transformers and pick.random() < 0.9 else pick.random() < 0.5
        value = self.value(kind, depth)
        if as_filter:
            return f"({value}|{name}{'(' + ', '.join(arguments) + ')' if arguments else ''})"
        return f"{value}.{name}({', '.join(arguments)})"

    def argument(self, kind: str, depth: int) -> str:
        pick = self.random
        if kind == "name":
            path = pick.choice(("'a'", "'b'", "0", "'0'", "s", "t", "'a.b'"))
            return f"attribute={path}" if pick.random() < 0.7 else path
        if kind == "test":
            return f"'{pick.choice(sorted(TESTS if self.transformers else LLAMACPP_TESTS))}'"
        if kind == "filter":
            return f"'{pick.choice(_NAMES[self.dialect])}'"
        return self.value(kind, depth)

    def tested(self, depth: int) -> str:
        name = self.random.choice(sorted(TESTS if self.transformers else LLAMACPP_TESTS))
        takes = name in ("divisibleby", "eq", "equalto", "ge", "gt", "in", "le", "lt", "ne", "sameas", "greaterthan")
        argument = f"({self.value('any', depth)})" if takes else ""
        return f"({self.value('any', depth)} is {name}{argument})"

    def repeated(self, fragment: str, likely: float) -> str:
        if self.random.random() >= likely:
            return fragment
        return f"{{% for i in range({self.number()}) %}}{fragment}{{% endfor %}}"

    def make(self) -> str:
        kind = self.kind()
        return self.repeated(f"{{% set {self.target(kind)} = {self.value(kind)} %}}", 0.2)

    def target(self, kind: str) -> str:
        return {"text": "n.a", "list": "n.c", "object": "n.d", "number": "n.b", "any": "n.e"}[kind]

    def grow(self) -> str:
        pick = self.random
        a = self.target(self.kind())
        item = pick.choice(
            (self.atom(self.kind()), "[]", "{'a': i}", "i", "(i, i)", a, "absent", f"{a}.x", "n.c.append")
        )
        forms = (
            "{% set n.a = n.a ~ n.a %}",
            f"{{% set n.a = n.a ~ {self.atom('any')} %}}",
            "{% set v %}{{ n.a }}{{ n.e }}{% endset %}{% set n.a = v %}",
            "{% set n.a = m(n.a, n.e) %}",
            f"{{% set n.a = n.a|safe ~ {self.atom('text')} %}}",
            "{% set n.a = s %}{% set n.c = [] %}",
            "{% set n.c = n.c + n.c %}",
            f"{{% set n.c = n.c + [{self.atom('any')}] %}}",
            "{% set n.c = [n.c, n.c] %}",
            "{% set n.c = [n.e] + n.c %}",
            f"{{% set v = n.c.append({item}) %}}",
            f"{{% set v = n.c.append({item}) %}}",
            f"{{% set v = n.c.append([(5 * i + 1) % 65536, {self.atom('any')}]) %}}",
            "{% set v = n.c.append([[-1, -2, i] | list, 1]) %}",
            "{% set n.e = (n.e, n.e) %}",
            "{% set n.e = (n.e, i) %}",
            "{% set n.e = [n.e, n.e] %}",
            "{% set n.e = {'k': n.e, 'm': n.e} %}",
            "{% set n.e = {n.e: n.a} %}",
            "{% set n.e = n %}",
            "{% set n.e = n.e.x %}",
            "{% set n.e = {}[n.e] %}",
            f"{{% set n.{pick.choice('xyz')} = {a} %}}",
            f"{{% set n.e = namespace(a={a}, b=n.e) %}}",
            "{% set n.d = {'k': n.d, 'm': n.d} %}",
            "{% set n.d = dict(n.c) %}",
            "{% set n.b = n.b * 2 %}",
            "{% set n.b = n.b * n.b %}",
            f"{{% set v = n.d.update({{{item}: 1}}) %}}" if self.transformers else "{% set v = n.c.append(n.c) %}",
            f"{{% set v = n.c.extend({self.atom('list')}) %}}" if self.transformers else "{% set n.d.x = n.d %}",
            f"{{% set v = n.c.insert(0, {item}) %}}" if self.transformers else "{% set v = n.c.append(n.d) %}",
        )
        grown = "".join(pick.choices(forms, k=pick.randint(1, 2)))
        return f"{{% for i in range({self.number()}) %}}{grown}{{% endfor %}}"

    def use(self) -> str:
        pick = self.random
        a = pick.choice(("n.a", "n.c", "n.d", "n.e"))
        expression = pick.choice(
            (
                a,
                f"{a}|string|length",
                f"{a}|tojson|length",
                f"{a} == {self.atom('any')}",
                f"n.a in {self.atom('text')}",
                f"{self.atom('text')} in n.a",
                f"n.e in {self.atom('list')}",
                "n.e in n.d",
                "{}[n.e]",
                "absent.x ~ n.a",
                "[n.e, n.a]|sort",
                "n.c|sort",
                f"n.c|join({self.atom('text')})",
                f"'{{}}{{}}'.format({a}, n.a)",
                self.builtin("text", 1),
                self.builtin("text", 1),
                self.builtin("list", 1),
                self.builtin("list", 1),
                self.builtin("object", 1),
                self.tested(1),
                self.value(self.kind(), 2),
            )
        )
        kind = pick.random()
        if kind < 0.55:
            fragment = f"{{% set v = {expression} %}}"
        elif kind < 0.7:
            fragment = f"{{{{ {expression} }}}}"
        elif kind < 0.8:
            fragment = f"{{% if {expression} %}}{{{{ {self.atom('any')} }}}}{{% endif %}}"
        elif kind < 0.9:
            inside = pick.choice(("", "{{ w }}", "{{ loop.index }}", "{% break %}", "{{ loop.previtem }}"))
            fragment = f"{{% for w in {self.value('list', 1)} %}}{inside}{{% endfor %}}"
        else:
            through = pick.choice(("upper", "trim", "indent", "length", "tojson", "title", "escape"))
            fragment = f"{{% filter {through} %}}{{{{ {expression} }}}}{{% endfilter %}}"
        return self.repeated(fragment, 0.6)

    def macro(self) -> str:
        body = self.random.choice(
            (
                "{{ p }}{{ q }}",
                "{{ p ~ p }}",
                "{% set n.e = [n.e, p] %}{{ q }}",
                "{{ p }}{% if q %}{{ m(p, false) }}{% endif %}",
                "{% for w in [p, q] %}{{ w }}{{ q }}{% endfor %}",
                "{% set v = n.c.append(p) %}{{ p }}",
                "{{ m(p, q) }}",
            )
        )
        return f"{{% macro m(p, q={self.atom('any')}) %}}{body}{{% endmacro %}}"


_NAMES = {
    "llama.cpp": sorted({name for table in BUILTINS.values() for name in table}),
    "transformers": sorted({*FILTERS, *(name for table in METHODS.values() for name in table)} - {"random"}),
}


# ----------------------------------------------------------------------------------------------------------- measuring


def rendered(case: Case, *, few: bool) -> Cost:
    """What one render costs in this process, whose peak memory it forgets. With the usual limits, what it takes to
    adopt the context is taken off."""
    limits = FEW if few else USUAL
    source = case.source(SMALL_NUMBERS if few else LARGE_NUMBERS)
    context = case.context(SMALL_SIZES if few else LARGE_SIZES)
    allowance = Allowance("steps", limits.steps)
    foreign, line = False, None
    adopted = adopting = 0.0
    if not few:
        empty = Template("", case.dialect)
        forget_peak()
        before, start = peak_megabytes(), time.process_time()
        empty.render_context(context, now=0, spans=case.spans)
        adopted, adopting = peak_megabytes() - before, time.process_time() - start
    forget_peak()
    before, start = peak_megabytes(), time.process_time()
    try:
        template = Template(source, case.dialect, limits)
        start = time.process_time()
        template.render_context(context, now=0, spans=case.spans, allowance=allowance)
        ended = "ok"
    except LimitExceeded as error:
        ended = error.limit
    except JinjarunError as error:
        ended, line = f"error: {error.message[:80]}", error.line
    except BaseException as error:
        ended, foreign = f"{type(error).__name__} left the library: {str(error)[:200]}", True
    seconds = max(time.process_time() - start - adopting, 0.0)
    megabytes = max(peak_megabytes() - before - adopted, 0.0)
    return Cost(ended, limits.steps - allowance.left, seconds, megabytes, foreign, line)


def mended(case: Case, *, few: bool) -> tuple[Case, Cost]:
    """The case without the lines at which it fails for another reason than a limit, and the most that it cost."""
    dearest = cost = rendered(case, few=few)
    while cost.line is not None and not (cost.is_dear if few else cost.fails):
        at = cost.line - 1
        case = replace(case, fragments=case.fragments[:at] + case.fragments[at + 1 :])
        cost = rendered(case, few=few)
        dearest = max(dearest, cost, key=lambda one: (one.foreign, one.seconds_a_step))
    return case, (dearest if dearest.is_dear else cost)


_MEMORY_BYTES = 4 << 30


def at_usual_limits(case: Case) -> Cost:
    for answer in in_child(lambda: [asdict(mended(case, few=False)[1])], memory_bytes=_MEMORY_BYTES):
        return Cost(**answer)
    return Cost(f"died or ran for {RUNAWAY_SECONDS} s", 0, float(RUNAWAY_SECONDS), 0.0, foreign=True)


def batch(seed: int, numbers: range) -> dict[int, Cost]:
    """Each case with few steps. One that ends the child has cost RUNAWAY_SECONDS; the others go on in the next."""
    costs: dict[int, Cost] = {}
    left = list(numbers)

    def work() -> Iterator[Any]:
        gc.freeze()
        gc.disable()
        for number in left:
            yield [number, asdict(mended(drawn(seed, number), few=True)[1])]
            if number % 50 == 0:
                gc.collect()

    while left:
        for number, cost in in_child(work, RUNAWAY_SECONDS + len(left) // 10, _MEMORY_BYTES):
            costs[number] = Cost(**cost)
        left = [number for number in left if number not in costs]
        if left:
            costs[left.pop(0)] = Cost("died", 0, float(RUNAWAY_SECONDS), 0.0, foreign=True)
    return costs


def smaller(case: Case, fails: Callable[[Case], bool]) -> Case:
    """The case without the fragments that it does not need to fail."""
    changed = True
    while changed:
        changed = False
        for i in range(len(case.fragments) - 1, -1, -1):
            tried = replace(case, fragments=case.fragments[:i] + case.fragments[i + 1 :])
            if fails(tried):
                case, changed = tried, True
    return case


def row(name: str, case: Case, cost: Cost) -> dict[str, Any]:
    """The case as tests/data/attacks.jsonl has it."""
    texts = {
        key: {"$parts": [[text, LARGE_SIZES[size] // utf8_size(text)], [end, 1]]}
        for key, (text, size, end) in case.texts.items()
        if any(key in fragment for fragment in case.fragments)
    }
    others = {key: value for key, value in case.context(LARGE_SIZES).items() if key not in case.texts and key != "many"}
    danger = f"{cost.ended}: {cost.seconds:.2f} s, {cost.megabytes:.0f} MB, {cost.steps:,} steps"
    return {
        "id": name,
        "class": "stateful",
        "template": case.source(LARGE_NUMBERS),
        "context": texts | others,
        "danger": danger,
        "expect": {engine: ["ok", "limit", "error"] for engine in ENGINES},
    }


# ------------------------------------------------------------------------------------------------------------- running


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.stateful", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=2_000, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first case")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="children at a time")
    parser.add_argument("--seconds", type=float, default=float("inf"), metavar="S", help="no batch begins after these")
    parser.add_argument("--top", type=int, default=5, metavar="N", help="the N dearest cases to print (default 5)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where failing cases are added, a row of JSON each")
    parser.add_argument("--show", type=int, metavar="NUMBER", help="print the case of this number and what it costs")
    args = parser.parse_args()
    if args.show is not None:
        case = drawn(args.seed, args.show)
        print("\n".join(case.fragments), case.texts, f"spans: {case.spans}", at_usual_limits(case), sep="\n")
        return 0

    start = time.monotonic()
    costs: dict[int, Cost] = {}
    numbers = range(args.first, args.first + args.cases)
    with ThreadPoolExecutor(args.jobs) as pool:
        batches = [numbers[at : at + BATCH] for at in range(0, len(numbers), BATCH)]
        for found in pool.map(
            lambda part: batch(args.seed, part) if time.monotonic() - start < args.seconds else {}, batches
        ):
            costs |= found
    again = [number for number, cost in costs.items() if cost.is_dear or number % EVERY == 0]
    full: dict[int, Cost] = {}
    with ThreadPoolExecutor(args.jobs) as pool:
        cases = {number: drawn(args.seed, number) for number in again}
        for number, cost in zip(again, pool.map(at_usual_limits, cases.values()), strict=True):
            full[number] = cost
    failures = {number: cost for number, cost in full.items() if cost.fails}
    failures |= {number: cost for number, cost in costs.items() if cost.foreign and number not in failures}

    taken = time.monotonic() - start
    ends: dict[str, int] = {}
    for cost in costs.values():
        ends[cost.ended.split(":")[0]] = ends.get(cost.ended.split(":")[0], 0) + 1
    print(f"seed {args.seed}: {len(costs):,} cases in {taken:.0f} s, {len(again):,} of them again at the usual limits")
    print("ended: " + ", ".join(f"{end} {count:,}" for end, count in sorted(ends.items(), key=lambda one: -one[1])))
    for title, measured in (("few steps", costs), ("usual limits", full)):
        for key in ("seconds_a_step", "bytes_a_step", "seconds", "megabytes"):
            worst = sorted(measured.items(), key=lambda one, key=key: -getattr(one[1], key))[: args.top]
            print(f"most {key}, {title}: " + ", ".join(f"{number}: {getattr(c, key):.3g}" for number, c in worst))
    for number, cost in failures.items():
        case = smaller(drawn(args.seed, number), lambda tried: at_usual_limits(tried).fails)
        made = row(f"stateful-{args.seed}-{number}", case, cost)
        print(f"FAILS {case.dialect}{' with spans' if case.spans else ''}: {json.dumps(made)[:1500]}")
        if args.out is not None:
            with args.out.open("a", encoding="utf-8") as file:
                print(json.dumps(made, ensure_ascii=False), file=file)
    print(f"{len(failures)} fail")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
