"""Random templates on which an engine and our dialect differ: `python -m tests.bench.differ --cases N --seed S`.

Of every two cases one is an edit of a real template of ../shared/corpus (pieces cut out, doubled, moved, replaced by
pieces of others, or by words and signs of the language), with a conversation of the recorded suite; the other is made
by a small grammar, with the variables of the recorded snippets. A case is known by its seed and its number.

Without `--engine` the dialect of transformers is compared with the installed Jinja2, set up as transformers does
(`jinjarun.reference`). `--engine CMD` compares the dialect of llama.cpp with a program that renders as llama.cpp does:
it reads and writes lines of JSON, see tests/conformance/engines.py. Such a program is a main function of some lines
around the sources in common/jinja of llama.cpp, build b11434, which need no others but common/json.cpp and
common/unicode.cpp: tokenize, parse_from_tokens, global_from_json with `mark_input`, runtime::execute,
gather_string_parts. None comes along.

Two answers are the same where both fail, or both write the same text. What ends at one of our limits, and what prints
an address or a random item, is not compared. A difference on purpose (COMPATIBILITY.md) is counted by its name.
Exit code 1 where more than `--allowed` percent differ otherwise.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from jinjarun.errors import JinjarunError, LimitExceeded, SandboxViolation
from jinjarun.reference import Reference
from jinjarun.template import Template
from tests.bench.children import in_child
from tests.conformance import golden
from tests.conformance.engines import Command
from tests.conformance.golden import Case

BATCH = 250
BOTH_FAIL = "both fail"
_MEMORY_BYTES = 4 << 30
_CPU_SECONDS = 120
_ADDRESS = re.compile(r"0x[0-9a-f]{10,}|<built-in method", re.IGNORECASE)


def _words(text: str) -> list[str]:
    return text.split()


# --------------------------------------------------------------------------------------------------------------- edits

PIECES = _words("""
{{ }} {% %} {%- -%} {{- -}} {# #} ( ) [ ] { } , . : | ~ + - * / // % ** = == != < > <= >= ' " _ 0 1 2 -1 1.5
if elif else endif for endfor set endset macro endmacro in not is and or none true false loop messages message content
role tools x namespace caller generation endgeneration break continue call endcall filter endfilter recursive
defined undefined string mapping iterable sequence number |length |trim |upper |title |capitalize |tojson |list |first
|last |join |replace('a','b') |default('d') |selectattr('role') |map(attribute='role') |string |int |items |dictsort
.strip() .split('a') .items() .get('a') .upper() [0] [-1] [1:] [::-1] ['role'] .content .__x__ é 你
""")
_WORD = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


@cache
def corpus() -> list[str]:
    return [golden.template_source(row["template"]) for row in golden.template_rows()]


def _place(draw: random.Random, text: str) -> int:
    """Where an edit begins: mostly inside of a tag, for text between tags is just text."""
    at = draw.randrange(len(text) + 1)
    if draw.random() < 0.7:
        opening = text.find("{", at)
        if opening >= 0:
            closing = text.find("}", opening)
            at = draw.randint(opening, max(closing, opening))
    return at


def _word_at(text: str, at: int) -> tuple[int, int]:
    """The word or the sign at a place."""
    start = end = min(at, max(len(text) - 1, 0))
    while start and text[start - 1] in _WORD:
        start -= 1
    while end < len(text) and text[end] in _WORD:
        end += 1
    return start, max(end, start + 1)


def edited(draw: random.Random) -> str:
    text = draw.choice(corpus())
    for _ in range(draw.choice((1, 1, 1, 1, 2))):
        at = _place(draw, text)
        how = draw.randrange(6)
        if how == 0:
            start, end = _word_at(text, at)
            text = text[:start] + draw.choice(("", draw.choice(PIECES))) + text[end:]
        elif how == 1:
            text = text[:at] + draw.choice(("", " ")) + draw.choice(PIECES) + draw.choice(("", " ")) + text[at:]
        elif how == 2:
            text = text[:at] + text[at + draw.choice((1, 1, 2, 5, 20)) :]
        elif how == 3:
            start, end = _word_at(text, at)
            first, last = _word_at(text, _place(draw, text))
            text = text[:start] + text[first:last] + text[end:]
        elif how == 4:
            end = at + draw.choice((1, 5, 20, 60))
            text = text[:at] + text[at:end] * 2 + text[end:]
        else:
            other = draw.choice(corpus())
            start = _place(draw, other)
            text = text[:at] + other[start : start + draw.choice((5, 20, 60))] + text[at:]
    return text


# -------------------------------------------------------------------------------------------------------- made by rules

NAMES = {
    "text": ["abc", "mixed", "uni", "sp", "es", "num", "html", "msg.content", "messages[0].role", "csv", "fnum"],
    "number": ["three", "zero", "neg", "fl", "fw", "big", "small", "1", "2", "0", "-1", "2.5", "huge"],
    "list": ["ints", "strs", "mixl", "el", "nested", "recs", "messages", "[1, 2]", "['a', abc]", "range(3)"],
    "object": ["d", "ed", "deep", "msg", "recs[0]", "messages[-1]", "{'a': 1}", "{'b': abc, 'c': none}"],
    "any": ["n", "t", "f", "nope", "d.nope", "none", "true", "false", "loop", "m", "v", "w", "caller", "varargs", "ns"],
}
FILTERS = {
    "text": """upper lower title capitalize trim length string int float tojson safe e first last list reverse
        default('x') replace('a','b') indent indent(2) indent(2,true) split('a') join('-') truncate(3) center(9)
        wordcount escape trim('a') default('x',true) urlencode striptags sort unique count batch(2)""",
    "number": "abs int float string round default(1) tojson round(1) filesizeformat e length upper",
    "list": """length first last join join(',') join(', ',attribute='role') reverse sort list tojson string max min
        unique sum map(attribute='role') map('upper') selectattr('role') selectattr('role','equalto','user')
        rejectattr('role') select select('defined') reject('none') batch(2) slice(2) tojson(indent=2) map('nope')
        groupby('role') items map(attribute='a.b',default='z') select('string') sort(reverse=true) default([])""",
    "object": "length items dictsort tojson string list default({}) dictsort(by='value') first tojson(indent=1) sort",
    "any": "default('q') d string tojson length list int upper trim nope nope(1) attr('a') e safe default(1,true)",
}
METHODS = {
    "text": """strip() upper() lower() title() capitalize() split() split('a') split(',',1) rsplit(',',1)
        startswith('a') endswith(abc) replace('a','b') lstrip() rstrip('a') strip(' ') splitlines() join(strs)
        format(1) isdigit() partition('a') removeprefix('a') nope nope() __class__ zfill(4) format_map(d) index('q')
        find('l')""",
    "number": "nope nope() real __class__ is_integer() bit_length()",
    "list": "append(1) pop() pop(0) index(1) count(1) nope nope() copy() insert(0,1) extend([1]) __len__ length 0",
    "object": "items() keys() values() get('a') get('q','z') get('b').x nope _x __x__ pop('b') update(ed) b items a",
    "any": "nope nope() index index0 first last a previtem.role length name __x__ arguments b.c cycle(1,2)",
}
TESTS = [
    *_words("""defined undefined none string number mapping sequence iterable boolean integer float odd even true false
        callable divisibleby(2) eq(1) equalto('a') in([1,2]) lower upper sameas(none) ge(1) defined(1) nope
        in(abc) lt(2) test filter escaped"""),
    *("gt 1", "eq 'a'", "in [1, 2]", "divisibleby 2", "in messages", "none if t", "defined defined", "eq three.real"),
    *("in strs[0]", "in d.b(1)"),
]
KINDS = ("text", "text", "number", "list", "object", "any")
ODD = (
    "x[1_000]", "abc[]", "ints[0:1:1:1]", "f('a'=1)", "abc|indent(2).strip()", "dict(*ints)", "dict(**d)", "[1 2]",
    "[1,]", "{1: 2,}", "(1,)", "()", "{'a': 1 'b': 2}", "range(1 3)", "abc.'x'", "abc.(x)", "ints.-1", "ints.0.1",
    "--1", "-+1", "- -three", "not", "abc 'b'", "'a' 'b'", "1 if", "1 if t", "1 if f", "a = 1", "abc|'upper'", "*ints",
    "abc|(upper)", "abc is (string)", "ints[0 1]", "ints[:]", "ints[::]", "ints[1:2 1]", "abc is string is defined",
    "1 in ints in [true]", "1 < 2 < 3", "(1 2)", "m(1)(2)", "abc.upper().lower()", "abc|upper()", "x|default", "2**3",
    "7//2", "1.5.real", "1e3", "0x10", "010", "1__0", "if", "in", "is", "else", "or", "is is is", "loop.if", "d['b',]",
    "[1, 2][0:1]", "(1, 2)[1:]", "'abc'[1.5:2]", "{'a': 1}['a']", "abc[fl:]", "self", "super()", "true", "True", "None",
    "[true]|max", "[t, f]|sort", "[none]|min", "big * big", "-9223372036854775808", "9223372036854775808", "{{}}",
    "{}}", "d.items", "d.b.c", "loop.cycle(1, 2)", "ints|map", "abc|f(a)(b)", "namespace(a=1).a", "namespace(_a=1)",
    "joiner()",
)  # fmt: skip


class _Grammar:
    def __init__(self, draw: random.Random) -> None:
        self.draw = draw

    def word(self, words: str) -> str:
        return self.draw.choice(words.split())

    def value(self, depth: int) -> tuple[str, str]:
        """A kind and an expression that can be an operand."""
        draw = self.draw
        kind = draw.choice(KINDS)
        text = draw.choice(NAMES[kind])
        while depth and draw.random() < 0.35:
            depth -= 1
            how = draw.randrange(8)
            if how < 2:
                text = f"{text}.{self.word(METHODS[kind])}"
                kind = draw.choice((kind, "any"))
            elif how < 4:
                text = f"({text}|{self.word(FILTERS[kind])})"
                kind = draw.choice((kind, "any"))
            elif how == 4:
                key = draw.choice(
                    ("0", "-1", "'a'", "'role'", "1:", ":2", "::-1", "1:2", "three", "t", "nope", "1.5", "")
                )
                text, kind = f"{text}[{key}]", "any"
            elif how == 5:
                text, kind = f"({self.expression(depth)})", "any"
            elif how == 6:
                inner = [self.value(depth)[1] for _ in range(draw.randrange(3))]
                text, kind = f"[{', '.join(inner)}]", "list"
            else:
                text, kind = f"{draw.choice(('m', 'range', 'dict', 'namespace'))}({self.arguments(depth)})", "any"
        return kind, text

    def arguments(self, depth: int) -> str:
        draw = self.draw
        made = [
            draw.choice(("", "", "", "a=", "b=", "caller=", "*", "**")) + self.value(depth)[1]
            for _ in range(draw.choice((0, 1, 1, 2)))
        ]
        return draw.choice((", ", ", ", " ")).join(made)

    def expression(self, depth: int) -> str:
        draw = self.draw
        if draw.random() < 0.04:
            return draw.choice(ODD)
        kind, text = self.value(depth)
        how = draw.randrange(14)
        if how < 5 or not depth:
            return text
        other = self.value(depth - 1)[1]
        if how == 5:
            return f"{text} ~ {other}"
        if how == 6:
            return f"{text} {draw.choice('+-*/%~+')} {other}"
        if how == 7:
            return f"{text} {draw.choice(('==', '!=', '<', '>', '<=', '>=', 'in', 'not in', '=='))} {other}"
        if how == 8:
            return f"{text} {draw.choice(('and', 'or', 'and not', 'or not'))} {other}"
        if how == 9:
            return f"{text} {draw.choice(('is', 'is', 'is not'))} {draw.choice(TESTS)}"
        if how == 10:
            return f"{text} if {other}{draw.choice(('', f' else {self.value(0)[1]}', f' else {self.value(0)[1]}'))}"
        if how == 11:
            return f"{draw.choice(('not ', '-', '+', '- ', 'not not '))}{text}"
        chain = "".join(
            f"|{self.word(FILTERS[draw.choice((kind, kind, 'any'))])}" for _ in range(draw.choice((1, 1, 2)))
        )
        return text + chain

    def tag(self, content: str) -> str:
        draw = self.draw
        return f"{{%{draw.choice(('', '', '', '-', '+'))} {content} {draw.choice(('', '', '', '-', '+'))}%}}"

    def text(self) -> str:
        return self.draw.choice(
            ("a", "\n", " ", "  \n", "x y", "\n\n  ", "é", "<|im_start|>", "", "{# c #}", "\n{#- c -#}\n")
        )

    def body(self, depth: int) -> str:
        return (
            "".join(
                self.text() + (self.statement(depth) if depth else self.output(1))
                for _ in range(self.draw.choice((1, 1, 2)))
            )
            + self.text()
        )

    def output(self, depth: int) -> str:
        draw = self.draw
        return f"{{{{{draw.choice(('', '', '-'))} {self.expression(depth)} {draw.choice(('', '', '-'))}}}}}"

    def statement(self, depth: int) -> str:
        draw = self.draw
        how = draw.randrange(16)
        inner = depth - 1
        if how < 6:
            return self.output(draw.choice((0, 1, 1, 2)))
        if how == 6:
            middle = draw.choice(("", self.tag(f"elif {self.expression(1)}") + self.body(inner)))
            other = draw.choice(("", self.tag("else") + self.body(inner)))
            return self.tag(f"if {self.expression(2)}") + self.body(inner) + middle + other + self.tag("endif")
        if how == 7:
            target = draw.choice(("v", "v", "v", "v, w", "(v, w)", "v.a", "1", "loop"))
            condition = draw.choice(("", "", f" if {self.expression(1)}"))
            leave = draw.choice(
                ("", "", self.tag("break"), self.tag(f"if {self.expression(1)}") + "b{% continue %}{% endif %}")
            )
            other = draw.choice(("", self.tag("else") + self.body(inner)))
            head = self.tag(f"for {target} in {self.value(1)[1]}{condition}")
            return head + self.body(inner) + leave + other + self.tag("endfor")
        if how == 8:
            target = draw.choice(("v", "w", "v, w", "ns.a", "d.a", "v[0]", "(v, w)", "loop", "true", "ns.a.b"))
            return self.tag(f"set {target} = {self.expression(2)}{draw.choice(('', '', ', 2'))}")
        if how == 9:
            return (
                self.tag(f"set {draw.choice(('v', 'v', 'v | upper', 'v | trim | title', 'ns.a', 'v, w'))}")
                + self.body(inner)
                + self.tag("endset")
            )
        if how == 10:
            return "{% set ns = namespace(a=1) %}" + self.tag(f"set ns.a = {self.expression(2)}") + "{{ ns.a }}"
        if how == 11:
            parameters = draw.choice(("", "a", "a, b=2", "a=abc", "a, b", "1", "a b", "*a", "caller", "a='x', b=d.b"))
            call = "{{ m(" + self.arguments(1) + ") }}"
            return (
                self.tag(f"macro m({parameters})")
                + self.body(inner)
                + self.tag("endmacro")
                + draw.choice(("", call, call))
            )
        if how == 12:
            macro = "{% macro m(a=1) %}[{{ a }}{{ caller(1) if caller else 0 }}]{% endmacro %}"
            plain = "{% macro m(a=1) %}[{{ a }}{{ caller() }}]{% endmacro %}"
            head = self.tag(f"call{draw.choice(('', '', '(q)', '(q=1)'))} m({self.arguments(1)})")
            return draw.choice((macro, plain)) + head + self.body(inner) + self.tag("endcall")
        if how == 13:
            name = draw.choice(
                ("upper", "trim", "title", "capitalize", "replace('a', 'b')", "indent(2)", "nope", "length")
            )
            return self.tag(f"filter {name}") + self.body(inner) + self.tag("endfilter")
        if how == 14:
            return self.tag("generation") + self.body(inner) + self.tag("endgeneration")
        return f"{{% if {draw.choice('ftn')} %}}{{{{ {draw.choice(ODD)} }}}}{{% endif %}}"


def made(draw: random.Random) -> str:
    return _Grammar(draw).body(draw.choice((1, 1, 1, 2)))


# --------------------------------------------------------------------------------------------------------------- asking


def drawn(seed: int, number: int, dialect: str) -> Case:
    draw = random.Random(f"{seed}/{number}")
    if number % 2:
        setting = golden.snippet_setting()
        return Case(f"{seed}/{number}", "made", dialect, made(draw), setting["context"], setting["now"])
    name = draw.choice(list(golden.suite()["conversations"]))
    return Case(
        f"{seed}/{number}", "edited", dialect, edited(draw), golden.suite_context(name, dialect), golden.suite()["now"]
    )


Answer = dict[str, Any]
"""`output`, or `output_hex` of bytes that are not UTF-8, or `error`, with the `kind` of it where it is ours."""


def ours(case: Case) -> Answer:
    try:
        rendered = Template(case.source, case.dialect).render_context(case.context, now=case.now)
    except JinjarunError as error:
        return {"error": error.message, "kind": type(error).__name__}
    return _output(rendered.data)


def _output(data: bytes) -> Answer:
    try:
        return {"output": data.decode()}
    except UnicodeDecodeError:
        return {"output_hex": data.hex()}


def jinja2(case: Case) -> Answer:
    try:
        return {"output": Reference(case.source).render_context(case.context, now=case.now)}
    except LimitExceeded as error:
        return {"crash": error.message}
    except JinjarunError as error:
        return {"error": error.message}


class Found(NamedTuple):
    number: int
    verdict: str
    """"the same text", "both fail", "differs", "not compared: ..." or "on purpose: ..."."""
    theirs: Answer
    ours: Answer


def verdict(case: Case, theirs: Answer, mine: Answer) -> str:
    def same(key: str) -> bool:
        return key in theirs and theirs.get(key) == mine.get(key)

    if mine.get("kind") == LimitExceeded.__name__:
        return BOTH_FAIL if "error" in theirs else "not compared: a limit"
    if "crash" in theirs:
        return "not compared: the engine gave no answer"
    if "error" in theirs and "error" in mine:
        return BOTH_FAIL
    if same("output") or same("output_hex"):
        return "the same text"
    if case.dialect == "transformers":
        if _ADDRESS.search(theirs.get("output", "")):
            return "not compared: an address"
        if "|random" in case.source.replace(" ", ""):
            return "not compared: a random item"
    if mine.get("kind") == SandboxViolation.__name__:
        return f"on purpose: {mine['error'].split('`')[0].split(chr(39))[0].strip()}"
    return "differs"


def asked(seed: int, numbers: range, engine: str | None) -> Iterator[Found]:
    """Each case, in children that are bounded: the one at which a child dies is not compared."""
    dialect = "transformers" if engine is None else "llama.cpp"

    def work(left: list[int], ask: Callable[[Case], Answer]) -> Iterator[Any]:
        for number in left:
            case = drawn(seed, number, dialect)
            theirs, mine = ask(case), ours(case)
            theirs.pop("parts", None)
            yield number, verdict(case, theirs, mine), theirs, mine

    def with_engine(left: list[int]) -> Iterator[Any]:
        assert engine is not None
        with Command(engine) as command:
            yield from work(left, command.ask)

    left = list(numbers)
    while left:
        todo = list(left)
        answers = in_child(
            lambda todo=todo: work(todo, jinja2) if engine is None else with_engine(todo),  # type: ignore[misc]
            _CPU_SECONDS,
            _MEMORY_BYTES,
        )
        yield from (Found(*answer) for answer in answers)
        done = {answer[0] for answer in answers}
        left = [number for number in left if number not in done]
        if left:
            yield Found(left.pop(0), "not compared: no end", {}, {})


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.differ", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=2_000, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first case")
    parser.add_argument("--engine", metavar="CMD", help="a program that renders as llama.cpp does")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="children at a time")
    parser.add_argument("--show", type=int, default=20, metavar="N", help="differing cases to print (default 20)")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="print the case of this number and both answers")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where differing cases are added, a row of JSON each")
    parser.add_argument("--allowed", type=float, default=0.01, metavar="PERCENT")
    args = parser.parse_args()
    dialect = "transformers" if args.engine is None else "llama.cpp"
    if not golden.have_shared():
        print(f"not run, {golden.NO_SHARED}")
        return 2
    corpus()
    numbers = range(args.first, args.first + args.cases)
    if args.only is not None:
        case = drawn(args.seed, args.only, dialect)
        print(case.source)
        numbers = range(args.only, args.only + 1)
    started = time.monotonic()
    counted: Counter[str] = Counter()
    differing: list[Found] = []
    with ThreadPoolExecutor(args.jobs) as pool:
        batches = [numbers[at : at + BATCH] for at in range(0, len(numbers), BATCH)]
        for found in pool.map(lambda batch: list(asked(args.seed, batch, args.engine)), batches):
            for one in found:
                counted[f"{'made' if one.number % 2 else 'edited'}, {one.verdict}"] += 1
                if one.verdict == "differs":
                    differing.append(one)
                    if args.out is not None:
                        row = {**one._asdict(), "seed": args.seed, "template": drawn(*_id(args, one), dialect).source}
                        with args.out.open("a", encoding="utf-8") as file:
                            print(json.dumps(row), file=file)
    for kind, count in sorted(counted.items()):
        print(f"{count:8,}  {kind}")
    for one in differing[: args.show]:
        print(f"\n{args.seed}/{one.number}\n  there {str(one.theirs)[:300]}\n  here  {str(one.ours)[:300]}")
    share = 100 * len(differing) / len(numbers)
    print(f"\n{dialect}, seed {args.seed}: {len(differing)} of {len(numbers):,} differ ({share:.3f} %)"
          f" in {time.monotonic() - started:.0f} s")  # fmt: skip
    return 1 if share > args.allowed else 0


def _id(args: argparse.Namespace, found: Found) -> tuple[int, int]:
    return args.seed, found.number


if __name__ == "__main__":
    sys.exit(main())
