"""The worst cases of the statements and scopes of both dialects."""

from __future__ import annotations

from tests.bench.calibrate.harness import Case

CASES: tuple[Case, ...] = ()
