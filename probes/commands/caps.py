"""`jinjarun caps`: the flags of llama-server's `/props`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.commands import Command
from probes.commands.options import no_options
from probes.commands.output import CLEAN, print_json

if TYPE_CHECKING:
    import argparse


def run(args: argparse.Namespace) -> int:
    from jinjarun.serving.caps import chat_template_caps
    from probes.commands.inputs import limits, template_source

    source = template_source(args, "llama.cpp")
    print_json(chat_template_caps(source.template(args.variant), limits(args)).to_dict())
    return CLEAN


COMMAND = Command(
    "print chat_template_caps as llama-server's /props has it",
    run,
    no_options,
    work=("probes.commands.inputs", "jinjarun.serving.caps"),
)
