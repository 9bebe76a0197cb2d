"""What a call in a worker costs, and whether the pool survives: `python -m tests.bench.isolation [ROUNDS]`.

A round is one call that goes wrong in some way, submitted among three good ones. At the end every good answer must be
right, every bad one must tell the reason that belongs to it, and no child, descriptor or thread may be left.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import statistics
import sys
import threading
import time
from collections import Counter
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinjarun.errors import WorkerError
from jinjarun.isolation import IsolatedExecutor
from tests import isolation_targets as targets

if TYPE_CHECKING:
    from collections.abc import Callable

SMALL_CALLS = 3000

QUICK: list[tuple[Callable[[], Any], str]] = [
    (targets.exit_quietly, "crash"),
    (targets.kill_itself, "crash"),
    (targets.segfault, "crash"),
    (targets.raise_other, "crash"),
    (targets.start_processes, "crash"),
    (targets.allocate, "memory"),
    (targets.write_garbage, "protocol"),
    (targets.flood, "protocol"),
    (targets.answer_hugely, "protocol"),
]
"""What fails at once, with the reason."""

SLOW: list[tuple[Callable[[], Any], str]] = [
    (targets.sleep_on, "timeout"),
    (targets.ignore_signals, "timeout"),
    (targets.stop_itself, "timeout"),
    (targets.close_the_pipe, "protocol"),
    (targets.close_everything, "protocol"),
]
"""What must be waited for: goes to many workers with a short deadline."""


def small_call(executor: Executor) -> list[float]:
    """Milliseconds of each of SMALL_CALLS calls, sorted; the first, which starts the worker, is not among them."""
    took = []
    with executor:
        for number in range(SMALL_CALLS + 1):
            start = time.perf_counter()
            result = executor.submit(targets.double, number).result()
            took.append((time.perf_counter() - start) * 1000)
            assert result == 2 * number
    return sorted(took[1:])


class Stress:
    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.random = random.Random(0)
        self.good: list[tuple[Future[int], int]] = []
        self.bad: list[tuple[str, Future[Any], str]] = []
        self.quick = IsolatedExecutor(2, cpu_seconds=1, memory_bytes=600_000_000, initializer=targets.warm_up)
        self.slow = IsolatedExecutor(8, timeout_seconds=2, initializer=targets.warm_up)
        self.lone = IsolatedExecutor(1, initializer=targets.warm_up)

    def run(self) -> None:
        with self.quick, self.slow, self.lone:
            for number in range(self.rounds):
                if number % 50 == 0:
                    self.mixed(self.quick, targets.burn, "cpu")
                elif number % 8 == 0:
                    self.kill_from_outside()
                elif number % 3 == 0:
                    self.mixed(self.slow, *self.random.choice(SLOW))
                else:
                    self.mixed(self.quick, *self.random.choice(QUICK))

    def mixed(self, executor: Executor, fn: Callable[[], Any], reason: str) -> None:
        place = self.random.randrange(4)
        for turn in range(4):
            if turn == place:
                self.bad.append((fn.__name__, executor.submit(fn), reason))
            else:
                self.ask(executor)

    def ask(self, executor: Executor) -> None:
        number = self.random.randrange(10**6)
        self.good.append((executor.submit(targets.double, number), 2 * number))

    def kill_from_outside(self) -> None:
        pid = self.lone.submit(targets.pid).result()
        self.ask(self.lone)
        future = self.lone.submit(targets.sleep_on_by_name)
        while Path(f"/proc/{pid}/comm").read_text() != "asleep\n":
            time.sleep(0.001)
        os.kill(pid, signal.SIGKILL)
        self.bad.append(("killed from outside", future, "crash"))
        self.ask(self.lone)

    def faults(self) -> list[str]:
        found = [f"double: {future!r}, not {value}" for future, value in self.good if answer(future) != value]
        return found + [
            f"{name}: {answer(future)!r}, not {reason}" for name, future, reason in self.bad if answer(future) != reason
        ]


def answer(future: Future[Any]) -> Any:
    """The result, or the reason why there is none."""
    error = future.exception(timeout=0)
    return error.details["reason"] if isinstance(error, WorkerError) else error or future.result()


def left_behind(descriptors: int, threads: int) -> list[str]:
    found = []
    if (count := len(os.listdir("/dev/fd"))) != descriptors:
        found.append(f"{count} descriptors, {descriptors} before")
    if threading.active_count() != threads:
        found.append(f"{threading.active_count()} threads, {threads} before")
    with contextlib.suppress(ChildProcessError):
        found.append(f"a child: {os.waitpid(-1, os.WNOHANG)}")
    return found


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    before = len(os.listdir("/dev/fd")), threading.active_count()
    for name, executor in (("worker process", IsolatedExecutor(1)), ("thread, to compare", ThreadPoolExecutor(1))):
        took = small_call(executor)
        print(f"small call, {name}: median {statistics.median(took):.3f} ms, 99 % {took[len(took) * 99 // 100]:.3f} ms")

    start = time.perf_counter()
    stress = Stress(rounds)
    stress.run()
    print(f"{rounds:,} rounds with {len(stress.good):,} good calls in {time.perf_counter() - start:.0f} s")
    for name, count in sorted(Counter(f"{name}: {reason}" for name, _, reason in stress.bad).items()):
        print(f"  {count:4} x {name}")
    faults = stress.faults() + left_behind(*before)
    print("\n".join(faults) if faults else "every answer right; no child, no descriptor, no thread left")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
