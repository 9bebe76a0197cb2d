"""Parquet: `columns.COLUMNS` with their types. Needs the `[parquet]` extra."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinjarun.errors import InputError
from probes.reporters.columns import COLUMNS, flat
from probes.reporters.escaping import utf8
from probes.reporters.formats import Format

if TYPE_CHECKING:
    from collections.abc import Iterable

    from probes.reporters.columns import Value
    from probes.reporters.formats import Out
    from probes.results.rows import Row
    from probes.results.tally import Tally

BATCH = 1000


def write(rows: Iterable[Row], out: Out, tally: Tally) -> None:
    try:
        import pyarrow  # noqa: PLC0415
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError:
        raise InputError("Parquet needs pyarrow: pip install 'jinjarun[parquet]'", path="parquet") from None
    types = {"text": pyarrow.string(), "integer": pyarrow.int64(), "boolean": pyarrow.bool_()}
    schema = pyarrow.schema([(name, types[kind]) for name, kind in COLUMNS.items()])
    with pyarrow.parquet.ParquetWriter(out, schema, compression="zstd") as writer:
        batch: list[dict[str, Value]] = []
        for row in rows:
            batch.append({name: utf8(value) if isinstance(value, str) else value for name, value in flat(row).items()})
            if len(batch) == BATCH:
                writer.write_batch(pyarrow.RecordBatch.from_pylist(batch, schema))
                batch = []
        if batch:
            writer.write_batch(pyarrow.RecordBatch.from_pylist(batch, schema))


FORMAT = Format("parquet", "the columns of csv, typed", write, (".parquet",))
