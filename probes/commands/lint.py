"""`jinjarun lint`: the rules over templates and folders of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinjarun.errors import JinjarunError, nearest
from probes.commands import Command
from probes.commands.options import Usage, finding_options, format_options, paths_option
from probes.commands.output import CLEAN, FINDING, UNUSABLE, complain, describe, fails, finding_format, show, write_file

if TYPE_CHECKING:
    import argparse


def add_options(added: argparse.ArgumentParser) -> None:
    several: dict[str, Any] = {"action": "append", "default": [], "metavar": "CODES"}
    added.add_argument("--select", **several, help="only these rules: TL104, TL1, RS, a name")
    added.add_argument("--ignore", **several, help="all but these rules")
    added.add_argument("--preview", action="store_true", help="with rules that still give false alarms")
    finding_options(added)
    paths_option(added)
    added.add_argument(
        "--ignore-file", metavar="FILE", help="findings that stay, a line each: FINGERPRINT REASON, or CODE PATH REASON"
    )
    added.add_argument("--statistics", action="store_true", help="count the findings of each rule, and show no more")
    added.add_argument("--baseline", metavar="FILE", help="leave out the findings that this file holds")
    added.add_argument("--write-baseline", metavar="FILE", help="write today's findings there; exit code 0")
    format_options(added)


def run(args: argparse.Namespace) -> int:
    from probes.commands.inputs import limits, read_text, upstream, words
    from probes.linter import lint as linting
    from probes.linter.places import find_targets
    from probes.linter.targets import Options, lint_all
    from probes.reporters.rows import error_row, lint_row
    from probes.reporters.text import lint_text, statistics_text
    from probes.rules import rules, selected

    made = finding_format(args)
    options = Options(
        words(args.select),
        words(args.ignore),
        args.preview,
        args.variant,
        upstream(args),
        args.paths,
        limits(args),
    )
    _, unknown = selected(options.select, options.ignore)
    if unknown:
        near = nearest(unknown[0], [word for rule in rules().values() for word in (rule.code, rule.name)])
        raise Usage(f"no rule is called {', '.join(unknown)}{near}; all are listed by: jinjarun rules")
    exemptions = linting.read_exemptions(read_text(args.ignore_file), args.ignore_file) if args.ignore_file else []
    known = read_text(args.baseline) if args.baseline else None
    results, unusable = [], []
    targets = [one for given in args.template for one in find_targets(given)]
    bounds = {"timeout_seconds": args.timeout, "memory_bytes": args.memory * 1_000_000}
    for target, found in lint_all(targets, options, **bounds):
        if isinstance(found, JinjarunError):
            unusable.append(error_row(target, found))
            complain(describe(found, f"{target}: not evaluated"), UNUSABLE)
            continue
        for result in found:
            result = linting.without_exemptions(result, exemptions)
            results.append(result if known is None else linting.without_baseline(result, known, args.baseline))
    if args.write_baseline:
        write_file(args.write_baseline, linting.baseline(results))
    rows = [*unusable, *map(lint_row, results)]
    show(
        args,
        made,
        lambda: (statistics_text if args.statistics else lint_text)(results),
        lambda: [result.to_dict() for result in results],
        rows,
    )
    if unusable:
        return UNUSABLE
    failing = any(fails(result.findings, args.fail_on) for result in results)
    return FINDING if failing and not args.write_baseline else CLEAN


COMMAND = Command(
    "check templates, or folders of them, by the rules",
    run,
    add_options,
    "+",
    work=("probes.commands.inputs", "probes.linter.lint", "probes.prober", "probes.reporters.text"),
)
