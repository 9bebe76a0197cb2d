"""Each of 9,800 one-line snippets does in our dialects what it does in the engines: one test a dialect and group."""

from __future__ import annotations

from collections import defaultdict
from functools import cache

import pytest

from tests.conformance import golden
from tests.conformance.compare import ALLOWED_SHARE, account, known_differences
from tests.conformance.golden import Case


@cache
def by_group(dialect: str) -> dict[str, list[Case]]:
    groups: dict[str, list[Case]] = defaultdict(list)
    for case in golden.snippets(dialect):
        groups[case.group].append(case)
    return groups


@pytest.mark.parametrize("dialect", golden.ENGINES)
def test_known_differences_are_few_and_reasoned(dialect: str) -> None:
    known = known_differences(dialect)
    rows = [case for cases in by_group(dialect).values() for case in cases if case.deterministic]
    listed = [case for case in rows if case.id in known]
    assert len(listed) <= ALLOWED_SHARE * len(rows)
    assert all(len(reason) > 20 for reason in known.values())


@pytest.mark.parametrize("group", by_group("llama.cpp"))
@pytest.mark.parametrize("dialect", golden.ENGINES)
def test_snippets(dialect: str, group: str) -> None:
    known = known_differences(dialect)
    result = account(by_group(dialect)[group])
    assert by_group(dialect)[group][0].context == golden.snippet_setting()["context"], "the caller's data changed"
    differing = {case.id for case, _ in result.rows}
    new = result.without(known)
    assert not new.rows, f"\n{new.table()}\n{new.examples(5)}"
    fixed = {case.id for case in by_group(dialect)[group] if case.id in known} - differing
    assert not fixed, f"no longer different, take them out of known_differences.json: {sorted(fixed)}"
