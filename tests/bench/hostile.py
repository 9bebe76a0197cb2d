"""What each hostile template costs: `python -m tests.bench.hostile [--top N]`.

Each row runs in a forked child, after the package was imported and one trivial template rendered, so that CPU time
and peak memory are those of the row alone. Linux only (it reads /proc). Exit code 1 where a row breaks its bounds.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from tests.bench.children import RUNAWAY_SECONDS, forget_peak, in_child, peak_megabytes
from tests.conformance.golden import ENGINES
from tests.conformance.hostile import CPU_SECONDS, MEGABYTES, Attack, attack, faults, outcome, rows


def measured(row: dict[str, Any], dialect: str, spans: bool, allowed: float) -> dict[str, Any]:
    """Runs in the child: the row's faults, CPU seconds (`allowed` of them) and megabytes."""
    case = attack(row)
    forget_peak()
    before, start = peak_megabytes(), time.process_time()
    found = list(faults(case, dialect, spans=spans))
    seconds, megabytes = time.process_time() - start, peak_megabytes() - before
    if seconds > allowed:
        found.append(f"{case.id} {dialect}: {seconds:.2f} s of CPU, allowed {allowed}")
    if megabytes > MEGABYTES:
        found.append(f"{case.id} {dialect}: {megabytes:.0f} MB, allowed {MEGABYTES}")
    name = f"{dialect} with spans" if spans else dialect
    return {"id": case.id, "dialect": name, "seconds": seconds, "megabytes": megabytes, "faults": found}


def apart(row: dict[str, Any], dialect: str, spans: bool, allowed: float) -> dict[str, Any]:
    """`measured`, in a child."""
    for answer in in_child(lambda: [measured(row, dialect, spans, allowed)]):
        found: dict[str, Any] = answer
        return found
    died = f"{row['id']} {dialect}: the process died or ran for {RUNAWAY_SECONDS} s of CPU ({row['danger']})"
    return {"id": row["id"], "dialect": dialect, "seconds": 0.0, "megabytes": 0.0, "faults": [died]}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.hostile", description=__doc__.splitlines()[0])
    parser.add_argument("--top", type=int, default=5, metavar="N", help="the N dearest rows to print (default 5)")
    parser.add_argument(
        "--slack", type=float, default=1, metavar="N", help="fail a row only over N times the CPU time that is allowed"
    )
    args = parser.parse_args()

    trivial = Attack("trivial", "", "{{ messages[0].content }}", {"messages": [{"content": "x"}]}, "", {})
    for dialect in ENGINES:
        if outcome(trivial, dialect) != "ok" or outcome(trivial, dialect, spans=True) != "ok":
            sys.exit(f"the trivial template does not render in the {dialect} dialect")
    every = [*rows(), *rows("attacks*.jsonl")]
    allowed = CPU_SECONDS * args.slack
    answers = [apart(row, dialect, spans, allowed) for row in every for dialect in ENGINES for spans in (False, True)]
    found = [fault for answer in answers for fault in answer["faults"]]
    print("\n".join(found) or f"{len(answers)} hostile renders end as they should")
    for key, unit, bound in (("seconds", "s of CPU", CPU_SECONDS), ("megabytes", "MB", MEGABYTES)):
        dearest = sorted(answers, key=lambda answer: -answer[key])[: args.top]
        print(f"most {unit} (allowed {bound}): " + ", ".join(f"{a['id']} {a['dialect']} {a[key]:.2f}" for a in dearest))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
