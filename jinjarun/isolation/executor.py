"""`IsolatedExecutor`: a pool of processes behind walls, each of which can be killed.

It is a `concurrent.futures.Executor`, so a thread pool, a process pool or a cluster's executor fits its place. The
parent has one thread for each worker. The thread takes calls off a common queue, writes one as a frame of JSON to its
worker's stdin, and waits for a frame of JSON on its worker's stdout until the deadline. A worker that has not answered
well is killed with its whole process group, and the next call gets a new one.

    parent                                      worker (`isolation.worker`)
    submit -> queue -> thread --- request --->  runs the named function
    Future <---------- thread <--- answer ----  result, error of our tree, or the name of another exception
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from jinjarun.errors import InputError, JinjarunError, WorkerError, quote
from jinjarun.isolation.answers import Malformed, error_of, parse
from jinjarun.isolation.frames import CHUNK, HEADER, encode, find, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

P = ParamSpec("P")
T = TypeVar("T")

START_SECONDS = 60.0
"""Wall clock that a new worker has for its imports and its initializer."""

_MAX_TIMEOUT = 1e6  # poll takes milliseconds in 32 bits
_END_SECONDS = 1.0
"""How long the end of a worker that closed its pipe is waited for, to learn what ended it."""

ENVIRONMENT = (
    *("LANG", "LC_ALL", "LC_CTYPE", "TZ"),
    *("PYTHONHOME", "PYTHONHASHSEED", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"),
)
"""The variables that a worker gets, where they are set: what Python needs to start, to name files and to tell the time.
The rest of the environment is where secrets are."""
_LOOK_SECONDS = 0.05
"""How soon a worker is killed once nobody waits for its answer."""

_ADVICE = {
    "timeout": "not evaluated; a higher timeout_seconds allows more",
    "cancelled": "not evaluated",
    "memory": "not evaluated; a higher memory_bytes allows more",
    "cpu": "not evaluated; a higher cpu_seconds allows more",
    "start": "not evaluated; nothing can be judged without workers",
    "crash": "not evaluated; please report it with the input that did it",
    "protocol": "not evaluated, and nothing that this worker sent is used; please report it with the input that did it",
}


@dataclass(frozen=True, slots=True)
class _Bounds:
    """What one worker may spend, as given to `IsolatedExecutor`."""

    timeout_seconds: float
    cpu_seconds: int
    memory_bytes: int
    answer_bytes: int
    answer_values: int
    calls_per_worker: int
    initializer: str | None
    readable: tuple[str, ...]


class _Answer(Future[T]):
    """The future of a call. To `cancel` one that runs already gives it up: its worker is killed, and what the future
    then holds is the WorkerError of that."""

    given_up = False

    def cancel(self) -> bool:
        self.given_up = True
        return super().cancel()


@dataclass(frozen=True, slots=True)
class _Call:
    future: _Answer[Any]
    function: str
    request: bytes


_Queue = queue.SimpleQueue["_Call | None"]
"""None ends the threads: each that finds it puts it back for the next."""

_open_executors: weakref.WeakSet[IsolatedExecutor] = weakref.WeakSet()


class IsolatedExecutor(Executor):
    """Runs module-level functions in `workers` locked-down processes (default: one for each CPU core).

    A function crosses by name and must be importable in the worker, which has the parent's `sys.path`. Arguments and
    result cross as JSON: tuples arrive as lists, keys of objects as strings. The future of a call holds one of

    - the result,
    - the `JinjarunError` that the function raised,
    - a `WorkerError` whose `reason` is "timeout", "memory", "cpu", "crash" (it died, or raised another exception, whose
      type alone is told), "protocol" (its answer was not a well-formed one), "cancelled" (its future was cancelled
      while it ran) or "start" (no worker could be started). It costs this one call.

    `timeout_seconds` (wall clock), `cpu_seconds` (whole seconds, rounded up to the next one), `answer_bytes` and
    `answer_values` (all that stands in the lists and objects of an answer) bound each call, `memory_bytes` is what a
    worker may take in all beyond what it had when it was warm. After `calls_per_worker` calls, or when half of
    `memory_bytes` is still taken after one, a worker is replaced.
    `initializer`, a module-level function without parameters, runs in each new worker before its walls are up: import
    there whatever the calls need that starts no thread. `readable` are the files and folders that a worker may read
    beside Python's own libraries and the packages of the functions that it runs (`isolation.sandbox` has the walls).

    Workers start with the first calls. They end with `shutdown`, with the executor, and with the parent, however that
    ends. `submit` raises InputError for a function or arguments that cannot cross.
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        timeout_seconds: float = 30.0,
        cpu_seconds: int = 10,
        memory_bytes: int = 500_000_000,
        answer_bytes: int = 16_000_000,
        answer_values: int = 250_000,
        calls_per_worker: int = 1000,
        initializer: Callable[[], object] | None = None,
        readable: Iterable[str | os.PathLike[str]] = (),
    ) -> None:
        if sys.platform == "win32":
            raise WorkerError("isolated workers need Linux or macOS; use a ThreadPoolExecutor here", reason="crash")
        self._workers = workers if workers is not None else os.cpu_count() or 1
        self._bounds = _Bounds(
            timeout_seconds,
            cpu_seconds,
            memory_bytes,
            answer_bytes,
            answer_values,
            calls_per_worker,
            None if initializer is None else _name_of(initializer),
            tuple(os.path.abspath(path) for path in readable),
        )
        bounds = (timeout_seconds, cpu_seconds, memory_bytes, answer_bytes, answer_values, calls_per_worker)
        if min(self._workers, *bounds) <= 0:
            raise ValueError("the number of workers and every bound must be greater than 0")
        if timeout_seconds > _MAX_TIMEOUT:
            raise ValueError(f"timeout_seconds must be at most {_MAX_TIMEOUT:g}")
        self._calls: _Queue = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._closed = False
        _open_executors.add(self)
        weakref.finalize(self, self._calls.put, None)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        function = _name_of(fn)
        call = _Call(_Answer(), function, encode([function, args, kwargs], f"arguments of {shown(function)}"))
        with self._lock:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._calls.put(call)
            if len(self._threads) < self._workers:
                name = f"jinjarun-worker-{len(self._threads)}"
                thread = threading.Thread(target=_serve_calls, args=(self._calls, self._bounds), name=name, daemon=True)
                thread.start()
                self._threads.append(thread)
        return call.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._lock:
            self._closed = True
            if cancel_futures:
                with contextlib.suppress(queue.Empty):
                    while True:
                        call = self._calls.get_nowait()
                        if call is not None and call.future.cancel():
                            call.future.set_running_or_notify_cancel()
            self._calls.put(None)
        if wait:
            for thread in self._threads:
                thread.join()


