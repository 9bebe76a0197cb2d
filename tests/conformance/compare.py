"""One recorded case through `jinjarun`, and the account of many."""

from __future__ import annotations

import json
import traceback
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path

from jinjarun.errors import JinjarunError
from jinjarun.template import Rendered, Template
from tests.conformance.golden import Case, merged

KNOWN_FILE = Path(__file__).with_name("known_differences.json")
ALLOWED_SHARE = 0.002
"""Of the rows of a suite, so many may be known differences."""


@lru_cache(maxsize=4)
def compiled(source: str, dialect: str) -> Template | Exception:
    """The template, or what its compilation raised (rows of one source follow each other)."""
    try:
        return Template(source, dialect=dialect)
    except Exception as error:
        return error


def rendered(case: Case, *, spans: bool) -> Rendered | Exception:
    template = compiled(case.source, case.dialect)
    if isinstance(template, Exception):
        return template
    try:
        return template.render_context(case.context, now=case.now, spans=spans)
    except Exception as error:
        return error


def parts(answer: Rendered) -> list[tuple[bool, int]]:
    """The spans of an answer in the form of llama.cpp's parts."""
    return merged([[span.is_input, len(span.text.encode("utf-8", "surrogatepass"))] for span in answer.spans or ()])


def said(error: Exception) -> str:
    """An error in one line; for what must never leave the library, also where it was raised."""
    line = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    if isinstance(error, JinjarunError):
        return line
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"CRASH {line} at {Path(frame.filename).name}:{frame.lineno}"


def difference(case: Case) -> str | None:
    """What we do otherwise than the engine, None where the two agree."""
    answer = rendered(case, spans=case.parts is not None)
    if isinstance(answer, Exception):
        if case.error is not None and isinstance(answer, JinjarunError):
            return None
        return said(answer)
    if case.error is not None:
        return f"rendered {answer.text!r}"
    if case.data is not None:
        return None if answer.data == case.data else f"bytes {answer.data.hex()}"
    if answer.text != case.output:
        return f"rendered {answer.text!r}"
    if case.parts is None:
        return None
    if parts(answer) != case.parts:
        return f"parts {parts(answer)}"
    plain = rendered(case, spans=False)
    if isinstance(plain, Exception):
        return f"without spans {said(plain)}"
    return None if plain.text == answer.text else f"without spans {plain.text!r}"


def expected(case: Case) -> str:
    """What the engine answered, in the words of `difference`."""
    if case.error is not None:
        return f"failed: {case.error.strip().splitlines()[-1] if case.error.strip() else '(no message)'}"
    if case.data is not None:
        return f"bytes {case.data.hex()}"
    return f"rendered {case.output!r}" + ("" if case.parts is None else f" parts {case.parts}")


def known_differences(dialect: str) -> dict[str, str]:
    """Id of a case -> the proven reason why we differ there on purpose."""
    loaded: dict[str, dict[str, str]] = json.loads(KNOWN_FILE.read_text(encoding="utf-8"))
    return loaded.get(dialect, {})


@dataclass
class Account:
    """Agreement of many cases of one dialect, counted by group."""

    checked: dict[str, int] = field(default_factory=dict)
    differing: dict[str, list[tuple[Case, str]]] = field(default_factory=dict)
    skipped: int = 0

    @property
    def total(self) -> int:
        return sum(self.checked.values())

    @property
    def rows(self) -> list[tuple[Case, str]]:
        return [row for rows in self.differing.values() for row in rows]

    def without(self, ids: Container[str]) -> Account:
        """The same account with the rows of these ids taken for agreeing."""
        rows = {group: [row for row in rows if row[0].id not in ids] for group, rows in self.differing.items()}
        return Account(self.checked, {group: left for group, left in rows.items() if left}, self.skipped)

    def table(self, limit: int | None = None) -> str:
        """`agreeing / checked  group`, the worst groups first, only those that differ."""
        worst = sorted(self.differing, key=lambda group: -len(self.differing[group]))
        shown = worst if limit is None else worst[:limit]
        lines = [f"{self.checked[g] - len(self.differing[g]):6} / {self.checked[g]:<6} {g}" for g in shown]
        if len(worst) > len(shown):
            lines.append(f"... and {len(worst) - len(shown)} more groups")
        return "\n".join(lines)

    def examples(self, count: int) -> str:
        """So many differing rows, one of each group by turns."""
        by_turns = [row for turn in zip_longest(*self.differing.values()) for row in turn if row is not None]
        return "\n".join(
            f"{case.dialect} {case.group} {case.id}\n  template {cut(case.source)}\n"
            f"  expected {cut(expected(case))}\n  got      {cut(got)}"
            for case, got in by_turns[:count]
        )


def cut(text: str, size: int = 300) -> str:
    """Text in one line, its middle left out where it is long."""
    text = text.replace("\n", "\\n")
    return text if len(text) <= size else f"{text[: size // 2]} ... {text[-size // 2 :]}"


def account(cases: Iterable[Case]) -> Account:
    result = Account()
    for case in cases:
        if not case.deterministic:
            result.skipped += 1
            continue
        result.checked[case.group] = result.checked.get(case.group, 0) + 1
        got = difference(case)
        if got is not None:
            result.differing.setdefault(case.group, []).append((case, got))
    return result
