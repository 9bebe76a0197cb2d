"""`jinjarun conversations`: which conversations there are, and what each asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinjarun.errors import nearest
from probes.commands import Command
from probes.commands.options import Usage
from probes.commands.output import CLEAN, print_json, write

if TYPE_CHECKING:
    import argparse


def add_options(added: argparse.ArgumentParser) -> None:
    added.add_argument("name", metavar="NAME", nargs="?", help="one of them: its request as JSON")


def run(args: argparse.Namespace) -> int:
    from probes.chats.canaries import EVERY
    from probes.chats.messages import request_body
    from probes.reporters.text import conversations_text

    if args.name is not None:
        if args.name not in EVERY:
            near = nearest(args.name, EVERY)
            raise Usage(f"no conversation is called {args.name}{near}; all are listed by: jinjarun conversations")
        print_json(request_body(EVERY[args.name]()))
        return CLEAN
    asked = {name: " ".join((build.__doc__ or "").split()) for name, build in EVERY.items()}
    print_json(asked) if args.json else write(conversations_text(asked))
    return CLEAN


COMMAND = Command("list the built-in conversations, or print one", run, add_options, 0, bounded=False)
