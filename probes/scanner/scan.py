"""`scan`: every template of many files, each distinct one probed once, a row for every file.

    find ----> digest ----> window of futures ----> rows
               known? no probe      in the order of the files

Memory is flat: the window bounds the futures and the rows that wait for them, what is known of templates is on disk
(`scanning.answers`), and of each distinct template only its digest stays in memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections import deque
from concurrent.futures import BrokenExecutor, CancelledError
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from jinjarun.errors import InputError, JinjarunError, WorkerError, quote
from jinjarun.limits import Limits
from probes.results.rows import Row, Status, tool
from probes.scanner.answers import Answers, Known
from probes.scanner.walk import find
from probes.scanner.worker import checked, evaluate, isolated, walled

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from contextlib import AbstractContextManager
    from typing import BinaryIO

    from probes.prober import Depth
    from probes.scanner.found import Found
    from probes.scanner.worker import Evaluation

FUTURES = 16
"""Calls in the window for each one that runs: how long one slow template may hold up the row before it."""
WAITING = 4096
"""Rows that may wait behind one probe."""
ATTEMPTS = 2
"""A worker that was killed from outside costs a second attempt, not an answer."""


class Promise(Protocol):
    """What `submit` must return: the part of `concurrent.futures.Future` that is used."""

    def result(self) -> Any: ...
    def done(self) -> bool: ...
    def cancel(self) -> Any: ...


class Submits(Protocol):
    """Any executor: threads, processes, Dask's `Client.get_executor()`, an adapter of Ray's."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Promise: ...


