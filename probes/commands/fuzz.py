"""`jinjarun fuzz`: generated conversations, and the laws that they break."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from jinjarun.errors import JinjarunError
from probes.commands import Command
from probes.commands.options import clock_option, format_options, made_up_options, seconds, token_options
from probes.commands.output import (
    CLEAN,
    FINDING,
    UNUSABLE,
    Progress,
    complain,
    describe,
    finding_format,
    show,
    write_file,
)

if TYPE_CHECKING:
    import argparse


def add_options(added: argparse.ArgumentParser) -> None:
    from probes.laws import DATABASE, EXAMPLES, LAWS

    added.add_argument("--law", choices=LAWS, action="append", metavar="LAW", help=f"one of: {', '.join(LAWS)}")
    made_up_options(added, EXAMPLES)
    added.add_argument("--budget", type=seconds, metavar="SECONDS", help="stop a template's search after so long")
    added.add_argument("--strict", action="store_true", help="fail for what a template is known to do, too")
    added.add_argument("--export", metavar="FILE", help="write a bug report that stands by itself, in Markdown")
    added.add_argument(
        "--database",
        default=DATABASE,
        metavar="FOLDER",
        help=f"where what was found is kept for the next time (default {DATABASE}), or none",
    )
    token_options(added)
    clock_option(added)
    format_options(added)


def run(args: argparse.Namespace) -> int:
    from importlib import metadata

    from jinjarun.sources import open_source
    from probes.chats.corpus import corpus_folder
    from probes.commands.inputs import info, limits, special_tokens
    from probes.fuzzer.fuzz import fuzz
    from probes.linter.places import find_targets
    from probes.reporters.fuzzing import fuzz_export, fuzz_text
    from probes.reporters.rows import error_row, fuzz_row

    made = finding_format(args)
    targets = [target for given in args.template for target in find_targets(given)]
    database = None if args.database == "none" else args.database
    reports, sources, rows, unusable = [], [], [], False
    for target in targets:
        try:
            source = open_source(target, corpus=corpus_folder(), vocabulary=False)
            text = source.template(args.variant)
        except JinjarunError as error:
            unusable = True
            rows.append(error_row(target, error))
            complain(describe(error, f"{target}: not evaluated"), UNUSABLE)
            continue
        report = fuzz(
            text,
            name=target,
            laws=args.law,
            max_examples=args.max_examples,
            seed=args.seed,
            budget=args.budget,
            **special_tokens(args, source),
            limits=limits(args),
            now=args.now,
            database=database,
            progress=Progress(target) if sys.stderr is not None and sys.stderr.isatty() else None,
        )
        reports.append(report)
        sources.append(text)
        rows.append(fuzz_row(info(target, source, args.variant or source.default, text), report, strict=args.strict))
    if args.export:
        write_file(args.export, fuzz_export(zip(reports, sources, strict=True), metadata.version("jinjarun")))
    show(args, made, lambda: fuzz_text(reports), lambda: [report.to_dict() for report in reports], rows)
    if unusable:
        return UNUSABLE
    return FINDING if any(report.failed(strict=args.strict) for report in reports) else CLEAN


COMMAND = Command(
    "make up conversations and check that every law holds",
    run,
    add_options,
    "+",
    work=("probes.commands.inputs", "probes.fuzzer.fuzz", "probes.reporters.fuzzing"),
)
