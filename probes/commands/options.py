"""Options that several commands share, and what argparse makes of the whole command line."""

from __future__ import annotations

import argparse
import contextlib
import re
from dataclasses import fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn

from jinjarun.errors import InputError, nearest, quote
from jinjarun.limits import Limits
from probes.reporters.escaping import terminal

if TYPE_CHECKING:
    from probes.report import Severity

DIALECTS = ("llama.cpp", "transformers")
LIMITS = tuple(field.name for field in fields(Limits))
"""The names of `--limit`."""
UNUSABLE = 2
"""Exit code of wrong usage or unreadable input."""
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


TEMPLATE_HELP = """\
TEMPLATE is a .jinja file, a tokenizer_config.json, a model folder, a
repository in the local Hugging Face cache (org/name), a GGUF file, a format
family that comes with this package (family:chatml), the address of a running
llama-server (http://localhost:8080), or - for standard input.
"""


_INVALID = re.compile(r"invalid choice: ['\"](.*)['\"] \(choose from (.*)\)", re.DOTALL)
"""What argparse says of a word that is no choice, and the choices."""
_CHOICES_SHOWN = 16
_WORD = re.compile(r"[\w.:-]+")


class Usage(Exception):
    """Arguments that do not fit together."""


class Parser(argparse.ArgumentParser):
    """argparse with our layout; abbreviated options are refused, so that a new option never changes an old call."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=Layout, allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        if unknown := _INVALID.search(message):
            choices = _WORD.findall(unknown[2])
            if len(choices) > _CHOICES_SHOWN:
                shown = ", ".join(choices[:_CHOICES_SHOWN])
                message = message.replace(unknown[2], f"{shown} and {len(choices) - _CHOICES_SHOWN} more")
            message += nearest(unknown[1], choices)
        self.exit(UNUSABLE, terminal([f"{self.prog}: {message}", f"try: {self.prog} --help"]))


class Layout(argparse.RawDescriptionHelpFormatter):
    """80 columns on every terminal, so that the README can quote the help."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26, width=79)


def clock(text: str) -> datetime:
    """`--now`: a Unix timestamp, read as UTC, or an ISO 8601 time."""
    with contextlib.suppress(ValueError):
        return datetime.fromisoformat(text)
    try:
        return datetime.fromtimestamp(float(text), UTC)
    except (ValueError, OverflowError, OSError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time: give a Unix timestamp or an ISO 8601 time such as 2026-10-03T12:00:00+00:00"
        ) from None


def port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text!r} is no port")
    return int(text)


def positive(text: str) -> int:
    """A count of examples."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return int(text)


def seconds(text: str) -> float:
    """A time that is given to a search."""
    try:
        given = float(text)
    except ValueError:
        given = 0.0
    if not 0 < given < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number of seconds")
    return given


def token_options(added: argparse.ArgumentParser) -> None:
    added.add_argument("--bos-token", metavar="TEXT", help="instead of the model's own")
    added.add_argument("--eos-token", metavar="TEXT", help="instead of the model's own")


def clock_option(added: argparse.ArgumentParser) -> None:
    added.add_argument("--now", type=clock, metavar="TIME", help="freeze the clock: a Unix timestamp or ISO 8601 time")


def variable_options(added: argparse.ArgumentParser) -> None:
    added.add_argument(
        "--chat-template-kwargs", metavar="JSON", help="more variables, such as '{\"enable_thinking\": false}'"
    )


def request_options(added: argparse.ArgumentParser) -> None:
    """What is rendered, with llama-server's names where it has one."""
    from probes.chats.canaries import EVERY

    added.add_argument("--messages", metavar="FILE", help="a JSON list of messages, or a whole request body")
    added.add_argument(
        "--conversation",
        choices=EVERY,
        metavar="NAME",
        help="a built-in conversation instead (default: user)",
    )
    added.add_argument("--tools", metavar="FILE", help="a JSON list of tools")
    variable_options(added)
    token_options(added)
    added.add_argument("--no-generation-prompt", action="store_true", help="end after the last message")
    clock_option(added)


def finding_options(added: argparse.ArgumentParser) -> None:
    added.add_argument("--fail-on", choices=SEVERITIES, default="error", help="the least severe finding of exit code 1")
    added.add_argument("--upstream", metavar="TEMPLATE", help="the template of the base model, for PK301")


def request_paths(text: str) -> tuple[str, ...]:
    """`--paths`: the ids of what is named, by short names or ids, with commas between."""
    from probes.rendering.renders import ENGINES, PATHS

    names = [name.strip() for name in text.split(",") if name.strip()]
    wrong = [name for name in names if name not in ENGINES and name not in PATHS]
    if wrong or not names:
        raise argparse.ArgumentTypeError(
            f"{', '.join(map(repr, wrong)) or 'nothing'} is no path; there are {', '.join([*ENGINES, *PATHS])}"
        )
    return tuple(ENGINES.get(name, name) for name in names)


def paths_option(added: argparse.ArgumentParser) -> None:
    from probes.rendering.renders import ENGINES, PATHS

    added.add_argument(
        "--paths",
        type=request_paths,
        default=PATHS,
        metavar="NAMES",
        help=f"request paths to ask beside the bare template: some of {','.join(ENGINES)} (default: all)",
    )


def tokenizer_option(added: argparse.ArgumentParser) -> None:
    added.add_argument(
        "--tokenizer", metavar="FILE", help="count tokens by this tokenizer.json (extra: tokens), not characters"
    )


def format_options(added: argparse.ArgumentParser) -> None:
    """How a command that finds something in templates tells it."""
    from probes.reporters.registry import FINDING_FORMATS

    formats = f"one of: {', '.join(FINDING_FORMATS)} (default text)"
    added.add_argument("--format", choices=FINDING_FORMATS, metavar="NAME", help=formats)
    added.add_argument("--out", metavar="FILE", help="write there; its ending chooses the format")


def made_up_options(added: argparse.ArgumentParser, examples: int) -> None:
    """How many conversations are made up, and which."""
    made = f"conversations that are made up (default {examples})"
    added.add_argument("--max-examples", type=positive, default=examples, metavar="N", help=made)
    added.add_argument("--seed", type=int, default=0, metavar="N", help="another seed makes up other conversations")


def limit(text: str) -> tuple[str, int]:
    """`--limit NAME=VALUE`."""
    name, _, value = text.partition("=")
    if name not in LIMITS:
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=VALUE with one of: {', '.join(LIMITS)}")
    try:
        Limits(**{name: int(value)})
    except (ValueError, InputError) as error:
        what = error.message if isinstance(error, InputError) else f"{quote(value)} is no integer"
        raise argparse.ArgumentTypeError(f"{name}: {what}") from None
    return name, int(value)


def limit_option(added: argparse.ArgumentParser) -> None:
    added.add_argument(
        "--limit",
        dest="limits",
        type=limit,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="what a template may spend, as steps=5000000; may be repeated",
    )


def bound_options(added: argparse.ArgumentParser) -> None:
    """What the worker of a command may spend."""
    added.add_argument(
        "--timeout",
        type=seconds,
        default=120.0,
        metavar="SECONDS",
        help="of wall clock, for each template (default 120)",
    )
    added.add_argument("--memory", type=positive, default=1000, metavar="MB", help="of its worker (default 1000)")


def no_options(added: argparse.ArgumentParser) -> None:
    """Nothing beside what every command takes."""
