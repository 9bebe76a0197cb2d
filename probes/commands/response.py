"""`jinjarun response`: how the answers that belong to a template are written, and what of them cannot be read back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.commands import Command
from probes.commands.options import token_options
from probes.commands.output import CLEAN, print_json, write
from probes.reporters.escaping import terminal

if TYPE_CHECKING:
    import argparse


def run(args: argparse.Namespace) -> int:
    from probes.chapters.response import response
    from probes.commands.inputs import limits, special_tokens, template_source

    source = template_source(args, "transformers")
    found = response(source.template(args.variant), **special_tokens(args, source), limits=limits(args))
    if args.json:
        print_json(found.to_dict())
    else:
        write(terminal(found.lines()))
    return CLEAN


COMMAND = Command(
    "tell how a model's answers are written and what of them cannot be read back",
    run,
    token_options,
    work=("probes.commands.inputs", "probes.chapters.response"),
)
