"""Seconds and bytes a step: `python -m tests.bench.calibrate [TEXT...] [--dialect D] [--spans] [--all]`.

Prints what every builtin, operator and statement costs for each step that it charges, on inputs made for its worst
case, the dearest size of each case. Exit code 1 where one is above five times the median of its dialect.
"""

from __future__ import annotations

import argparse
import sys

from tests.bench.calibrate import CASES
from tests.bench.calibrate.harness import MEDIANS, Measured, apart, medians


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.calibrate", description=__doc__.splitlines()[0])
    parser.add_argument("texts", nargs="*", metavar="TEXT", help="only cases whose name holds one of these")
    parser.add_argument("--dialect", help="only cases of this dialect")
    parser.add_argument("--spans", action="store_true", help="render with spans")
    parser.add_argument("--all", action="store_true", help="print every size")
    args = parser.parse_args()

    found: list[Measured] = []
    for case in CASES:
        if args.dialect in (None, case.dialect) and any(text in case.name for text in args.texts or [""]):
            found += [apart(case, size, spans=args.spans) for size in case.sizes]
    if not found:
        sys.exit("no case has such a name")
    usual = medians(found)
    above = 0
    for dialect, (seconds, size) in usual.items():
        print(f"\n{dialect}: medians of {seconds * 1e9:.0f} ns and {size:.1f} bytes a step")
        by_name: dict[str, list[Measured]] = {}
        for one in found:
            if one.dialect == dialect:
                by_name.setdefault(one.name, []).append(one)
        for rows in sorted(by_name.values(), key=lambda rows: -max(row.seconds_a_step for row in rows)):
            for row in rows:
                marks = [
                    "SLOW" if row.seconds_a_step > MEDIANS * seconds else "",
                    "LARGE" if row.bytes_a_step > MEDIANS * size else "",
                ]
                dearest = row is max(rows, key=lambda row: row.seconds_a_step)
                above += any(marks)
                if args.all or dearest or any(marks):
                    print(
                        f"{row.name:34} {row.size:>9,} {row.ended:12} {row.steps:>8,} steps {row.seconds:8.4f} s "
                        f"{row.seconds_a_step * 1e9:8.0f} ns {row.bytes_a_step:8.1f} B  {' '.join(marks)}".rstrip()
                    )
    print(f"\n{len(found)} measured, {above} above {MEDIANS} times the median")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
