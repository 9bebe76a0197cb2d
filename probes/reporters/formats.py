"""What a format is: the row that each reporter has of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from probes.results.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from probes.results.rows import Row


class Out(Protocol):
    """Where a report goes: a binary file, or standard output."""

    def write(self, data: bytes, /) -> object: ...


@dataclass(frozen=True, slots=True)
class Format:
    """`writer(rows, out, tally)` reads the rows as they come, writes UTF-8 bytes to `out`, and finds the figures over
    all of them in `tally` once the rows have ended.

    `endings` of files choose the format. `lines`: each row stands for itself, so that half a file is of use.
    `findings`: it tells of findings and errors alone, which other commands than a scan have as well.
    """

    name: str
    what: str
    writer: Callable[[Iterable[Row], Out, Tally], None]
    endings: tuple[str, ...] = ()
    lines: bool = False
    findings: bool = False

    def write(self, rows: Iterable[Row], out: Out, command: str = "scan") -> Tally:
        """Writes all rows, which `command` gave, and returns the figures over them."""
        tally = Tally(command)
        self.writer(tally.watching(rows), out, tally)
        return tally
