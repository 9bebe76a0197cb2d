"""JSON Lines: a row a line, see `probes.results.rows.Row`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from probes.reporters.escaping import json_shown
from probes.reporters.formats import Format
from probes.results.rows import Row, Summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

    from probes.reporters.formats import Out
    from probes.results.tally import Tally


def write(rows: Iterable[Row], out: Out, tally: Tally) -> None:
    for row in rows:
        out.write(f"{json_shown(row.to_json())}\n".encode())


def read(file: BinaryIO) -> Iterator[Row]:
    """The rows of a file that `write` began; a line that is cut off or is no row is left out."""
    for line in file:
        try:
            value = json.loads(line)
            summary = value.pop("summary")
            yield Row(**value, summary=None if summary is None else Summary(**summary))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            continue


FORMAT = Format("jsonl", "a row a line", write, (".jsonl", ".ndjson"), lines=True)
