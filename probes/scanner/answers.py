"""What is known of templates already: in a file of SQLite, so that memory stays flat and a kill loses nothing."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from jinjarun.errors import InputError
from probes.results.rows import Summary
from probes.scanner.temporary import temporary_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = "answers.sqlite"
RECENT = 1024
"""Answers that are held in memory: a corpus is mostly the same few hundred templates."""

_TABLES = """
CREATE TABLE IF NOT EXISTS answers (
    sha256 TEXT NOT NULL, tool TEXT NOT NULL, summary TEXT NOT NULL, detail BLOB, PRIMARY KEY (sha256, tool)
) WITHOUT ROWID;
CREATE TEMP TABLE failures (sha256 TEXT PRIMARY KEY, type TEXT NOT NULL, message TEXT NOT NULL) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Known:
    """`status` of the rows with this template, and what stands in them."""

    status: Literal["probed", "not_evaluated"]
    summary: Summary | None = None
    error: dict[str, str] | None = None


class Answers:
    """Answers by the SHA-256 of a template, for one `tool` (see `rows.tool`).

    `folder` is kept for later scans; without one they are gone with this object. A template that nothing could be
    learned of is remembered for this scan only: the next one asks again.

    A full disk raises OSError, a damaged file InputError.
    """

    def __init__(self, folder: str | None, tool: str) -> None:
        self.tool = tool
        self._closed = False
        self._recent: OrderedDict[str, Known] = OrderedDict()
        with contextlib.ExitStack() as opened:
            where = opened.enter_context(temporary_folder()) if folder is None else folder
            self.path = os.path.join(where, FILE)
            os.makedirs(where, exist_ok=True)
            with self._sqlite_errors():
                self._db = sqlite3.connect(self.path, timeout=60, isolation_level=None, check_same_thread=False)
                opened.callback(self._db.close)
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA synchronous = OFF" if folder is None else "PRAGMA synchronous = NORMAL")
                self._db.execute("PRAGMA journal_size_limit = 4000000")
                self._db.execute("PRAGMA temp_store = MEMORY")
                self._db.executescript(_TABLES)
            self._opened = opened.pop_all()

    def get(self, sha256: str) -> Known | None:
        known = self._recent.get(sha256)
        if known is not None:
            self._recent.move_to_end(sha256)
            return known
        with self._sqlite_errors():
            row = self._db.execute(
                "SELECT summary FROM answers WHERE sha256 = ? AND tool = ?", (sha256, self.tool)
            ).fetchone()
            failed = self._db.execute("SELECT type, message FROM failures WHERE sha256 = ?", (sha256,)).fetchone()
        summary = None if row is None else self._summary(sha256, row[0])
        if summary is not None:
            return self._remember(sha256, Known("probed", summary))
        if failed is not None:
            return self._remember(sha256, Known("not_evaluated", error={"type": failed[0], "message": failed[1]}))
        return None

    def _summary(self, sha256: str, text: Any) -> Summary | None:
        """What a row of the file says; one that is no summary of this tool is forgotten, so that it is asked again."""
        with contextlib.suppress(ValueError, TypeError):
            summary = Summary.model_validate_json(text)
            if summary.tool == self.tool:
                return summary
        with self._sqlite_errors():
            self._db.execute("DELETE FROM answers WHERE sha256 = ? AND tool = ?", (sha256, self.tool))
        return None

    def put(self, sha256: str, summary: Summary, detail: bytes | None) -> None:
        """An answer that has been kept already stays, unless this one brings the detail that it lacks."""
        with self._sqlite_errors():
            self._db.execute(
                "INSERT INTO answers VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET detail = excluded.detail, "
                "summary = excluded.summary WHERE detail IS NULL AND excluded.detail IS NOT NULL",
                (sha256, self.tool, summary.as_json, detail),
            )
        self._remember(sha256, Known("probed", summary))

    def fail(self, sha256: str, error: dict[str, str]) -> None:
        with self._sqlite_errors():
            self._db.execute(
                "INSERT OR REPLACE INTO failures VALUES (?, ?, ?)", (sha256, error["type"], error["message"])
            )
        self._remember(sha256, Known("not_evaluated", error=error))

    def detail(self, sha256: str) -> bytes | None:
        """None where nothing was kept, or after `close`."""
        if self._closed:
            return None
        with self._sqlite_errors():
            row = self._db.execute(
                "SELECT detail FROM answers WHERE sha256 = ? AND tool = ?", (sha256, self.tool)
            ).fetchone()
        return row[0] if row is not None and isinstance(row[0], bytes) else None

    def close(self) -> None:
        self._closed = True
        self._opened.close()

    def _remember(self, sha256: str, known: Known) -> Known:
        self._recent[sha256] = known
        if len(self._recent) > RECENT:
            self._recent.popitem(last=False)
        return known

    @contextlib.contextmanager
    def _sqlite_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            full = "full" in str(error) or "disk I/O" in str(error)
            code = errno.ENOSPC if full else errno.EIO
            raise OSError(code, f"the answers at {self.path}: {error}") from None
        except sqlite3.DatabaseError as error:
            raise InputError(f"{self.path} is damaged ({error}): remove it", path=self.path) from None
