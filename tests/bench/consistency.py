"""Answers about one template that contradict each other: `python -m tests.bench.consistency [--every N] [NAME...]`.

Asks only what a user can ask (reports, findings, fuzz reports, the laws) and holds the answers side by side:

- inside one report: what is observed against shape, contract, prefix laws, the notes on what was not evaluated,
  explanations of llama.cpp's flags, and advice;
- the prefix chapter against the laws of the fuzzer, on the chapter's own conversations;
- what a rule finds against the laws that name it, on the conversations that the finding cites and in a fuzz report.

A line for each: template, question, two answers. Exit code 1 where there is one. Needs ../shared.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from probes import FuzzReport, ProbeReport, Supports, check_prefix_stability, fuzz, probe
from probes.chats.messages import Chat
from probes.chats.named import conversation
from probes.laws import LAWS, Case, Subject
from probes.rendering.renders import APPLY, LLAMA_SERVER, SGLANG, VLLM
from tests.conformance.golden import NO_SHARED, SHARED, have_shared

TOKENS = {"bos_token": "", "eos_token": ""}
BARE = ("transformers:raw", "llama.cpp:raw")
EXAMPLES = 20
"""Generated conversations of a fuzz report that is held against the rules."""
NEEDS = {"writes tool calls": "tool_calls", "writes the arguments of calls": "tool_calls"}
TAKEN = ("anywhere", "anywhere_once", "start", "first_only")
"""What a contract says of a system message that is written, by where it may stand."""
NEEDS |= {"writes the tools that are offered": "tools"}
"""What a law says that it needs, in the words of its skip note -> the question of `observed` that tells."""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two answers to one question; `question` begins with the kind of it."""

    template: str
    question: str
    one: str
    other: str

    def __str__(self) -> str:
        return f"{self.template}\t{self.question}\t{self.one}\t{self.other}"


Pair = tuple[str, str, str]
"""A question and two answers."""


def contradictions(name: str, template: str, *, examples: int = EXAMPLES) -> list[Contradiction]:
    """All that contradicts itself in what is said of a template, which is template text."""
    report = probe(template, name=name)
    fuzzed = fuzz(template, name=name, max_examples=examples, shrink=False)
    found = [*_within(report, fuzzed), *_prefix(template), *_rules(template, report, fuzzed)]
    return [Contradiction(name, *pair) for pair in dict.fromkeys(found)]


# Inside one report


def _within(report: ProbeReport, fuzzed: FuzzReport) -> Iterator[Pair]:
    judged = f"{fuzzed.dialect}:raw"
    yield from _chapters(report, judged)
    yield from _notes(report, fuzzed, judged)
    yield from _caps(report)
    yield from _advice(report)


def _says(report: ProbeReport, question: str, path: str) -> str:
    seen = report.observed[question]
    return seen.by_path.get(path, seen.answer)


def _chapters(report: ProbeReport, path: str) -> Iterator[Pair]:
    """`observed` against shape, on the path that is judged, and contract, on the first that loads; an unknown
    contradicts nothing."""
    shape, contract = report.shape, report.contract
    if not report.observed or shape is None or contract is None:
        return

    main = next(f"{engine.id}:{engine.path}" for engine in report.engines if engine.loads)

    def held(question: str, yes: bool, where: str, what: object, at: str = path) -> Iterator[Pair]:
        answer = _says(report, question, at)
        if question == "tool_calls" and "arguments are written without" in report.observed[question].reason:
            return  # the reason says what is written of calls
        if answer != "unknown" and (answer == "yes") != yes:
            yield f"{question}: observed and {where}", f"observed {answer} on {at}", f"{where}: {what}"

    call = shape.tool_call
    yield from held("tool_calls", call is not None, "shape.tool_call", "none" if call is None else call.style)
    arguments = contract.tool_arguments
    calls = arguments.preferred != "none"
    yield from held("tool_calls", calls, "contract.tool_arguments", arguments.preferred, main)
    in_part = any(part in report.observed["tools"].reason for part in ("parameter", "second tool"))
    if not (in_part and shape.tools is not None):  # some of the tools is written, as the reason says
        yield from held("tools", shape.tools is not None, "shape.tools", shape.tools and shape.tools.encoding)
    if call is not None and call.id_written:
        yield from held("tool_call_id", True, "shape.tool_call.id_written", True)
    if calls:
        native = arguments.object == "native"
        yield from held("object_arguments", native, "contract.tool_arguments.object", arguments.object, main)
    placement = None if shape.system is None else shape.system.placement
    if "beside tools" not in report.observed["system_role"].reason:
        written = placement not in (None, "lost", "refused")
        yield from held("system_role", written, "shape.system.placement", placement)
        system = contract.roles["system"]
        yield from held("system_role", system in TAKEN, "contract.roles", system, main)
    content = contract.content
    for question, key in (
        ("one_text_part", "text_parts"),
        ("several_text_parts", "several_text_parts"),
        ("string_content", "string"),
    ):
        yield from held(question, content[key] == "yes", "contract.content", content[key], main)
    if contract.alternation_required and _says(report, "several_user_turns_in_a_row", main) == "yes":
        yield "several_user_turns_in_a_row: observed and contract", "observed yes", "contract: alternation required"
    thinking = shape.reasoning
    if _says(report, "preserve_reasoning", path) == "yes" and thinking is None:
        yield "preserve_reasoning: observed and shape.reasoning", "observed yes", "shape.reasoning: none"
    if thinking is not None and thinking.history == "kept" and contract.reasoning_input.fields:
        for question in ("preserve_reasoning",):
            reason = report.observed[question].reason
            if _says(report, question, path) == "no" and "leaves no trace" in reason:
                yield f"{question}: observed and shape.reasoning", f"observed: {reason}", "shape: history is kept"


