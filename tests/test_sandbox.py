"""Each wall, by trying to break it from inside a worker; past Python, where the walls are the kernel's."""

from __future__ import annotations

import errno
import json
import os
import platform
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jinjarun.isolation import IsolatedExecutor, walls_here
from tests import isolation_targets as targets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these walls are the Linux kernel's")
if sys.platform == "linux":
    from jinjarun.isolation import landlock, seccomp

ROOT = Path(__file__).parents[1]
REFUSED = ("EPERM", "EACCES")


def needs_landlock(version: int) -> pytest.MarkDecorator:
    there = landlock.version() if sys.platform == "linux" else 0
    return pytest.mark.skipif(there < version, reason=f"needs Landlock {version}, this kernel has {there}")


@pytest.fixture(scope="module")
def worker() -> Iterator[Callable[..., Any]]:
    os.environ["A_SECRET"] = "s3cret"
    try:
        with IsolatedExecutor(1) as executor:
            yield lambda fn, *args: executor.submit(fn, *args).result()
    finally:
        del os.environ["A_SECRET"]


class TestAWorker:
    @needs_landlock(1)
    @pytest.mark.parametrize("path", ["/etc/passwd", "/etc/hosts", "/proc/self/environ", "/proc/self/maps"])
    def test_reads_no_file(self, worker: Callable[..., Any], path: str) -> None:
        assert worker(targets.read_file, path) == "EACCES"
        assert worker(targets.attempt, "open", path, os.O_RDONLY) == "EACCES"

    @needs_landlock(1)
    def test_reads_nothing_of_its_parent(self, worker: Callable[..., Any]) -> None:
        for name in ("environ", "mem", "maps", "cmdline"):
            assert worker(targets.read_file, f"/proc/{os.getpid()}/{name}") == "EACCES"

    @needs_landlock(1)
    def test_reads_nothing_beside_the_packages(self, worker: Callable[..., Any], tmp_path: Path) -> None:
        (tmp_path / "secret").write_text("data")
        assert worker(targets.read_file, str(tmp_path / "secret")) == "EACCES"
        assert worker(targets.read_file, str(ROOT / "pyproject.toml")) == "EACCES"
        assert worker(targets.read_file, str(ROOT / "jinjarun" / "errors.py")).isdigit()

    def test_has_an_empty_environment(self, worker: Callable[..., Any]) -> None:
        from jinjarun.isolation.executor import ENVIRONMENT  # noqa: PLC0415

        assert set(worker(targets.environment)) <= {*ENVIRONMENT, "LC_CTYPE"}

    def test_writes_no_file(self, worker: Callable[..., Any], tmp_path: Path) -> None:
        kept, new = tmp_path / "kept", str(tmp_path / "new")
        kept.write_text("data")
        before = os.stat(kept)
        writing = os.O_WRONLY | os.O_CREAT
        for name, arguments in [
            ("open", (new, writing, 0o600)),
            ("open", (str(kept), os.O_WRONLY)),
            ("open", (str(kept), os.O_RDWR | os.O_TRUNC)),
            ("creat", (new, 0o600)),
            ("truncate", (str(kept), 0)),
            ("unlink", (str(kept),)),
            ("rename", (str(kept), new)),
            ("link", (str(kept), new)),
            ("symlink", (str(kept), new)),
            ("mkdir", (new, 0o700)),
            ("mkfifo", (new, 0o600)),
            ("rmdir", (str(tmp_path),)),
            ("chmod", (str(kept), 0)),
            ("chown", (str(kept), 1, 1)),
            ("utimes", (str(kept), None)),
            ("setxattr", (str(kept), "user.x", "x", 1, 0)),
        ]:
            assert worker(targets.attempt, name, *arguments) in REFUSED, name
        after = os.stat(kept)
        assert os.listdir(tmp_path) == ["kept"]
        assert (after.st_size, after.st_mode, after.st_uid, after.st_mtime_ns) == (
            (before.st_size, before.st_mode, before.st_uid, before.st_mtime_ns)
        )

    @pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, 16, 40], ids=str)
    def test_opens_no_socket(self, worker: Callable[..., Any], family: int) -> None:
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
            assert worker(targets.attempt, "socket", int(family), int(kind), 0) == "EPERM"

    def test_starts_no_process(self, worker: Callable[..., Any]) -> None:
        assert worker(targets.start_processes_past_python) == [-1] * 5
        assert worker(targets.attempt, "vfork") == "EPERM"
        assert worker(targets.attempt, "execl", "/bin/true", "true", None) in REFUSED
        assert worker(targets.attempt, "unshare", 0x10000000) == "EPERM"

    def test_reaches_into_no_process(self, worker: Callable[..., Any]) -> None:
        parent = os.getpid()
        attach = 16
        assert worker(targets.attempt, "ptrace", attach, parent, 0, 0) == "EPERM"
        assert worker(targets.attempt, "kill", parent, 0) == "EPERM"
        assert worker(targets.attempt, "kill", -1, 0) == "EPERM"
        assert worker(targets.attempt_call, "tgkill", parent, parent, 0) == "EPERM"
        assert worker(targets.attempt_call, "tkill", parent, 0) == "EPERM"
        assert worker(targets.attempt_call, "pidfd_open", parent, 0) == "EPERM"
        assert worker(targets.attempt_call, "process_vm_readv", parent) == "EPERM"
        assert worker(targets.attempt_call, "prlimit64", parent, 0, 0, 0) == "EPERM"

    def test_cannot_take_back_its_walls(self, worker: Callable[..., Any]) -> None:
        pr_set_pdeathsig, pr_set_dumpable = 1, 4
        assert worker(targets.attempt, "prctl", pr_set_pdeathsig, 0, 0, 0, 0) == "EPERM"
        assert worker(targets.attempt, "prctl", pr_set_dumpable, 1, 0, 0, 0) == "EPERM"
        assert worker(targets.dumpable) == 0
        assert worker(targets.attempt, "setsid") == "EPERM"

    def test_types_into_no_terminal(self, worker: Callable[..., Any]) -> None:
        for request in seccomp.TERMINAL:
            assert worker(targets.attempt, "ioctl", 0, request, 0) == "EPERM"

    @pytest.mark.parametrize(
        "name", [name for name in seccomp.ALWAYS if name != "vhangup"] if sys.platform == "linux" else []
    )
    def test_calls_that_nobody_needs(self, worker: Callable[..., Any], name: str) -> None:
        assert worker(targets.attempt_call, name) == "EPERM"

    def test_still_computes(self, worker: Callable[..., Any]) -> None:
        assert worker(targets.double, 4) == 8
        assert worker(targets.attempt, "getpid") == "done"
        assert worker(targets.attempt, "raise", 0) == "done"

    @needs_landlock(1)
    def test_reads_what_it_was_given(self, tmp_path: Path) -> None:
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "file").write_text("data")
        (tmp_path / "b").write_text("data")
        with IsolatedExecutor(1, readable=[tmp_path / "a"]) as executor:
            assert executor.submit(targets.read_file, str(tmp_path / "a" / "file")).result() == "4"
            assert executor.submit(targets.read_file, str(tmp_path / "b")).result() == "EACCES"
            assert "PermissionError" in str(
                executor.submit(targets.write_file, str(tmp_path / "a" / "file")).exception()
            )

    @needs_landlock(1)
    def test_a_name_that_leads_nowhere_takes_no_wall_down(self, tmp_path: Path) -> None:
        (tmp_path / "loop").symlink_to("loop")
        (tmp_path / "secret").write_text("data")
        nowhere = [tmp_path / "loop", tmp_path / "missing", tmp_path / "secret" / "x", "\0", "x" * 5000]
        with IsolatedExecutor(1, readable=nowhere) as executor:
            assert executor.submit(targets.read_file, str(tmp_path / "secret")).result() == "EACCES"
            assert executor.submit(targets.attempt, "socket", 2, 1, 0).result() == "EPERM"


