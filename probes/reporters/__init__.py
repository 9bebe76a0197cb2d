"""How rows are written: one module a format, found here by name or by the ending of a file.

A reporter is a module of this folder with a `FORMAT`. A scan gives rows; so does anything that makes
`probes.results.rows.Row` of what it found. Whatever a stranger wrote goes through `escaping`.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

from jinjarun.errors import InputError
from probes.reporters.formats import Format, Out

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["FINDING_FORMATS", "FORMATS", "Format", "Out", "chosen_format", "format_of"]


def _found() -> dict[str, Format]:
    """The format of every module here that has one; text, which is the usual one, first."""
    modules = (importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__))
    found = [module.FORMAT for module in modules if hasattr(module, "FORMAT")]
    return {made.name: made for made in sorted(found, key=lambda made: (made.name != "text", made.name))}


FORMATS = _found()

FINDING_FORMATS = ["text", "json", *(name for name, made in FORMATS.items() if made.findings)]
"""What a command that finds something in templates can write: its own text and JSON, and the formats of findings."""


def chosen_format(name: str | None, file: str | None, among: Iterable[str] = FORMATS) -> Format:
    """The format of this name, else the one that the ending of `file` chooses, else text."""
    made = FORMATS[name] if name is not None else FORMATS["text"] if file is None else format_of(file)
    if made.name not in among:
        raise InputError(f"{file}: {made.name} is for scans; choose one of: {', '.join(among)}", path=file)
    return made


def format_of(file: str) -> Format:
    """The format that the ending of a file's name chooses; the longest ending that fits."""
    fitting = [(len(ending), made) for made in FORMATS.values() for ending in made.endings if file.endswith(ending)]
    if not fitting:
        raise InputError(
            f"{file}: the ending names no format; choose one with --format: {', '.join(FORMATS)}", path=file
        )
    return max(fitting, key=lambda pair: pair[0])[1]
