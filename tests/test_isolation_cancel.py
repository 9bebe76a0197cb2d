"""A call that nobody waits for any more ends with its worker."""

from __future__ import annotations

import sys
import time

import pytest

from jinjarun.errors import WorkerError
from tests import isolation_targets as targets

if sys.platform == "win32":
    pytest.skip("there are no isolated workers", allow_module_level=True)

from jinjarun.isolation import IsolatedExecutor

FOR_EVER = 1000.0
WAIT_SECONDS = 60


def test_to_cancel_a_call_that_runs_kills_its_worker() -> None:
    with IsolatedExecutor(1, timeout_seconds=FOR_EVER) as executor:
        running = executor.submit(targets.nap, FOR_EVER)
        end = time.monotonic() + WAIT_SECONDS
        while not running.running():
            assert time.monotonic() < end
            time.sleep(0.01)
        waiting = executor.submit(targets.nap, FOR_EVER)
        assert waiting.cancel()
        assert not running.cancel(), "as of every future that runs"
        with pytest.raises(WorkerError) as caught:
            running.result(WAIT_SECONDS)
        assert caught.value.details["reason"] == "cancelled"
        assert executor.submit(targets.double, 4).result(WAIT_SECONDS) == 8


def test_to_cancel_a_call_that_has_ended_changes_nothing() -> None:
    with IsolatedExecutor(1) as executor:
        done = executor.submit(targets.double, 4)
        assert done.result(WAIT_SECONDS) == 8
        assert not done.cancel()
        assert done.result() == 8
        assert executor.submit(targets.double, 5).result(WAIT_SECONDS) == 10
