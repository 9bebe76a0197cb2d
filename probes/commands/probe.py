"""`jinjarun probe`: the whole report on a template."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.commands import Command
from probes.commands.options import clock_option, finding_options, paths_option, tokenizer_option
from probes.commands.output import CLEAN, FINDING, fails, print_json, write

if TYPE_CHECKING:
    import argparse


def add_options(added: argparse.ArgumentParser) -> None:
    clock_option(added)
    tokenizer_option(added)
    finding_options(added)
    added.add_argument("--all", action="store_true", help="print every chapter, not a page")
    paths_option(added)


def run(args: argparse.Namespace) -> int:
    from probes.commands.inputs import limits, template_source, upstream
    from probes.prober import probe
    from probes.rendering.counting import counter
    from probes.reporters.overview import overview_text
    from probes.reporters.text import report_text

    source = template_source(args, "transformers", vocabulary=True)
    text = source.template(args.variant)
    report = probe(
        text,
        name=source.name,
        tokens=source.tokens,
        limits=limits(args),
        now=args.now,
        files=source,
        upstream=upstream(args),
        counter=counter(args.tokenizer),
        paths=args.paths,
    )
    if source.kind == "server":
        from jinjarun.sources.server import RunningServer
        from probes.serve.check import check_server

        report = report.model_copy(update={"server": check_server(RunningServer(source.path), now=args.now)})
    if args.json:
        print_json(report.model_dump(mode="json"))
    else:
        write((report_text if args.all else overview_text)(report, text, args.template))
    differs = report.server is not None and not report.server.equal
    return FINDING if differs or report.status != "complete" or fails(report.findings, args.fail_on) else CLEAN


COMMAND = Command(
    "report what a template can do, with evidence",
    run,
    add_options,
    work=("probes.commands.inputs", "probes.prober", "probes.reporters.text"),
)