@atexit.register
def _finish_open_executors() -> None:
    """What the standard executors do too: the interpreter ends when the calls have ended."""
    for executor in list(_open_executors):
        executor.shutdown()


def _name_of(fn: Callable[..., object]) -> str:
    """`module:qualified.name` of a function that a worker can find by it."""
    name = f"{getattr(fn, '__module__', None)}:{getattr(fn, '__qualname__', None)}"
    try:
        found = find(name) if not name.startswith("__main__:") else None
    except (ImportError, AttributeError):
        found = None
    if found is not fn:
        raise InputError(
            f"{quote(repr(fn))} cannot run in a worker process: pass a function defined at the top of an importable "
            "module (not a lambda, a bound method, or a function of the script that is running)",
            path="fn",
        )
    return name


# The parent's side of a worker.


def _serve_calls(calls: _Queue, bounds: _Bounds) -> None:
    """The life of one thread. It refers to the queue, not to the executor, which may be collected meanwhile."""
    worker: _Worker | None = None
    try:
        while (call := calls.get()) is not None:
            if call.future.set_running_or_notify_cancel():
                worker = _evaluate(call, worker, bounds)
            del call
    finally:
        calls.put(None)
        if worker is not None:
            worker.stop()


def _evaluate(call: _Call, worker: _Worker | None, bounds: _Bounds) -> _Worker | None:
    """Settle one call, with `worker` if it is still good. Returns the worker for the next call, if there is one."""
    try:
        module = call.function.partition(":")[0]
        if worker is not None and not (worker.is_quiet() and module in worker.modules):
            worker.stop()
            worker = None
        if worker is None:
            worker = _Worker(bounds, module)
        result = worker.call(call)
    except JinjarunError as error:
        call.future.set_exception(error.with_traceback(None))  # it would keep this frame and the future in a cycle
    except BaseException as error:
        what = f"{shown(call.function)}: asking a worker failed: {type(error).__name__}: {error}"
        call.future.set_exception(
            WorkerError(what, reason="crash" if worker else "start", function=shown(call.function))
        )
    else:
        call.future.set_result(result)
    if worker is not None and not worker.usable:
        worker.stop()
        worker = None
    return worker


_BOOT = """\
import json, sys
settings = json.loads(sys.argv[1])
sys.path[:] = settings.pop("path")
from jinjarun.isolation.worker import serve
serve(**settings)
"""


