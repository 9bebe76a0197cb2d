"""Real processes, really killed. What they are told to run is in isolation_targets.py."""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import pickle
import signal
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor, as_completed, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jinjarun import errors
from jinjarun.errors import InputError, JinjarunError, WorkerError
from jinjarun.isolation import IsolatedExecutor
from tests import isolation_targets as targets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, or needs a limit that only Linux enforces")
ROOT = Path(__file__).parents[1]
MB = 1_000_000


def threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("jinjarun-worker")}


def descriptors() -> set[str]:
    return set(os.listdir("/dev/fd"))


def children() -> set[int]:
    """The processes that this one has started and not waited for; as far as the system tells."""
    found: set[int] = set()
    for file in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # of a thread that has just ended
            found |= set(map(int, file.read_text().split()))
    return found


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    """After every test: no thread of ours, descriptor or child, not even a dead one, that was not there before."""
    before = threads(), descriptors(), children()
    yield
    assert threads() <= before[0]
    assert descriptors() <= before[1]
    assert children() <= before[2]


def isolated(**bounds: Any) -> IsolatedExecutor:
    """One worker, so that a call meets what the call before it left."""
    defaults: dict[str, Any] = {"workers": 1, "initializer": targets.warm_up}
    return IsolatedExecutor(**(defaults | bounds))


def failure(executor: Executor, fn: Callable[..., Any], *args: Any) -> tuple[str, str]:
    error = executor.submit(fn, *args).exception()
    assert isinstance(error, WorkerError), error
    name = f"{fn.__module__}.{fn.__qualname__}"
    assert error.message.startswith(f"{name}: ")
    assert error.details["function"] == name
    return error.details["reason"], error.message