def _notes(report: ProbeReport, fuzzed: FuzzReport, path: str) -> Iterator[Pair]:
    """What was not evaluated, by its own words because the template lacks something, against what is observed."""
    notes = [(note.what, note.why) for note in report.not_evaluated]
    notes += [(f"fuzz law {law.law}", law.skipped) for law in fuzzed.laws if law.skipped]
    if fuzzed.status != "complete":
        notes = [note for note in notes if not note[0].startswith("fuzz")]
    for what, why in notes:
        at = f"{fuzzed.dialect}:raw" if what.startswith("fuzz") else path
        for words, question in NEEDS.items():
            if words in why and report.observed and _says(report, question, at) == "yes":
                yield f"{question}: observed and not evaluated", f"observed yes on {at}", f"{what}: {why}"
    laws = {law.law: law.holds for law in report.prefix.laws} if report.prefix is not None else {}
    unnamed = report.observed and "arguments are written without" in report.observed["tool_calls"].reason
    if laws.get("within-tool-loop") is not None and _says(report, "tool_calls", path) == "no" and not unnamed:
        yield "tool_calls: observed and prefix", "observed no", "prefix judges within-tool-loop"
    if laws.get("tool-added") is not None and _says(report, "tools", path) == "no":
        reason = report.observed["tools"].reason
        if "leaves no trace" in reason and "second" not in reason and "parameter" not in reason:
            yield "tools: observed and prefix", f"observed no: {reason}", "prefix judges tool-added"


def _caps(report: ProbeReport) -> Iterator[Pair]:
    """An explanation stands where flag and answer differ, and nowhere else."""
    for flag, value in (report.caps.flags or {}).items():
        question = flag.removeprefix("supports_")
        if question not in report.observed:
            continue
        seen = report.observed[question]
        answers = {seen.answer, _says(report, question, BARE[1])} - {"unknown"}
        differ = bool(answers - {"yes" if value else "no"})
        if differ != (seen.differs_from_caps is not None) and seen.answer != "unknown":
            yield f"{question}: observed and caps", f"flag {value}, observed {answers}", f"{seen.differs_from_caps}"


def _advice(report: ProbeReport) -> Iterator[Pair]:
    """What is advised against against what is observed on the path of the engine."""
    paths = {"llama-server": LLAMA_SERVER, "vllm": VLLM, "sglang": SGLANG, "transformers": APPLY}
    words = {
        "tools:": "tools",
        "tool calls in the history: vLLM": "object_arguments",
        "tool calls in the history: SGLang": "object_arguments",
        "tool calls in the history": "tool_calls",
        "system messages:": "system_role",
        "arguments of calls as an object: not written": "object_arguments",
        "arguments of calls as an object: fails": "object_arguments",
        "content as a string": "string_content",
        "several calls in a message": "parallel_tool_calls",
    }
    for advice in report.serving:
        path = paths[advice.engine]
        for line in advice.avoid:
            question = next((words[beginning] for beginning in words if line.startswith(beginning)), None)
            if question is not None and _says(report, question, path) == "yes":
                yield f"{question}: observed and advice", f"observed yes on {path}", f"{advice.engine}: {line}"


# The prefix chapter and the laws


def _prefix(template: str) -> Iterator[Pair]:
    """A law that both ask, on the later request of the chapter's: broken here and held there."""
    subject = Subject(template, **TOKENS)
    if subject.supports is None:
        return
    for result in check_prefix_stability(template, **TOKENS):
        law = LAWS.get(result.law)
        if law is None or result.growth is None or not law.supported(subject.supports):
            continue
        causes = [found.cause for found in law.check(Case(subject, result.growth.second))]
        if bool(causes) == result.holds:
            here = "holds" if result.holds else f"broken: {result.cause}"
            there = f"broken: {', '.join(causes)}" if causes else "holds"
            yield f"prefix law {result.law}: chapter and fuzz", f"chapter {here}", f"fuzz {there}"


# Rules and the laws that name them


