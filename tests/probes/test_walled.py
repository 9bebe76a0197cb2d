"""Commands as they are typed: a parent, and a worker behind walls. Real processes, really attacked and killed."""

from __future__ import annotations

import argparse
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from jinjarun.isolation import walls_here
from probes import cli, launch
from probes.commands import COMMANDS, command_named, program, walled
from tests.sources.support import write

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no workers")
ROOT = Path(__file__).parents[2]
PLAIN = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
needs_landlock = pytest.mark.skipif(walls_here()["files"] != "yes", reason=f"files: {walls_here()['files']}")


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "probes.cli", *map(str, arguments)]


def jinjarun(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), cwd=options.pop("cwd", ROOT), capture_output=True, text=True, check=False, **options
    )


def start(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command(*arguments), cwd=ROOT, **pipes, **options)


def worker_of(parent: subprocess.Popen[str]) -> int:
    """The worker, once it is there."""
    while parent.poll() is None:
        for child in Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split():
            return int(child)
        time.sleep(0.01)
    raise AssertionError(parent.communicate())


def wait_until(process: subprocess.Popen[str], reached: Any) -> None:
    deadline = time.monotonic() + 120
    while not reached():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def is_walled(pid: int) -> bool:
    """Whether a process has installed its filter of calls, which is the last of its walls."""
    try:
        return "Seccomp:\t2" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