def is_alive(pid: int) -> bool:
    """Whether it runs. An orphan that nobody has waited for yet does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def wait_for_end(pid: int) -> None:
    end = time.monotonic() + 60
    while is_alive(pid):
        assert time.monotonic() < end, "still alive"
        time.sleep(0.01)


class TestAnswers:
    def test_they_are_those_of_the_function(self) -> None:
        data = {"text": "é☃\U0001f600\ud800\0", "numbers": [0, -1, 2**100, 1.5, 1e300], "rest": [None, True, {}, []]}
        with isolated() as executor:
            assert executor.submit(targets.echo, data, key=data).result() == [[data], {"key": data}]
            assert executor.submit(targets.pid).result() != os.getpid()

    def test_map_keeps_the_order(self) -> None:
        with isolated(workers=3) as executor:
            assert list(executor.map(targets.double, range(200))) == [2 * number for number in range(200)]

    def test_large_requests_and_answers_fit(self) -> None:
        text = "x" * (5 * MB)
        with isolated() as executor:
            assert executor.submit(targets.echo, text).result() == [[text], {}]

    def test_many_threads_may_ask(self) -> None:
        with isolated(workers=2) as executor, ThreadPoolExecutor(8) as callers:
            asked = callers.map(lambda number: executor.submit(targets.double, number).result(), range(300))
            assert list(asked) == [2 * number for number in range(300)]

    def test_the_worker_imports_what_the_parent_imports(self) -> None:
        with isolated() as executor:
            assert executor.submit(targets.where).result() == errors.__file__

    def test_prints_go_nowhere(self, capfd: pytest.CaptureFixture[str]) -> None:
        with isolated() as executor:
            assert executor.submit(targets.chatter).result() == "quiet"
        assert capfd.readouterr() == ("", "")

    def test_initializer_has_run(self) -> None:
        with isolated() as warm, isolated(initializer=None) as cold:
            assert warm.submit(targets.is_warm).result()
            assert not cold.submit(targets.is_warm).result()


OURS = [cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, JinjarunError)]


class TestErrors:
    @pytest.mark.parametrize("cls", OURS)
    def test_ours_arrive_as_they_were_raised(self, cls: type[JinjarunError]) -> None:
        details: dict[str, Any] = {"limit": "steps", "allowed": 5, "hint": "less", "path": "messages[0]", "status": 418}
        details["more"] = [1, {"a": None}]
        with isolated() as executor:
            error = executor.submit(targets.raise_ours, cls.__name__, "é\ud800", details).exception()
        assert type(error) is cls
        expected = cls("é\ud800", line=3, column=7, **details)
        assert error.to_dict() == expected.to_dict()
        assert str(error) == str(expected)
        assert pickle.loads(pickle.dumps(error)).to_dict() == error.to_dict()

    def test_details_that_are_not_json_arrive_as_text(self) -> None:
        with isolated() as executor:
            error = executor.submit(targets.raise_ours_with_an_object).exception()
        assert isinstance(error, errors.RenderError)
        assert "object" in error.details["culprit"]

    def test_others_are_told_by_their_type_alone(self) -> None:
        with isolated() as executor:
            reason, message = failure(executor, targets.raise_other)
        assert reason == "crash"
        assert "KeyError" in message
        assert "secret" not in message

    def test_a_result_that_is_not_json_is_refused(self) -> None:
        with isolated() as executor:
            error = executor.submit(targets.a_set).exception()
        assert isinstance(error, InputError)
        assert "result of tests.isolation_targets.a_set" in error.message

    @pytest.mark.parametrize(
        "fn",
        [
            lambda: 1,
            functools.partial(targets.double, 1),
            [].append,
            targets.kept.append,
            IsolatedExecutor(1).submit,
            5,
        ],
        ids=["lambda", "partial", "builtin method", "method of a global", "bound method", "no function"],
    )
    def test_functions_that_cannot_cross_are_refused(self, fn: Any) -> None:
        with isolated() as executor, pytest.raises(InputError, match="top of an importable module"):
            executor.submit(fn)
        with pytest.raises(InputError, match="top of an importable module"):
            isolated(initializer=fn)

    def test_arguments_that_cannot_cross_are_refused(self) -> None:
        endless: list[Any] = []
        endless.append(endless)
        with isolated() as executor:
            for argument in (object(), {1}, b"", endless, {(1, 2): 3}):
                with pytest.raises(InputError, match=r"arguments of tests\.isolation_targets\.echo cannot cross"):
                    executor.submit(targets.echo, argument)

    @pytest.mark.parametrize(
        "bound",
        ["workers", "timeout_seconds", "cpu_seconds", "memory_bytes", "answer_bytes", "calls_per_worker"],
    )
    def test_bounds_are_positive(self, bound: str) -> None:
        with pytest.raises(ValueError, match="greater than 0"):
            isolated(**{bound: 0})

    def test_a_deadline_is_needed(self) -> None:
        with pytest.raises(ValueError, match="timeout_seconds"):
            isolated(timeout_seconds=float("inf"))


DEATHS: list[tuple[Callable[[], Any], str, str]] = [
    (targets.exit_quietly, "crash", "exit code 0"),
    (targets.exit_politely, "crash", "SystemExit"),
    (targets.kill_itself, "crash", "signal 9"),
    (targets.segfault, "crash", "signal 11"),
    (targets.recurse, "crash", "RecursionError"),
    (targets.start_processes, "crash", "PermissionError"),
    (targets.connect, "crash", "PermissionError"),
    (targets.write_garbage, "protocol", "no answer to this call"),
    (targets.flood, "protocol", "no answer to this call"),
    (targets.answer_hugely, "protocol", "answer_bytes"),
    (targets.close_the_pipe, "protocol", "closed the pipe"),
    (targets.close_everything, "protocol", "closed the pipe"),
]

WRONG_FIELDS: list[dict[str, Any]] = [
    {"type": "KeyError"},
    {"type": "QUOTE_LIMIT"},
    {"type": "quote"},
    {"type": None},
    {"message": 5},
    {"line": "3"},
    {"column": []},
    {"status": "500"},
    {"status": 200},
    {"status": 10**6},
    {"allowed": []},
    {"excerpt": 5},
    {"limit": None},
]
FIELDS = {"type": "RenderError", "message": "m", "line": None, "column": None, "status": 500}
FORGED = [
    "",
    "nul",
    "\udcff",
    "[" * 100_000,
    "{}",
    '["result"]',
    '["result", 1]',
    '["result", [' + "[]," * 400_000 + "[]], false]",
    '["result", [' + '{"":0},' * 200_000 + "0], false]",
    '["result", ' + "[" * 300 + "]" * 300 + ", false]",
    '["result", ' + '{"":' * 300 + "0" + "}" * 300 + ", false]",
    '["result", "' + '\\"' * 100_000,
    '["result", "\u00e9", false]',
    '["result", ' + "9" * 5000 + ", false]",
    '["result", 1, 0]',
    '["result", 1, false, 1]',
    '["raised", 5, false]',
    '["error", "RenderError", false]',
    *(json.dumps(["error", FIELDS | fields, False]) for fields in WRONG_FIELDS),
]


class TestFailures:
    """Each costs one answer; the next call is answered."""

    @pytest.mark.parametrize(("fn", "reason", "what"), DEATHS, ids=[fn.__name__ for fn, _, _ in DEATHS])
    def test_a_worker_that_dies_or_babbles(self, fn: Callable[[], Any], reason: str, what: str) -> None:
        with isolated() as executor:
            for number in range(2):
                told, message = failure(executor, fn)
                assert told == reason
                assert what in message
                assert "not evaluated" in message
                assert executor.submit(targets.double, number).result() == 2 * number

    def test_deadline(self) -> None:
        hangs = (targets.sleep_on, targets.ignore_signals, targets.stop_itself)
        with isolated(workers=3, timeout_seconds=2) as executor:
            futures = [executor.submit(fn) for fn in hangs]
            for future in futures:
                error = future.exception()
                assert isinstance(error, WorkerError)
                assert error.details["reason"] == "timeout"
                assert "no answer within 2 s" in error.message
                assert "timeout_seconds" in error.message
            assert list(executor.map(targets.double, range(3))) == [0, 2, 4]

    def test_a_worker_that_does_not_read(self) -> None:
        with isolated(timeout_seconds=2) as executor:
            os.kill(executor.submit(targets.pid).result(), signal.SIGSTOP)
            assert failure(executor, targets.echo, "x" * MB)[0] == "timeout"
            assert executor.submit(targets.double, 4).result() == 8

    def test_cpu(self) -> None:
        with isolated(cpu_seconds=1) as executor:
            reason, message = failure(executor, targets.burn)
            assert reason == "cpu"
            assert "cpu_seconds" in message
            assert executor.submit(targets.double, 4).result() == 8

    @linux
    @pytest.mark.parametrize("fn", [targets.allocate, targets.allocate_bit_by_bit])
    def test_memory(self, fn: Callable[[], Any]) -> None:
        with isolated(memory_bytes=50 * MB) as executor:
            for number in range(2):
                reason, message = failure(executor, fn)
                assert reason == "memory"
                assert "memory_bytes" in message
                assert executor.submit(targets.double, number).result() == 2 * number

    @linux
    def test_killed_from_outside_in_a_call(self) -> None:
        with isolated() as executor:
            for number in range(2):
                pid = executor.submit(targets.pid).result()
                future = executor.submit(targets.sleep_on_by_name)
                while Path(f"/proc/{pid}/comm").read_text() != "asleep\n":
                    time.sleep(0.001)
                os.kill(pid, signal.SIGKILL)
                error = future.exception()
                assert isinstance(error, WorkerError)
                assert error.details["reason"] == "crash"
                assert executor.submit(targets.double, number).result() == 2 * number

    @linux
    def test_killed_from_outside_between_calls_costs_nothing(self) -> None:
        with isolated() as executor:
            for number in range(2):
                pid = executor.submit(targets.pid).result()
                os.kill(pid, signal.SIGKILL)
                wait_for_end(pid)
                assert executor.submit(targets.double, number).result() == 2 * number

    @pytest.mark.parametrize("text", FORGED, ids=range(len(FORGED)))
    def test_an_answer_of_another_shape(self, text: str) -> None:
        with isolated() as executor:
            assert failure(executor, targets.forge, 1, text)[0] == "protocol"

    def test_an_answer_to_another_call(self) -> None:
        with isolated() as executor:
            assert failure(executor, targets.forge, 2, '["result", 1, false]')[0] == "protocol"

    def test_two_answers(self) -> None:
        with isolated() as executor:
            assert failure(executor, targets.forge_twice, 1)[0] == "protocol"

    def test_a_forged_name_cannot_reach_the_terminal(self) -> None:
        with isolated() as executor:
            reason, message = failure(executor, targets.forge, 1, '["raised", "\\u001b[31m", false]')
        assert reason == "crash"
        assert message.isprintable()

    def test_a_worker_that_cannot_start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with isolated() as executor:
            with monkeypatch.context() as patch:
                patch.setattr(sys, "executable", "/no/such/python")
                assert "asking a worker failed: FileNotFoundError" in failure(executor, targets.double, 1)[1]
            assert executor.submit(targets.double, 1).result() == 2

    def test_an_initializer_that_fails(self) -> None:
        with isolated(initializer=targets.warm_up_badly) as executor:
            for _ in range(2):
                error = executor.submit(targets.double, 1).exception()
                assert isinstance(error, WorkerError)
                assert error.details["reason"] == "start"
                assert "LookupError: no such family" in error.message


def wait_until_running(future: Future[Any]) -> None:
    while not future.running():
        time.sleep(0.001)


@linux
class TestWalls:
    def test_nothing_is_inherited(self) -> None:
        read, write = os.pipe()
        os.set_inheritable(read, True)
        os.set_inheritable(write, True)
        try:
            with isolated() as executor:
                opened = executor.submit(targets.open_descriptors).result()
                pipes = [number for number, mode in opened.items() if stat.S_ISFIFO(mode)]
                assert len(pipes) == 2
                assert len(opened) <= 6  # the standard streams, the pipes, and the size of the process on Linux
                assert executor.submit(targets.standard_streams).result() == [True] * 3
        finally:
            os.close(read)
            os.close(write)

    def test_limits(self) -> None:
        with isolated(cpu_seconds=7, memory_bytes=50 * MB) as executor:
            limits = executor.submit(targets.limits).result()
        assert limits["RLIMIT_CORE"] == limits["RLIMIT_FSIZE"] == limits["RLIMIT_NPROC"] == [0, 0]
        assert max(limits["RLIMIT_NOFILE"]) <= 64
        assert 50 * MB < max(limits["RLIMIT_AS"]) < 10_000 * MB
        assert limits["RLIMIT_CPU"][0] >= 7

    def test_no_file_is_written(self, tmp_path: Path) -> None:
        kept = tmp_path / "kept"
        kept.write_text("data")
        with isolated() as executor:
            for fn in (targets.write_file, targets.remove_file):
                assert "PermissionError" in failure(executor, fn, str(kept))[1]
            assert "PermissionError" in failure(executor, targets.write_file, str(tmp_path / "new"))[1]
            assert executor.submit(targets.write_file_past_python, str(tmp_path / "empty")).result() == -1
        assert kept.read_text() == "data"
        empty = {} if sys.platform == "linux" else {"empty": 0}
        assert {path.name: path.stat().st_size for path in tmp_path.iterdir()} == {"kept": 4, **empty}

    def test_no_process_outlives_its_worker(self) -> None:
        with isolated() as executor:
            children = executor.submit(targets.start_processes_past_python).result()
            assert executor.submit(targets.double, 4).result() == 8
        for child in children:
            if child != -1:
                wait_for_end(child)

    def test_a_child_that_keeps_the_pipe(self) -> None:
        with isolated(timeout_seconds=2) as executor:
            assert failure(executor, targets.leave_a_child_with_the_pipe)[0] in ("crash", "timeout")
            assert executor.submit(targets.double, 4).result() == 8


class TestRecycling:
    def test_after_so_many_calls(self) -> None:
        with isolated(calls_per_worker=2) as executor:
            first, second, third = ([executor.submit(targets.pid).result() for _ in range(2)] for _ in range(3))
        assert len({*first}) == len({*second}) == len({*third}) == 1
        assert len({*first, *second, *third}) == 3

    @linux
    def test_when_memory_stays_taken(self) -> None:
        with isolated(memory_bytes=100 * MB) as executor:
            pid = executor.submit(targets.pid).result()
            executor.submit(targets.keep, 5 * MB).result()
            assert executor.submit(targets.pid).result() == pid
            executor.submit(targets.keep, 60 * MB).result()
            assert executor.submit(targets.pid).result() != pid


@pytest.mark.parametrize("make", [isolated, functools.partial(ThreadPoolExecutor, 1)], ids=["isolated", "threads"])
class TestAsTheStandardExecutors:
    def test_cancel(self, make: Callable[[], Executor]) -> None:
        with make() as executor:
            busy = executor.submit(targets.nap, 0.5)
            wait_until_running(busy)
            queued = [executor.submit(targets.double, number) for number in range(3)]
            assert queued[1].cancel()
            assert not busy.cancel()
            assert queued[1].cancelled()
            futures: list[Future[Any]] = [busy, *queued]
            assert set(as_completed(futures)) == set(futures)
            assert (queued[0].result(), queued[2].result()) == (0, 4)
            with pytest.raises(CancelledError):
                queued[1].result()

    def test_shutdown_finishes_the_queue(self, make: Callable[[], Executor]) -> None:
        executor = make()
        futures = [executor.submit(targets.nap, 0.05) for _ in range(5)]
        executor.shutdown()
        assert all(future.done() for future in futures)
        executor.shutdown()
        with pytest.raises(RuntimeError, match="cannot schedule new futures after shutdown"):
            executor.submit(targets.double, 1)

    def test_shutdown_without_waiting(self, make: Callable[[], Executor]) -> None:
        executor = make()
        futures = [executor.submit(targets.nap, 0.05) for _ in range(5)]
        executor.shutdown(wait=False)
        assert [future.result() for future in futures] == [0.05] * 5
        executor.shutdown()

    def test_shutdown_that_cancels(self, make: Callable[[], Executor]) -> None:
        executor = make()
        busy = executor.submit(targets.nap, 0.5)
        wait_until_running(busy)
        queued = [executor.submit(targets.double, number) for number in range(5)]
        executor.shutdown(wait=False, cancel_futures=True)
        assert all(future.cancelled() for future in queued)
        assert busy.result() == 0.5
        executor.shutdown()

    def test_unused(self, make: Callable[[], Executor]) -> None:
        with make():
            pass


def test_wait_sees_the_futures_that_shutdown_cancelled() -> None:
    executor = isolated()
    busy = executor.submit(targets.nap, 0.2)
    wait_until_running(busy)
    queued = executor.submit(targets.double, 1)
    executor.shutdown(cancel_futures=True)
    futures: list[Future[Any]] = [busy, queued]
    assert wait(futures).done == set(futures)


def test_an_executor_that_is_dropped_ends_its_threads() -> None:
    before = threads()
    executor = isolated(workers=2)
    assert list(executor.map(targets.double, range(4))) == [0, 2, 4, 6]
    own = threads() - before
    assert len(own) == 2
    del executor
    gc.collect()
    for thread in own:
        thread.join()


SCRIPT = """
from jinjarun.isolation import IsolatedExecutor
from tests import isolation_targets as targets

