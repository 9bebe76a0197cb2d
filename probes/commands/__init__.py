"""The commands of `jinjarun`, one module each, found by their files.

A command is light to import: at its top stands what its options need, and what its work needs is imported when it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import argparse

SHARED = {"__init__", "inputs", "llama_server", "options", "output", "program", "python_servers", "walled"}
"""Modules of this package that are no command."""
COMMANDS = tuple(sorted({path.stem for path in Path(__file__).parent.glob("*.py")} - SHARED))
"""The others, each of which holds a `COMMAND`."""


@dataclass(frozen=True, slots=True)
class Command:
    """`what` stands in the help; `run` does it and returns the exit code; `options` adds what only it takes.

    `templates`: how many it takes, as argparse counts (None: one); 0 for none. `json`: whether it has `--json`,
    `bounded` whether `--timeout` and `--memory`. `prepare` is done before `run` and before the walls are up, when no
    stranger's file has been read. `work`: modules that its worker imports before the walls are up, while Python can
    keep what it compiles; imports behind them work, too, and what starts threads (pyarrow, distributed) is imported
    there, because Landlock binds only threads that are started later. A command without any reads no stranger's file
    and has no walls. `codes`: what its exit codes mean, where there is more to say than in the README.
    """

    what: str
    run: Callable[[argparse.Namespace], int]
    options: Callable[[argparse.ArgumentParser], None]
    templates: Literal[0, "+"] | None = None
    json: bool = True
    bounded: bool = True
    prepare: Callable[[argparse.Namespace], None] | None = None
    work: tuple[str, ...] = ()
    codes: str = ""


ALIASES = {"rule": "rules", "conversation": "conversations"}
"""Other names of commands."""


def command_named(name: str) -> Command:
    command: Command = import_module(f"{__name__}.{name}").COMMAND
    return command
