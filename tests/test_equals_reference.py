"""The transformers dialect equals the real Jinja2 on generated templates; spans change nothing, in either dialect."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jinjarun import JinjarunError, Template
from tests.conformance.golden import ENGINES
from tests.equals_reference import CASES, difference


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(CASES)
def test_generated_templates_give_what_jinja2_gives(case: tuple[str, dict[str, Any]]) -> None:
    assert difference(*case) is None


def rendered(source: str, dialect: str, context: dict[str, Any], *, spans: bool) -> tuple[str, bytes] | str:
    try:
        answer = Template(source, dialect).render_context(context, now=0, spans=spans)
    except JinjarunError as error:
        return str(error)
    assert not spans or "".join(span.text for span in answer.spans) == answer.text
    return answer.text, answer.reached


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(ENGINES)), CASES)
def test_spans_change_nothing(dialect: str, case: tuple[str, dict[str, Any]]) -> None:
    source, context = case
    assert rendered(source, dialect, context, spans=True) == rendered(source, dialect, context, spans=False)
