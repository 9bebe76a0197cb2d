"""`jinjarun compare`: where engines differ, or two templates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.commands import Command
from probes.commands.options import Usage, made_up_options, paths_option, request_options
from probes.commands.output import CLEAN, FINDING, print_json, write

if TYPE_CHECKING:
    import argparse


def add_options(added: argparse.ArgumentParser) -> None:
    from probes.comparison.engines import EXAMPLES

    added.add_argument("new", metavar="NEW", nargs="?", help="compare the first template with this newer one instead")
    request_options(added)
    paths_option(added)
    added.add_argument(
        "--fail-on",
        choices=("broken", "changed"),
        default="broken",
        help="of two templates: the least change of exit code 1 (default broken)",
    )
    made_up_options(added, EXAMPLES)


def run(args: argparse.Namespace) -> int:
    from probes.commands.inputs import limits, request, special_tokens, template_source
    from probes.comparison.engines import compare
    from probes.reporters.text import comparison_text

    if args.new is not None:
        return run_templates(args)
    chat = request(args)
    source = template_source(args, "transformers")
    result = compare(
        source.template(args.variant),
        **chat,
        **special_tokens(args, source),
        now=args.now,
        limits=limits(args),
        paths=args.paths,
    )
    print_json(result.model_dump(mode="json")) if args.json else write(comparison_text(result))
    return CLEAN if result.agree else FINDING


def run_templates(args: argparse.Namespace) -> int:
    from jinjarun.sources import open_source
    from probes.chats.corpus import corpus_folder
    from probes.commands.inputs import limits, read_once, template_source
    from probes.comparison.engines import compare_templates
    from probes.reporters.changes import template_comparison_text

    asked = (args.messages, args.conversation, args.tools, args.chat_template_kwargs, args.bos_token, args.eos_token)
    if args.no_generation_prompt or any(option is not None for option in asked):
        raise Usage("two templates are compared over all conversations, with their own tokens: no request fits")
    read_once(args, args.new)
    old, new = template_source(args, "transformers"), open_source(args.new, corpus=corpus_folder(), vocabulary=False)
    found = compare_templates(
        old.template(args.variant),
        new.template(args.variant),
        old_name=args.template,
        new_name=args.new,
        old_tokens=old.tokens,
        new_tokens=new.tokens,
        now=args.now,
        limits=limits(args),
        max_examples=args.max_examples,
        seed=args.seed,
    )
    print_json(found.model_dump(mode="json")) if args.json else write(template_comparison_text(found))
    failing = {"broken", "changed"} if args.fail_on == "changed" else {"broken"}
    return FINDING if found.outcome in failing else CLEAN


COMMAND = Command(
    "show where engines differ, or two templates",
    run,
    add_options,
    work=("probes.commands.inputs", "probes.comparison.engines", "probes.reporters.text"),
)
