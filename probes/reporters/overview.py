"""The first page of a report: a verdict, the findings by harm, and a line for each chapter."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from probes.reporters.document import Document, Line, Paragraph, Part, say, table
from probes.reporters.escaping import WIDTH
from probes.reporters.findings import PATH_NAMES, finding_head, finding_lines, on_paths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from probes.report import EngineStatus, Finding, ProbeReport

MOST_LINES = 40
WITH_EVIDENCE = 3
"""Findings that are shown with their evidence, where there is room; then come single lines."""
IN_A_LINE = 7
"""Findings that are shown in a line each, where there is room; then only their number."""

WHOM = {
    "SY": "everybody",
    "SC": "users of strangers' texts",
    "ST": "everybody",
    "TL": "agents with tools",
    "RL": "system prompts",
    "CT": "other forms of content",
    "RS": "reasoning",
    "PS": "the KV cache",
    "PT": "changes of engine",
    "PK": "downloaders",
    "TR": "training",
}
"""Whom the rules of a group are about, by the letters of their codes."""


def overview_text(report: ProbeReport, text: str = "", target: str | None = None) -> Document:
    """The report in at most 40 lines. `text` is the template, `target` what the command line calls it."""
    return Document(_lines(report, text, target or report.template.name or "template"))


def _lines(report: ProbeReport, text: str, target: str) -> Iterator[Line]:
    head: list[Line] = [*verdict(report), ""]
    tail: list[Line] = [
        *table(_chapters(report), indent=""),
        say(Part("all of it: --all, or --json; a rule: jinjarun rule CODE", "faint")),
    ]
    every = [path_of(engine) for engine in report.engines if engine.loads]
    name = report.template.name or "template"
    room = MOST_LINES - _height(head) - _height(tail)
    shown: list[Line] = []
    blocks = 0
    for found in report.findings[:WITH_EVIDENCE]:
        block: list[Line] = [
            *finding_lines(found, report.evidence, name=name, target=target, text=text, every=every),
            "",
        ]
        after = min(len(report.findings) - blocks - 1, IN_A_LINE + 1)
        if found.severity == "info" or _height(shown) + _height(block) + after + bool(after) > room:
            break
        shown += block
        blocks += 1
    rest = report.findings[blocks:]
    fitting = room - _height(shown) - 1
    most = len(rest) if len(rest) <= min(IN_A_LINE, fitting) else min(IN_A_LINE, fitting - 1)
    for found in rest[:most]:
        place = f" (line {found.line})" if found.line is not None else ""
        shown.append(say(*finding_head(found), f" ({on_paths(found.engines, every)}){place}", cut=True))
    if len(rest) > most:
        shown.append(say(Part(f"and {len(rest) - most} more", "faint")))
    yield from head
    yield from shown
    if rest:
        yield ""
    yield from tail


def _height(lines: list[Line]) -> int:
    return Document(lines).count("\n")


def path_of(engine: EngineStatus) -> str:
    return f"{engine.id}:{engine.path}"


def verdict(report: ProbeReport) -> Iterator[Paragraph]:
    """What works where, and what will hurt whom, in one to three lines."""
    works, fails = _where(report)
    if works:
        yield say(Part(f"Works on {_and(works)}.", "good"), cut=True)
    if fails:
        yield say(Part(" ".join(f"{why} on {_and(where)}." for why, where in fails.items()), "bad"), cut=True)
    hurt = _hurt(report.findings)
    if hurt:
        with_codes = "; ".join(f"{whom} ({', '.join(codes)})" for whom, codes in hurt.items())
        said = with_codes if len(with_codes) < WIDTH - len("Hurts .") else ", ".join(hurt)
        yield say(Part(f"Hurts {said}.", "warning"), cut=True)
    elif report.status in ("complete", "partial") and not fails:
        yield say(Part("No rule found anything that hurts.", "good"))


def _where(report: ProbeReport) -> tuple[list[str], dict[str, list[str]]]:
    """Engines on which an ordinary conversation is answered and ends; and what is wrong on the others."""
    works: list[str] = []
    fails: dict[str, list[str]] = {}
    asked = report.observed.get("string_content")
    paths = {path_of(engine): engine for engine in report.engines}
    served = {path: engine for path, engine in paths.items() if not path.endswith(":raw")} or paths
    never = {name for name, answer in (report.stop.by_engine if report.stop else {}).items() if answer == "never_stops"}
    for path, engine in served.items():
        answer = "unknown" if asked is None else asked.by_path.get(path, asked.answer)
        if not engine.loads:
            why = "Does not load"
        elif answer == "no" or not engine.rendered:
            why = "Fails"
        elif path.partition(":")[0] in never:
            why = "Never stops (ST201)"
        else:
            works.append(PATH_NAMES.get(path, path))
            continue
        fails.setdefault(why, []).append(PATH_NAMES.get(path, path))
    return works, fails


def _hurt(findings: list[Finding]) -> dict[str, list[str]]:
    """Codes by whom they are about, the worst first."""
    hurt: dict[str, list[str]] = {}
    for found in findings:
        if found.severity != "info":
            codes = hurt.setdefault(WHOM.get(found.code[:2], "others"), [])
            if found.code not in codes:
                codes.append(found.code)
    return hurt


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _chapters(report: ProbeReport) -> Iterator[tuple[str, Part]]:
    def one(name: str, said: str) -> tuple[str, Part]:
        return name, Part(said)

    template = report.template
    family = f"{template.family.name}, " if template.family is not None else ""
    yield one("template", f"{family}{template.lines} lines, {template.bytes:,} bytes, sha256 {template.sha256[:12]}")
    rendered = {path_of(one): f"{one.rendered}/{one.of}" if one.loads else "-" for one in report.engines}
    yield one("renders", ", ".join(f"{PATH_NAMES.get(path, path)} {count}" for path, count in rendered.items()))
    if report.caps.flags is not None:
        yes = [name.removeprefix("supports_") for name, value in report.caps.flags.items() if value]
        yield one("caps", ", ".join(yes) or "none")
    if report.observed:
        answers = Counter(seen.answer for seen in report.observed.values())
        yield one("can do", f"{answers['yes']} of {len(report.observed)} things, {answers['unknown']} unknown")
    if report.shape is not None and report.shape.end_of_turn.text is not None:
        yield one("shape", f"a turn ends with {report.shape.end_of_turn.text!r}")
    if report.prefix is not None:
        broken = [law.law for law in report.prefix.laws if law.holds is False]
        holding = sum(law.holds is True for law in report.prefix.laws)
        said = f"{holding} of {holding + len(broken)} laws hold" + (f"; broken: {', '.join(broken)}" if broken else "")
        yield one("KV cache", said)
    flags = [f"{advice.engine} {flag}" for advice in report.serving for flag in advice.flags]
    if flags:
        yield one("flags", "; ".join(flags))
    if report.differences:
        yield one("dialects", f"differ on {len(report.differences)} conversations")
    if report.server is not None:
        same = "as its build does" if report.server.equal else "otherwise than its build does"
        yield one("server", f"{report.server.url} answers {same}")
    if report.not_evaluated:
        yield one("unknown", f"{len(report.not_evaluated)} things were not evaluated")