executor = IsolatedExecutor(1, timeout_seconds=TIMEOUT)
print(executor.submit(targets.pid).result(), flush=True)
future = executor.submit(FUNCTION)
"""


@contextlib.contextmanager
def script(text: str, **variables: Any) -> Iterator[subprocess.Popen[str]]:
    for name, value in variables.items():
        text = text.replace(name, str(value))
    command = [sys.executable, "-W", "error", "-c", text]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def first_line(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


@linux
class TestTheParentEnds:
    @pytest.mark.parametrize("fn", ["sleep_on", "burn", "ignore_signals", "stop_itself"])
    def test_killed(self, fn: str) -> None:
        with script(SCRIPT + "future.result()", TIMEOUT=1000, FUNCTION=f"targets.{fn}") as process:
            worker = first_line(process)
            assert is_alive(worker)
            process.kill()
            process.wait()
            wait_for_end(worker)

    def test_killed_between_calls(self) -> None:
        with script(SCRIPT + "future.result(); input()", TIMEOUT=1000, FUNCTION="targets.pid") as process:
            worker = first_line(process)
            process.kill()
            process.wait()
            wait_for_end(worker)

    def test_interrupted(self) -> None:
        with script(SCRIPT + "future.result()", TIMEOUT=2, FUNCTION="targets.sleep_on") as process:
            worker = first_line(process)
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate()
            assert process.returncode == -signal.SIGINT
            assert stderr.rstrip().endswith("KeyboardInterrupt")
            wait_for_end(worker)

    def test_without_shutdown(self) -> None:
        text = SCRIPT + "future.add_done_callback(lambda done: print(done.result()))"
        with script(text, TIMEOUT=1000, FUNCTION="targets.double, 21") as process:
            stdout, stderr = process.communicate()
            assert (stdout.split()[1:], stderr, process.returncode) == (["42"], "", 0)
            wait_for_end(int(stdout.split()[0]))


def test_a_module_in_the_current_folder_is_not_taken_for_the_library(tmp_path: Path) -> None:
    for name in ("json", "jinjarun", "select", "operator"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('taken')")
    text = """
from jinjarun.isolation import IsolatedExecutor
from tests import isolation_targets as targets
print(IsolatedExecutor(1).submit(targets.double, 3).result())
"""
    command = [sys.executable, "-P", "-c", text]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("6\n", "")
