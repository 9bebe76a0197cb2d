"""`jinjarun prefix`: what a growing conversation keeps of the KV cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.commands import Command
from probes.commands.options import clock_option, token_options, tokenizer_option
from probes.commands.output import CLEAN, FINDING, print_json, write

if TYPE_CHECKING:
    import argparse


def add_options(added: argparse.ArgumentParser) -> None:
    from probes.chapters.prefix import LAWS

    added.add_argument("--law", choices=LAWS, action="append", metavar="LAW", help=f"one of: {', '.join(LAWS)}")
    added.add_argument(
        "--fail-on",
        choices=("error", "warning"),
        default="error",
        help="exit with 1 for a rewritten tool loop (error), or for any broken law (warning)",
    )
    tokenizer_option(added)
    token_options(added)
    clock_option(added)


def run(args: argparse.Namespace) -> int:
    """Exit code 1 where a tool loop is rewritten: each of its rounds pays. What breaks otherwise is shown."""
    from probes.chapters.prefix import check_prefix_stability
    from probes.commands.inputs import limits, special_tokens, template_source
    from probes.rendering.counting import counter
    from probes.reporters.text import prefix_text

    source = template_source(args, "transformers")
    results = check_prefix_stability(
        source.template(args.variant),
        **special_tokens(args, source),
        limits=limits(args),
        now=args.now,
        laws=args.law,
    )
    unit = counter(args.tokenizer)
    if args.json:
        print_json([result.to_dict(unit) for result in results])
    else:
        write(prefix_text(results, unit))
    failing = {"within-tool-loop"} if args.fail_on == "error" else {result.law for result in results}
    return FINDING if any(result.holds is False and result.law in failing for result in results) else CLEAN


COMMAND = Command(
    "check what a growing conversation keeps of the KV cache",
    run,
    add_options,
    work=("probes.commands.inputs", "probes.chapters.prefix", "probes.reporters.text"),
    codes="""\
Exit codes: 0 where a tool loop keeps its prompt; 1 where it is rewritten, with
--fail-on warning where any law is broken; 2 for wrong usage or unreadable
input.
""",
)