def _rules(template: str, report: ProbeReport, fuzzed: FuzzReport) -> Iterator[Pair]:
    """On the conversations that a finding cites, a law that names the rule finds it too, and an error is no design to
    it; and where these are conversations that the template takes, the fuzz report tells of it."""
    subject = Subject(template, **TOKENS)
    supports = subject.supports
    if supports is None:
        return
    path = f"{subject.dialect}:raw"
    told = {one.found.code: False for one in fuzzed.known} | {one.found.code: True for one in fuzzed.broken}
    asked = {law.law for law in fuzzed.laws if law.holds is not None}
    for finding in report.findings:
        laws = [law for law in LAWS.values() if finding.code in law.codes and law.name in asked]
        chats = [chat for key in finding.evidence if (chat := _chat(report, key, path)) is not None]
        if not laws or not chats or path not in finding.engines:
            continue
        within = all(takes(supports, chat) for chat in chats)
        if not within and any(finding.code in law.codes and law.name not in asked for law in LAWS.values()):
            continue  # the law that would speak of it was not asked, and says so
        names = " and ".join(law.name for law in laws)
        said = f"lint {finding.severity}: {finding.message}"
        found = [one for chat in chats for law in laws for one in law.check(Case(subject, chat))]
        known = [one.known for one in found if one.code == finding.code]
        if not known:
            yield f"rule {finding.code}: law on the same conversation", said, f"{names} hold"
        elif all(known) and finding.severity == "error":
            yield f"rule {finding.code}: law on the same conversation", said, f"{names} hold, by design"
        if within and (finding.code not in told or (finding.severity == "error" and not told[finding.code])):
            yield f"rule {finding.code}: fuzz report", said, f"{names} hold"


def takes(supports: Supports, chat: Chat) -> bool:
    """Whether a conversation holds only what a template supports, so that laws speak of it. Without the variables that
    it cannot do without a template takes none: a rule may tell what becomes of that, fuzzing does not send it."""
    messages = chat["messages"]
    roles = [message["role"] for message in messages]
    first = next((i for i, role in enumerate(roles) if role not in ("system", "developer")), len(roles))
    calls = [call for message in messages for call in message.get("tool_calls") or []]
    forms = {"string" if isinstance(call.get("function", call)["arguments"], str) else "object" for call in calls}
    contents = [message["content"] for message in messages if message.get("content")]
    parts = any(isinstance(content, list) for content in contents)
    beside = {_beside(message) for message in messages if message.get("tool_calls")}
    return all(
        (
            first < len(roles),
            dict(supports.variables).keys() <= chat.get("variables", {}).keys(),
            supports.system or "system" not in roles,
            supports.second_system or roles[:first].count("system") < 2,
            supports.late_system or "system" not in roles[first:],
            supports.developer or "developer" not in roles,
            supports.consecutive_users or ("user", "user") not in set(pairwise(roles)),
            supports.assistant or "assistant" not in roles,
            supports.tools or not chat.get("tools"),
            supports.tool_calls or not calls,
            supports.parallel_calls or all(len(message.get("tool_calls") or []) < 2 for message in messages),
            forms <= set(supports.arguments),
            beside <= set(supports.beside),
            supports.text_parts or not supports.string_content or not parts,
            supports.string_content
            or not any(message.get("content") and not isinstance(message["content"], list) for message in messages),
        )
    )


def _beside(message: dict[str, Any]) -> str:
    content = message.get("content", "missing")
    return "null" if content is None else "missing" if content == "missing" else "text" if content else "empty"


def _chat(report: ProbeReport, key: str, path: str) -> Chat | None:
    """The conversation of a piece of evidence, read back from the command that repeats it; None of another path."""
    piece = report.evidence[key]
    if f"{piece.engine}:{piece.path}" != path:
        return None
    words = shlex.split(piece.repeat)
    if "--conversation" in words:
        chat = conversation(words[words.index("--conversation") + 1])
    elif words[0] == "printf":
        body: dict[str, Any] = json.loads(words[2])
        if "chat_template_kwargs" in body:
            body["variables"] = body.pop("chat_template_kwargs")
        chat = body  # type: ignore[assignment]  # the keys of a Chat
    else:
        return None
    return chat if chat["messages"] else None


# The corpus


def templates() -> dict[str, str]:
    """The real templates of ../shared by their names."""
    found = sorted((SHARED / "corpus" / "templates").glob("*.jinja"))
    return {path.stem: path.read_bytes().decode("utf-8") for path in found}


def _ask(row: tuple[str, str], examples: int) -> list[Contradiction]:
    return contradictions(*row, examples=examples)


def main() -> int:
    asked = argparse.ArgumentParser(description="Look for contradictions.")
    asked.add_argument("names", nargs="*")
    asked.add_argument("--every", type=int, default=1)
    asked.add_argument("--examples", type=int, default=EXAMPLES)
    asked.add_argument("--jobs", type=int, default=2)
    args = asked.parse_args()
    if not have_shared():
        print(NO_SHARED)
        return 2
    rows = [(name, text) for name, text in templates().items() if not args.names or name in args.names][:: args.every]
    found: list[Contradiction] = []
    with ProcessPoolExecutor(args.jobs) as workers:
        for some in workers.map(partial(_ask, examples=args.examples), rows, chunksize=4):
            found += some
            print(*some, sep="\n", end="\n" if some else "")
    print()
    counts = Counter(one.question for one in found)
    for question, _ in counts.most_common():
        names = {one.template for one in found if one.question == question}
        print(f"{len(names):4} templates  {question}")
    print(f"{len(found)} contradictions on {len({one.template for one in found})} of {len(rows)} templates")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
