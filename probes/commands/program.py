"""The command `jinjarun`: what it does is a public function each; here stand only words and exit codes.

Exit codes: 0 clean; 1 a finding, a failed law, or a template that fails to render; 2 wrong usage or unreadable input.
3 a scan whose executor is gone. A closed pipe ends it with 141 and Ctrl-C with 130, as the shell's own tools end.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from jinjarun.errors import InputError, JinjarunError, SourceError, quote
from probes.commands import ALIASES, COMMANDS, command_named
from probes.commands.options import DIALECTS, TEMPLATE_HELP, Parser, Usage, bound_options, limit_option
from probes.commands.output import CLEAN, CLOSED_PIPE, FINDING, INTERRUPTED, UNUSABLE, complain, describe, write


def main(argv: Sequence[str], *, before_run: Callable[[argparse.Namespace], None] | None = None) -> int:
    """Runs a command line in this process, prints every failure as one message, and returns the exit code.

    `before_run` gets the arguments before the command does.
    """
    if sys.stdout is None:
        return complain("cannot write: standard output is closed", UNUSABLE)
    try:
        return run(argv, before_run)
    except Usage as error:
        return complain(str(error), UNUSABLE)
    except JinjarunError as error:
        return complain(describe(error), UNUSABLE if isinstance(error, SourceError | InputError) else FINDING)
    except BrokenPipeError:
        drop_output()
        return CLOSED_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        drop_output()
        return complain(f"cannot write: {error.strerror or error}", UNUSABLE)
    except MemoryError:
        return complain("worker error: more memory was needed than --memory allows; not evaluated", FINDING)
    except Exception as error:
        if os.environ.get("JINJARUN_TRACEBACK"):
            raise
        message = f"internal error, a bug of jinjarun: {type(error).__name__}: {quote(str(error))}"
        return complain([message, "JINJARUN_TRACEBACK=1 shows where; please report it"], UNUSABLE)


def run(argv: Sequence[str], before_run: Callable[[argparse.Namespace], None] | None) -> int:
    """The command's exit code, once all that it printed (help too) is written."""
    try:
        argv = _with_names(argv)
        args = parser(argv).parse_args(argv)
        if args.prepare is not None:
            args.prepare(args)
        if before_run is not None:
            before_run(args)
        code: int = args.run(args)
    finally:
        sys.stdout.flush()
    return code


def _with_names(argv: Sequence[str]) -> list[str]:
    """The same with the usual name of a command that has another one."""
    at = next((number for number, word in enumerate(argv) if not word.startswith("-")), None)
    return [ALIASES.get(word, word) if number == at else word for number, word in enumerate(argv)]


def drop_output() -> None:
    """What is still in the buffer cannot be written: it goes nowhere, without a second error at exit."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Version(argparse.Action):
    """`--version`: of this package and of the engines that it stands for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib import metadata

        from jinjarun.dialects import dialect_named

        try:
            ours = metadata.version("jinjarun")
        except metadata.PackageNotFoundError:
            ours = "(not installed)"
        engines = ", ".join(f"{name} {dialect_named(name).version}" for name in DIALECTS)
        write(f"jinjarun {ours}, as {engines}\n")
        parser.exit(CLEAN)


class Walls(argparse.Action):
    """`--walls`: what keeps a worker in on this machine."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from jinjarun.isolation import walls_here

        write("".join(f"{wall:11} {there}\n" for wall, there in walls_here().items()))
        parser.exit(CLEAN)


def parser(argv: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """The whole command line; of the commands, only the one that `argv` calls has its options."""
    called = next((word for word in (sys.argv[1:] if argv is None else argv) if not word.startswith("-")), None)
    top = Parser(prog="jinjarun", description="Run LLM chat templates as the engines do, and find out what they do.")
    top.add_argument("--version", action=Version, nargs=0, help="print the versions of this package and of the engines")
    top.add_argument("--walls", action=Walls, nargs=0, help="print which walls workers have on this machine")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        command = command_named(name)
        description = f"{command.what[0].upper()}{command.what[1:]}."
        epilog = "\n".join(part for part in ("" if command.templates == 0 else TEMPLATE_HELP, command.codes) if part)
        added = commands.add_parser(name, help=command.what, description=description, epilog=epilog)
        if name != called:
            continue
        if command.templates is None:
            added.add_argument("template", metavar="TEMPLATE", help="what to read the template from, see below")
        elif command.templates:
            added.add_argument("template", metavar="TEMPLATE", nargs=command.templates, help="see below; or a folder")
        command.options(added)
        if command.templates != 0:
            added.add_argument("--variant", metavar="NAME", help="a named template of the model, such as tool_use")
        if command.json:
            added.add_argument("--json", action="store_true", help="print JSON")
        if command.bounded:
            limit_option(added)
            bound_options(added)
        added.set_defaults(run=command.run, prepare=command.prepare)
    return top
