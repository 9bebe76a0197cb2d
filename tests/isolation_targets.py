"""What the workers of test_isolation.py and bench/isolation.py are told to run. Most of it is as bad as can be."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import platform
import resource
import signal
import stat
import struct
import time
from typing import Any

from jinjarun import errors

kept: list[bytearray] = []


def warm_up() -> None:
    kept.append(bytearray(1))


def warm_up_badly() -> None:
    raise LookupError("no such family")


def echo(*args: Any, **kwargs: Any) -> Any:
    return [list(args), kwargs]


def double(number: int) -> int:
    return 2 * number


def pid() -> int:
    return os.getpid()


def where() -> str:
    return errors.__file__


def is_warm() -> bool:
    return bool(kept)


def nap(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def open_descriptors() -> dict[int, int]:
    """The mode of what each descriptor is open on: nothing below /proc can be listed behind the walls."""
    found = {}
    for number in range(256):
        with contextlib.suppress(OSError):
            found[number] = os.fstat(number).st_mode
    return found


def standard_streams() -> list[bool]:
    """Whether each is /dev/null."""
    null = os.stat(os.devnull).st_rdev
    return [os.fstat(number).st_rdev == null for number in range(3)]


def limits() -> dict[str, list[int]]:
    names = ("RLIMIT_CORE", "RLIMIT_FSIZE", "RLIMIT_NPROC", "RLIMIT_NOFILE", "RLIMIT_AS", "RLIMIT_CPU")
    return {name: list(resource.getrlimit(getattr(resource, name))) for name in names}


def raise_ours(name: str, message: str, details: dict[str, Any]) -> None:
    raise getattr(errors, name)(message, line=3, column=7, **details)


def raise_ours_with_an_object() -> None:
    raise errors.RenderError("odd", culprit=object())


def raise_other() -> None:
    raise KeyError("a secret of the worker")


def keep(size: int) -> int:
    kept.append(bytearray(size))
    return size


def a_set() -> Any:
    return {1, 2}


def chatter() -> str:
    print("not an answer", flush=True)
    os.write(1, b"not an answer")
    os.write(2, b"not an answer")
    return "quiet"


# Failures, by the reason that the caller is to be told.


def sleep_on() -> None:
    time.sleep(1000)


def sleep_on_by_name() -> None:
    """Linux: sleeps under a name that /proc/PID/comm shows, so that it can be known to be in the call."""
    pr_set_name = 15
    ctypes.CDLL(None).prctl(pr_set_name, b"asleep", 0, 0, 0)
    time.sleep(1000)


def ignore_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGXCPU):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(1000)


def stop_itself() -> None:
    signal.raise_signal(signal.SIGSTOP)


def burn() -> None:
    while True:
        pass


def allocate() -> int:
    return len(bytearray(10_000_000_000))


def allocate_bit_by_bit() -> None:
    hoard: list[Any] = []
    while True:
        hoard.append([len(hoard)])


def exit_quietly() -> None:
    os._exit(0)


def exit_politely() -> None:
    raise SystemExit(3)


def kill_itself() -> None:
    signal.raise_signal(signal.SIGKILL)


def segfault() -> None:
    ctypes.string_at(0)


def recurse() -> None:
    recurse()


def start_processes() -> None:
    for _ in range(5):
        if os.fork() == 0:
            time.sleep(1000)


def start_processes_past_python() -> list[int]:
    """Forks as machine code could, where no audit hook sees it. RLIMIT_NPROC answers -1, unless this is root."""
    libc = ctypes.CDLL(None)
    children = []
    for _ in range(5):
        child = libc.fork()
        if child == 0:
            time.sleep(1000)
        children.append(child)
    return children


def leave_a_child_with_the_pipe() -> None:
    """As root: the child keeps the pipe open, so the worker's end is not seen at once."""
    if ctypes.CDLL(None).fork() != 0:
        os._exit(1)
    time.sleep(1000)


def write_file(path: str) -> None:
    with open(path, "w") as file:
        file.write("x")


def remove_file(path: str) -> None:
    os.remove(path)


def write_file_past_python(path: str) -> int:
    """Bytes written as machine code could. RLIMIT_FSIZE allows none, and sends a signal that Python ignores."""
    libc = ctypes.CDLL(None)
    descriptor = libc.open(path.encode(), os.O_WRONLY | os.O_CREAT, 0o600)
    return int(libc.write(descriptor, b"x", 1))


def connect() -> None:
    import socket  # noqa: PLC0415  (late imports work behind the walls)

    socket.create_connection(("127.0.0.1", 9))


def answer_pipe() -> int:
    return max(number for number, mode in open_descriptors().items() if number > 2 and stat.S_ISFIFO(mode))


def put(data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(answer_pipe(), rest) :]


def write_garbage() -> None:
    put(b"\x00garbage\xff" * 10)
    time.sleep(1000)


def forge(number: int, text: str) -> None:
    """A frame of `text`, as if it were the answer to call `number`."""
    data = text.encode("utf-8", "surrogateescape")
    put(struct.pack(">II", len(data), number) + data)
    time.sleep(1000)


def forge_twice(number: int) -> None:
    data = json.dumps(["result", 1, False]).encode()
    put((struct.pack(">II", len(data), number) + data) * 2)
    time.sleep(1000)


def answer_hugely() -> str:
    return "x" * 100_000_000


def flood() -> None:
    while True:
        put(b"x" * 65536)


def close_the_pipe() -> None:
    os.close(answer_pipe())
    time.sleep(1000)


def close_everything() -> None:
    os.closerange(0, 100)
    time.sleep(1000)


# Attempts to break out, as machine code could: past Python, where no audit hook sees them. Each gives the name of the
# error, or "done".


def attempt(name: str, *arguments: Any) -> str:
    """A function of libc."""
    libc = ctypes.CDLL(None, use_errno=True)
    given = [value.encode() if isinstance(value, str) else value for value in arguments]
    result = getattr(libc, name)(*given)
    return "done" if result >= 0 else errno.errorcode[ctypes.get_errno()]


def attempt_call(name: str, *arguments: int) -> str:
    """A system call by its name, with -1 for what is not given."""
    from jinjarun.isolation.seccomp import CALLS, MACHINES  # noqa: PLC0415

    number = CALLS[name][MACHINES[platform.machine()].column]
    if number is None:
        return "EPERM"
    filled = [*arguments, -1, -1, -1, -1, -1, -1][:6]
    result = ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *map(ctypes.c_long, filled))
    return "done" if result >= 0 else errno.errorcode[ctypes.get_errno()]


def read_file(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return str(len(file.read()))
    except OSError as error:
        return errno.errorcode[error.errno or 0]


def environment() -> list[str]:
    """Names in the environment, as Python and as libc have it."""
    entries = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    names = []
    while (entry := entries[len(names)]) is not None:
        names.append(entry.decode().partition("=")[0])
    return sorted({*names, *os.environ})


def start_a_thread() -> str:
    import threading  # noqa: PLC0415

    done = []
    thread = threading.Thread(target=lambda: done.append("done"))
    thread.start()
    thread.join()
    return done[0]


def dumpable() -> int:
    pr_get_dumpable = 3
    return int(ctypes.CDLL(None).prctl(pr_get_dumpable, 0, 0, 0, 0))