# What it does is what it did


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["render", "a.jinja"], 0),
        (["render", "a.jinja", "--messages", "chat.json", "--json"], 0),
        (["render", "a.jinja", "--as", "llama-server", "--request", "chat.json", "--explain"], 0),
        (["caps", "a.jinja"], 0),
        (["probe", "model"], 0),
        (["lint", "a.jinja"], 0),
        (["lint", "a.jinja", "model", "--fail-on", "warning"], 1),
        (["prefix", "family:chatml"], 0),
        (["compare", "a.jinja"], 0),
        (["compare", "a.jinja", "model/chat_template.jinja"], 0),
        (["snapshot", "--check", "a.jinja"], 2),
        (["fuzz", "a.jinja", "--max-examples", "5", "--database", "none"], 0),
        (["scan", "a.jinja", "--depth", "quick", "--jobs", "1"], 0),
        (["scan", "records.jsonl", "--depth", "quick", "--jobs", "1"], 0),
        (["rules", "TL104"], 0),
        (["render", "missing.jinja"], 2),
        (["render", "broken.jinja"], 1),
        (["render"], 2),
        (["--help"], 0),
        (["--version"], 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_the_same_as_in_one_process(
    tmp_path: Path, arguments: list[str], code: int, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: Any
) -> None:
    record = json.dumps({"id": "x", "tokenizer_config": {"chat_template": PLAIN}})
    files = {"a.jinja": PLAIN, "model/chat_template.jinja": PLAIN, "broken.jinja": "{% if %}", "records.jsonl": record}
    write(tmp_path, {**files, "chat.json": {"messages": [{"role": "user", "content": "Hi"}]}, "model/config.json": {}})
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = jinjarun(*arguments, cwd=tmp_path, env=environment)
    assert done.returncode == code, done.stderr
    monkeypatch.chdir(tmp_path)
    try:
        here = cli.main(arguments)
    except SystemExit as ended:
        here = int(str(ended.code))
    captured = capfdbinary.readouterr()
    assert (done.stdout, done.stderr, code) == (captured.out.decode(), captured.err.decode(), here)


def test_the_walls_of_this_machine_are_told() -> None:
    told = dict(line.split(maxsplit=1) for line in jinjarun("--walls").stdout.splitlines())
    assert told == walls_here()


def test_standard_input_and_the_order_of_streams(tmp_path: Path) -> None:
    done = jinjarun("render", "-", input="{{ messages[0].content }}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Reverse a string.", "")


def test_files_are_put_in_place_when_they_are_whole(tmp_path: Path) -> None:
    (tmp_path / "kept.sarif").write_text("before")
    write(tmp_path, {"a.jinja": PLAIN})
    for name in ("new.sarif", "kept.sarif"):
        assert jinjarun("lint", tmp_path / "a.jinja", "--out", tmp_path / name).returncode == 0
        assert json.loads((tmp_path / name).read_text())["version"] == "2.1.0"
    umask = os.umask(0)
    os.umask(umask)
    assert (tmp_path / "new.sarif").stat().st_mode & 0o777 == 0o666 & ~umask
    (tmp_path / "kept.sarif").write_text("before")
    failed = jinjarun("lint", tmp_path / "missing.jinja", "--select", "nothing", "--out", tmp_path / "kept.sarif")
    assert failed.returncode == 2
    assert (tmp_path / "kept.sarif").read_text() == "before"
    assert sorted(os.listdir(tmp_path)) == ["a.jinja", "kept.sarif", "new.sarif"]
    assert jinjarun("lint", tmp_path / "a.jinja", "--format", "sarif", "--out", "/dev/null").returncode == 0
    assert "cannot write" in jinjarun("lint", tmp_path / "a.jinja", "--out", "/nowhere/x.sarif").stderr


# The walls, from inside: the function that a command calls is replaced by an attack


def attacked(tmp_path: Path, code: str, *arguments: object, **environment: str) -> Any:
    """What `code` tells where a command would read its template, behind the walls of that command."""
    (tmp_path / "hooked").mkdir(exist_ok=True)
    hook = (
        "from tests import isolation_targets as targets\n"
        "import os, json, sys\n"
        "from probes.commands import caps\n"
        "def run(args):\n"
        f"    {code}\n"
        "    print(json.dumps(told))\n"
        "    return 0\n"
        "object.__setattr__(caps.COMMAND, 'run', run)\n"
    )
    (tmp_path / "hooked" / "hook.py").write_text(hook)
    program = (
        "import sys; sys.path[:0] = sys.argv.pop(1).split(':'); from probes import launch\n"
        "launch._BOOT = launch._BOOT.replace('serve(**', 'import hook\\nserve(**'); sys.exit(launch.main())"
    )
    path = f"{tmp_path / 'hooked'}:{ROOT}"
    done = subprocess.run(
        [sys.executable, "-c", program, path, "caps", *map(str, arguments)],
        cwd=tmp_path,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_landlock
def test_a_command_reads_what_was_named(tmp_path: Path) -> None:
    write(tmp_path, {"a.jinja": PLAIN, "secret": "data", "model/chat_template.jinja": PLAIN})
    readme = str(ROOT / "README.md")
    told = attacked(
        tmp_path,
        "told = [targets.read_file(path) for path in"
        f" ('a.jinja', 'secret', 'model/chat_template.jinja', '/etc/passwd', '/proc/self/environ', {readme!r})]",
        "a.jinja",
    )
    assert told == [str(len(PLAIN)), *["EACCES"] * 5]


def test_a_command_gets_no_secrets(tmp_path: Path) -> None:
    names = attacked(tmp_path, "told = targets.environment()", "family:flat", A_SECRET="s3cret", NO_COLOR="1")
    assert "NO_COLOR" in names
    assert set(names) <= {*launch.ENVIRONMENT, "LC_CTYPE"}


@pytest.mark.skipif(sys.platform != "linux", reason="these walls are the Linux kernel's")
def test_a_command_starts_writes_and_reaches_nothing(tmp_path: Path) -> None:
    new = str(tmp_path / "new")
    code = (
        f"told = [targets.attempt('fork'), targets.attempt('open', {new!r}, os.O_WRONLY | os.O_CREAT, 0o600),"
        " targets.attempt('execl', '/bin/sh', 'sh', None), targets.attempt('socket', 2, 1, 0),"
        " targets.attempt('kill', os.getppid(), 0), targets.attempt_call('ptrace'), targets.start_a_thread()]"
    )
    told = attacked(tmp_path, code, "family:flat")
    assert [word in ("EPERM", "EACCES") for word in told[:6]] == [True] * 6, told
    assert told[6] == "done"


@needs_landlock
def test_a_server_s_address_opens_its_port_alone(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as named, socket.create_server(("127.0.0.1", 0)) as other:
        ports = [server.getsockname()[1] for server in (named, other)]
        code = (
            "import socket; told = []\n"
            f"    for port in {ports}:\n"
            "        with socket.socket() as tried: told.append(tried.connect_ex(('127.0.0.1', port)))\n"
            "    told.append(targets.attempt('socket', 2, 2, 0))"
        )
        told = attacked(tmp_path, code, f"http://127.0.0.1:{ports[0]}")
    assert told == [0, 13, "EPERM"]


# Time, memory, ends


def test_a_deadline(tmp_path: Path) -> None:
    done = jinjarun("fuzz", "family:chatml", "--max-examples", "1000000", "--database", "none", "--timeout", "0.2")
    assert done.returncode == program.FINDING
    assert done.stdout == ""
    assert done.stderr.startswith("jinjarun: worker error: no answer within 0.2 s, which is what --timeout allows")
    assert done.stderr.count("\n") == 1


def test_memory(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("address space is bounded on Linux alone")
    texts = [{"role": "user", "content": "x" * 3_000_000}] * 5
    (tmp_path / "chat.json").write_text(json.dumps(texts))
    done = jinjarun("render", "family:flat", "--messages", tmp_path / "chat.json", "--memory", "10")
    assert done.returncode == program.FINDING
    assert done.stdout == ""
    assert "--memory" in done.stderr
    assert "Traceback" not in done.stderr


linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture
def busy(tmp_path: Path) -> Any:
    """A command at work: behind its walls, for longer than any test."""
    with start(
        "fuzz", "family:chatml", "--max-examples", "1000000", "--database", "none", "--out", tmp_path / "x.sarif"
    ) as process:
        worker = worker_of(process)
        wait_until(process, lambda: is_walled(worker))
        try:
            yield process, worker
        finally:
            process.kill()


@linux
@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT])
def test_a_worker_that_dies(busy: Any, tmp_path: Path, number: signal.Signals) -> None:
    process, worker = busy
    os.kill(worker, number)
    stdout, stderr = process.communicate()
    assert (process.returncode, stdout) == (program.FINDING, "")
    assert f"jinjarun: worker error: its worker was killed by signal {int(number)}" in stderr
    assert stderr.count("\n") == 1
    assert os.listdir(tmp_path) == []


@linux
def test_a_parent_that_is_killed_takes_its_worker_along(busy: Any) -> None:
    process, worker = busy
    process.kill()
    process.wait()
    wait_for_end(worker)


def wait_for_end(pid: int) -> None:
    deadline = time.monotonic() + 60
    while is_alive(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@linux
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -15), (signal.SIGHUP, -1)])
def test_signals_are_passed_on(busy: Any, tmp_path: Path, number: signal.Signals, code: int) -> None:
    process, worker = busy
    process.send_signal(number)
    stdout, stderr = process.communicate()
    assert (process.returncode, stdout, stderr) == (code, "", "")
    assert not is_alive(worker)
    assert os.listdir(tmp_path) == []


