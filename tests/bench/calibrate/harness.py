"""What a builtin, operator or statement costs the host for each step that it charges, on inputs made for its worst.

A `Case` makes them at any size. It is rendered in a forked child with the usual limits, first once, and where that
takes too little time to be measured again in a loop, as an attacker would. What adopting the context takes is taken
off. Linux only (it reads /proc).
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from jinjarun.dialects import dialect_named, llamacpp, transformers
from jinjarun.dialects.llamacpp import functions
from jinjarun.dialects.llamacpp.tests import TESTS as LLAMACPP_TESTS
from jinjarun.dialects.transformers.filters import FILTERS
from jinjarun.dialects.transformers.globals import GLOBALS
from jinjarun.dialects.transformers.methods import METHODS
from jinjarun.dialects.transformers.tests import TESTS
from jinjarun.dialects.transformers.values import Function
from jinjarun.errors import JinjarunError, LimitExceeded
from jinjarun.limits import STEP_BYTES
from jinjarun.runtime.dialect import Dialect
from jinjarun.syntax import nodes
from jinjarun.template import Template
from tests.bench.children import RUNAWAY_SECONDS, forget_peak, in_child, peak_megabytes

SMALL = 8
"""The size at which the tests run each case."""
MEDIANS = 5
"""A case is above where a step takes so many times the median of its dialect, in seconds or in bytes."""
_SHORT_SECONDS = 0.05
"""A render that takes less is measured again in a loop."""
_LOOP_STEPS = 100_000
"""About what such a loop may spend."""
_LEAST_STEPS = 5_000
"""What a render counts at the least: a limit that ends it at once ends all that the template can do."""


@dataclass(frozen=True, slots=True)
class Case:
    """The worst case of one table row at a size: `make(size)` gives a template's text and its context.

    `name` is a kind and a name, as "filter replace", "method str.find", "operator in", "unary -", "test divisibleby",
    "global range", "statement for", with what follows two colons to tell cases of one name apart ("filter sort::path").
    `most` is the size that reaches the limits; it is measured with a thirtieth and a thousandth of it. `steps(size)` is
    the least that a render must charge, by the work that the host does; None where the result's size says it all.
    `repeat`: the text may stand in a loop. Each render must end well or by a limit, but where it `fails` always.
    """

    name: str
    dialect: str
    make: Callable[[int], tuple[str, dict[str, Any]]]
    most: int = 1_000_000
    steps: Callable[[int], float] | None = None
    repeat: bool = True
    fails: bool = False

    @property
    def subject(self) -> str:
        return self.name.split("::")[0]

    @property
    def sizes(self) -> list[int]:
        return sorted({max(self.most // part, 1) for part in (1000, 30, 1)})


@dataclass(frozen=True, slots=True)
class Measured:
    """`ended` is "ok", "error" or the limit that was hit; `size_bytes` is peak memory beyond the adopted context's."""

    name: str
    dialect: str
    size: int
    ended: str
    steps: int
    seconds: float
    size_bytes: float

    @property
    def seconds_a_step(self) -> float:
        return self.seconds / max(self.steps, _LEAST_STEPS)

    @property
    def bytes_a_step(self) -> float:
        return self.size_bytes / max(self.steps, _LEAST_STEPS)


def rendered(case: Case, size: int, *, spans: bool = False, times: int = 0) -> tuple[str, int]:
    """How a render ended ("ok", "error" or a limit) and its steps; in a loop of `times` where there are any."""
    text, context = case.make(size)
    if times:
        text = f"{{% for _ in range({times}) %}}{text}{{% endfor %}}"
    return _outcome(Template(text, case.dialect), context, spans)


def _outcome(template: Template, context: dict[str, Any], spans: bool) -> tuple[str, int]:
    try:
        return "ok", template.render_context(context, now=0, spans=spans).cost
    except LimitExceeded as error:
        return error.limit, min(error.spent, template.limits.steps)
    except JinjarunError:
        return "error", 0


