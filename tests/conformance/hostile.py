"""Templates that attack whoever renders them: their reader, and what must be true after each."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from jinjarun.errors import JinjarunError, LimitExceeded
from jinjarun.limits import Limits
from jinjarun.template import Template
from tests.conformance.golden import DATA, lines

CPU_SECONDS = 1.5
MEGABYTES = 150
"""What one row may cost beyond importing the package and one trivial render."""


@dataclass(frozen=True, slots=True)
class Attack:
    """`expect`: by dialect, what may happen: "ok", "limit" (LimitExceeded), "error" (another error of the tree)."""

    id: str
    kind: str
    source: str
    context: dict[str, Any]
    danger: str
    expect: dict[str, list[str]]


class Saves:
    """An object with methods that no template may call."""

    def save(self, path: str) -> NoReturn:
        raise AssertionError(f"a template called a method of the caller's object with {path!r}")

    close = save


class Explodes:
    """An object whose every special method leaves by an exception that nobody expects."""

    def __str__(self) -> NoReturn:
        raise KeyboardInterrupt("from __str__")

    def __eq__(self, other: object) -> NoReturn:
        raise SystemExit(77)

    def __hash__(self) -> int:
        return 1

    def __lt__(self, other: object) -> NoReturn:
        raise SystemExit(78)


def nested(depth: int) -> list[Any] | int:
    value: list[Any] | int = 1
    for _ in range(depth):
        value = [value]
    return value


def cycle() -> list[Any]:
    value: list[Any] = [1]
    value.append(value)
    return value


SPECIAL: dict[str, Any] = {
    "cyclic": lambda: {"cyc": cycle()},
    "nan": lambda: {"nan": math.nan, "inf": math.inf},
    "deep": lambda: {"deep": nested(5000)},
    "mutables": lambda: {"arr": deque([1]), "st": {1}, "ba": bytearray(b"x")},
    "richobj": lambda: {"obj": Saves()},
    "badstr": lambda: {"obj": Explodes()},
    "evilops": lambda: {"obj": Explodes()},
    "bigint": lambda: {"big": 10**100_000},
    "hashcoll": lambda: {"d": {number * (2**61 - 1): 1 for number in range(5000)}},
    "bytes": lambda: {"b": b"\xff\x00a"},
    "bigmsg": lambda: {"messages": [{"role": "user", "content": "x" * 10**7}]},
}
"""What JSON cannot hold, by the name that a row gives it under "$special": added to the row's context."""


def parts(*texts: list[Any]) -> str:
    return "".join(text * count for text, count in texts)


def numbered(text: str, count: int) -> str:
    return "".join(text.replace("#", str(number)) for number in range(count))


def times(value: Any, count: int) -> list[Any]:
    return [built(value)] * count


def entry(key: Any, value: Any) -> dict[str, Any]:
    return {built(key): built(value)}


def chain(count: int) -> list[int]:
    """Integers, each of which stands where Python looks next for the one before in a table of 65,536."""
    found, key = [], 7
    for _ in range(count):
        found.append(key)
        key = (5 * key + 1) % 65536
    return found


BUILDERS: dict[str, Callable[..., Any]] = {
    f"${function.__name__}": function for function in (parts, numbered, times, entry, chain)
}
"""What a row writes in short: `{"$parts": [[text, count], ...]}`, `{"$numbered": [text with #, count]}` (texts),
`{"$times": [value, count]}` (a list), `{"$entry": [key, value]}` (an object), `{"$chain": [count]}` (integers)."""


def built(value: Any) -> Any:
    """A value of a row with all that is in short written out."""
    if isinstance(value, dict):
        name = next(iter(value)) if len(value) == 1 else ""
        if name in BUILDERS:
            return BUILDERS[name](*value[name])
        return {key: built(item) for key, item in value.items()}
    return [built(item) for item in value] if isinstance(value, list) else value


def attack(row: dict[str, Any]) -> Attack:
    context = dict(row["context"])
    special = context.pop("$special", None)
    added = SPECIAL[special]() if special is not None else {}
    source = built(row["template"])
    return Attack(
        id=row["id"],
        kind=row["class"],
        source=source if isinstance(source, str) else "".join(source),
        context={**built(context), **added},
        danger=row["danger"],
        expect=row["expect"],
    )


def rows(names: str = "hostile.jsonl") -> list[dict[str, Any]]:
    """Of `hostile.jsonl`, or of `attacks*.jsonl`: holes that were found in ours, each with the limits it broke."""
    return [row for path in sorted(DATA.glob(names)) for row in lines(path)]


def fingerprint(value: Any) -> list[Any]:
    """A flat account of the caller's data that shows any change of it, and calls none of its methods."""
    marks: list[Any] = []
    seen: set[int] = set()
    todo = [value]
    while todo:
        item = todo.pop()
        if type(item) in (dict, list):
            marks.append((type(item), id(item), len(item)))
            if id(item) not in seen:
                seen.add(id(item))
                todo.extend(item if type(item) is list else [part for pair in item.items() for part in pair])
        elif type(item) in (str, int, bool, type(None)):
            marks.append(item)
        else:
            marks.append(repr(item) if type(item) in (float, deque, set, bytearray, bytes) else id(item))
    return marks


def outcome(case: Attack, dialect: str, *, spans: bool = False, limits: Limits | None = None) -> str:
    """ "ok", "limit" or "error"; anything else is a description of what must never leave the library."""
    try:
        Template(case.source, dialect, limits).render_context(case.context, now=0, spans=spans)
    except LimitExceeded:
        return "limit"
    except JinjarunError:
        return "error"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and not error.args:
            raise
        return f"{type(error).__name__} left the library: {str(error)[:200]}"
    return "ok"


def faults(case: Attack, dialect: str, *, spans: bool = False) -> Iterator[str]:
    """Everything that is wrong after the attack; nothing where all is well. Its cost is for the bench to measure."""
    before = fingerprint(case.context)
    got = outcome(case, dialect, spans=spans)
    if got not in case.expect[dialect]:
        yield f"{case.id} {dialect}: {got}, expected {' or '.join(case.expect[dialect])} ({case.danger})"
    if fingerprint(case.context) != before:
        yield f"{case.id} {dialect}: the caller's data changed"
