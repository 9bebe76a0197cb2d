"""Room on the host's stack for templates of the allowed depth, wherever the caller stands and in whatever thread.

Python bounds its own frames (`sys.setrecursionlimit`), and only they are counted; the stack of the thread below them
just ends, and the process with it. So work that a thread's stack might not hold is done in one whose stack is known.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from typing import TYPE_CHECKING, TypeVar

from jinjarun.errors import LimitExceeded
from jinjarun.runtime.failures import converted

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinjarun.limits import Limits

T = TypeVar("T")

FRAMES_PER_LEVEL = 7
"""Python frames that one level of a template's tree may take, most of them while it is compiled."""
SPARE_FRAMES = 400
BYTES_PER_LEVEL = 4096
"""Bytes of a thread's stack for one level: iterators over one another take up to 450, on CPython 3.11 for x86-64."""
SPARE_BYTES = 512 * 1024

_HERE = threading.local()
_STARTING = threading.Lock()


def run_with_room(limits: Limits, work: Callable[[], T]) -> T:
    """What `work` gives. What it raises leaves as an error of the tree, without the frames that hold all it made."""
    needed = SPARE_BYTES + BYTES_PER_LEVEL * (limits.depth + limits.data_depth)
    if _stack_bytes() < needed:
        return _in_thread(limits, work, needed)
    _FRAMES.take(limits)
    try:
        return work()
    except Exception as error:
        failure = converted(error)
    finally:
        _FRAMES.leave()
    failure.__context__ = None
    try:
        raise failure.with_traceback(None)
    finally:
        del failure  # the traceback holds this frame


def _in_thread(limits: Limits, work: Callable[[], T], stack: int) -> T:
    answers: list[T] = []
    failures: list[BaseException] = []

    def target() -> None:
        _HERE.bytes = stack
        try:
            answers.append(run_with_room(limits, work))
        except BaseException as error:
            failures.append(error.with_traceback(None))

    thread = threading.Thread(target=target, name="jinjarun", daemon=True)
    with _STARTING:
        before = threading.stack_size(stack)
        try:
            thread.start()
        except RuntimeError:
            failures.append(LimitExceeded("the host has no stack for this template", limit="depth", allowed=0))
        finally:
            threading.stack_size(before)
    if not failures:
        thread.join()
    if failures:
        raise failures.pop()
    return answers.pop()


def _stack_bytes() -> int:
    """The size of this thread's stack; 0 where the platform does not tell."""
    found: int | None = getattr(_HERE, "bytes", None)
    if found is None:
        try:
            found = _measured()
        except (AttributeError, OSError):  # no such function here, or none may be loaded
            found = 0
        _HERE.bytes = found
    return found


def _measured() -> int:
    size = ctypes.c_size_t()
    if sys.platform == "win32":
        low, high = ctypes.c_size_t(), ctypes.c_size_t()
        ctypes.windll.kernel32.GetCurrentThreadStackLimits(ctypes.byref(low), ctypes.byref(high))
        return high.value - low.value
    library = ctypes.CDLL(None)
    library.pthread_self.restype = ctypes.c_void_p
    this = ctypes.c_void_p(library.pthread_self())
    if sys.platform == "darwin":
        library.pthread_get_stacksize_np.restype = ctypes.c_size_t
        return int(library.pthread_get_stacksize_np(this))
    attributes = ctypes.create_string_buffer(256)  # more than a pthread_attr_t of any C library
    if library.pthread_getattr_np(this, attributes):
        return 0
    low = ctypes.c_void_p()
    found = library.pthread_attr_getstack(attributes, ctypes.byref(low), ctypes.byref(size)) == 0
    library.pthread_attr_destroy(attributes)
    return size.value if found else 0


class _Frames:
    """Python's recursion limit is one for all threads: raised while any template runs and set back after the last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._active = 0
        self._before = self._raised = 0

    def take(self, limits: Limits) -> None:
        needed = _frames() + FRAMES_PER_LEVEL * (limits.depth + limits.data_depth) + SPARE_FRAMES
        with self._lock:
            current = sys.getrecursionlimit()
            if self._active == 0 or current != self._raised:
                self._before = current
            self._active += 1
            if current < needed:
                sys.setrecursionlimit(needed)
            self._raised = max(current, needed)

    def leave(self) -> None:
        with self._lock:
            self._active -= 1
            if self._active == 0 and sys.getrecursionlimit() == self._raised != self._before:
                sys.setrecursionlimit(self._before)


def _frames() -> int:
    """A bound of how many frames the caller stands on: the first that is tried where Python finds no frame above it."""
    bound = 64
    while True:
        try:
            sys._getframe(bound)
        except ValueError:
            return bound
        bound *= 2


_FRAMES = _Frames()
