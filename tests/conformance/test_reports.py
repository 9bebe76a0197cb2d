"""Small templates rebuilt from public bug reports do in our dialects what they did in the engines, flags included."""

from __future__ import annotations

import pytest

from jinjarun.errors import JinjarunError
from jinjarun.serving.caps import chat_template_caps
from tests.conformance import golden
from tests.conformance.compare import account, known_differences


@pytest.mark.parametrize("dialect", golden.ENGINES)
def test_reports(dialect: str) -> None:
    new = account(golden.reports(dialect)).without(known_differences(dialect))
    assert not new.rows, f"\n{new.table()}\n{new.examples(5)}"


@pytest.mark.parametrize(("name", "source", "flags"), list(golden.report_caps()), ids=lambda value: str(value)[:40])
def test_caps(name: str, source: str, flags: dict[str, bool] | None) -> None:
    if flags is None:
        with pytest.raises(JinjarunError):
            chat_template_caps(source)
    else:
        assert chat_template_caps(source).to_dict() == flags
