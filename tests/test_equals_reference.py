"""The transformers dialect equals the real Jinja2 on generated templates."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings

from tests.equals_reference import difference
from tests.template_strategies import contexts, templates


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(templates(), contexts())
def test_generated_templates_give_what_jinja2_gives(source: str, context: dict[str, Any]) -> None:
    assert difference(source, context) is None
