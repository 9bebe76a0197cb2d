"""The formats that there are, and which one is wanted."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

from jinjarun.errors import InputError
from probes import reporters
from probes.reporters.formats import Format

if TYPE_CHECKING:
    from collections.abc import Iterable


def _found() -> dict[str, Format]:
    """The format of every reporter; text, which is the usual one, first."""
    names = [module.name for module in pkgutil.iter_modules(reporters.__path__) if module.name != "registry"]
    modules = (importlib.import_module(f"{reporters.__name__}.{name}") for name in names)
    found: list[Format] = [module.FORMAT for module in modules if hasattr(module, "FORMAT")]
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
