"""The worst cases of the builtins and operators of the llama.cpp dialect."""

from __future__ import annotations

from tests.bench.calibrate.harness import Case

CASES: tuple[Case, ...] = ()
