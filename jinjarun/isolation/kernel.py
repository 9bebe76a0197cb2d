"""System calls that Python has no function for, by ctypes. Linux only."""

from __future__ import annotations

import ctypes
import os


def call(number: int, *arguments: int | bytes | ctypes.Array[ctypes.c_char] | None) -> int:
    """A system call: integers as they are, bytes and buffers as pointers. Raises OSError."""
    return _checked(_libc().syscall(ctypes.c_long(number), *map(_argument, arguments)))


def prctl(option: int, *arguments: int) -> int:
    """`prctl(2)`, its last arguments filled with 0. Raises OSError."""
    filled = [*arguments, 0, 0, 0, 0][:4]
    return _checked(_libc().prctl(ctypes.c_int(option), *map(ctypes.c_ulong, filled)))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _argument(value: object) -> object:
    return ctypes.c_long(value) if isinstance(value, int) else value


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
