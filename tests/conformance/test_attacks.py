"""Holes that were found in ours and mended: each costs the steps that it takes, plain and with spans, in both dialects.

With few steps allowed, for a hole that opens again takes so much longer that nobody overlooks it; what the rows cost
with the usual limits prints `python -m tests.bench.hostile`.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import pytest

from jinjarun import JinjarunError, Limits, Template
from tests.conformance.golden import ENGINES
from tests.conformance.hostile import attack, fingerprint, outcome, rows

ROWS = {row["id"]: row for row in rows("attacks*.jsonl")}
FEW = replace(Limits(), steps=50_000)


@pytest.mark.parametrize("id", ROWS)
@pytest.mark.parametrize("dialect", ENGINES)
def test_attacks(dialect: str, id: str) -> None:
    case = attack(ROWS[id])
    before = fingerprint(case.context)
    for spans in (False, True):
        assert outcome(case, dialect, spans=spans, limits=FEW) in case.expect[dialect], case.danger
    assert fingerprint(case.context) == before


@pytest.mark.parametrize("id", ROWS)
@pytest.mark.parametrize("dialect", ENGINES)
def test_errors_are_small_plain_and_hold_nothing(dialect: str, id: str) -> None:
    case = attack(ROWS[id])
    if "ok" in case.expect[dialect]:
        return
    with pytest.raises(JinjarunError) as failed:
        Template(case.source, dialect, FEW).render_context(case.context, now=0)
    error = failed.value
    assert len(json.dumps(error.to_dict())) < 5_000
    assert str(error).replace("\n", " ").isprintable()
    assert pickle.loads(pickle.dumps(error)).to_dict() == error.to_dict()
    assert (error.__context__, error.__cause__) == (None, None)
