"""Every real template with every conversation renders as in the engines. Needs ../shared."""

from __future__ import annotations

import pytest

from jinjarun.errors import JinjarunError
from jinjarun.serving.caps import chat_template_caps
from tests.conformance import golden
from tests.conformance.compare import ALLOWED_SHARE, account, known_differences

pytestmark = pytest.mark.skipif(not golden.have_shared(), reason=golden.NO_SHARED)


@pytest.mark.parametrize("dialect", golden.ENGINES)
def test_templates(dialect: str) -> None:
    result = account(golden.templates(dialect))
    assert result.total == 16_120
    known = known_differences(dialect)
    new = result.without(known)
    assert not new.rows, f"{len(new.rows)} of {result.total} differ\n{new.table(20)}\n{new.examples(5)}"
    assert len(result.rows) <= ALLOWED_SHARE * result.total
    fixed = {case_id for case_id in known if "/" in case_id} - {case.id for case, _ in result.rows}
    assert not fixed, f"no longer different, take them out of known_differences.json: {sorted(fixed)}"


def test_caps() -> None:
    """The nine flags of all 520 templates; where llama.cpp refuses a template, so do we."""
    wrong = []
    for name, source, flags in golden.caps():
        try:
            got = chat_template_caps(source).to_dict()
        except JinjarunError:
            got = None
        if got != flags:
            wrong.append(f"{name}: {got} instead of {flags}")
    assert not wrong, f"{len(wrong)} templates\n" + "\n".join(wrong[:5])
