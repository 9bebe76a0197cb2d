"""What a command costs with its worker and walls, beside one process: `python -m tests.bench.command_cost`.

`--beside FOLDER`: another checkout, whose command line is taken for the one process. Parent and worker are counted
together. The best of several rounds, both sides in turn.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMMANDS = (["caps", "family:chatml"], ["render", "family:chatml"], ["probe", "family:chatml"])
MOST = 1.1

WALLED = "import sys; sys.path.insert(0, {root!r}); from probes.launch import main; sys.exit(main())"
ALONE = "import sys; sys.path.insert(0, {root!r}); from probes.cli import main; sys.exit(main(sys.argv[1:]))"


def seconds(code: str, arguments: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code, *arguments], stdout=subprocess.DEVNULL, cwd="/", check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beside", default=str(ROOT), metavar="FOLDER")
    parser.add_argument("--rounds", type=int, default=10, metavar="N")
    args = parser.parse_args()
    good = True
    for arguments in COMMANDS:
        sides = {"walled": WALLED.format(root=str(ROOT)), "alone": ALONE.format(root=args.beside)}
        best = dict.fromkeys(sides, float("inf"))
        for _ in range(args.rounds):
            for side, code in sides.items():
                best[side] = min(best[side], seconds(code, arguments))
        ratio = best["walled"] / best["alone"]
        good = good and ratio <= MOST
        print(f"{' '.join(arguments):22} {best['walled']:.3f} s, alone {best['alone']:.3f} s: {ratio:.2f}")
    print(f"allowed: {MOST}: {'met' if good else 'NOT MET'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
