"""Records of `(id, tokenizer_config)`: JSON Lines and Parquet, only the template read out of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinjarun.errors import InputError, SourceError, quote
from jinjarun.sources.files import decode, failure
from jinjarun.sources.hf_files import template_slot
from jinjarun.sources.json_data import JsonFile, load_json, type_name
from probes.scanner.found import LINE_BYTES, Found, unreadable
from probes.scanner.parquet_pages import trouble

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jinjarun.sources import Kind

KIND: Kind = "tokenizer_config"
ID, CONFIG_KEY = "id", "tokenizer_config"
FOOTER_BYTES, FOOTER_ITEMS = 10_000_000, 100_000
"""The longest text and list in the footer of a Parquet file."""
ID_CHARACTERS = 1_000
"""The longest id of a record."""


def record(line: bytes, place: str) -> Iterator[Found]:
    """The templates of one line: `{"id": ..., "tokenizer_config": {...}}` or `[id, {...}]`. The configuration may also
    stand there as the text of its file."""
    try:
        value, _ = load_json(place, decode(place, line)[0], constants=True)
    except SourceError as error:
        yield unreadable(place, "record", error)
        return
    match value:
        case {"id": str() | int() as id, "tokenizer_config": config} | [str() | int() as id, config] if _is_id(id):
            yield from configuration(str(id), config)
        case _:
            yield unreadable(place, "record", failure(place, "is no record with an id and a tokenizer_config"))


def _is_id(id: str | int) -> bool:
    return len(str(id)) <= ID_CHARACTERS


def configuration(id: str, config: Any) -> Iterator[Found]:
    """The templates of a tokenizer_config.json that came with an id instead of a path."""
    try:
        if isinstance(config, str):
            config, _ = load_json(id, config, constants=True)
        if config is None:
            config = {}
        if not isinstance(config, dict):
            raise failure(id, f"should hold a JSON object, holds {type_name(config)}")
        slot, _ = template_slot(JsonFile(id, config, had_bom=False, duplicates=()), KIND)
    except SourceError as error:
        yield unreadable(id, KIND, error)
        return
    for found in {found.name: found for found in slot.found}.values():
        yield Found(id, KIND, found.key, found.name, slot.form, found.text)
    if not slot.found:
        yield Found(id, KIND, form=slot.form)


def parquet(path: str) -> Iterator[Found]:
    """The rows of a Parquet file with columns `id` and `tokenizer_config` (text or struct)."""
    try:
        import pyarrow  # noqa: PLC0415
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError:
        raise InputError("Parquet needs pyarrow: pip install 'jinjarun[parquet]'", path=path) from None
    try:
        yield from _rows(path, pyarrow.parquet)
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        yield unreadable(path, "parquet", failure(path, f"is no readable Parquet file ({quote(str(error))})"))


def _rows(path: str, library: Any) -> Iterator[Found]:
    """A row at a time, because a dictionary can hold one long text for all of them."""
    limits = {"thrift_string_size_limit": FOOTER_BYTES, "thrift_container_size_limit": FOOTER_ITEMS}
    with library.ParquetFile(path, pre_buffer=False, **limits) as file:
        schema = file.schema_arrow
        if missing := {ID, CONFIG_KEY} - set(schema.names):
            yield unreadable(path, "parquet", failure(path, f"has no column {' and '.join(sorted(missing))}"))
            return
        if why := trouble(path, file.metadata, [ID, CONFIG_KEY]):
            hint = "write it with fewer rows a page, such as write_batch_size=64 in pyarrow"
            yield unreadable(path, "parquet", failure(path, why, hint=hint))
            return
        for number, batch in enumerate(file.iter_batches(batch_size=1, columns=[ID, CONFIG_KEY]), 1):
            place = f"{path}:{number}"
            if batch.nbytes > LINE_BYTES:
                yield unreadable(place, "record", failure(place, f"is longer than {LINE_BYTES:,} bytes"))
                continue
            id = str(batch.column(ID)[0].as_py())
            if len(id) > ID_CHARACTERS:
                yield unreadable(
                    place, "record", failure(place, f"has an id of more than {ID_CHARACTERS:,} characters")
                )
                continue
            yield from configuration(id, batch.column(CONFIG_KEY)[0].as_py())
