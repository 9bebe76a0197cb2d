"""A scan at a terminal: its progress, its end by Ctrl-C, and a file that is never half written."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import time
from typing import TYPE_CHECKING, BinaryIO, Generic, TextIO, TypeVar

from jinjarun.errors import WorkerError
from probes.scanner.begun import begun, begun_lines

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator
    from types import FrameType

    from probes.results.rows import Row

T = TypeVar("T")


class Stoppable(Generic[T]):
    """Items until the first Ctrl-C (`stopped`), or until what makes them is lost (`lost` says how), then the end, so
    that whoever reads them finishes what it writes. A second Ctrl-C is a KeyboardInterrupt, as ever."""

    def __init__(self, items: Generator[T, None, None]) -> None:
        self._items = items
        self._waiting = False
        self.stopped = False
        self.lost: WorkerError | None = None

    def __iter__(self) -> Iterator[T]:
        with self._listening(), contextlib.closing(self._items):
            while not self.stopped:
                self._waiting = True
                try:
                    item = next(self._items)
                except StopIteration:
                    return
                except KeyboardInterrupt:
                    self.stopped = True
                    return
                except WorkerError as error:
                    self.lost = error
                    return
                finally:
                    self._waiting = False
                yield item

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        again, self.stopped = self.stopped, True
        if again or self._waiting:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def _listening(self) -> Iterator[None]:
        """Only the main thread can listen; in another one Ctrl-C is not ours anyway."""
        try:
            before = signal.signal(signal.SIGINT, self._interrupt)
        except ValueError:
            yield
            return
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


class Lines:
    """A file that holds whole writes only: what a full disk cut short is taken away again."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = begun_lines(path)
        self._regular = stat.S_ISREG(os.fstat(self._file).st_mode)
        self._whole = 0

    def write(self, data: bytes, /) -> None:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError as error:
            if self._regular:
                os.ftruncate(self._file, self._whole)
            raise OSError(error.errno, f"{self._path}: {error.strerror}; the rows before this one are in it") from None
        self._whole += len(data)

    def close(self) -> None:
        os.close(self._file)


@contextlib.contextmanager
def whole_file(path: str) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` when all is written, and else leaves it as it was."""
    file = begun(path)
    try:
        with open(file.descriptor, "wb") as opened:
            yield opened
        file.finish()
    except OSError as error:
        raise OSError(error.errno, f"{path}: {error.strerror}; the file is as it was before") from None
    finally:
        file.drop()


class Progress:
    """A line on a terminal that tells how far a scan is. `total`: the files there are, None where nobody knows."""

    EVERY_SECONDS = 0.2

    def __init__(self, terminal: TextIO, total: int | None) -> None:
        self._terminal = terminal
        self._total = total
        self._start = time.monotonic()
        self._next = 0.0

    def watching(self, rows: Iterable[Row]) -> Iterator[Row]:
        files = 0
        last = None
        try:
            for row in rows:
                files += row.id != last
                last = row.id
                now = time.monotonic()
                if now >= self._next:
                    self._next = now + self.EVERY_SECONDS
                    self._draw(files, now - self._start)
                yield row
        finally:
            self._write("\r\x1b[K")

    def _draw(self, files: int, seconds: float) -> None:
        self._write(f"\r\x1b[K{progress(files, self._total, seconds)}")

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self._terminal.write(text)
            self._terminal.flush()


def progress(files: int, total: int | None, seconds: float) -> str:
    """`[#####.....]  300 of 602 files, 12/s, 0:25 left`."""
    rate = files / seconds if seconds > 0 else 0.0
    speed = f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s"
    if total is None:
        return f"{files:,} files, {speed}"
    done = min(1.0, files / total) if total else 1.0
    bar = "#" * round(20 * done)
    left = (total - files) / rate if rate else 0
    return f"[{bar:.<20}] {files:,} of {total:,} files, {speed}, {duration(max(0.0, left))} left"


def duration(seconds: float) -> str:
    """`0:05`, `12:34`, `1:02:03`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
