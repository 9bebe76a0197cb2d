"""What `jinjarun` starts as: a parent that reads nothing a stranger wrote, and one worker that does.

    parent (this module)                            worker (`probes.commands.walled`)
    starts it, with what it may know of the         reads the arguments; says how long it may take and which files
    environment; hands over the standard streams    it was told to write; raises its walls; runs the command
    waits until the deadline; passes signals on  <- puts a line for each file that is whole
    puts these files in place; takes its exit code

So it imports little: nothing here knows a template from a request.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

FINDING, UNUSABLE, LOST, INTERRUPTED, CLOSED_PIPE = 1, 2, 3, 130, 141
CODES = (0, FINDING, UNUSABLE, LOST, INTERRUPTED, CLOSED_PIPE)

ENVIRONMENT = (
    *("COLUMNS", "LINES", "TERM", "NO_COLOR", "FORCE_COLOR", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "HOME", "TMPDIR"),
    *("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME", "JINJARUN_TRACEBACK"),
    *("PYTHONHOME", "PYTHONHASHSEED", "PYTHONUTF8", "PYTHONIOENCODING", "PYTHONUNBUFFERED"),
    *("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"),
)
"""The variables that the worker gets, where they are set: how to write, what time it is, where the cache of models is.
The rest of the environment is where secrets are."""

START_SECONDS = 120.0
"""How long a worker may take to read its arguments."""
END_SECONDS = 10.0
"""How long it may take to end when it has closed its pipe."""
_PLAN_BYTES = 1_000_000
_CHUNK = 1 << 16

_BOOT = """\
import json, sys
settings = json.loads(sys.argv[1])
sys.path[:] = settings.pop("path")
from probes.commands.walled import serve
serve(**settings)
"""


def main() -> int:
    """The program: its exit code is the command's."""
    if sys.stdout is None:
        return _complain("cannot write: standard output is closed", UNUSABLE)
    if sys.platform == "win32":
        from probes.commands import program  # noqa: PLC0415

        _complain("Windows has no walls for workers: what is read is read in this process", 0)
        return program.main(sys.argv[1:])
    return _Worker(sys.argv[1:]).wait()


def _complain(message: str, code: int) -> int:
    with contextlib.suppress(OSError, AttributeError):
        shown = "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in message)
        print(f"jinjarun: {shown}", file=sys.stderr)
    return code


