"""The commands of `jinjarun`, one module each, found by `COMMANDS`.

A command is light to import: at its top stands what its options need, and what its work needs is imported when it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import argparse

COMMANDS = ("render", "caps", "probe", "lint", "rules", "prefix", "serve", "snapshot", "fuzz", "scan", "compare")
"""Modules of this package that hold a `COMMAND`, in the order of the help."""


@dataclass(frozen=True, slots=True)
class Command:
    """`what` stands in the help; `run` does it and returns the exit code; `options` adds what only it takes.

    `templates`: how many it takes, as argparse counts (None: one); 0 for none. `json`: whether it has `--json`,
    `bounded` whether `--timeout` and `--memory`. `prepare` is done before `run` and before the walls are up, when no
    stranger's file has been read.
    """

    what: str
    run: Callable[[argparse.Namespace], int]
    options: Callable[[argparse.ArgumentParser], None]
    templates: Literal[0, "+"] | None = None
    json: bool = True
    bounded: bool = True
    prepare: Callable[[argparse.Namespace], None] | None = None


def command_named(name: str) -> Command:
    command: Command = import_module(f"{__name__}.{name}").COMMAND
    return command
