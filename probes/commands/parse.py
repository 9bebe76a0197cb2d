"""`jinjarun parse`: the message that a model means by what it wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.commands import Command
from probes.commands.options import token_options
from probes.commands.output import CLEAN, FINDING, print_json, write
from probes.reporters.escaping import json_text

if TYPE_CHECKING:
    import argparse

PIECE = 4
"""Code points of a piece where an answer is streamed."""


def add_options(added: argparse.ArgumentParser) -> None:
    added.add_argument(
        "--response", metavar="FILE", default="-", help="what the model wrote (default -: standard input)"
    )
    added.add_argument("--prefix", metavar="FILE", help="the prompt (default: the usual generation prompt)")
    added.add_argument("--tools", metavar="FILE", help="a JSON list of tools: gives arguments their types")
    added.add_argument("--stream", action="store_true", help="print what each piece of four characters adds, by line")
    added.add_argument("--strict", action="store_true", help="refuse what the template does not write")
    token_options(added)


def run(args: argparse.Namespace) -> int:
    from probes.chapters.response import response_syntax
    from probes.commands.inputs import limits, read_json, read_once, read_whole, special_tokens, template_source

    read_once(args, args.response, args.prefix, args.tools)
    source = template_source(args, "transformers")
    syntax = response_syntax(source.template(args.variant), **special_tokens(args, source), limits=limits(args))
    most = limits(args).input_bytes
    prefix = read_whole(args.prefix, most) if args.prefix is not None else ""
    tools = read_json(args.tools, most) if args.tools is not None else None
    text = read_whole(args.response, most)
    parser = syntax.parser(prefix=prefix, tools=tools, strict=args.strict)
    pieces = [text[at : at + PIECE] for at in range(0, len(text), PIECE)] if args.stream else [text]
    for piece in pieces:
        for delta in parser.feed(piece):
            if args.stream:
                write(json_text(delta) + "\n")
    for delta in parser.finalize():
        if args.stream:
            write(json_text(delta) + "\n")
    found = parser.message
    problems = [{"at": problem.at, "message": problem.message} for problem in found.problems]
    print_json({"message": found, "complete": found.complete, "problems": problems})
    return CLEAN if found.complete else FINDING


COMMAND = Command(
    "print the message that a model means by its answer",
    run,
    add_options,
    json=False,
    work=("probes.commands.inputs", "probes.chapters.response"),
)
