"""The worst case of every builtin, operator and statement: `CASES`, a module for each dialect and one for both."""

from __future__ import annotations

from tests.bench.calibrate import llamacpp, statements, transformers
from tests.bench.calibrate.harness import Case

CASES: tuple[Case, ...] = (*transformers.CASES, *llamacpp.CASES, *statements.CASES)
