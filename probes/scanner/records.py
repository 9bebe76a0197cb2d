"""Records of `(id, tokenizer_config)`: JSON Lines and Parquet, only the template read out of each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jinjarun.errors import InputError, SourceError
from jinjarun.sources.files import failure
from jinjarun.sources.hf_files import template_slot
from jinjarun.sources.json_data import CONFIG, JsonFile, type_name
from probes.scanner.found import LINE_BYTES, Found, unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jinjarun.sources import Kind

KIND: Kind = "tokenizer_config"
ID, CONFIG_KEY = "id", "tokenizer_config"


def record(line: bytes, place: str) -> Iterator[Found]:
    """The templates of one line: `{"id": ..., "tokenizer_config": {...}}` or `[id, {...}]`. The configuration may also
    stand there as the text of its file."""
    if line.count(b"[") + line.count(b"{") > CONFIG.containers or line.count(b",") > CONFIG.values:
        yield unreadable(place, "record", failure(place, "holds too many lists, objects or values"))
        return
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        yield unreadable(place, "record", failure(place, f"is not JSON ({error.msg})", place=f"column {error.colno}"))
        return
    except (ValueError, RecursionError) as error:
        why = "is nested too deeply" if isinstance(error, RecursionError) else f"is not usable JSON ({error})"
        yield unreadable(place, "record", failure(place, why))
        return
    match value:
        case {"id": str() | int() as id, "tokenizer_config": config}:
            yield from configuration(str(id), config)
        case [str() | int() as id, config]:
            yield from configuration(str(id), config)
        case _:
            yield unreadable(place, "record", failure(place, "is no record with id and tokenizer_config"))


def configuration(id: str, config: Any) -> Iterator[Found]:
    """The templates of a tokenizer_config.json that came with an id instead of a path."""
    try:
        if isinstance(config, str):
            config = json.loads(config)
        if config is None:
            config = {}
        if not isinstance(config, dict):
            raise failure(id, f"should hold a JSON object, holds {type_name(config)}")
        slot, _ = template_slot(JsonFile(id, config, had_bom=False, duplicates=()), KIND)
    except SourceError as error:
        yield unreadable(id, KIND, error)
        return
    except (ValueError, RecursionError) as error:
        yield unreadable(id, KIND, failure(id, f"is not JSON ({error})"))
        return
    for found in {found.name: found for found in slot.found}.values():
        yield Found(id, KIND, found.key, found.name, slot.form, found.text)
    if not slot.found:
        yield Found(id, KIND, form=slot.form)


def parquet(path: str) -> Iterator[Found]:
    """The rows of a Parquet file with columns `id` and `tokenizer_config` (text or struct), a batch at a time."""
    try:
        import pyarrow  # noqa: PLC0415
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError:
        raise InputError("Parquet needs pyarrow: pip install 'jinjarun[parquet]'", path=path) from None
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            if missing := {ID, CONFIG_KEY} - set(file.schema_arrow.names):
                yield unreadable(path, "parquet", failure(path, f"has no column {' and '.join(sorted(missing))}"))
                return
            for batch in file.iter_batches(batch_size=64, columns=[ID, CONFIG_KEY]):
                for id, config in zip(batch.column(ID), batch.column(CONFIG_KEY), strict=True):
                    value = config.as_py()
                    if isinstance(value, str) and len(value) > LINE_BYTES:
                        yield unreadable(str(id.as_py()), KIND, failure(str(id.as_py()), "is too long"))
                    else:
                        yield from configuration(str(id.as_py()), value)
    except (OSError, pyarrow.ArrowException) as error:
        yield unreadable(path, "parquet", failure(path, f"is no readable Parquet file ({error})"))