def scan(
    paths: Iterable[str | os.PathLike[str]],
    *,
    executor: Submits | None = None,
    jobs: int | None = None,
    depth: Depth = "full",
    limit: int | None = None,
    limits: Limits | None = None,
    follow_symlinks: bool = False,
    cache: str | os.PathLike[str] | None = None,
    known: Iterable[Row] = (),
    stdin: BinaryIO | None = None,
) -> Generator[Row, None, None]:
    """The rows of all that is in `paths` (see `scanning.walk.find`), in an order that only the names decide.

    Distinct templates, by the SHA-256 of their text, are probed in isolated workers, `jobs` at a time (default: one for
    each CPU core); `executor` has them probed by anything with `submit`, and then `jobs` (default 64) only bounds what
    it is given at once. It is left open.
    `limit`: end after so many rows. `cache`: a folder in which answers are kept for later scans; they count as long as
    tool, engines, `depth` and `limits` are the same. `known`: rows of an earlier scan, whose answers are not asked
    again. `stdin` is what `-` reads.

    What a template does never raises. A file that cannot be read is a row with status "error", a template that hit a
    limit or lost its worker twice one with "not_evaluated". A full disk raises OSError, a damaged cache InputError, an
    executor that is gone WorkerError ("lost"): the rows before it are whole, and what was answered is kept.
    Closing the iterator, or Ctrl-C in it, keeps every answer that is there.
    """
    for name, value in (("jobs", jobs), ("limit", limit)):
        if value is not None and value < 1:
            raise InputError(f"{name} must be at least 1", path=name)
    names = [os.fspath(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
    found = find(names, follow_symlinks=follow_symlinks, stdin=stdin)
    answers = partial(_opened, None if cache is None else os.fspath(cache), tool(depth, limits), known)
    return _scan(found, answers, partial(_windowed, executor, jobs, (depth, asdict(limits or Limits()))), limit)


def _opened(cache: str | None, tool: str, known: Iterable[Row]) -> Answers:
    answers = Answers(cache, tool)
    for row in known:
        if row.summary is not None and row.sha256 is not None and row.summary.tool == answers.tool:
            answers.put(row.sha256, row.summary, None)
    return answers


@contextlib.contextmanager
def _windowed(
    executor: Submits | None, jobs: int | None, asked: tuple[Depth, dict[str, int]], answers: Answers
) -> Iterator[_Window]:
    """A window on isolated workers of our own, or on `executor`; its answers are kept however it ends."""
    if executor is not None:
        window = _Window(lambda template: executor.submit(walled, template, *asked), answers, jobs or 64)
        with contextlib.closing(window):
            yield window
        return
    jobs = jobs or os.cpu_count() or 1
    pool = isolated(jobs)
    window = _Window(lambda template: pool.submit(evaluate, template, *asked), answers, FUTURES * jobs)
    try:
        with contextlib.closing(window):
            yield window
    finally:
        pool.shutdown(cancel_futures=True)


def _scan(
    found: Iterator[Found],
    opened: Callable[[], Answers],
    windowed: Callable[[Answers], AbstractContextManager[_Window]],
    limit: int | None,
) -> Generator[Row, None, None]:
    with contextlib.closing(opened()) as answers, windowed(answers) as window:
        for number, row in enumerate(window.rows(found), 1):
            yield row
            if number == limit:
                break


@dataclass(slots=True)
class _Asked:
    """A template that is being probed."""

    template: str
    promise: Promise


class _Window:
    """The futures under way, and the rows that wait for them or behind them."""

    def __init__(self, submit: Callable[[str], Promise], answers: Answers, size: int) -> None:
        self._submit = submit
        self._answers = answers
        self._size = size
        self._asked: dict[str, _Asked] = {}
        self._waiting: deque[tuple[Found, str | None]] = deque()
        self._seen: set[bytes] = set()

    def rows(self, found: Iterator[Found]) -> Iterator[Row]:
        for one in found:
            sha256 = None
            if one.text is not None:
                sha256 = hashlib.sha256(one.text.encode("utf-8", "surrogatepass")).hexdigest()
                if sha256 not in self._asked and self._answers.get(sha256) is None:
                    try:
                        self._asked[sha256] = _Asked(one.text, self._ask(one.text))
                    except WorkerError:
                        yield from self._finished()
                        raise
                one = replace(one, text=None)
            self._waiting.append((one, sha256))
            while self._waiting and (self._full() or self._settled(self._waiting[0][1])):
                yield self._row(*self._waiting.popleft())
        while self._waiting:
            yield self._row(*self._waiting.popleft())

    def _finished(self) -> Iterator[Row]:
        """The rows that wait for nobody."""
        while self._waiting and self._settled(self._waiting[0][1]):
            yield self._row(*self._waiting.popleft())

    def close(self) -> None:
        """Keeps the answers that have come; the others are not waited for."""
        for sha256, asked in list(self._asked.items()):
            if asked.promise.done():
                with contextlib.suppress(WorkerError):
                    self._settle(sha256, attempts=1)
            else:
                asked.promise.cancel()

    def _full(self) -> bool:
        return len(self._asked) >= self._size or len(self._waiting) >= WAITING

    def _ask(self, template: str) -> Promise:
        try:
            return self._submit(template)
        except Exception as error:
            raise _lost(error) from None

    def _settled(self, sha256: str | None) -> bool:
        asked = None if sha256 is None else self._asked.get(sha256)
        return asked is None or asked.promise.done()

    def _row(self, found: Found, sha256: str | None) -> Row:
        if sha256 is None:
            status: Status = "no_template" if found.error is None else "error"
            return Row(found.id, found.kind, status, found.key, found.name, found.form, error=found.error)
        if sha256 in self._asked:
            self._settle(sha256, ATTEMPTS)
        known = self._answers.get(sha256) or Known("not_evaluated")
        digest = bytes.fromhex(sha256)
        first = digest not in self._seen
        self._seen.add(digest)
        return Row(
            found.id,
            found.kind,
            known.status,
            found.key,
            found.name,
            found.form,
            sha256,
            first,
            known.summary,
            known.error,
            partial(self._answers.detail, sha256),
        )

    def _settle(self, sha256: str, attempts: int) -> None:
        """Waits for the answer and keeps it; a template whose worker went away is asked again."""
        asked = self._asked[sha256]
        answer: Evaluation | None = None
        error: Exception | None = None
        for attempt in range(attempts):
            if attempt:
                asked.promise = self._ask(asked.template)
            try:
                answer = checked(asked.promise.result(), self._answers.tool)
                break
            except WorkerError as failed:
                error = failed
                if failed.details.get("reason") not in {"crash", "start"}:
                    break
            except JinjarunError as failed:
                error = failed
                break
            except Exception as failed:  # whatever a foreign executor raises when a machine is gone
                error = failed
        if error is not None and answer is None and _tells_of_the_executor(error):
            raise _lost(error)
        if answer is None:
            self._answers.fail(sha256, _described(error))
        elif answer.limited is not None:
            self._answers.fail(sha256, {"type": "LimitExceeded", "message": answer.limited})
        else:
            self._answers.put(sha256, answer.summary, answer.detail)
        del self._asked[sha256]


def _tells_of_the_executor(error: Exception) -> bool:
    """Whether it is all calls that fail so, not this one alone. Nobody but the executor cancels a call that is waited
    for."""
    if isinstance(error, WorkerError):
        return error.details.get("reason") in {"start", "lost"}
    return isinstance(error, CancelledError | BrokenExecutor)


def _lost(error: Exception) -> WorkerError:
    what = error.message if isinstance(error, JinjarunError) else f"{type(error).__name__}: {error}".rstrip(": ")
    return WorkerError(f"the executor is lost ({quote(what)})", reason="lost", function="scan")


def _described(error: Exception | None) -> dict[str, str]:
    message = error.message if isinstance(error, JinjarunError) else str(error)
    return {"type": type(error).__name__, "message": quote(message)}
