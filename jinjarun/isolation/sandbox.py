"""The walls around a process that reads what a stranger wrote: it takes from itself, for good, what it does not need.

    wall          what it refuses                                              Linux   macOS
    privileges    new ones by set-user-id programs; all capabilities but       yes     no
                  those to read and write files
    files         reading all but what is allowed and Python's own libraries   5.13    no
                  (Landlock); writing all but what is allowed                  yes     by Python alone
    network       sockets, or all ports but those that are allowed             yes     by Python alone
                  (ports: Landlock, 6.7)
    calls         starting processes, reaching into others, what concerns      yes     by Python alone
                  the whole machine, the metadata of files (seccomp)
    limits        core dumps, descriptors, sizes of files, address space       yes     not address space
    dumps         other processes of the user reading this one's memory        yes     no

"By Python alone" is an audit hook (`refuse_events`): it holds against our own code gone astray, not against machine
code. Windows has none of this. What the kernel lacks is left out; `walls_here` tells what stands on this machine.
"""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import struct
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if sys.platform != "win32":
    import resource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

OPEN_FILES = 64
OPEN_FILES_OF_POOLS = 4096

PACKAGES = ("jinjarun", "probes")
SYSTEM_LIBRARIES = (
    *("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/nix/store", "/gnu/store", "/etc/ld.so.cache"),
)
TIME_ZONES = ("/etc/localtime", "/usr/share/zoneinfo")
NAME_SERVICE = (
    "/etc/hosts",
    "/etc/resolv.conf",
    "/etc/nsswitch.conf",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/run/systemd/resolve",
)
NULL = "/dev/null"


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a process still may do. A path that is a folder stands for all below it.

    `packages` are imported late, beside jinjarun's own: names of packages that can be found now. `connect` and `listen`
    are TCP ports, `look_up` is for names by DNS, and `processes` may be started and signalled, behind the same walls.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    connect: tuple[int, ...] = ()
    listen: tuple[int, ...] = ()
    look_up: bool = False
    processes: bool = False

    @property
    def network(self) -> bool:
        return bool(self.connect or self.listen)


def close_in(allowed: Allowed, memory_bytes: int) -> None:
    """Raises the walls, in an order in which each can still be raised. `memory_bytes`: address space beyond what is
    taken now (Linux). Everything that the process needs of Python must be imported, or stand below `sys.path`. Threads
    that run already are not kept from files. Raises OSError where a wall that the kernel has cannot be raised."""
    _limit_resources(allowed, memory_bytes)
    if not (allowed.write or allowed.network or allowed.processes):
        sys.addaudithook(refuse_events)
    if sys.platform == "linux":
        _no_new_privileges()
        _no_dumps()
        _few_capabilities()
        _files(allowed)
        _calls(allowed)


def walls_here() -> dict[str, str]:
    """What stands on this machine, by the names above: "yes", "in part: ...", or "no: ..."."""
    if sys.platform == "win32":
        return dict.fromkeys(
            ("privileges", "files", "network", "calls", "limits", "dumps"), "no: there are no workers on Windows"
        )
    if sys.platform != "linux":
        python = "in part: by Python alone"
        rest = {"files": f"{python}, and only writing", "network": python, "calls": python}
        limits = "in part: memory is not bounded"
        return {"privileges": "no: needs Linux", **rest, "limits": limits, "dumps": "no: needs Linux"}
    from jinjarun.isolation import landlock, seccomp  # noqa: PLC0415

    version = landlock.version()
    filtered = "yes" if platform.machine() in seccomp.MACHINES else f"no: not on {platform.machine()}"
    return {
        "privileges": "yes",
        "files": "yes"
        if version >= 3
        else "in part: an old Landlock"
        if version
        else "in part: no Landlock, so reading is open",
        "network": "yes" if version >= 4 else "in part: without Landlock 4 all ports are open where one is needed",
        "calls": filtered,
        "limits": "yes",
        "dumps": "yes",
    }


# Each wall


def _limit_resources(allowed: Allowed, memory_bytes: int) -> None:
    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_NOFILE, OPEN_FILES_OF_POOLS if allowed.processes or allowed.network else OPEN_FILES)
    if sys.platform == "linux":
        limit(resource.RLIMIT_AS, address_space() + memory_bytes)


