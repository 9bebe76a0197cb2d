"""What each server's path makes of real requests beside bare transformers: `python -m tests.bench.paths_table`.

Counts pairs of a template and a request, over the templates and requests of `../shared/golden/paths`: the path gives
another prompt, saves the request where bare transformers fails, or refuses or fails where bare transformers renders.
Prints Markdown, which docs/paths.md quotes. `--templates N` takes the first N templates only.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from jinjarun.errors import JinjarunError
from jinjarun.serving.sglang import SglangServer
from jinjarun.serving.vllm import VllmServer
from probes.rendering.paths import Setting, answer_on_path
from probes.rendering.renders import ENGINES, SGLANG, VLLM
from tests.conformance.golden import lines, suite
from tests.conformance.paths import NO_PATHS, PATHS, TOKENS, bodies, have_paths, source_of

BARE = ENGINES["transformers"]
SERVERS = {name: path for name, path in ENGINES.items() if path != BARE}
UNIMPORTANT = {"null-passed", "tool-flags-needed", "variables-added", "none-keys-dropped", "reasoning-names-filled"}
"""Reworks of nearly every request, or such as bare transformers does, too."""
TOP = 10


@dataclass(frozen=True, slots=True)
class Answered:
    text: str
    reworks: list[dict[str, str]]


@dataclass(slots=True)
class Tally:
    same: int = 0
    changed: int = 0
    saved: int = 0
    broken: int = 0
    both_fail: int = 0
    reworks: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    why: dict[str, str] = field(default_factory=dict)

    def add(self, bare: Answered | None, served: Answered | JinjarunError) -> None:
        if isinstance(served, JinjarunError):
            if bare is None:
                self.both_fail += 1
                return
            self.broken += 1
            reason = served.details.get("reason", "template-fails")
            self.reasons[reason] += 1
            self.why[reason] = served.details.get("why", "the template fails on what the server made of the request")
            return
        if bare is None:
            self.saved += 1
        elif bare.text == served.text:
            self.same += 1
            return
        else:
            self.changed += 1
        for row in {row["name"]: row for row in served.reworks}.values():
            if row["name"] not in UNIMPORTANT:
                self.reworks[row["name"]] += 1
                self.why[row["name"]] = row["why"]


def answered(path: str, setting: Setting, body: Any) -> Answered | JinjarunError:
    """A prompt and its reworks. vLLM and SGLang are asked without advice, which costs renders."""
    started: dict[str, Any] = {"special_tokens": TOKENS, "advises": False}
    try:
        if path == VLLM:
            answer = VllmServer(setting.templates, **started).answer(body, now=setting.now)
            return Answered(answer.prompt, [rework.to_dict() for rework in answer.reworks])
        if path == SGLANG:
            answer = SglangServer(setting.templates, **started).answer(body, now=setting.now)
            return Answered(answer.prompt, [rework.to_dict() for rework in answer.reworks])
        found = answer_on_path(path, setting, body)
        return Answered(found.text, list(found.reworks))
    except JinjarunError as error:
        return error


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.paths_table", description=__doc__.splitlines()[0])
    parser.add_argument("--templates", type=int, metavar="N", help="the first N templates only")
    args = parser.parse_args()
    if not have_paths():
        print(NO_PATHS)
        return 2
    names = [row["template"] for row in lines(PATHS / "vllm.jsonl.gz")][: args.templates]
    tallies = {server: Tally() for server in SERVERS}
    for name in names:
        setting = Setting({"default": source_of(name)}, **TOKENS, now=suite()["now"])
        for body in bodies().values():
            bare = answered(BARE, setting, body)
            for server, path in SERVERS.items():
                tallies[server].add(None if isinstance(bare, JinjarunError) else bare, answered(path, setting, body))
    show(tallies, len(names) * len(bodies()))
    return 0


def show(tallies: dict[str, Tally], pairs: int) -> None:
    print(f"Of {pairs:,} pairs:\n")
    print("| path | same prompt | another prompt | saved | refused or failed | fails in both |")
    print("|---|---|---|---|---|---|")
    for server, tally in tallies.items():
        counts = (tally.same, tally.changed, tally.saved, tally.broken, tally.both_fail)
        print(f"| {server} | {' | '.join(f'{count:,}' for count in counts)} |")
    for server, tally in tallies.items():
        print(f"\n### {server}\n\n| pairs | what the server does | why |\n|---|---|---|")
        found = [(count, f"changes: {name}", name) for name, count in tally.reworks.items()]
        found += [(count, f"refuses: {name}", name) for name, count in tally.reasons.items()]
        for count, said, name in sorted(found, key=lambda row: (-row[0], row[1]))[:TOP]:
            print(f"| {count:,} | {said} | {tally.why[name].replace('|', '&#124;')} |")


if __name__ == "__main__":
    raise SystemExit(main())
