"""How far we agree with the recordings: `python -m tests.conformance.run [--dialect X] [--group G] [--show N]`.

Prints one line a dialect and suite, the groups that differ (worst first) and the first N differing rows. Known
differences count as differing here. Exit code 1 where anything differs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator

from jinjarun.errors import JinjarunError
from jinjarun.serving.caps import chat_template_caps
from tests.conformance import golden
from tests.conformance.compare import account, cut, said
from tests.conformance.golden import Case

SUITES: dict[str, Callable[[str], Iterator[Case]]] = {
    "snippets": golden.snippets,
    "edges": golden.edges,
    "reports": golden.reports,
    "templates": golden.templates,
}


def wanted(case: Case, args: argparse.Namespace) -> bool:
    return (args.group is None or args.group in case.group) and (args.id is None or args.id in case.id)


def caps_differences(show: int) -> int:
    """Prints the agreement of the nine flags, returns the number of templates that differ."""
    rows: list[str] = []
    total = 0
    for name, source, flags in golden.caps():
        total += 1
        got: object
        try:
            got = chat_template_caps(source).to_dict()
        except Exception as error:
            got = None if flags is None and isinstance(error, JinjarunError) else said(error)
        if got != flags:
            wrong = {k: v for k, v in got.items() if flags and v != flags[k]} if isinstance(got, dict) else got
            rows.append(f"  {name}: got {cut(str(wrong))}" + (" where llama.cpp fails" if flags is None else ""))
    print(f"llama.cpp     caps       {total - len(rows)} of {total} agree")
    print("\n".join(rows[:show]), end="\n" if rows[:show] else "")
    return len(rows)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.run", description=__doc__.splitlines()[0])
    parser.add_argument("--dialect", choices=list(golden.ENGINES), help="one dialect only")
    parser.add_argument("--suite", choices=[*SUITES, "caps"], action="append", help="one suite only (may be repeated)")
    parser.add_argument("--group", help="only groups whose name contains this (of templates: the template's name)")
    parser.add_argument("--id", help="only rows whose id contains this")
    parser.add_argument("--show", type=int, default=5, metavar="N", help="differing rows to print (default 5)")
    parser.add_argument("--groups", type=int, default=15, metavar="N", help="differing groups to print (default 15)")
    args = parser.parse_args()

    differing = 0
    for suite in args.suite or [*SUITES, "caps"]:
        if suite in ("templates", "caps") and not golden.have_shared():
            print(f"{suite}: not run, {golden.NO_SHARED}")
            continue
        if suite == "caps":
            if args.dialect != "transformers" and args.group is None and args.id is None:
                differing += caps_differences(args.show)
            continue
        for dialect in [args.dialect] if args.dialect else golden.ENGINES:
            start = time.process_time()
            result = account(case for case in SUITES[suite](dialect) if wanted(case, args))
            seconds = time.process_time() - start
            if not result.total:
                continue
            share = 100 * (1 - len(result.rows) / result.total)
            print(
                f"{dialect:13} {suite:10} {result.total - len(result.rows)} of {result.total} agree ({share:.2f} %), "
                f"{result.skipped} not comparable, {seconds:.1f} s CPU"
            )
            for text in (result.table(args.groups), result.examples(args.show)):
                print(text, end="\n" if text else "")
            differing += len(result.rows)
    return 1 if differing else 0


if __name__ == "__main__":
    raise SystemExit(main())
