"""Every template of the corpus fuzzed with one seed: internal errors, and how many templates break each law.

    python -m tests.bench.fuzz_corpus [--examples 50] [--every 1] [--official] [--out FILE] [--law LAW] [--jobs 2]
    python -m tests.bench.fuzz_corpus --write

`--out` writes a line of JSON for each template, with one conversation for each way in which it breaks a law. `--write`
puts the table of laws into docs/fuzzing.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from probes.fuzzer.fuzz import fuzz
from probes.laws import LAWS
from tests.bench.rules_over_corpus import filled

PAGE = Path(__file__).parents[2] / "docs" / "fuzzing.md"
CORPUS = Path(__file__).parents[3] / "shared" / "corpus"


KINDS = ("broken", "known")


def paths(every: int, official: bool) -> list[Path]:
    rows = [json.loads(line) for line in (CORPUS / "manifest.jsonl").read_text(encoding="utf-8").splitlines()]
    names = {row["slug"] for row in rows if row.get("official")} if official else None
    found = sorted((CORPUS / "templates").glob("*.jinja"))
    return [path for path in found if names is None or path.stem in names][::every]


def ask(path: Path, examples: int, laws: list[str] | None) -> dict[str, Any]:
    """A row of what was found, or of the internal error."""
    row: dict[str, Any] = {"template": path.stem}
    began = time.process_time()
    try:
        text = path.read_bytes().decode("utf-8")
        tokens = {"bos_token": "<s>", "eos_token": "</s>"}
        report = fuzz(text, name=path.stem, max_examples=examples, shrink=False, laws=laws, **tokens)
        row |= report.to_dict()
    except Exception:
        row["internal_error"] = traceback.format_exc()
    return row | {"cpu": time.process_time() - began}


def main() -> int:
    asked = argparse.ArgumentParser(description="Fuzz the corpus.")
    asked.add_argument("--examples", type=int, default=50)
    asked.add_argument("--every", type=int, default=1)
    asked.add_argument("--official", action="store_true")
    asked.add_argument("--law", action="append")
    asked.add_argument("--out", type=Path)
    asked.add_argument("--jobs", type=int, default=2)
    asked.add_argument("--write", action="store_true")
    args = asked.parse_args()
    with ProcessPoolExecutor(args.jobs) as workers:
        work = partial(ask, examples=args.examples, laws=args.law)
        rows = list(workers.map(work, paths(args.every, args.official)))
    if args.out is not None:
        args.out.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    if args.write:
        PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), "corpus", laws_table(rows)), encoding="utf-8")
    print(summary(rows))
    return 1 if any("internal_error" in row for row in rows) else 0


def laws_table(rows: list[dict[str, Any]]) -> str:
    """How many templates break each law, and how many are known to."""
    lines = ["| law | broken | known | rules |", "|---|---|---|---|"]
    for law in LAWS:
        told = {kind: [row for row in rows if any(one["law"] == law for one in row.get(kind, []))] for kind in KINDS}
        codes = {one["code"] for row in rows for kind in KINDS for one in row.get(kind, []) if one["law"] == law}
        lines.append(f"| `{law}` | {len(told['broken'])} | {len(told['known'])} | {', '.join(sorted(codes))} |")
    return "\n".join(lines)


def summary(rows: list[dict[str, Any]]) -> str:
    """Laws by the templates that break them, as failures and as known, with their commonest causes."""
    lines = []
    errors = [row for row in rows if "internal_error" in row]
    for row in errors:
        lines.append(f"INTERNAL ERROR {row['template']}: {row['internal_error'].splitlines()[-1]}")
    judged = [row for row in rows if row.get("status") == "complete"]
    clean = sum(not row["broken"] for row in judged)
    made, refused = sum(row["examples"] for row in judged), sum(row["refused"] for row in judged)
    lines += [
        f"{len(rows)} templates, {len(judged)} judged, {len(errors)} internal errors, {clean} without a failure",
        f"{made} conversations, {refused} refused in words of the template's own",
        f"{sum(row['cpu'] for row in rows):.0f} s of CPU",
        "",
        f"{'law':24}{'code':8}{'fails':>6}{'known':>7}  causes of failures",
    ]
    tables: dict[str, dict[tuple[str, str], set[str]]] = {kind: defaultdict(set) for kind in KINDS}
    causes: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in judged:
        for kind, table in tables.items():
            for one in row[kind]:
                table[one["law"], one["code"]].add(row["template"])
                if kind == "broken":
                    causes[one["law"], one["code"]][one["cause"].partition(":")[0]] += 1
    for law, code in sorted(tables["broken"].keys() | tables["known"].keys()):
        fails, known = (len(tables[kind][law, code]) for kind in ("broken", "known"))
        common = ", ".join(f"{cause} {count}" for cause, count in causes[law, code].most_common(4))
        lines.append(f"{law:24}{code:8}{fails:6}{known:7}  {common}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
