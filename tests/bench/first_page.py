"""Lines of the first page of `probe` on each official release: `python -m tests.bench.first_page [--width N]`.

No page may have more than 40 lines of 100 columns.
"""

from __future__ import annotations

import argparse
import json
import sys

from probes.prober import probe
from probes.reporters.overview import overview_text
from probes.reporters.screen import painted
from tests.bench.rules_over_corpus import officials
from tests.conformance.golden import SHARED

MOST = 40


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--width", type=int, default=100)
    width = arguments.parse_args().width
    longest = 0
    for slug in officials():
        text = (SHARED / "corpus" / "templates" / f"{slug}.jinja").read_bytes().decode("utf-8")
        page = overview_text(probe(text, name=slug), text, f"{slug}.jinja")
        lines = max(len(page.splitlines()), len(painted(page.lines, width).splitlines()))
        longest = max(longest, lines)
        print(f"{lines:3}  {slug}", flush=True)
    print(json.dumps({"longest": longest}))
    return int(longest > MOST)


if __name__ == "__main__":
    sys.exit(main())
