"""Mutated GGUF headers give an answer or a `SourceError`, never anything else, and no case takes long.

    python -m tests.bench.gguf_mutations [COUNT] [SEED]

Prints how many of COUNT (200,000) mutations were read, how many refused, and the slowest of them. Also what a
40-gigabyte sparse file with a header of Gemma 3's size costs.
"""

from __future__ import annotations

import collections
import multiprocessing
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from jinjarun.errors import SourceError
from jinjarun.sources import open_source
from jinjarun.sources.gguf import read_gguf
from tests.bench.children import forget_peak, peak_megabytes
from tests.sources.test_gguf import same_in_version_2, write

INTERESTING = (0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 12, 13, 0x20, 0x7F, 0x80, 0xFF)


def mutate(random_: random.Random, data: bytes) -> bytes:
    """One to six changes: a byte, eight bytes of a length, a piece cut, doubled, swapped or taken from elsewhere."""
    out = bytearray(data)
    for _ in range(random_.randint(1, 6)):
        if not out:
            break
        at = random_.randrange(len(out))
        size = random_.choice((1, 2, 4, 8, 16, 64))
        match random_.randrange(6):
            case 0:
                out[at] = random_.randrange(256)
            case 1:
                out[at] = random_.choice(INTERESTING)
            case 2:
                exact = random_.choice(
                    (0, 1, 255, 1 << 16, 1 << 31, 1 << 32, 1 << 62, 1 << 63, (1 << 64) - 1, len(out) - at)
                )
                out[at : at + 8] = exact.to_bytes(8, random_.choice(("little", "big")))
            case 3:
                del out[at : at + size]
            case 4:
                out[at:at] = out[at : at + size]
            case _:
                other = random_.randrange(len(out))
                out[at : at + size] = out[other : other + size]
    return bytes(out[: random_.randrange(len(out) + 1)] if random_.random() < 0.1 else out)


def mutations(folder: Path, count: int, seed: int) -> None:
    random_ = random.Random(seed)
    named = [{"name": name, "template": "{{ messages }}"} for name in ("default", "tool_use")]
    originals = [
        write(folder / "a.gguf").read_bytes(),
        write(folder / "b.gguf", big=True).read_bytes(),
        same_in_version_2(write(folder / "c.gguf", templates=named)).read_bytes(),
    ]
    path = folder / "mutated.gguf"
    outcomes: collections.Counter[str] = collections.Counter()
    slowest = 0.0
    start = time.perf_counter()
    for _ in range(count):
        path.write_bytes(mutate(random_, random_.choice(originals)))
        begin = time.process_time()
        try:
            source = open_source(path)
            source.template()
            outcomes["read"] += 1
        except SourceError as error:
            details = error.to_dict()
            assert details["path"] == str(path), details
            assert details["reason"], details
            outcomes["refused"] += 1
        slowest = max(slowest, time.process_time() - begin)
    print(
        f"{count:,} mutations in {time.perf_counter() - start:.0f} s: {dict(outcomes)}, slowest {slowest * 1000:.1f} ms"
    )


def sparse(folder: Path) -> None:
    tokens = [f"token {number}" for number in range(262_144)]
    path = write(folder / "huge.gguf", tokens=tokens, merges=[f"merge {number}" for number in range(514_906)])
    os.truncate(path, 40_000_000_000)
    with multiprocessing.get_context("spawn").Pool(1) as fresh:
        print("40 GB with 777,050 strings:", fresh.apply(measured, (str(path),)))


def measured(path: str) -> str:
    """In a process of its own, so that the peak is the reader's. Linux only."""
    forget_peak()
    before, begin = peak_megabytes(), time.process_time()
    header = read_gguf(path)
    seconds = time.process_time() - begin
    peak = peak_megabytes() - before
    return f"{seconds:.2f} s of CPU, {header.bytes_read / 1e6:.1f} MB read, peak memory {peak:+.0f} MB"


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    with tempfile.TemporaryDirectory() as name:
        mutations(Path(name), count, seed)
        sparse(Path(name))


if __name__ == "__main__":
    main()
