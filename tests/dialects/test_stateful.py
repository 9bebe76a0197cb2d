"""A sample of `tests.bench.stateful`: what must hold for every template, and the host's work for each step.

Work is counted in calls of functions, which are the same on every machine; times and memory the bench measures.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest

from jinjarun.errors import JinjarunError, LimitExceeded
from jinjarun.limits import Allowance
from jinjarun.template import Template
from tests.bench.stateful import FEW, SMALL_NUMBERS, SMALL_SIZES, Case, drawn, smaller
from tests.conformance.hostile import fingerprint

SAMPLE = 150
CALLS_A_STEP = 12
"""A node takes two or three calls, a builtin with its arguments a dozen for the few steps that it charges."""
CALLS_TO_BEGIN = 12_000
"""Those that adopt the context and decode the output are not charged."""


def lines_that_work(case: Case) -> Case:
    """The case without the lines at which it fails for another reason than a limit."""
    while True:
        try:
            source = case.source(SMALL_NUMBERS)
            Template(source, case.dialect, FEW).render_context(case.context(SMALL_SIZES), now=0, spans=case.spans)
        except LimitExceeded:
            return case
        except JinjarunError as error:
            if error.line is None:
                return case
            case = replace(case, fragments=case.fragments[: error.line - 1] + case.fragments[error.line :])
        else:
            return case


@pytest.mark.parametrize("number", range(SAMPLE))
def test_only_our_errors_leave_and_work_is_charged(number: int) -> None:
    case = lines_that_work(drawn(0, number))
    context = case.context(SMALL_SIZES)
    before = fingerprint(context)
    answers = []
    for _ in range(2):
        allowance = Allowance("steps", FEW.steps)
        calls = 0

        def count(_frame: FrameType, event: str, _argument: Any) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        try:
            template = Template(case.source(SMALL_NUMBERS), case.dialect, FEW)
            sys.setprofile(count)
            rendered = template.render_context(context, now=0, spans=case.spans, allowance=allowance)
        except JinjarunError as error:
            answers.append(str(error))
        else:
            answers.append(rendered.text)
            if case.spans:
                assert "".join(span.text for span in rendered.spans) == rendered.text
        finally:
            sys.setprofile(None)
        assert calls <= CALLS_A_STEP * (FEW.steps - allowance.left) + CALLS_TO_BEGIN
    assert answers[0] == answers[1]
    assert fingerprint(context) == before


def test_cases_are_those_of_their_seed_and_number() -> None:
    assert drawn(1, 7) == drawn(1, 7)
    assert len({drawn(seed, number).fragments for seed in (0, 1) for number in range(20)}) == 40
    assert {drawn(0, number).dialect for number in range(20)} == {"llama.cpp", "transformers"}


def test_a_failing_case_is_made_smaller() -> None:
    case = drawn(0, 3)
    wanted = case.fragments[2]
    assert smaller(case, lambda tried: wanted in tried.fragments).fragments == (wanted,)
