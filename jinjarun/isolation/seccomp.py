"""A filter of system calls (Documentation/userspace-api/seccomp_filter.rst), for x86-64 and aarch64.

It allows by default and lists what is refused: what starts processes, reaches into others, opens sockets, changes what
belongs to the whole machine or the metadata of files. A list of what is allowed would be shorter to argue for, but it
differs with every libc, kernel and native extension, and what is refused by mistake looks like a bug of a template;
what files and ports can be reached is Landlock's part. Refused calls fail with EPERM, so that Python raises
PermissionError; clone3, whose flags a filter cannot see, with ENOSYS, so that libc starts threads by clone.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from typing import TYPE_CHECKING, NamedTuple

from jinjarun.isolation.kernel import call

if TYPE_CHECKING:
    from collections.abc import Iterable


class Machine(NamedTuple):
    """How the kernel names an architecture, its column in CALLS, and the number of the call `seccomp`."""

    audit: int
    column: int
    seccomp: int


MACHINES = {"x86_64": Machine(0xC000003E, 0, 317), "aarch64": Machine(0xC00000B7, 1, 277)}

_NUMBERS = """
fork=57/- vfork=58/- execve=59/221 execveat=322/281 clone=56/220 clone3=435/435 setns=308/268 unshare=272/97
ptrace=101/117 process_vm_readv=310/270 process_vm_writev=311/271 process_madvise=440/440 kcmp=312/272
pidfd_open=434/434 pidfd_getfd=438/438 kill=62/129 tkill=200/130 tgkill=234/131 pidfd_send_signal=424/424
rt_sigqueueinfo=129/138 rt_tgsigqueueinfo=297/240 prlimit64=302/261 setpriority=141/140 sched_setparam=142/118
sched_setscheduler=144/119 sched_setattr=314/274 sched_setaffinity=203/122 ioprio_set=251/30 move_pages=279/239
migrate_pages=256/238 prctl=157/167 ioctl=16/29 socket=41/198 socketpair=53/199 connect=42/203 bind=49/200
listen=50/201 accept=43/202 accept4=288/242 sendto=44/206 sendmsg=46/211 sendmmsg=307/269 shmget=29/194
semget=64/190 msgget=68/186 mq_open=240/180 io_uring_setup=425/425 io_uring_enter=426/426 io_uring_register=427/427
bpf=321/280 perf_event_open=298/241 userfaultfd=323/282 fanotify_init=300/262 keyctl=250/219 add_key=248/217
request_key=249/218 lookup_dcookie=212/18 mount=165/40 umount2=166/39 pivot_root=155/41 chroot=161/51
open_tree=428/428 move_mount=429/429 fsopen=430/430 fsconfig=431/431 fsmount=432/432 fspick=433/433
mount_setattr=442/442 open_tree_attr=467/467 name_to_handle_at=303/264 open_by_handle_at=304/265 quotactl=179/60
init_module=175/105 finit_module=313/273 delete_module=176/106 kexec_load=246/104 kexec_file_load=320/294
reboot=169/142 syslog=103/116 swapon=167/224 swapoff=168/225 acct=163/89 vhangup=153/58 settimeofday=164/170
clock_settime=227/112 adjtimex=159/171 clock_adjtime=305/266 sethostname=170/161 setdomainname=171/162 iopl=172/-
ioperm=173/- personality=135/92 chmod=90/- fchmod=91/52 fchmodat=268/53 fchmodat2=452/452 chown=92/- fchown=93/55
lchown=94/- fchownat=260/54 utime=132/- utimes=235/- futimesat=261/- utimensat=280/88 setxattr=188/5 lsetxattr=189/6
fsetxattr=190/7 setxattrat=463/463 removexattr=197/14 lremovexattr=198/15 fremovexattr=199/16 removexattrat=466/466
file_setattr=469/469 open=2/- openat=257/56 openat2=437/437 creat=85/- truncate=76/45 rename=82/- renameat=264/38
renameat2=316/276 link=86/- linkat=265/37 symlink=88/- symlinkat=266/36 unlink=87/- unlinkat=263/35 mkdir=83/-
mkdirat=258/34 rmdir=84/- mknod=133/- mknodat=259/33
"""

CALLS: dict[str, tuple[int | None, ...]] = {
    name: tuple(None if number == "-" else int(number) for number in numbers.split("/"))
    for name, _, numbers in (word.partition("=") for word in _NUMBERS.split())
}
"""Numbers on x86-64 and aarch64 (arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h)."""

ALWAYS = (
    *("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd"),
    *("rt_sigqueueinfo", "rt_tgsigqueueinfo", "setpriority", "sched_setparam", "sched_setscheduler"),
    *("sched_setattr", "sched_setaffinity", "ioprio_set", "move_pages", "migrate_pages", "setns", "unshare"),
    *("shmget", "semget", "msgget", "mq_open", "io_uring_setup", "io_uring_enter", "io_uring_register"),
    *("bpf", "perf_event_open", "userfaultfd", "fanotify_init", "keyctl", "add_key", "request_key"),
    *("lookup_dcookie", "mount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen"),
    *("fsconfig", "fsmount", "fspick", "mount_setattr", "open_tree_attr", "name_to_handle_at"),
    *("open_by_handle_at", "quotactl", "init_module", "finit_module", "delete_module", "kexec_load"),
    *("kexec_file_load", "reboot", "syslog", "swapon", "swapoff", "acct", "vhangup", "settimeofday"),
    *("clock_settime", "adjtimex", "clock_adjtime", "sethostname", "setdomainname", "iopl", "ioperm"),
    *("personality", "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat"),
    *("utime", "utimes", "futimesat", "utimensat", "setxattr", "lsetxattr", "fsetxattr", "setxattrat"),
    *("removexattr", "lremovexattr", "fremovexattr", "removexattrat", "file_setattr"),
)
"""What nobody behind the walls needs. Landlock leaves the metadata of files alone, so it stands here."""

PROCESSES = ("fork", "vfork", "execve", "execveat", "pidfd_open", "pidfd_send_signal", "tkill")
NETWORK = (
    *("socket", "socketpair", "connect", "bind", "listen", "accept", "accept4", "sendto", "sendmsg", "sendmmsg"),
)
WRITING = (
    *("creat", "truncate", "rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "unlink"),
    *("unlinkat", "mkdir", "mkdirat", "rmdir", "mknod", "mknodat"),
)
"""Refused where nothing may be written, as Landlock does, so that it also holds on kernels without Landlock."""

WRITING_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
CLONE_THREAD = 0x10000
SOCK_TYPE = 0xF
AF_UNIX, AF_INET, AF_INET6, SOCK_STREAM, SOCK_DGRAM = 1, 2, 10, 1, 2
TERMINAL = (0x5412, 0x540E, 0x541C)
"""ioctl: TIOCSTI types into a terminal, TIOCSCTTY takes one over, TIOCLINUX pastes."""
PR_SET_PDEATHSIG, PR_SET_DUMPABLE = 1, 4

_LOAD, _EQUAL, _ANY_BIT, _AND, _RETURN, _AT_LEAST = 0x20, 0x15, 0x45, 0x54, 0x06, 0x35
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_X32 = 0x40000000
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_REFUSE = 0x00050000 | errno.EPERM
_MISSING = 0x00050000 | errno.ENOSYS
_SET_MODE_FILTER, _TSYNC = 1, 1

Step = tuple[int, int, int, int]
"""An instruction: what, argument, how many to skip if it is so and if it is not."""


def refuse_calls(
    *, processes: bool = False, network: bool = False, look_up: bool = False, writing: bool = False
) -> None:
    """Installs the filter in every thread of this process, for good. Needs `no_new_privs`. Raises OSError.

    What may be done nevertheless: `processes` be started and signalled, `network` be reached by TCP, with `look_up`
    also names by UDP, files be opened for `writing`.
    """
    machine = MACHINES.get(platform.machine()) if sys.platform == "linux" else None
    if machine is None:
        raise OSError(errno.ENOSYS, f"no filter is written for {sys.platform} on {platform.machine()}")
    steps = program(machine, processes=processes, network=network, look_up=look_up, writing=writing)
    code = b"".join(struct.pack("=HBBI", what, yes, no, argument) for what, argument, yes, no in steps)
    kept = ctypes.create_string_buffer(code, len(code))
    call(machine.seccomp, _SET_MODE_FILTER, _TSYNC, struct.pack("@HP", len(steps), ctypes.addressof(kept)))


def program(machine: Machine, *, processes: bool, network: bool, look_up: bool, writing: bool) -> list[Step]:
    """The filter's instructions: a block for each call, which ends in a verdict or goes on to the next block."""
    own = os.getpid()
    steps: list[Step] = [
        (_LOAD, _ARCHITECTURE, 0, 0),
        (_EQUAL, machine.audit, 1, 0),
        (_RETURN, _KILL, 0, 0),
        (_LOAD, _NUMBER, 0, 0),
    ]
    if machine is MACHINES["x86_64"]:  # the same calls by other numbers
        steps += [(_AT_LEAST, _X32, 0, 1), (_RETURN, _KILL, 0, 0)]

    def block(name: str, body: Iterable[Step]) -> None:
        number, rest = CALLS[name][machine.column], list(body)
        if number is not None:
            steps.extend([(_EQUAL, number, 0, len(rest)), *rest])

    def when(
        name: str, argument: int, values: Iterable[int], *, then: int, other: int, mask: int | None = None
    ) -> None:
        """One verdict for a call with one of these values in the lower half of an argument, another for the rest."""
        masked = [] if mask is None else [(_AND, mask, 0, 0)]
        tests = [step for value in values for step in ((_EQUAL, value, 0, 1), (_RETURN, then, 0, 0))]
        block(name, [(_LOAD, _ARGUMENTS + 8 * argument, 0, 0), *masked, *tests, (_RETURN, other, 0, 0)])

    refused = [*ALWAYS]
    refused += [] if processes else PROCESSES
    refused += [] if network else NETWORK
    refused += [] if writing else WRITING
    for name in refused:
        block(name, [(_RETURN, _REFUSE, 0, 0)])
    when("ioctl", 1, TERMINAL, then=_REFUSE, other=_ALLOW)
    when("prlimit64", 0, (0, own), then=_ALLOW, other=_REFUSE)
    if not processes:
        block("clone3", [(_RETURN, _MISSING, 0, 0)])
        thread = [(_LOAD, _ARGUMENTS, 0, 0), (_ANY_BIT, CLONE_THREAD, 0, 1), (_RETURN, _ALLOW, 0, 0)]
        block("clone", [*thread, (_RETURN, _REFUSE, 0, 0)])
        when("kill", 0, (own,), then=_ALLOW, other=_REFUSE)
        when("tgkill", 0, (own,), then=_ALLOW, other=_REFUSE)
        when("prctl", 0, (PR_SET_PDEATHSIG, PR_SET_DUMPABLE), then=_REFUSE, other=_ALLOW)
    if network:
        kinds = (SOCK_STREAM, SOCK_DGRAM) if look_up else (SOCK_STREAM,)
        type_is_wrong = [
            (_LOAD, _ARGUMENTS + 8, 0, 0),
            (_AND, SOCK_TYPE, 0, 0),
            *(step for kind in kinds for step in ((_EQUAL, kind, 0, 1), (_RETURN, _ALLOW, 0, 0))),
            (_RETURN, _REFUSE, 0, 0),
        ]
        family = [(_LOAD, _ARGUMENTS, 0, 0), (_EQUAL, AF_INET, 2, 0), (_EQUAL, AF_INET6, 1, 0)]
        block("socket", [*family, (_RETURN, _REFUSE, 0, 0), *type_is_wrong])
        when("socketpair", 1, (SOCK_STREAM,), then=_ALLOW, other=_REFUSE, mask=SOCK_TYPE)
    if not writing:
        block("openat2", [(_RETURN, _MISSING, 0, 0)])
        for name, argument in (("open", 1), ("openat", 2)):
            flags = [(_LOAD, _ARGUMENTS + 8 * argument, 0, 0), (_ANY_BIT, WRITING_FLAGS, 0, 1)]
            block(name, [*flags, (_RETURN, _REFUSE, 0, 0), (_RETURN, _ALLOW, 0, 0)])
    return [*steps, (_RETURN, _ALLOW, 0, 0)]
