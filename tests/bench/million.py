"""What a scan of a long stream costs: `python -m tests.bench.million [ROWS]` (default 1,000,000).

A generator pipes records of `(id, tokenizer_config)` into `jinjarun scan -`: real templates from ../shared where it is
there, else those of `corpus/`, so mostly duplicates. Nothing is stored: rows go to /dev/null. A first scan of the
distinct templates fills a cache, so that the second one shows what rows cost beside the probes. A line each tenth: CPU
seconds and peak memory of the scan so far; the cost must be linear and the memory flat.

Measured on two shared x86-64 cores, Python 3.11, 521 configurations of 5.3 kB: 132 s of CPU for a million rows (163
us a row after 100,000, 132 at the end, because the cache is read once), peak 59 MB throughout. The distinct probes
took another 124 s, in the workers.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[2]
ROWS = 1_000_000
CPU_SECONDS = 250
MEMORY_MB = 150
TENTHS = 10

_SCAN = [sys.executable, "-m", "probes.cli", "scan", "-", "--fail-on", "never"]


def templates() -> list[str]:
    shared = sorted((ROOT.parent / "shared" / "corpus" / "templates").glob("*.jinja"))
    if shared:
        return [path.read_bytes().decode() for path in shared]
    configs = sorted((ROOT / "corpus").glob("*/tokenizer_config.json"))
    found = [json.loads(path.read_text("utf-8")).get("chat_template") for path in configs]
    return [text for text in found if isinstance(text, str)]


def records(texts: list[str]) -> list[bytes]:
    """The part of a record after its id, with some of what real configurations hold beside the template."""
    added = {str(n): {"content": f"<|reserved_{n}|>", "special": True, "lstrip": False} for n in range(20)}
    config: dict[str, Any] = {"bos_token": "<s>", "eos_token": {"content": "</s>"}, "added_tokens_decoder": added}
    bodies = [json.dumps({**config, "chat_template": text}) for text in texts]
    return [f', "tokenizer_config": {body}}}\n'.encode() for body in [*bodies, json.dumps(config)]]


def feed(pipe: IO[bytes], bodies: list[bytes], start: int, count: int) -> None:
    for number in range(start, start + count):
        pipe.write(b'{"id": "org-%d/model-%d"%b' % (number % 997, number, bodies[number % len(bodies)]))


def cpu_and_memory(pid: int) -> tuple[float, float]:
    """CPU seconds and peak resident MB of a process, its workers aside."""
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    status = Path(f"/proc/{pid}/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK"), peak * 1024 / 1e6


def main() -> int:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    bodies = records(templates())
    size = sum(map(len, bodies)) / len(bodies)
    print(f"{rows:,} records of {len(bodies):,} configurations, {size:,.0f} bytes each")
    with tempfile.TemporaryDirectory() as cache, open(os.devnull, "wb") as nothing:
        for what, counts in (("unique", [len(bodies)]), ("stream", [rows // TENTHS] * TENTHS)):
            start = time.monotonic()
            scan = subprocess.Popen(
                [*_SCAN, "--jobs", "2", "--cache", cache, "--format", "jsonl"],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=nothing,
            )
            assert scan.stdin is not None
            done = 0
            for count in counts:
                feed(scan.stdin, bodies, done, count)
                done += count
                cpu, peak = cpu_and_memory(scan.pid)
                each = f"{cpu:7.1f} s of CPU, {1e6 * cpu / done:5.0f} us a row, peak {peak:4.0f} MB"
                print(f"{what}  {done:>9,} rows: {each}", flush=True)
            scan.stdin.close()
            if scan.wait() != 0:
                return 1
            print(f"{what}  done in {time.monotonic() - start:,.0f} s")
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"all processes: {children.ru_utime + children.ru_stime:.1f} s of CPU")
    good = cpu <= CPU_SECONDS * rows / ROWS + 2 and peak <= MEMORY_MB
    print(f"allowed: {CPU_SECONDS} s of CPU for a million rows, {MEMORY_MB} MB: {'met' if good else 'NOT MET'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
