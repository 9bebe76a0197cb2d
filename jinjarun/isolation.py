"""Run calls in worker processes that can be killed: for files that strangers wrote.

`IsolatedExecutor` is a `concurrent.futures.Executor`, so a thread pool, a process pool or a cluster's executor fits its
place. The parent has one thread for each worker. The thread takes calls off a common queue, writes one as a frame of
JSON to its worker's stdin, and waits for a frame of JSON on its worker's stdout until the deadline. A worker that has
not answered well is killed with its whole process group, and the next call gets a new one.

    parent                                      worker
    submit -> queue -> thread --- request --->  runs the named function
    Future <---------- thread <--- answer ----  result, error of our tree, or the name of another exception

What the walls are, on Linux and macOS (on Windows there are none: `IsolatedExecutor` refuses to start):

- wall clock: the parent's deadline; behind it an alarm in the worker, which holds when the parent is gone.
- CPU seconds, open files, processes, file size, core dumps: rlimits, set once the worker is warm.
- memory: RLIMIT_AS above what the warm worker has. Linux only: macOS does not enforce that limit, so there memory is
  bounded by the deadline and the CPU limit alone.
- An audit hook refuses to start processes, to change files and to reach the network. It covers what rlimits leave
  open: RLIMIT_NPROC does not bind root, and RLIMIT_FSIZE lets files be emptied, renamed and removed.

They hold against a template that costs too much and against our own code gone astray under it, not against machine code
that an attacker runs in the worker. Files that the user can read can be read, and the environment is the parent's.
RLIMIT_NPROC counts threads too: a call cannot start any, unless it runs as root.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import math
import os
import queue
import select
import signal
import struct
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from jinjarun import errors
from jinjarun.errors import InputError, JinjarunError, WorkerError, quote

if sys.platform != "win32":
    import resource

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")

START_SECONDS = 60.0
"""Wall clock that a new worker has for its imports and its initializer."""

_HEADER = struct.Struct(">II")
"""Before each frame: bytes of the JSON that follows, number of the call. An answer repeats its call's number."""

_CHUNK = 1 << 16
_MAX_TIMEOUT = 1e6  # poll takes milliseconds in 32 bits
_OPEN_FILES = 64
_END_SECONDS = 1.0
"""How long the end of a worker that closed its pipe is waited for, to learn what ended it."""

_LOOK_SECONDS = 0.05
"""How soon a worker is killed once nobody waits for its answer."""

_ALARM_SECONDS = 5.0
"""How much later than the parent's deadline the worker's own alarm rings."""

_ADVICE = {
    "timeout": "not evaluated; a higher timeout_seconds allows more",
    "cancelled": "not evaluated",
    "memory": "not evaluated; a higher memory_bytes allows more",
    "cpu": "not evaluated; a higher cpu_seconds allows more",
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
    calls_per_worker: int
    initializer: str | None


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
      type alone is told), "protocol" (its answer was not a well-formed one) or "cancelled" (the future was cancelled
      while the call ran). It costs this one call.

    `timeout_seconds` (wall clock), `cpu_seconds` (whole seconds, rounded up to the next one) and `answer_bytes` bound
    each call, `memory_bytes` is what a worker may take in all beyond what it had when it was warm. After
    `calls_per_worker` calls, or when half of `memory_bytes` is still taken after one, a worker is replaced.
    `initializer`, a module-level function without parameters, runs in each new worker before it is locked down: import
    there whatever the calls need.

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
        calls_per_worker: int = 1000,
        initializer: Callable[[], object] | None = None,
    ) -> None:
        if sys.platform == "win32":
            raise WorkerError("isolated workers need Linux or macOS; use a ThreadPoolExecutor here", reason="crash")
        self._workers = workers if workers is not None else os.cpu_count() or 1
        self._bounds = _Bounds(
            timeout_seconds,
            cpu_seconds,
            memory_bytes,
            answer_bytes,
            calls_per_worker,
            None if initializer is None else _name_of(initializer),
        )
        if min(self._workers, timeout_seconds, cpu_seconds, memory_bytes, answer_bytes, calls_per_worker) <= 0:
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
        call = _Call(_Answer(), function, _encode([function, args, kwargs], f"arguments of {_shown(function)}"))
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
        found = _find(name) if not name.startswith("__main__:") else None
    except (ImportError, AttributeError):
        found = None
    if found is not fn:
        raise InputError(
            f"{quote(repr(fn))} cannot run in a worker process: pass a function defined at the top of an importable "
            "module (not a lambda, a bound method, or a function of the script that is running)",
            path="fn",
        )
    return name


