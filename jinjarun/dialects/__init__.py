"""The dialects by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinjarun.errors import InputError

if TYPE_CHECKING:
    from jinjarun.runtime.dialect import Dialect

NAMES = ("llama.cpp", "transformers")


def dialect_named(name: str) -> Dialect:
    """Raises InputError for a name that is none."""
    if name == "llama.cpp":
        from jinjarun.dialects.llamacpp import DIALECT as llamacpp  # noqa: PLC0415

        return llamacpp
    if name == "transformers":
        from jinjarun.dialects.transformers import DIALECT as transformers  # noqa: PLC0415

        return transformers
    raise InputError(f"no dialect {str(name)[:100]!r}: choose one of {', '.join(NAMES)}", path="dialect")
