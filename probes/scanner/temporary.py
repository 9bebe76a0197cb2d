"""Temporary folders that the next run clears away if this one cannot: a lock tells whether a process still owns one."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from typing import TYPE_CHECKING

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "jinjarun-tmp-"


@contextlib.contextmanager
def temporary_folder() -> Iterator[str]:
    """A folder for this process alone. Those that killed processes left behind are removed first."""
    if sys.platform == "win32":
        with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
            yield folder
        return
    clear_abandoned()
    folder, lock = _make()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def clear_abandoned() -> None:
    """Removes our folders in the system's folder for temporary files that no process owns any more."""
    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                _clear(entry.path)


def _clear(folder: str) -> None:
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if os.fstat(lock).st_uid == os.getuid():
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # somebody owns it
        pass
    finally:
        os.close(lock)


def _make() -> tuple[str, int]:
    """A new folder and the descriptor whose lock says that it is owned. Another process may clear it away before it is
    locked; then it is made again."""
    while True:
        folder = tempfile.mkdtemp(prefix=PREFIX)
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if os.path.exists(folder):
                return folder, lock
            os.close(lock)