def behind(allowed: str, code: str, **environment: str) -> Any:
    """What `code`, a statement that sets `told`, tells in a process of its own behind walls."""
    script = (
        "import json, os, sys\n"
        "from jinjarun.isolation.sandbox import Allowed, close_in\n"
        "from tests import isolation_targets as targets\n"
        f"close_in({allowed}, 500_000_000)\n"
        f"{code}\n"
        "print(json.dumps(told))"
    )
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class TestOtherProcesses:
    """What a command, a scan or a server is allowed beside a worker's walls, and no more."""

    @needs_landlock(3)
    def test_write_only_there(self, tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        (tmp_path / "kept").write_text("data")
        here, beside = str(tmp_path / "out" / "new"), str(tmp_path / "new")
        told = behind(
            f"Allowed(write=({str(tmp_path / 'out')!r},))",
            f"targets.write_file({here!r}); flags = os.O_WRONLY | os.O_CREAT\n"
            f"told = [targets.attempt('open', {beside!r}, flags, 0o600),"
            f" targets.attempt('unlink', {str(tmp_path / 'kept')!r}),"
            f" targets.attempt('rename', {here!r}, {beside!r}), targets.attempt('link', {here!r}, {beside!r}),"
            f" targets.attempt('symlink', '/etc/passwd', {here + '2'!r}), targets.attempt('fork')]",
        )
        assert all(word in (*REFUSED, "EXDEV") for word in told), told
        assert sorted(os.listdir(tmp_path)) == ["kept", "out"]

    @needs_landlock(4)
    def test_connect_only_there(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
            ports = [server.getsockname()[1] for server in (one, other)]
            told = behind(
                f"Allowed(connect=({ports[0]},))",
                "import socket\n"
                "told = []\n"
                f"for port in {ports}:\n"
                "    with socket.socket() as tried: told.append(tried.connect_ex(('127.0.0.1', port)))\n"
                "with socket.socket() as tried:\n"
                "    try: tried.bind(('127.0.0.1', 0)); told.append(0)\n"
                "    except OSError as error: told.append(error.errno)\n"
                "for family, kind in ((socket.AF_INET, socket.SOCK_DGRAM), (socket.AF_UNIX, socket.SOCK_STREAM)):\n"
                "    told.append(targets.attempt('socket', int(family), int(kind), 0))\n",
            )
        assert told == [0, errno.EACCES, errno.EACCES, "EPERM", "EPERM"]

    @needs_landlock(6)
    def test_children_have_the_walls_too(self, tmp_path: Path) -> None:
        (tmp_path / "secret").write_text("data")
        told = behind(
            "Allowed(processes=True)",
            "import subprocess\n"
            f'code = "open({str(tmp_path / "secret")!r})"\n'
            "done = subprocess.run([sys.executable, '-S', '-c', code], capture_output=True, text=True)\n"
            f"told = [done.returncode, 'PermissionError' in done.stderr, targets.attempt('kill', {os.getpid()}, 0),"
            " targets.attempt('execl', '/bin/sh', 'sh', None), targets.attempt_call('ptrace'),"
            f" subprocess.run([sys.executable, '-c', 'print(1)'], capture_output=True).stdout.decode()]",
        )
        assert told == [1, True, "EPERM", "EACCES", "EPERM", "1\n"]

    def test_threads_are_still_started(self) -> None:
        assert behind("Allowed(write=('/nowhere',))", "told = targets.start_a_thread()") == "done"


def test_what_stands_here_is_told() -> None:
    told = walls_here()
    assert set(told) == {"privileges", "files", "network", "calls", "limits", "dumps"}
    assert all(re.fullmatch(r"yes|(no|in part): .+", words) for words in told.values())
    assert (told["files"] == "yes") is (landlock.version() >= 3)
    assert (told["calls"] == "yes") is (platform.machine() in seccomp.MACHINES)


HEADERS = {
    "x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
    "aarch64": "/usr/include/asm-generic/unistd.h",
}


@pytest.mark.parametrize("machine", HEADERS)
def test_numbers_are_the_kernel_s(machine: str) -> None:
    """Calls that the installed headers do not know yet are not compared."""
    if not os.path.exists(HEADERS[machine]):
        pytest.skip(f"{HEADERS[machine]} is not installed")
    text = Path(HEADERS[machine]).read_text()
    known = {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)}
    column = seccomp.MACHINES[machine].column
    ours = {name: numbers[column] for name, numbers in seccomp.CALLS.items()}
    assert {name: number for name, number in ours.items() if name in known} == {
        name: known[name] for name in ours if name in known
    }
    assert len([name for name in ours if name in known]) > 80


def test_every_refused_call_has_a_number() -> None:
    named = {*seccomp.ALWAYS, *seccomp.PROCESSES, *seccomp.NETWORK, *seccomp.WRITING}
    assert named <= set(seccomp.CALLS)
