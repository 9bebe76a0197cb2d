"""How large the pages of a Parquet file become when they are unpacked, before anything unpacks them.

A page is unpacked as a whole, with some copies, and 13 kB can hold one of 400 MB. The file's footer says how large its
columns are, and may lie; the header before each page says what the library will allocate for it, so that is asked.
Format: https://github.com/apache/parquet-format (parquet.thrift, `PageHeader`), in Thrift's compact protocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import BinaryIO

PAGE_BYTES = 80_000_000
"""The largest page. Writers put up to 1,024 rows into one, so 80 kB a row; the library needs three times as much."""

PAGES = 100_000
"""The most pages of a file that are read."""

NESTED_VALUES = 1_000_000
"""The most values of a column in one row group beside ten a row: a list can hold any number in a few bytes."""

_DEPTH = 16
_UNPACKED, _PACKED = (2,), (3,)
_COUNTS = ((5, 1), (8, 1))
"""`num_values` of a data page of either version."""


def trouble(path: str, metadata: Any, columns: list[str]) -> str | None:
    """Why the columns of these names, or what is nested in them, cannot be read within bounds; None if they can.

    `metadata`: pyarrow's `FileMetaData` of the file. Raises `ValueError` and `OSError` where the file is damaged.
    """
    pages = 0
    with open(path, "rb") as file:
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            for index in range(group.num_columns):
                column = group.column(index)
                if column.path_in_schema.partition(".")[0] not in columns:
                    continue
                at, values = _start(column), 0
                end = at + column.total_compressed_size
                while at < end:
                    file.seek(at)
                    found = _struct(file)
                    unpacked, packed = found.get(_UNPACKED, -1), found.get(_PACKED, -1)
                    if unpacked < 0 or packed < 0:
                        raise ValueError("a page has no size")
                    values += sum(found.get(key, 0) for key in _COUNTS)
                    pages += 1
                    if unpacked > PAGE_BYTES:
                        return f"has a page of {unpacked:,} bytes, more than {PAGE_BYTES:,}"
                    if pages > PAGES:
                        return f"has more than {PAGES:,} pages"
                    if values > 10 * group.num_rows + NESTED_VALUES:
                        return f"has {values:,} values for {group.num_rows:,} rows"
                    at = file.tell() + packed
    return None


def _start(column: Any) -> int:
    """Where the pages of a column begin."""
    dictionary: int | None = column.dictionary_page_offset
    data: int = column.data_page_offset
    return min(dictionary, data) if dictionary else data


def _struct(file: BinaryIO, depth: int = _DEPTH) -> dict[tuple[int, ...], int]:
    """The integers of a struct by the path of their field numbers; texts are passed over, not read."""
    found: dict[tuple[int, ...], int] = {}
    number = 0
    while header := _byte(file):
        number = number + (header >> 4) if header >> 4 else _integer(file)
        value = _value(file, header & 15, depth)
        if isinstance(value, int):
            found[(number,)] = value
        else:
            found |= {(number, *path): inner for path, inner in value.items()}
    return found


def _value(file: BinaryIO, kind: int, depth: int) -> int | dict[tuple[int, ...], int]:
    """A value of one of the protocol's kinds; a page header holds no lists."""
    if not depth:
        raise ValueError("a page header is nested too deeply")
    match kind:
        case 1 | 2:
            return int(kind == 1)
        case 3:
            return _byte(file)
        case 4 | 5 | 6:
            return _integer(file)
        case 7:
            file.seek(8, 1)
        case 8:
            file.seek(_varint(file), 1)
        case 12:
            return _struct(file, depth - 1)
        case _:
            raise ValueError(f"a page header has a value of the kind {kind}")
    return {}


def _byte(file: BinaryIO) -> int:
    byte = file.read(1)
    if not byte:
        raise ValueError("it ends in the middle of a page")
    return byte[0]


def _varint(file: BinaryIO) -> int:
    value = shift = 0
    while True:
        byte = _byte(file)
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value
        if shift > 63:
            raise ValueError("a page header has a number of too many digits")


def _integer(file: BinaryIO) -> int:
    value = _varint(file)
    return value >> 1 ^ -(value & 1)
