"""Files that are being written: whole, they take the place of what is there; else that stays as it was.

Behind walls nothing can be opened for writing: there a command's files are begun before the walls are up (`begin`),
and the parent process puts them in place when it is told that they are whole (`probes.launch`).
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile

LINES = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)


class Begun:
    """A file beside `path`, open as `descriptor`; a device is written as it is."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self.staged: str | None = None
        self.tell: tuple[int, int] | None = None
        """A descriptor and a number: who is told that the file is whole, and what it is called there."""
        mode = os.stat(path).st_mode if os.path.exists(path) else None
        if mode is not None and not stat.S_ISREG(mode):
            self.descriptor = os.open(path, os.O_WRONLY)
            return
        folder, name = os.path.split(self.path)
        self.descriptor, self.staged = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
        if hasattr(os, "fchmod"):
            umask = os.umask(0)
            os.umask(umask)
            os.fchmod(self.descriptor, stat.S_IMODE(mode) if mode is not None else 0o666 & ~umask)

    def finish(self) -> None:
        if self.tell is not None:
            os.write(self.tell[0], b"%d\n" % self.tell[1])
        elif self.staged is not None:
            os.replace(self.staged, self.path)

    def drop(self) -> None:
        """After `finish`, or instead of it."""
        if self.staged is not None and self.tell is None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.staged)


_begun: dict[str, Begun] = {}
_lines: dict[str, int] = {}
_removals: dict[str, tuple[int, int]] = {}


def begin(path: str, told: int, number: int) -> Begun:
    """A file of this process, which the one at the other end of `told` puts in place."""
    begun = _begun[os.path.abspath(path)] = Begun(path)
    begun.tell = told, number
    return begun


def begin_lines(path: str) -> None:
    _lines[os.path.abspath(path)] = os.open(path, LINES, 0o666)


def allow_removal(path: str, told: int, number: int) -> None:
    _removals[os.path.abspath(path)] = told, number


def begun(path: str) -> Begun:
    return _begun.pop(os.path.abspath(path), None) or Begun(path)


def begun_lines(path: str) -> int:
    descriptor = _lines.pop(os.path.abspath(path), None)
    return os.open(path, LINES, 0o666) if descriptor is None else descriptor


def remove(path: str) -> None:
    tell = _removals.pop(os.path.abspath(path), None)
    if tell is not None:
        os.write(tell[0], b"%d\n" % tell[1])
        return
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