def measured(case: Case, size: int, *, spans: bool) -> Measured:
    """Measures in this process, whose peak memory it forgets."""
    text, context = case.make(size)
    empty, template = Template("", case.dialect), Template(text, case.dialect)
    _outcome(empty, context, spans)
    forget_peak()
    before = peak_megabytes()
    adopting = _seconds(lambda: _outcome(empty, context, spans))[0]
    adopted = peak_megabytes() - before
    forget_peak()
    before = peak_megabytes()
    seconds, (ended, steps) = _seconds(lambda: _outcome(template, context, spans))
    if seconds - adopting < _SHORT_SECONDS and ended == "ok" and case.repeat:
        times = min(max(_LOOP_STEPS // (steps + 2), 1), template.limits.items)
        template = Template(f"{{% for _ in range({times}) %}}{text}{{% endfor %}}", case.dialect)
        seconds, (ended, steps) = _seconds(lambda: _outcome(template, context, spans))
    grown = max(peak_megabytes() - before - adopted, 0.0) * 1e6
    return Measured(case.name, case.dialect, size, ended, steps, max(seconds - adopting, 0.0), grown)


def _seconds(work: Callable[[], tuple[str, int]]) -> tuple[float, tuple[str, int]]:
    start = time.process_time()
    answer = work()
    return time.process_time() - start, answer


def apart(case: Case, size: int, *, spans: bool) -> Measured:
    """The same in a forked child; one that dies or runs away has taken RUNAWAY_SECONDS for no step."""
    for answer in in_child(lambda: [asdict(measured(case, size, spans=spans))]):
        return Measured(**answer)
    return Measured(case.name, case.dialect, size, "died", 0, float(RUNAWAY_SECONDS), 0.0)


def medians(found: Iterable[Measured]) -> dict[str, tuple[float, float]]:
    """By dialect, the median of seconds and of bytes a step, over the dearest size of each case.

    Of bytes STEP_BYTES at the least: most cases keep nothing.
    """
    worst: dict[str, dict[str, tuple[float, float]]] = {}
    for one in found:
        of = worst.setdefault(one.dialect, {})
        seconds, size = of.get(one.name, (0.0, 0.0))
        of[one.name] = max(seconds, one.seconds_a_step), max(size, one.bytes_a_step)
    return {
        dialect: (
            statistics.median(seconds for seconds, _ in of.values()),
            max(statistics.median(size for _, size in of.values()), STEP_BYTES),
        )
        for dialect, of in worst.items()
    }


def subjects(dialect: str) -> set[str]:
    """All that the tables of a dialect offer to a template, by the names of cases."""
    return set(_transformers() if dialect == transformers.DIALECT.name else _llamacpp())


def statements(dialect: str) -> set[str]:
    """All kinds of statements that a dialect reads, by the names of cases."""
    syntax = dialect_named(dialect).syntax
    tags = syntax.tags - syntax.ignored_tags
    kinds = [kind.__name__ for kind in nodes.Stmt.__subclasses__()]
    names = {re.sub(r"(?<=.)(?=[A-Z])", " ", kind).lower() for kind in kinds}
    return {f"statement {name}" for name in names if _TAGS.get(name, "if") in tags}


_TAGS = {
    "autoescape": "autoescape",
    "block": "block",
    "generation": "generation",
    "load": "include",
    "with": "with",
}
"""The tags of the statements that only one dialect has."""


def _transformers() -> Iterator[str]:
    yield from (f"filter {name}" for name in FILTERS)
    yield from (f"test {name}" for name in TESTS)
    yield from (f"method {kind.__name__}.{name}" for kind, methods in METHODS.items() for name in methods)
    for name, value in GLOBALS.items():
        yield f"global {name}"
        if isinstance(value, Function):
            yield from (f"global {name}.{member}" for member in value.members)
    yield from _operators(transformers.DIALECT)


def _llamacpp() -> Iterator[str]:
    yield from (f"method {kind.__name__}.{name}" for kind, table in llamacpp.BUILTINS.items() for name in table)
    yield from (f"test {name}" for name in LLAMACPP_TESTS)
    yield from (f"global {name}" for name in functions.GLOBALS if not name.startswith("test_is_"))
    yield from _operators(llamacpp.DIALECT)


def _operators(dialect: Dialect) -> Iterator[str]:
    yield from (f"operator {name}" for name in dialect.binary)
    yield from (f"unary {name}" for name in dialect.unary)
    yield from ("expression attribute", "expression item", "expression slice", "expression call", "expression dict")
