"""Every row of a dialect's tables has a case in `tests.bench.calibrate`, and every case works and charges enough.

How long the cases take, the bench measures.
"""

from __future__ import annotations

import pytest

from jinjarun.dialects import NAMES
from tests.bench.calibrate import CASES
from tests.bench.calibrate.harness import SMALL, Case, measured, medians, rendered, statements, subjects

BY_NAME = {f"{case.dialect} {case.name}": case for case in CASES}


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(CASES)


@pytest.mark.parametrize("dialect", NAMES)
def test_every_row_has_a_case(dialect: str) -> None:
    assert sorted(subjects(dialect) - _of(dialect)) == []


@pytest.mark.parametrize("dialect", NAMES)
def test_every_statement_has_a_case(dialect: str) -> None:
    assert sorted(statements(dialect) - _of(dialect)) == []


def test_every_case_has_a_row() -> None:
    known = {dialect: subjects(dialect) | statements(dialect) for dialect in NAMES}
    assert [name for name, case in BY_NAME.items() if case.subject not in known[case.dialect]] == []


@pytest.mark.parametrize("spans", [False, True])
@pytest.mark.parametrize("case", BY_NAME.values(), ids=BY_NAME)
def test_works_when_small(case: Case, spans: bool) -> None:
    ended, steps = rendered(case, SMALL, spans=spans)
    assert ended == ("error" if case.fails else "ok")
    assert steps >= (0 if case.steps is None else case.steps(SMALL))


@pytest.mark.parametrize("case", BY_NAME.values(), ids=BY_NAME)
def test_charges_for_the_work_that_it_does(case: Case) -> None:
    """At every size: else the host did more than was paid for. A limit that ends the render has refused the rest."""
    for size in case.sizes if case.steps is not None else []:
        ended, steps = rendered(case, size)
        assert ended != "ok" or steps >= case.steps(size), size


def test_measuring() -> None:
    cheap = Case("filter upper", NAMES[1], lambda size: ("{{ s|upper }}", {"s": "x" * size}))
    found = [measured(cheap, size, spans=False) for size in cheap.sizes]
    assert [one.ended for one in found] == ["ok"] * 3
    assert all(one.seconds_a_step >= 0 for one in found)
    assert medians(found).keys() == {NAMES[1]}


def _of(dialect: str) -> set[str]:
    return {case.subject for case in CASES if case.dialect == dialect}
