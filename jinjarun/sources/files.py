"""Reading strangers' files: read-only, bounded, never blocking, every failure a `SourceError`."""

from __future__ import annotations

import contextlib
import io
import os
import stat
from typing import TYPE_CHECKING

from jinjarun.errors import SourceError, quote

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

TEXT_BYTES = 4_000_000
"""The largest template that is read at all, in bytes. What may be rendered is `Limits.source_bytes`, far below."""

LISTED_FILES = 10_000
"""The most entries of one folder that are looked at."""

BOM = "\ufeff"

_KINDS = (
    (stat.S_ISDIR, "is a directory, not a file"),
    (stat.S_ISFIFO, "is a named pipe, not a file"),
    (stat.S_ISSOCK, "is a socket, not a file"),
    (stat.S_ISCHR, "is a device, not a file"),
    (stat.S_ISBLK, "is a device, not a file"),
)

_KERNEL = ("/proc/", "/sys/")
"""What lies there is regular by its mode, and tells of this process and this machine."""


def failure(path: str, reason: str, *, place: str | None = None, hint: str | None = None) -> SourceError:
    """`SourceError` "PATH: PLACE: REASON; HINT" with the four as `details`; null where there is none."""
    place = None if place is None else quote(place)
    where = quote(path) if place is None else f"{quote(path)}: {place}"
    message = f"{where}: {reason}" if hint is None else f"{where}: {reason}; {hint}"
    return SourceError(message, path=path, place=place, reason=reason, hint=hint)


@contextlib.contextmanager
def os_errors(path: str) -> Iterator[None]:
    """What the operating system refuses, as a `SourceError` that names the file."""
    try:
        yield
    except OSError as error:
        raise failure(path, (error.strerror or type(error).__name__).lower()) from None
    except ValueError as error:  # a NUL byte in the name, characters that the file system cannot encode
        raise failure(path, f"is no file name ({error})") from None


@contextlib.contextmanager
def open_regular(path: str, inside: str | None = None) -> Iterator[tuple[io.FileIO, int]]:
    """An open regular file and its size in bytes; pipes, devices, directories and files of the kernel are refused.

    `inside`: a folder as `boundary` gives it. A file that lies elsewhere, reached over whatever links, is refused;
    without it links are followed wherever they lead.

    The kind is checked before opening, because opening a device can have effects, and after it, because the name
    can have changed hands; opened without blocking, because a pipe may have taken its place. Where the file lies is
    asked of the open file, which no link can change any more.
    """
    with os_errors(path):
        _require_regular(path, os.stat(path).st_mode)
        if inside is not None:
            require_inside(path, inside)
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
        with io.FileIO(os.open(path, flags), "rb") as file:
            status = os.fstat(file.fileno())
            _require_regular(path, status.st_mode)
            real = _real_path(path, file.fileno(), status)
            if real.startswith(_KERNEL):
                raise failure(path, "is a file of the kernel, not of a model")
            if inside is not None:
                _require_inside(path, real, inside)
            yield file, status.st_size


def _real_path(path: str, descriptor: int, status: os.stat_result) -> str:
    """Where an open file lies: Linux tells; elsewhere the name is followed again and must lead to the same file."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        real = os.path.realpath(path)
        if not os.path.samestat(status, os.lstat(real)):
            raise failure(path, "changed while it was opened", hint="try again") from None
        return real


def boundary(folder: str) -> str:
    """The real folder that the files of a model may lie in: its own; for a snapshot in the Hugging Face cache, whose
    files are links to `../../blobs`, its repository's."""
    with os_errors(folder):
        real = os.path.realpath(folder)
    above, snapshots = os.path.split(os.path.dirname(real))
    return above if snapshots == "snapshots" and os.path.basename(above).startswith("models--") else real


def is_inside(path: str, folder: str) -> bool:
    """Whether a file or folder, all its links followed, lies in what `boundary` gave. A link to itself does."""
    with os_errors(path):
        return _lies_in(os.path.realpath(path), folder)


def _lies_in(real: str, folder: str) -> bool:
    return real.startswith(os.path.join(folder, ""))


def require_inside(path: str, folder: str) -> None:
    """`SourceError` where a file or folder, all its links followed, lies outside of what `boundary` gave."""
    with os_errors(path):
        _require_inside(path, os.path.realpath(path), folder)


def _require_inside(path: str, real: str, folder: str) -> None:
    if not _lies_in(real, folder):
        hint = "if that is meant, copy the file there, or name the file itself"
        raise failure(path, f"is a link that leads out of {quote(folder)}", hint=hint)


def _require_regular(path: str, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise failure(path, next((text for test, text in _KINDS if test(mode)), "is not a regular file"))


def read_bytes(path: str, limit: int, inside: str | None = None) -> bytes:
    """The whole file, or `SourceError` if it has more than `limit` bytes, whatever size it claims; `inside` as in
    `open_regular`."""
    with open_regular(path, inside) as (file, size):
        if size > limit:
            raise _too_large(path, limit, size)
        return read_stream(path, file, limit)


def read_stream(path: str, stream: BinaryIO | io.RawIOBase, limit: int) -> bytes:
    """All that a stream still has to give, at most `limit` bytes."""
    chunks: list[bytes] = []
    room = limit + 1
    with os_errors(path):
        while room and (chunk := stream.read(min(room, 1 << 20))):
            chunks.append(chunk)
            room -= len(chunk)
    if not room:
        raise _too_large(path, limit)
    return b"".join(chunks)


def _too_large(path: str, limit: int, size: int | None = None) -> SourceError:
    has = "more than that" if size is None else f"{size:,}"
    hint = None if size is None else "the files of one model count together"
    return failure(path, f"is too large: {has} of at most {limit:,} bytes", hint=hint)


def decode(path: str, data: bytes, place: str | None = None) -> tuple[str, bool]:
    """UTF-8 text without its byte order mark, and whether it had one. Nothing else is changed, line ends included."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        where = f"byte {error.start}" if place is None else f"{place}, byte {error.start}"
        hint = "it looks like UTF-16: save it as UTF-8" if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else None
        raise failure(path, f"is not UTF-8 ({error.reason})", place=where, hint=hint) from None
    return (text[1:], True) if text.startswith(BOM) else (text, False)


def is_file(path: str) -> bool:
    """Whether something that is not a directory stands there, readable or not. A link to nothing counts as absent."""
    with os_errors(path):
        try:
            return not stat.S_ISDIR(os.stat(path).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False


def is_directory(path: str) -> bool:
    with os_errors(path):
        try:
            return stat.S_ISDIR(os.stat(path).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False


def list_names(path: str) -> list[str]:
    """The names in a folder, sorted; none if there is no such folder."""
    names: list[str] = []
    with os_errors(path):
        try:
            entries = os.scandir(path)
        except (FileNotFoundError, NotADirectoryError):
            return []
        with entries:
            for entry in entries:
                names.append(entry.name)
                if len(names) > LISTED_FILES:
                    raise failure(path, f"has more than {LISTED_FILES:,} entries")
    return sorted(names)


def starts_with(path: str, prefix: bytes, inside: str | None = None) -> bool:
    """Whether a regular file begins with these bytes."""
    with open_regular(path, inside) as (file, _), os_errors(path):
        return file.read(len(prefix)) == prefix
