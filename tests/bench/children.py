"""Work in a forked child, so that its CPU time and peak memory are its own. Linux only (it reads /proc)."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

RUNAWAY_SECONDS = 20
"""A child is stopped after so much CPU time, for work that never ends."""


def peak_megabytes() -> float:
    """The highest resident memory of this process since the last `forget_peak`."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def in_child(
    work: Callable[[], Iterable[Any]], cpu_seconds: int = RUNAWAY_SECONDS, memory_bytes: int | None = None
) -> list[Any]:
    """What `work` gives, each as JSON, out of a forked child that is bounded: all, or what came before it died."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
            if memory_bytes is not None:
                resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
            with os.fdopen(writer, "w") as pipe:
                for answer in work():
                    print(json.dumps(answer), file=pipe, flush=True)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        lines = [line for line in pipe if line.endswith("\n")]
    os.waitpid(child, 0)
    return [json.loads(line) for line in lines]