@linux
def test_a_worker_that_ignores_ctrl_c_is_killed_by_the_third(busy: Any) -> None:
    process, worker = busy
    os.kill(worker, signal.SIGSTOP)
    for _ in range(3):
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)  # signals of one kind that come at once are one
    process.communicate()
    assert process.returncode == program.INTERRUPTED
    assert not is_alive(worker)


@linux
def test_ctrl_z_stops_both(busy: Any) -> None:
    process, worker = busy
    process.send_signal(signal.SIGTSTP)

    def state(pid: int) -> str:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]

    wait_until(process, lambda: state(process.pid) == state(worker) == "T")
    process.send_signal(signal.SIGCONT)
    wait_until(process, lambda: state(worker) != "T")


def test_ctrl_c_at_a_terminal() -> None:
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        command("render", "family:chatml", "--messages", "-"),
        cwd=ROOT,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # it becomes the session's terminal
        preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),  # noqa: PLW1509
    )
    with child:
        os.close(theirs)
        os.write(ours, b"[\n")  # it is being read
        time.sleep(1)
        os.write(ours, b"\x03")
        stdout, stderr = child.communicate()
    os.close(ours)
    assert (child.returncode, stdout, stderr) == (130, b"", b"")


@pytest.mark.parametrize("closed", [0, 2])
def test_closed_streams(closed: int) -> None:
    done = subprocess.run(
        command("render", "family:flat"),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=False,
        preexec_fn=lambda: os.close(closed),
    )
    assert (done.returncode, done.stdout) == (0, b"user: Reverse a string.\nassistant:")


# A worker that was taken over talks to its parent


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (b"garbage\n", 1),
        (b"[" * 100_000 + b"\n", 1),
        (b"x" * 2_000_000, 1),
        (b'{"acts": 5, "seconds": []}\n', 1),
        (b'{"acts": [], "seconds": null}\n7\n', 1),
        (b'{"acts": [], "seconds": null}\n-1\n', 1),
        (b'{"acts": [], "seconds": null}\nx\n', 1),
        (b'{"acts": [], "seconds": null}\n', 0),
    ],
    ids=range(8),
)
def test_what_makes_no_sense_ends_it(said: bytes, code: int, tmp_path: Path) -> None:
    (tmp_path / "said").write_bytes(said)
    boot = (
        "import json, os, sys; settings = json.loads(sys.argv[1])\n"
        f"rest = open({str(tmp_path / 'said')!r}, 'rb').read()\n"
        "while rest: rest = rest[os.write(settings['told'], rest):]\n"
    )
    program = f"import sys; from probes import launch; launch._BOOT = {boot!r}; sys.exit(launch.main())"
    done = subprocess.run(
        [sys.executable, "-c", program, "caps", "x"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert ("worker error" in done.stderr) is bool(code)


def test_the_parent_imports_little() -> None:
    code = (
        "import sys; before = set(sys.modules); from probes import launch; new = set(sys.modules) - before\n"
        "print(sorted(name for name in new if name.split('.')[0] in ('jinjarun', 'probes')), 'argparse' in new)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "['probes', 'probes.launch'] False\n"


# Every option that takes a path is known to the walls


PATHS = {"FILE", "FOLDER", "DIR", "PATH", "TEMPLATE", "NEW"}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_path_is_known_to_the_walls(name: str) -> None:
    known = {*walled.TARGETS, *walled.READ, *walled.WRITTEN, *walled.FOLDERS}
    for action in actions(name):
        if action.metavar in PATHS:
            assert action.dest in known, f"{name} {action.dest}: say in probes/commands/walled.py what it is"


def test_only_a_command_that_reads_no_file_has_no_walls() -> None:
    assert [name for name in COMMANDS if not command_named(name).work] == ["conversations", "rules"]


def actions(name: str) -> list[argparse.Action]:
    top = program.parser([name])
    (commands,) = (action for action in top._actions if isinstance(action, argparse._SubParsersAction))
    return list(commands.choices[name]._actions)