def limit(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    if hard == resource.RLIM_INFINITY or value < hard:
        resource.setrlimit(which, (value, value))


def _no_new_privileges() -> None:
    from jinjarun.isolation.kernel import prctl  # noqa: PLC0415  (ctypes: what never closes in has no need of it)

    pr_set_no_new_privs = 38
    prctl(pr_set_no_new_privs, 1)


def _no_dumps() -> None:
    from jinjarun.isolation.kernel import prctl  # noqa: PLC0415

    pr_set_dumpable = 4
    prctl(pr_set_dumpable, 0)


def _few_capabilities() -> None:
    """Root keeps what lets it read and write the files of others, as it may be asked to; users have none anyway."""
    from jinjarun.isolation.kernel import call  # noqa: PLC0415

    version_3 = 0x20080522
    kept = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    get, set = (125, 126) if platform.machine() == "x86_64" else (90, 91)
    header, now = struct.pack("=Ii", version_3, 0), bytearray(24)
    buffer = _buffer(now)
    call(get, header, buffer)
    effective, permitted = struct.unpack_from("=II", buffer.raw)
    with contextlib.suppress(OSError):  # some containers refuse the call to those who have none
        call(set, header, struct.pack("=6I", effective & kept, permitted & kept, 0, 0, 0, 0))


def _buffer(data: bytes | bytearray) -> Any:
    import ctypes  # noqa: PLC0415

    return ctypes.create_string_buffer(bytes(data), len(data))


def _files(allowed: Allowed) -> None:
    from jinjarun.isolation import landlock  # noqa: PLC0415

    if landlock.version():
        landlock.restrict(
            _paths(allowed), connect=(*allowed.connect, *((53,) if allowed.look_up else ())), listen=allowed.listen
        )


def _paths(allowed: Allowed) -> Iterator[tuple[str, int]]:
    from jinjarun.isolation import landlock  # noqa: PLC0415

    if allowed.write or allowed.processes:
        yield NULL, landlock.READ | landlock.WRITE
    for path in allowed.write:
        yield path, landlock.READ | landlock.WRITE
    readable = [
        *allowed.read,
        *SYSTEM_LIBRARIES,
        *TIME_ZONES,
        *(NAME_SERVICE if allowed.look_up or allowed.network else ()),
    ]
    libraries, listed = python_folders((*PACKAGES, *allowed.packages))
    for path in (*readable, *libraries):
        yield path, landlock.READ
    for path in listed:
        yield path, landlock.READ_DIR
    if allowed.processes:
        for path in (os.path.realpath(sys.executable), *_loaders()):
            yield path, landlock.READ | landlock.EXECUTE
        yield os.path.join(sys.prefix, "pyvenv.cfg"), landlock.READ


def _loaders() -> set[str]:
    """What starts this Python beside its own file: ld.so, wherever the system keeps it."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        mapped = (line.split(maxsplit=5)[-1].strip() for line in maps)
        return {path for path in mapped if os.path.basename(path).startswith("ld-")}


def python_folders(packages: Iterable[str]) -> tuple[list[str], list[str]]:
    """The folders of Python's libraries and of these packages, and those that may only be listed: a folder of a project
    on `sys.path` can hold more than code."""
    libraries, listed = [os.path.dirname(os.__file__)], []
    for entry in sys.path:
        if _is_of_python(entry):
            libraries.append(entry)
        elif entry:
            listed.append(entry)
    for name in packages:
        package = sys.modules.get(name.partition(".")[0])
        libraries += list(getattr(package, "__path__", ()))
    return libraries, listed


def _is_of_python(entry: str) -> bool:
    if os.path.basename(entry) in ("site-packages", "dist-packages"):
        return True
    roots = (
        os.path.join(root, name)
        for root in {sys.prefix, sys.base_prefix, sys.base_exec_prefix}
        for name in ("lib", "lib64")
    )
    return any(os.path.commonpath([root, entry]) == root for root in roots if os.path.isabs(entry))


def _calls(allowed: Allowed) -> None:
    """A kernel without filters, and a machine that none is written for, go without: `walls_here` tells."""
    from jinjarun.isolation import seccomp  # noqa: PLC0415

    try:
        seccomp.refuse_calls(
            processes=allowed.processes,
            network=allowed.network,
            look_up=allowed.look_up,
            writing=bool(allowed.write) or allowed.processes,
        )
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EINVAL):
            raise


def die_with(parent: int) -> None:
    """Linux kills this process when the thread that started it ends. Elsewhere it ends with its work."""
    if sys.platform == "linux":
        import signal  # noqa: PLC0415

        from jinjarun.isolation.kernel import prctl  # noqa: PLC0415

        pr_set_pdeathsig = 1
        prctl(pr_set_pdeathsig, int(signal.SIGKILL))
    if os.getppid() != parent:
        os._exit(1)


def address_space() -> int:
    """Bytes of address space of this process; 0 where the system does not tell (all but Linux). The file stays open,
    so that it can be asked behind the walls, too."""
    global _statm  # noqa: PLW0603
    if _statm is None:
        try:
            _statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return 0
    return int(os.pread(_statm, 100, 0).split()[0]) * os.sysconf("SC_PAGE_SIZE")


_statm: int | None = None

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


def refuse_events(event: str, args: tuple[Any, ...]) -> None:
    """The audit hook of a process that only computes: all there is on macOS, and where the kernel lacks a wall."""
    opens = event == "open" and args[2] & _WRITING and not isinstance(args[0], int)  # a number is open already
    if opens or event in _REFUSED:
        raise PermissionError(errno.EPERM, f"{event} is refused in an isolated worker")