def _find(name: str) -> Any:
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _shown(function: str) -> str:
    return function.replace(":", ".")


def _encode(value: Any, what: str) -> bytes:
    try:
        return json.dumps(value).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{what} cannot cross to another process: {error}; pass plain JSON", path=what) from None


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
        if worker is not None and not worker.is_quiet():
            worker.stop()
            worker = None
        if worker is None:
            worker = _Worker(bounds)
        result = worker.call(call)
    except JinjarunError as error:
        call.future.set_exception(error.with_traceback(None))  # it would keep this frame and the future in a cycle
    except BaseException as error:
        what = f"{_shown(call.function)}: asking a worker failed: {type(error).__name__}: {error}"
        call.future.set_exception(WorkerError(what, reason="crash", function=_shown(call.function)))
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
from jinjarun.isolation import serve
serve(**settings)
"""


class _Worker:
    """A process, its two pipes, and whether it may be asked again (`usable`)."""

    def __init__(self, bounds: _Bounds) -> None:
        self.bounds = bounds
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
        }
        # -P: nothing may be imported from the current folder before the parent's path is in place. -B: no .pyc files.
        # A session of its own: Ctrl-C in the terminal is the parent's affair, and the whole group can be killed.
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-B", "-c", _BOOT, json.dumps(settings)],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
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
        self.function = _shown(call.function)
        seconds = self.bounds.timeout_seconds
        deadline = time.monotonic() + seconds
        self.asked = call.future
        try:
            self._send(_HEADER.pack(len(call.request), self.calls) + call.request, seconds, deadline)
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
        end = _HEADER.size
        while len(data) < end:
            try:
                chunk = os.read(self._answers, _CHUNK)
            except BlockingIOError:
                self._wait(self._readable, seconds, deadline)
                continue
            if not chunk:
                raise self._ended()
            data += chunk
            if end == _HEADER.size <= len(data):
                size, number = _HEADER.unpack_from(data)
                if number != self.calls:
                    raise self._failure("protocol", "its worker sent something that is no answer to this call")
                if size > self.bounds.answer_bytes:
                    what = f"its answer of {size:,} bytes is over answer_bytes ({self.bounds.answer_bytes:,})"
                    raise self._failure("protocol", what)
                end += size
        if len(data) > end:
            raise self._failure("protocol", "its worker sent more than an answer")
        return self._open(data[_HEADER.size :])

    def _wait(self, pipe: select.poll, seconds: float, deadline: float) -> None:
        while (rest := deadline - time.monotonic()) > 0:
            if pipe.poll(min(rest, _LOOK_SECONDS) * 1000):
                return
            if self.asked is not None and self.asked.given_up:
                raise self._failure("cancelled", "nobody waits for its answer, so its worker was killed")
        raise self._failure("timeout", f"no answer within {seconds:g} s, so its worker was killed")

    def _open(self, data: bytearray) -> Any:
        """The result in an answer; or raises what the answer tells. `serve` has the other end."""
        try:
            answer = json.loads(data)
        except (ValueError, RecursionError):
            raise self._failure("protocol", "its worker sent an answer that is not JSON") from None
        match answer:
            case ["result", result, bool(grown)]:
                self._settle(grown)
                return result
            case ["error", dict(fields), bool(grown)] if (error := _rebuilt(fields)) is not None:
                self._settle(grown)
                raise error
            case ["raised", str(name), bool(grown)]:
                if name == "MemoryError":
                    raise self._failure("memory", f"it needed more than {self.bounds.memory_bytes:,} bytes of memory")
                self._settle(grown)
                raise self._failure("crash", f"it raised {quote(name)}")
        raise self._failure("protocol", "its worker sent JSON that is not an answer")

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
        return WorkerError(f"{where}: {what}; {_ADVICE[reason]}", reason=reason, function=where)


_DETAIL_TYPES: dict[str, type | tuple[type, ...]] = {
    "allowed": int,
    "excerpt": (str, type(None)),
    "hint": (str, type(None)),
    "limit": str,
    "path": (str, type(None)),
    "place": (str, type(None)),
    "reason": str,
}
"""Details that the classes of `errors` read. Others are JSON and stay as they come."""


def _rebuilt(fields: dict[str, Any]) -> JinjarunError | None:
    """The error whose `to_dict` this is; None if it is none of ours. No class is looked up outside `errors`."""
    match fields:
        case {
            "type": str(name),
            "message": str(message),
            "line": int() | None as line,
            "column": int() | None as column,
            "status": int(status),
        }:
            cls = vars(errors).get(name)
        case _:
            return None
    if not (isinstance(cls, type) and issubclass(cls, JinjarunError)):
        return None
    details = {key: fields[key] for key in fields.keys() - {"type", "message", "line", "column", "status"}}
    if not all(isinstance(details[key], _DETAIL_TYPES[key]) for key in details.keys() & _DETAIL_TYPES.keys()):
        return None
    error = cls(message, line=line, column=column, status=status)
    error.details = details
    return error


# The worker's side.


def serve(
    parent: int,
    timeout_seconds: float,
    cpu_seconds: int,
    memory_bytes: int,
    initializer: str | None,
) -> None:
    """The life of a worker: answer the requests on stdin until it is closed. Only `IsolatedExecutor` calls this."""
    _die_with(parent)
    requests, answers = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)  # whatever reads or prints from now on does not meet the protocol
    os.dup2(null, 1)
    os.close(null)
    try:
        if initializer is not None:
            _find(initializer)()
        warm_bytes = _address_space()
        _lock_down(memory_bytes + warm_bytes)
    except BaseException as error:
        _write(answers, 0, _encode(["raised", f"{type(error).__name__}: {error}", True], "failure"))
        return
    _write(answers, 0, b'["result", null, false]')
    while header := _read(requests, _HEADER.size):
        size, number = _HEADER.unpack(header)
        request = _read(requests, size)
        signal.setitimer(signal.ITIMER_REAL, timeout_seconds + _ALARM_SECONDS)
        _allow_cpu(cpu_seconds)
        _write(answers, number, _answer(request, warm_bytes + memory_bytes // 2))
        signal.setitimer(signal.ITIMER_REAL, 0)


def _answer(request: bytes, grown_bytes: int) -> bytes:
    """JSON of [kind, payload, whether this worker has grown too much]. `_Worker._open` has the other end."""
    try:
        function, args, kwargs = json.loads(request)
        result = _find(function)(*args, **kwargs)
        return _encode(["result", result, _address_space() > grown_bytes], f"result of {_shown(function)}")
    except JinjarunError as error:
        failure: list[Any] = ["error", error.to_dict()]
    except BaseException as error:
        failure = ["raised", type(error).__name__]
    # Here the exception is gone, and with it the frames that may hold all the memory there is.
    return json.dumps([*failure, _address_space() > grown_bytes], default=repr).encode()


def _read(descriptor: int, size: int) -> bytes:
    """Exactly `size` bytes; none if the other end is closed."""
    data = bytearray()
    while len(data) < size:
        chunk = os.read(descriptor, min(size - len(data), _CHUNK))
        if not chunk:
            return b""
        data += chunk
    return bytes(data)


def _write(descriptor: int, number: int, data: bytes) -> None:
    rest = memoryview(_HEADER.pack(len(data), number) + data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _die_with(parent: int) -> None:
    """Linux kills this process when the thread that started it ends. Elsewhere it ends with its call, at EOF."""
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415  (the parent has no need of it)

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _address_space() -> int:
    """Bytes of address space of this process; 0 where the system does not tell (all but Linux)."""
    try:
        descriptor = os.open("/proc/self/statm", os.O_RDONLY)
    except OSError:
        return 0
    try:
        return int(os.read(descriptor, 100).split()[0]) * os.sysconf("SC_PAGE_SIZE")
    finally:
        os.close(descriptor)


def _lock_down(address_space: int) -> None:
    """Take from this process, for good, what no call needs. Needs all imports of this module to be done."""
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_NPROC, 0)
    _limit(resource.RLIMIT_NOFILE, _OPEN_FILES)
    if sys.platform == "linux":
        _limit(resource.RLIMIT_AS, address_space)
    sys.addaudithook(_refuse)


def _limit(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    if hard == resource.RLIM_INFINITY or value < hard:
        resource.setrlimit(which, (value, value))


def _allow_cpu(seconds: int) -> None:
    """The kernel kills this process (SIGXCPU) `seconds` of CPU from now, rounded up: it counts whole ones."""
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    soft = math.ceil(time.process_time()) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


_REFUSED = frozenset(
    [
        *("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "pty.spawn", "subprocess.Popen"),
        *("os.kill", "os.killpg"),
        *("os.chflags", "os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.removexattr", "os.rename"),
        *("os.rmdir", "os.setxattr", "os.symlink", "os.truncate", "os.utime"),
        *("socket.bind", "socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendmsg"),
        "socket.sendto",
    ]
)
"""Audit events (Python's "audit events table") that start processes, change files or reach the network."""

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def _refuse(event: str, args: tuple[Any, ...]) -> None:
    if event in _REFUSED or (event == "open" and args[2] & _WRITING):
        raise PermissionError(f"{event} is refused in an isolated worker")
