"""No template ends the process, however small the stack of the thread is: it answers as on any other."""

from __future__ import annotations

import subprocess
import sys

import pytest


def outcomes(kilobytes: int, levels: int, *, shell: str = "") -> list[str]:
    command = f"{shell} exec {sys.executable} -m tests.runtime.deep_templates {kilobytes} {levels}"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


@pytest.mark.skipif(sys.platform == "win32", reason="sets the sizes of stacks as POSIX does")
def test_the_outcome_does_not_depend_on_the_stack() -> None:
    usual = outcomes(0, 500)
    assert len(usual) > 100
    assert outcomes(192, 500) == usual
    assert outcomes(0, 500, shell="ulimit -s 256;") == usual


@pytest.mark.skipif(sys.platform == "win32", reason="sets the sizes of stacks as POSIX does")
def test_the_deepest_limits_hold_too() -> None:
    assert len(outcomes(192, 10_000)) > 50
