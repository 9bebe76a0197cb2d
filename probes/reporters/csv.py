"""Comma-separated values with a header, as RFC 4180 has them: `columns.COLUMNS`, null as nothing."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from probes.reporters.columns import COLUMNS, flat
from probes.reporters.escaping import cell
from probes.reporters.formats import Format

if TYPE_CHECKING:
    from collections.abc import Iterable

    from probes.reporters.columns import Value
    from probes.reporters.formats import Out
    from probes.results.rows import Row
    from probes.results.tally import Tally


def write(rows: Iterable[Row], out: Out, tally: Tally) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in flat(row).items()})
        out.write(_taken(text))
    out.write(_taken(text))


def _cell(value: Value) -> Value:
    if isinstance(value, str):
        return cell(value)
    return str(value).lower() if isinstance(value, bool) else value


def _taken(text: io.StringIO) -> bytes:
    data = text.getvalue().encode()
    text.seek(0)
    text.truncate()
    return data


FORMAT = Format("csv", "a row a line, a flag a column", write, (".csv",), lines=True)