class _Worker:
    """A process that runs a command, and what it has said of it."""

    def __init__(self, arguments: list[str]) -> None:
        self._interrupts = 0
        self._said = bytearray()
        self._acts: list[list[str]] | None = None
        self._seconds: float | None = START_SECONDS
        self._deadline: float | None = time.monotonic() + START_SECONDS
        self._done: set[int] = set()
        self._reader, writer = (_above_standard(descriptor) for descriptor in os.pipe())
        os.set_inheritable(writer, True)
        settings = {
            "path": list(map(str, sys.path)),
            "parent": os.getpid(),
            "told": writer,
            "arguments": [argument.encode("utf-8", "surrogateescape").hex() for argument in arguments],
        }
        signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP)
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)  # none is lost between the start and the handlers
        self._pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-P", "-c", _BOOT, json.dumps(settings)],
            {name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
            setsigmask=[signal.SIGINT],
        )
        os.close(writer)
        self._ignored = {number for number in signals if signal.getsignal(number) is signal.SIG_IGN}
        for number in signals:
            signal.signal(number, self._pass_on)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)

    def wait(self) -> int:
        """Exit code of the command, once the files that are whole are in place."""
        failure = self._listen()
        status = self._end(kill=failure is not None)
        code = os.waitstatus_to_exitcode(status)
        if failure is None and code in (-signal.SIGTERM, -signal.SIGHUP, -signal.SIGINT):
            self._clear()
            signal.signal(-code, signal.SIG_DFL)
            os.kill(os.getpid(), -code)
        if failure is None and code == -signal.SIGKILL and self._interrupts:
            self._clear()
            return INTERRUPTED
        if failure is None and code < 0:
            failure = f"its worker was killed by signal {-code} ({signal.strsignal(-code)}); please report it"
        if failure is None and code not in CODES:
            failure = f"its worker ended with exit code {code}; please report it"
        if failure is not None:
            self._clear()
            return _complain(f"worker error: {failure}", FINDING)
        return self._put_in_place(code)

    def _listen(self) -> str | None:
        """Until the worker closes its pipe, which it does when it ends; or why it must not go on."""
        while True:
            rest = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
            if not select.select([self._reader], [], [], rest)[0]:
                return self._too_late()
            data = os.read(self._reader, _CHUNK)
            if not data:
                return None
            self._said += data
            try:
                self._understand()
            except (ValueError, TypeError, RecursionError):
                return "its worker sent something that makes no sense, so it was killed; please report it"

    def _understand(self) -> None:
        if len(self._said) > _PLAN_BYTES:
            raise ValueError
        *lines, rest = self._said.split(b"\n")
        self._said = bytearray(rest)
        for line in lines:
            if self._acts is None:
                match json.loads(line):
                    case {"acts": [*acts], "seconds": int() | float() | None as seconds}:
                        self._acts, self._seconds = [list(map(str, act)) for act in acts], seconds
                        self._deadline = None if seconds is None else time.monotonic() + seconds
                    case _:
                        raise ValueError
            elif (number := int(line)) in range(len(self._acts)):
                self._done.add(number)
            else:
                raise ValueError

    def _too_late(self) -> str:
        if self._acts is None:
            return f"it did not start within {self._seconds:g} s, so it was killed"
        seconds = f"no answer within {self._seconds:g} s, which is what --timeout allows"
        return f"{seconds}, so its worker was killed; not evaluated: a higher --timeout allows more"

    def _end(self, *, kill: bool) -> int:
        """The status of the worker, which has ended or is made to."""
        deadline, nap = time.monotonic() + END_SECONDS, 0.0005
        while not kill:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                return status
            kill = time.monotonic() > deadline
            time.sleep(nap)
            nap = min(2 * nap, 0.05)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self._pid, signal.SIGKILL)
            os.killpg(self._pid, signal.SIGKILL)
        return os.waitpid(self._pid, 0)[1]

    def _put_in_place(self, code: int) -> int:
        for number, act in enumerate(self._acts or []):
            if number in self._done:
                try:
                    if len(act) == 2:
                        os.replace(*act)
                    elif os.path.lexists(*act):
                        os.unlink(*act)
                except OSError as error:
                    code = _complain(f"cannot write: {act[-1]}: {error.strerror or error}", UNUSABLE)
        self._clear()
        return code

    def _clear(self) -> None:
        """Files that were begun and are not whole."""
        for number, act in enumerate(self._acts or []):
            if number not in self._done and len(act) == 2:
                with contextlib.suppress(OSError):
                    os.unlink(act[0])

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        """The worker has a session of its own, so a terminal's signals reach this process alone. What this one was told
        to ignore, the worker was, too, and may have thought better of it."""
        with contextlib.suppress(ProcessLookupError):
            if number == signal.SIGTSTP:
                if number not in self._ignored:
                    os.kill(self._pid, signal.SIGSTOP)
                    os.kill(os.getpid(), signal.SIGSTOP)
                    os.kill(self._pid, signal.SIGCONT)
                return
            self._interrupts += number == signal.SIGINT and number not in self._ignored
            os.kill(self._pid, number if self._interrupts < 3 else signal.SIGKILL)


def _above_standard(descriptor: int) -> int:
    """The same, above the numbers of the standard streams, of which some may be closed."""
    if descriptor > 2:
        return descriptor
    import fcntl  # noqa: PLC0415

    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(descriptor)
    return moved
