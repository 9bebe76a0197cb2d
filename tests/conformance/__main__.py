"""Another engine against the recordings, for its authors: `python -m tests.conformance`.

--command CMD              a program that renders: JSON lines in and out, see tests/conformance/engines.py
--llama-server URL         a running llama-server, on the conversations of the suite (needs ../shared)

Prints agreement by group and differing rows. `--write FOLDER` writes new goldens there, in the form of the old ones.
Exit code 1 where anything differs. `python -m tests.conformance.ours` is a command: this project itself.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from jinjarun.sources.server import RunningServer
from tests.conformance import engines, golden
from tests.conformance.compare import cut
from tests.conformance.run import SUITES, wanted

GOLDENS = {
    "snippets": ("dialects.jsonl", engines.snippet_goldens),
    "templates": ("templates.jsonl", engines.template_goldens),
}
"""Suites of which new recordings can be written: file name, and its rows from the answers."""


def run_command(args: argparse.Namespace) -> int:
    differing = 0
    with engines.Command(args.command, seconds=args.seconds) as engine:
        for suite in args.suite or SUITES:
            if suite == "templates" and not golden.have_shared():
                print(f"{suite}: not run, {golden.NO_SHARED}")
                continue
            start = time.monotonic()
            answers: dict[str, Any] = {}
            cases = (case for case in SUITES[suite](args.dialect) if wanted(case, args))
            result = engines.account(cases, engine.ask, answers)
            if not result.total:
                continue
            agreeing = result.total - len(result.rows)
            share = f"{agreeing} of {result.total} agree ({100 * agreeing / result.total:.2f} %)"
            seconds = time.monotonic() - start
            print(f"{args.dialect:13} {suite:10} {share}, {result.skipped} not comparable, {seconds:.1f} s")
            for text in (result.table(args.groups), result.examples(args.show)):
                print(text, end="\n" if text else "", flush=True)
            differing += len(result.rows)
            if args.write is not None and suite in GOLDENS:
                name, rows = GOLDENS[suite]
                engines.write_rows(args.write / name, rows(args.dialect, answers))
    return 1 if differing else 0


def run_server(args: argparse.Namespace) -> int:
    """The server beside our path of today; and beside its recording, where a date may be that of another day."""
    if not golden.have_shared():
        print(f"not run, {golden.NO_SHARED}")
        return 2
    server = RunningServer(args.llama_server)
    row = engines.server_row(server)
    answers = row["answers"]
    today = engines.ours(server, None)
    differing = [name for name in answers if not engines.same(answers[name], today[name])]
    print(f"{row['template']} on {server.build or 'an unknown build'}")
    print(f"beside jinjarun        {len(answers) - len(differing)} of {len(answers)} agree")
    for name in differing[: args.show]:
        print(f"  {name}\n    there {cut(str(answers[name]))}\n    here  {cut(str(today[name]))}")
    recorded = engines.recorded_row(row)
    if recorded is not None:
        then = engines.ours(server, golden.suite()["now"])
        old = recorded["answers"]
        other = [
            name
            for name in answers.keys() & old.keys()
            if not engines.same(answers[name], old[name])
            and not (engines.same(answers[name], today[name]) and engines.same(old[name], then[name]))
        ]
        caps = [] if recorded["caps"] == row["caps"] else ["chat_template_caps"]
        print(f"beside its recording   {len(answers) - len(other)} of {len(answers)} agree")
        for name in (sorted(other) + caps)[: args.show]:
            print(f"  {name}")
        differing += other + caps
    if args.write is not None:
        engines.write_rows(args.write / "server.jsonl", [row])
    return 1 if differing else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    engine = parser.add_mutually_exclusive_group(required=True)
    engine.add_argument("--command", metavar="CMD", help="a program that renders")
    engine.add_argument("--llama-server", metavar="URL", help="a running server")
    parser.add_argument("--dialect", choices=list(golden.ENGINES), default="llama.cpp", help="whose recordings")
    parser.add_argument("--suite", choices=list(SUITES), action="append", help="one suite only (may be repeated)")
    parser.add_argument("--group", help="only groups whose name contains this (of templates: the template's name)")
    parser.add_argument("--id", help="only rows whose id contains this")
    parser.add_argument("--show", type=int, default=5, metavar="N", help="differing rows to print (default 5)")
    parser.add_argument("--groups", type=int, default=15, metavar="N", help="differing groups to print (default 15)")
    parser.add_argument("--seconds", type=float, default=engines.ROW_SECONDS, help="for one answer of the command")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="write new goldens there")
    args = parser.parse_args()
    if args.write is not None:
        args.write.mkdir(parents=True, exist_ok=True)
    return run_command(args) if args.command is not None else run_server(args)


if __name__ == "__main__":
    raise SystemExit(main())
