"""What is read of recorded answers: `python -m tests.bench.responses [--show N] [--template NAME] [--kind KIND]`.

The answers that count, and what is compared, follow the law in `../shared/golden/outputs/README.md`. The two kinds of
answers that quote the syntax's own markers are counted apart.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from jinjarun.responses import ParsedMessage, ResponseSyntax
from probes.chapters.response import response_syntax

SHARED = Path(__file__).parents[2] / "../shared"
OUTPUTS = SHARED / "golden/outputs/outputs.jsonl.gz"
BODIES = SHARED / "golden/outputs/outputs-bodies.json"
TOKEN = "<|endoftext|>"
"""BOS and EOS of the recordings."""
QUOTING = ("text-quotes-open-marker", "call-holds-close-marker")
"""Kinds of answers that quote the syntax's own markers."""
PIECES = (1, 4, 7)
"""Sizes of the pieces in which answers are fed."""


def rows() -> Iterator[dict[str, Any]]:
    with gzip.open(OUTPUTS, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def counts(answer: dict[str, Any]) -> bool:
    """Whether an answer can be judged."""
    if answer.get("generated") is None or answer.get("relation") in (None, "differs", "no-generation-prompt"):
        return False
    return not answer.get("stops_inside") and not {"no", "partly"} & set(answer["written"].values())


def told(message: dict[str, Any]) -> tuple[str, str, list[tuple[str, Any]]]:
    """What a message says: content, reasoning, and calls with their arguments as data."""
    calls = []
    for call in message.get("tool_calls") or ():
        arguments = call["function"]["arguments"]
        calls.append((call["function"]["name"], json.loads(arguments) if isinstance(arguments, str) else arguments))
    return message.get("content") or "", message.get("reasoning_content") or "", calls


def trimmed(message: tuple[str, str, list[tuple[str, Any]]]) -> tuple[str, str, list[tuple[str, Any]]]:
    """The same but for white space at the edges."""
    content, reasoning, calls = message

    def edges(value: Any) -> Any:
        if isinstance(value, str):
            return value.strip()
        if isinstance(value, dict):
            return {key: edges(item) for key, item in value.items()}
        return [edges(item) for item in value] if isinstance(value, list) else value

    return content.strip(), reasoning.strip(), [(name, edges(arguments)) for name, arguments in calls]


def lost(text: str, found: ParsedMessage) -> bool:
    """Whether nothing is told of a text, and no problem either."""
    return bool(text.strip()) and not any(trimmed(told(found))) and not found.problems


def in_pieces(syntax: ResponseSyntax, text: str, size: int, **options: Any) -> ParsedMessage:
    """The message of a text that comes in pieces; what the deltas add must be it."""
    parser = syntax.parser(**options)
    deltas = [delta for at in range(0, len(text), size) for delta in parser.feed(text[at : at + size])]
    deltas += parser.finalize()
    content = "".join(delta.get("content", "") for delta in deltas)
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert content == (parser.message["content"] or "")
    assert len(calls) == len(parser.message.get("tool_calls", ()))
    return parser.message


Failed = tuple[str, str, dict[str, Any], ParsedMessage]
"""Template, what is wrong, the recorded answer, and what was read."""


class Judged(Counter[str]):
    """Counts by what was asked, `near` and `all`; by kind of answer; and the answers that were read otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.failed: list[Failed] = []

    def note(self, question: str, good: bool) -> None:
        self[f"{question} all"] += 1
        self[f"{question} near"] += good


def judge(chosen: Iterable[dict[str, Any]], kind: str = "", *, show_syntax: bool = False) -> Judged:
    """Reads the answers of some rows, all or those of one kind."""
    bodies = json.loads(BODIES.read_text(encoding="utf-8"))["bodies"]
    judged = Judged()
    for row in chosen:
        answers = [answer for answer in row["answers"] if counts(answer) and kind in ("", answer["name"])]
        if not answers:
            continue
        source = (SHARED / "corpus/templates" / f"{row['template']}.jinja").read_bytes().decode("utf-8")
        syntax = response_syntax(source, bos_token=TOKEN, eos_token=TOKEN)
        if show_syntax:
            print(row["template"], syntax.model_dump_json(exclude_defaults=True))
        for answer in answers:
            options = {
                "prefix": row["llamacpp"][answer["body"]]["prompt"],
                "tools": bodies[answer["body"]].get("tools"),
            }
            _judge(judged, row["template"], answer, syntax, options)
    return judged


def _judge(judged: Judged, name: str, answer: dict[str, Any], syntax: ResponseSyntax, options: dict[str, Any]) -> None:
    text = answer["generated"]
    found = syntax.parse_response(text, **options)
    meant, read = told(answer["message"]), told(found)
    near = trimmed(read) == trimmed(meant)
    exact = "trimmed" not in answer["written"].values()
    quoting = answer["name"] in QUOTING
    judged.note("quoting" if quoting else "plain", near)
    kind = judged.kinds[answer["name"]]
    kind["all"] += 1
    kind["near"] += near
    if meant[2] and not quoting:
        judged.note("calls", near)
    if exact and not quoting:
        judged.note("exact", read == meant)
    judged["lost"] += lost(text, found)
    if not near or (exact and read != meant):
        judged.failed.append((name, "edges" if near else "far", answer, found))
    for size in PIECES:
        same = in_pieces(syntax, text, size, **options) == found
        judged.note("streamed", same)
        if not same:
            judged.failed.append((name, f"in pieces of {size}", answer, found))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--show", type=int, default=0, help="print so many differences")
    options.add_argument("--template", default="", help="only templates whose name holds this")
    options.add_argument("--kind", default="", help="only answers of this kind")
    options.add_argument("--syntax", action="store_true", help="print the syntax of each template")
    args = options.parse_args()
    judged = judge((row for row in rows() if args.template in row["template"]), args.kind, show_syntax=args.syntax)
    for title, key in (
        ("all but for edge white space", "plain"),
        ("calls but for edge white space", "calls"),
        ("exact, where written so", "exact"),
        ("quoting the syntax's own markers", "quoting"),
        ("streamed equals whole", "streamed"),
    ):
        every, near = judged[f"{key} all"], judged[f"{key} near"]
        print(f"{title:40} {near:6} of {every:6}  {100 * near / max(every, 1):6.2f} %")
    print(f"{'lost without a word':40} {judged['lost']:6}")
    for kind, tallied in sorted(judged.kinds.items()):
        if tallied["near"] != tallied["all"]:
            print(f"  {kind:28} {tallied['near']:5} of {tallied['all']:5}")
    for name, how, answer, found in judged.failed[: args.show]:
        print(f"--- {name} {answer['name']} {answer['body']} {answer['relation']} {how} {answer['written']}")
        print(f"    text  {answer['generated'][-400:]!r}")
        print(f"    meant {told(answer['message'])}")
        print(f"    read  {told(found)} {found.problems}")


if __name__ == "__main__":
    main()
