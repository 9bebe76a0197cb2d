"""Landlock by its system calls: which files, TCP ports and signals this process, and all that it starts, still reaches.

Linux 5.13 and later (Documentation/userspace-api/landlock.rst); the version that the kernel has (`version`) decides
which kinds of access can be refused: 1 files, 2 moving between folders, 3 truncating, 4 TCP, 5 ioctl on devices,
6 signals and abstract Unix sockets. Rules name what stays allowed, everything else that the version knows is refused.
"""

from __future__ import annotations

import os
import stat
import struct
import sys
from typing import TYPE_CHECKING

from jinjarun.isolation.kernel import call

if TYPE_CHECKING:
    from collections.abc import Iterable

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
BIND_TCP, CONNECT_TCP = 1 << 0, 1 << 1
SCOPES = 0b11
"""Abstract Unix sockets and signals, to processes outside."""

READ = READ_FILE | READ_DIR
REMOVE_DIR, REMOVE_FILE, MAKE_DIR, MAKE_REG = 1 << 4, 1 << 5, 1 << 7, 1 << 8
WRITE = WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | REFER | TRUNCATE
"""Of a folder: regular files and folders in it may be made, written, moved and removed; no links, pipes, devices."""

_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
_FILES_BY_VERSION = ((1, (1 << 13) - 1), (2, REFER), (3, TRUNCATE), (5, IOCTL_DEV))

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH, _NET_PORT = 1, 2


def version() -> int:
    """The version of Landlock's interface here, 0 where there is none."""
    if sys.platform != "linux":
        return 0
    try:
        return call(_CREATE_RULESET, None, 0, _VERSION_FLAG)
    except OSError:
        return 0


def restrict(paths: Iterable[tuple[str, int]], *, connect: Iterable[int] = (), listen: Iterable[int] = ()) -> None:
    """Refuses all but `paths`, each with what is allowed on it and below it (those that are not there are skipped), and
    TCP to and on these ports. This thread and those that it starts are bound, for good. Needs `no_new_privs`.

    Raises OSError.
    """
    known = version()
    files = sum(access for since, access in _FILES_BY_VERSION if known >= since)
    net = BIND_TCP | CONNECT_TCP if known >= 4 else 0
    scopes = SCOPES if known >= 6 else 0
    handled = struct.pack("=QQQ", files, net, scopes)
    rules = call(_CREATE_RULESET, handled, len(handled), 0)
    try:
        for path, access in paths:
            _allow_path(rules, path, access & files)
        if net:
            for access, ports in ((CONNECT_TCP, connect), (BIND_TCP, listen)):
                for port in ports:
                    call(_ADD_RULE, rules, _NET_PORT, struct.pack("=QQ", access, port), 0)
        call(_RESTRICT_SELF, rules, 0)
    finally:
        os.close(rules)


def _allow_path(rules: int, path: str, access: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (OSError, ValueError):  # what cannot be opened need not be allowed
        return
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            access &= _OF_FILES
        call(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", access, place), 0)
    finally:
        os.close(place)