class _Worker:
    """A process, its two pipes, and whether it may be asked again (`usable`)."""

    def __init__(self, bounds: _Bounds, module: str) -> None:
        self.bounds = bounds
        self.modules = {module, *([bounds.initializer.partition(":")[0]] if bounds.initializer else [])}
        """What it has imported of the functions that it may be asked: behind the walls it cannot read others."""
        self.calls = 0
        self.function = ""
        self.asked: _Answer[Any] | None = None
        self.usable = False
        settings = {
            "path": list(map(str, sys.path)),
            "parent": os.getpid(),
            "timeout_seconds": bounds.timeout_seconds,
            "cpu_seconds": bounds.cpu_seconds,
            "memory_bytes": bounds.memory_bytes,
            "initializer": bounds.initializer,
            "modules": sorted(self.modules),
            "readable": bounds.readable,
        }
        # -P: nothing may be imported from the current folder before the parent's path is in place. -B: no .pyc files.
        # A session of its own: Ctrl-C in the terminal is the parent's affair, and the whole group can be killed.
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-B", "-c", _BOOT, json.dumps(settings)],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
            start_new_session=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._requests = self.process.stdin.fileno()
        self._answers = self.process.stdout.fileno()
        os.set_blocking(self._requests, False)
        os.set_blocking(self._answers, False)
        self._writable = select.poll()
        self._writable.register(self._requests, select.POLLOUT)
        self._readable = select.poll()
        self._readable.register(self._answers, select.POLLIN)
        try:
            self._receive(START_SECONDS, time.monotonic() + START_SECONDS)
        except BaseException:
            self.stop()
            raise

    def call(self, call: _Call) -> Any:
        self.usable = False
        self.calls += 1
        self.function = shown(call.function)
        seconds = self.bounds.timeout_seconds
        deadline = time.monotonic() + seconds
        self.asked = call.future
        try:
            self._send(HEADER.pack(len(call.request), self.calls) + call.request, seconds, deadline)
            return self._receive(seconds, deadline)
        finally:
            self.asked = None

    def is_quiet(self) -> bool:
        """Whether it lives and has sent nothing since its last answer."""
        try:
            os.read(self._answers, 1)
        except BlockingIOError:
            return True
        return False

    def stop(self) -> None:
        """Kill the process and all that it started, and wait for its end."""
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: a group of zombies is not permitted
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def _send(self, frame: bytes, seconds: float, deadline: float) -> None:
        rest = memoryview(frame)
        while rest:
            try:
                rest = rest[os.write(self._requests, rest) :]
            except BlockingIOError:
                self._wait(self._writable, seconds, deadline)
            except BrokenPipeError:
                raise self._ended() from None

    def _receive(self, seconds: float, deadline: float) -> Any:
        data = bytearray()
        end = HEADER.size
        while len(data) < end:
            try:
                chunk = os.read(self._answers, CHUNK)
            except BlockingIOError:
                self._wait(self._readable, seconds, deadline)
                continue
            if not chunk:
                raise self._ended()
            data += chunk
            if end == HEADER.size <= len(data):
                size, number = HEADER.unpack_from(data)
                if number != self.calls:
                    raise self._failure("protocol", "its worker sent something that is no answer to this call")
                if size > self.bounds.answer_bytes:
                    what = f"its answer of {size:,} bytes is over answer_bytes ({self.bounds.answer_bytes:,})"
                    raise self._failure("protocol", what)
                end += size
        if len(data) > end:
            raise self._failure("protocol", "its worker sent more than an answer")
        del data[: HEADER.size]
        return self._open(data)

    def _wait(self, pipe: select.poll, seconds: float, deadline: float) -> None:
        while (rest := deadline - time.monotonic()) > 0:
            if pipe.poll(min(rest, _LOOK_SECONDS) * 1000):
                return
            if self.asked is not None and self.asked.given_up:
                raise self._failure("cancelled", "nobody waits for its answer, so its worker was killed")
        raise self._failure("timeout", f"no answer within {seconds:g} s, so its worker was killed")

    def _open(self, data: bytearray) -> Any:
        """The result in an answer; or raises what the answer tells. `worker.serve` has the other end."""
        try:
            answer = parse(data, self.bounds.answer_values)
            match answer:
                case ["result", result, bool(grown)]:
                    self._settle(grown)
                    return result
                case ["error", dict(fields), bool(grown)]:
                    error: JinjarunError = error_of(fields)
                case ["raised", "MemoryError", bool()]:
                    raise self._failure("memory", f"it needed more than {self.bounds.memory_bytes:,} bytes of memory")
                case ["raised", str(name), bool(grown)]:
                    error = self._failure("crash", f"it raised {quote(name)}")
                case _:
                    raise Malformed("of another shape")
        except Malformed as fault:
            raise self._failure("protocol", f"its worker sent an answer {fault}") from None
        self._settle(grown)
        raise error

    def _settle(self, grown: bool) -> None:
        self.usable = not grown and self.calls < self.bounds.calls_per_worker

    def _ended(self) -> WorkerError:
        """Why the pipe is closed."""
        try:
            code = self.process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            return self._failure("protocol", "its worker closed the pipe without an answer")
        if code == -signal.SIGXCPU:
            return self._failure("cpu", f"it used more than {self.bounds.cpu_seconds} s of CPU")
        if code == -signal.SIGALRM:
            return self._failure("timeout", f"no answer within {self.bounds.timeout_seconds:g} s")
        if code < 0:
            return self._failure("crash", f"its worker was killed by signal {-code} ({signal.strsignal(-code)})")
        return self._failure("crash", f"its worker ended with exit code {code}")

    def _failure(self, reason: str, what: str) -> WorkerError:
        where = self.function or "start of a worker"
        reason = reason if self.calls else "start"
        return WorkerError(f"{where}: {what}; {_ADVICE[reason]}", reason=reason, function=where)
