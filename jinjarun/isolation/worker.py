"""The worker's side of `IsolatedExecutor`: a process that answers calls behind walls."""

from __future__ import annotations

import importlib
import json
import math
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

from jinjarun.errors import JinjarunError
from jinjarun.isolation.frames import HEADER, encode, find, read, shown, write
from jinjarun.isolation.sandbox import Allowed, address_space, close_in, die_with, limit

if sys.platform != "win32":
    import resource

if TYPE_CHECKING:
    from collections.abc import Sequence

ALARM_SECONDS = 5.0
"""How much later than the parent's deadline the worker's own alarm rings."""


def serve(
    *,
    parent: int,
    timeout_seconds: float,
    cpu_seconds: int,
    memory_bytes: int,
    initializer: str | None,
    modules: Sequence[str],
    readable: Sequence[str],
) -> None:
    """The life of a worker: answer the requests on stdin until it is closed. Only `IsolatedExecutor` calls this."""
    die_with(parent)
    requests, answers = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)  # whatever reads or prints from now on does not meet the protocol
    os.dup2(null, 1)
    os.close(null)
    try:
        for module in modules:
            importlib.import_module(module)
        if initializer is not None:
            find(initializer)()
        warm_bytes = address_space()
        limit(resource.RLIMIT_FSIZE, 0)
        limit(resource.RLIMIT_NPROC, 0)  # no thread either; the kernel does not hold root to it
        close_in(Allowed(read=tuple(readable), packages=tuple(modules)), memory_bytes)
    except BaseException as error:
        write(answers, 0, encode(["raised", f"{type(error).__name__}: {error}", True], "failure"))
        return
    write(answers, 0, b'["result", null, false]')
    while header := read(requests, HEADER.size):
        size, number = HEADER.unpack(header)
        request = read(requests, size)
        signal.setitimer(signal.ITIMER_REAL, timeout_seconds + ALARM_SECONDS)
        _allow_cpu(cpu_seconds)
        write(answers, number, _answer(request, warm_bytes + memory_bytes // 2))
        signal.setitimer(signal.ITIMER_REAL, 0)


def _answer(request: bytes, grown_bytes: int) -> bytes:
    """JSON of [kind, payload, whether this worker has grown too much]. `executor` has the other end."""
    try:
        function, args, kwargs = json.loads(request)
        result = find(function)(*args, **kwargs)
        return encode(["result", result, address_space() > grown_bytes], f"result of {shown(function)}")
    except JinjarunError as error:
        failure: list[Any] = ["error", error.to_dict()]
    except BaseException as error:
        failure = ["raised", type(error).__name__]
    # Here the exception is gone, and with it the frames that may hold all the memory there is.
    return json.dumps([*failure, address_space() > grown_bytes], default=repr).encode()


def _allow_cpu(seconds: int) -> None:
    """The kernel kills this process (SIGXCPU) `seconds` of CPU from now, rounded up: it counts whole ones."""
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    soft = math.ceil(time.process_time()) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))
