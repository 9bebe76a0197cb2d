"""Where an engine surprises, our dialect of it does the same: one test a dialect and kind of surprise."""

from __future__ import annotations

from collections import defaultdict

import pytest

from jinjarun.errors import JinjarunError
from jinjarun.serving.caps import chat_template_caps
from tests.conformance import golden
from tests.conformance.compare import account, known_differences
from tests.conformance.golden import Case

GROUPS: dict[tuple[str, str], list[Case]] = defaultdict(list)
for _dialect in golden.ENGINES:
    for _case in golden.edges(_dialect):
        GROUPS[_dialect, _case.group].append(_case)


@pytest.mark.parametrize(("dialect", "group"), GROUPS)
def test_edges(dialect: str, group: str) -> None:
    new = account(GROUPS[dialect, group]).without(known_differences(dialect))
    assert not new.rows, f"\n{new.table()}\n{new.examples(5)}"


CAPS = list(golden.lines(golden.DATA / "edges-caps.jsonl"))


@pytest.mark.parametrize("row", CAPS, ids=[row["id"] for row in CAPS])
def test_caps(row: dict[str, object]) -> None:
    source = str(row["template"])
    if row["caps"] is None:
        with pytest.raises(JinjarunError):
            chat_template_caps(source)
    else:
        assert chat_template_caps(source).to_dict() == row["caps"]
