"""`jinjarun snapshot`: the prompts of today, kept beside the templates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinjarun.errors import InputError, JinjarunError, SourceError
from probes.commands import Command
from probes.commands.options import Usage, format_options, token_options
from probes.commands.output import CLEAN, FINDING, UNUSABLE, complain, describe, finding_format, show

if TYPE_CHECKING:
    import argparse

    from probes.results.rows import Row


def add_options(added: argparse.ArgumentParser) -> None:
    mode = added.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true", help="write nothing; a missing snapshot is exit code 2")
    mode.add_argument("--update", action="store_true", help="write it anew where it differs, too")
    added.add_argument("--dir", metavar="FOLDER", help="keep them there, not beside the templates")
    token_options(added)
    format_options(added)


def run(args: argparse.Namespace) -> int:
    from jinjarun.sources import open_source
    from probes.chats.corpus import corpus_folder
    from probes.commands.inputs import info, limits, special_tokens
    from probes.comparison.snapshot import Kept, Mode, keep, snapshot_file
    from probes.linter.places import find_targets
    from probes.reporters.changes import snapshot_text
    from probes.reporters.rows import error_row, snapshot_row

    made = finding_format(args)
    mode: Mode = "check" if args.check else "update" if args.update else "write"
    kept: dict[str, Kept] = {}
    rows: list[Row] = []
    code = CLEAN
    for target in [target for given in args.template for target in find_targets(given)]:
        try:
            source = open_source(target, corpus=corpus_folder(), vocabulary=False)
            variant = args.variant or source.default or "default"
            file = snapshot_file(source, variant, args.dir)
            if file in kept:
                raise Usage(f"{target} and {kept[file].template} would both be kept in {file}")
            text = source.template(args.variant)
            kept[file] = keep(text, target, file, mode, **special_tokens(args, source), limits=limits(args))
            rows.append(snapshot_row(info(target, source, variant, text), kept[file]))
        except JinjarunError as error:
            rows.append(error_row(target, error))
            complain(describe(error, target), UNUSABLE)
            code = max(code, UNUSABLE if isinstance(error, SourceError | InputError) else FINDING)
    states = {one.state for one in kept.values()}
    show(args, made, lambda: snapshot_text(kept.values()), lambda: [one.to_dict() for one in kept.values()], rows)
    return max(code, UNUSABLE if "missing" in states else FINDING if "changed" in states else CLEAN)


COMMAND = Command(
    "keep what templates write, and show what changed",
    run,
    add_options,
    "+",
    work=("probes.commands.inputs", "probes.comparison.snapshot", "probes.reporters.changes"),
)
