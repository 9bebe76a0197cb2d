"""Executors and calls for the tests of scans, importable in a worker."""

from __future__ import annotations

import os
import signal
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from probes.scanner.worker import Answered


class Here:
    """An executor that runs each call at once, in this process, and counts them."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        from probes.scanner.worker import evaluate  # noqa: PLC0415

        self.calls.append(args[0])
        future: Future[Any] = Future()
        try:
            future.set_result(evaluate(*args))
        except Exception as error:
            future.set_exception(error)
        return future


class Unreliable(Here):
    """The first `failures` calls of each template fail as if their machine had gone."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures = failures

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        if self.calls.count(args[0]) < self.failures:
            self.calls.append(args[0])
            future: Future[Any] = Future()
            future.set_exception(ConnectionError("the machine is gone"))
            return future
        return super().submit(fn, *args)


class Closed:
    """An executor that takes nothing."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        raise RuntimeError("cannot schedule new futures after shutdown")


class Gone(Here):
    """An executor that goes away after some calls: then each fails with `error`; for None it takes no more."""

    def __init__(self, calls: int, error: type[Exception] | None) -> None:
        super().__init__()
        self.left = calls
        self.error = error

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        self.left -= 1
        if self.left >= 0:
            return super().submit(fn, *args)
        if self.error is None:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future: Future[Any] = Future()
        future.set_exception(self.error("gone"))
        return future


class Forging(Here):
    """An executor whose worker answers `answer` for one template."""

    def __init__(self, template: str, answer: Any) -> None:
        super().__init__()
        self.template = template
        self.answer = answer

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        if args[0] != self.template:
            return super().submit(fn, *args)
        future: Future[Any] = Future()
        future.set_result(self.answer)
        return future


def killed_once(template: str, depth: str, mark: str) -> Answered:
    """Kills its worker the first time, and answers the second time."""
    from probes.scanner.worker import evaluate  # noqa: PLC0415

    try:
        os.stat(mark)
    except FileNotFoundError:
        os.kill(os.getpid(), signal.SIGKILL)
    return evaluate(template, depth)  # type: ignore[arg-type]
