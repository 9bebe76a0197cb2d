"""No hostile template gets through, hangs or touches the caller's data. Memory: `python -m tests.bench.hostile`."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from typing import Any

import pytest

from jinjarun import JinjarunError, chat_template_caps
from tests.conformance.golden import ENGINES
from tests.conformance.hostile import attack, faults, rows

BY_KIND: dict[str, list[dict[str, Any]]] = defaultdict(list)
for row in rows():
    BY_KIND[row["class"]].append(row)


def test_all_rows_are_there() -> None:
    assert sum(map(len, BY_KIND.values())) == 147


@pytest.mark.parametrize("kind", BY_KIND)
@pytest.mark.parametrize("dialect", ENGINES)
def test_hostile(dialect: str, kind: str) -> None:
    found = [fault for row in BY_KIND[kind] for fault in faults(attack(row), dialect)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("kind", BY_KIND)
def test_caps_of_hostile_templates(kind: str) -> None:
    for row in BY_KIND[kind]:
        with contextlib.suppress(JinjarunError):
            chat_template_caps(attack(row).source)
