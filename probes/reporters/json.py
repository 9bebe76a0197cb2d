"""One JSON object: `rows` as they come, then the figures under `summary`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.reporters.escaping import json_shown, json_text
from probes.reporters.formats import Format

if TYPE_CHECKING:
    from collections.abc import Iterable

    from probes.reporters.formats import Out
    from probes.results.rows import Row
    from probes.results.tally import Tally

SCHEMA_VERSION = "1.0"


def write(rows: Iterable[Row], out: Out, tally: Tally) -> None:
    out.write(f'{{"schema_version": "{SCHEMA_VERSION}", "rows": ['.encode())
    for number, row in enumerate(rows):
        out.write(f"{',' if number else ''}\n{json_shown(row.to_json())}".encode())
    out.write(f'\n], "summary": {json_text(tally.to_dict(), indent=1)}}}\n'.encode())


FORMAT = Format("json", "one object: rows and figures", write, (".json",))
