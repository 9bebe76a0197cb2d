"""Reports for a terminal of 80 columns, without colour: what a person reads first stands first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from jinjarun.errors import quote
from probes.reporters.escaping import WIDTH, json_text, terminal, wrapped
from probes.reporters.figures import headline, tables
from probes.reporters.formats import Format

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from probes.chapters.prefix import LawResult
    from probes.comparison.engines import Comparison
    from probes.linter.lint import LintResult
    from probes.rendering.counting import Counter
    from probes.report import Finding, Observation, ProbeReport, ServerCheck
    from probes.reporters.formats import Out
    from probes.results.rows import Row
    from probes.results.tally import Tally
    from probes.rules import Rule


def report_text(report: ProbeReport) -> str:
    """The whole report: findings, then what the template can do, then how it is built."""
    sections = [
        _head(report),
        _findings(report),
        _engines(report),
        _caps(report),
        _observed(report),
        _shape(report),
        _prefix(report),
        _serving(report),
        _differences(report),
        _server(report),
        _not_evaluated(report),
    ]
    told = [lines for lines in map(list, sections) if lines]
    return terminal(line for number, lines in enumerate(told) for line in ([""] if number else []) + lines)


def write(rows: Iterable[Row], out: Out, tally: Tally) -> None:
    """Of a scan: a line a row, then the figures."""
    for row in rows:
        out.write(terminal([_row(row)]).encode())
    out.write(figures_text(tally).encode())


def figures_text(tally: Tally) -> str:
    """What is said of all the rows of a scan."""
    lines = [headline(tally)]
    for table in tables(tally):
        rows = [tuple(map(quote, cells)) for cells in table.rows]
        widths = [max(map(len, column)) for column in zip(table.heads, *rows, strict=True)]
        lines += ["", table.title]
        for cells in rows:
            padded = [
                f"{cell:>{width}}" if cell[:1].isdigit() else f"{cell:{width}}"
                for cell, width in zip(cells, widths, strict=True)
            ]
            lines.append(f"  {'  '.join(padded)}".rstrip())
    return terminal(lines)


def _row(row: Row) -> str:
    place = quote(row.id) if row.key is None else f"{quote(row.id)} {quote(row.key)}"
    if row.summary is None:
        why = "" if row.error is None else f": {quote(row.error['message'])}"
        return f"{row.status.replace('_', ' '):13} {place}{why}"
    errors, warnings = row.summary.count("error"), row.summary.count("warning")
    found = " ".join(f"{count}{letter}" for count, letter in ((errors, "E"), (warnings, "W")) if count) or "clean"
    family = f" ({quote(row.summary.family)})" if row.summary.family is not None else ""
    return f"{found:13} {place}{family}"


def comparison_text(comparison: Comparison) -> str:
    """Who agrees with whom, and where the others part."""
    lines = ["all paths agree" if comparison.agree else "the paths differ", ""]
    for number, group in enumerate(comparison.groups, 1):
        answer = next(answer for answer in comparison.answers if answer.path == group[0])
        lines.append(f"{number}. {', '.join(group)}")
        if answer.error is not None:
            lines += wrapped(f"{answer.error.type}: {answer.error.message}", "     ")
        else:
            lines.append(f"     {len(answer.text or ''):,} characters")
    for parting in comparison.partings:
        lines += [
            "",
            f"{parting.paths[0]} and {parting.paths[1]} part at character {parting.at}:",
            f"  - {_literal(parting.left)}",
            f"  + {_literal(parting.right)}",
        ]
    return terminal(lines)


def prefix_text(results: Iterable[LawResult], counter: Counter) -> str:
    """Each law, and where it is broken the two sides of the first divergence."""
    unit = "tokens" if counter.unit == "tokens" else "characters"
    lines = []
    for result in results:
        growth = result.growth
        if growth is None:
            lines += wrapped(f"{result.law:24}skipped: {result.skipped}", " " * 24, "")
            continue
        if growth.holds:
            lines.append(f"{result.law:24}holds")
            continue
        kept, of = counter.shared(growth.expected, growth.actual), counter.count(growth.expected)
        share = 100 * kept // max(1, of)
        where = f", line {result.line}" if result.line is not None else ""
        lines += [
            f"{result.law:24}BROKEN: {kept} of {of} {unit} kept ({share} %)",
            f"{'':24}{result.cause}{where}",
            *([] if result.remedy is None else [f"{'':24}kept with chat_template_kwargs {json.dumps(result.remedy)}"]),
            f"  - {_literal(growth.expected[growth.at :])}",
            f"  + {_literal(growth.actual[growth.at :])}",
        ]
    return terminal(lines)


def lint_text(results: Iterable[LintResult]) -> str:
    """The findings of each template, then what was not evaluated, then how many there are."""
    lines: list[str] = []
    counts = {"error": 0, "warning": 0, "info": 0}
    results = list(results)
    for result in results:
        if result.findings or result.not_evaluated:
            lines.append(result.name)
        for found in result.findings:
            counts[found.severity] += 1
            lines += _finding(found)
        whys: dict[str, list[str]] = {}
        for missing in result.not_evaluated:
            whys.setdefault(missing.why, []).append(missing.what.removeprefix("rule "))
        for why, what in whys.items():
            lines += wrapped(f"{', '.join(what)}: {why}", "           ", "  not evaluated: ")
    said = ", ".join(f"{count} {severity}" for severity, count in counts.items())
    exempt = sum(len(result.exempt) for result in results)
    templates = "1 template" if len(results) == 1 else f"{len(results)} templates"
    lines.append(f"{templates}: {said}" + (f"; {exempt} left out" if exempt else ""))
    return terminal(lines)


def rules_text(rules: Iterable[Rule]) -> str:
    """A table of rules; those in preview are marked."""
    lines = []
    for rule in rules:
        mark = " (preview)" if rule.preview else ""
        lines.append(f"{rule.code}  {rule.severity:7}  {rule.name}{mark}")
        lines += wrapped(rule.summary, " " * 16)
    return terminal(lines)


def rule_text(rule: Rule) -> str:
    """All that is to be said of one rule, with the templates that show it."""
    mark = ", in preview" if rule.preview else ""
    lines = [f"{rule.code} {rule.name} ({rule.severity}{mark}; needs {NEEDED[rule.needs]})", ""]
    for paragraph in rule.documentation.strip().split("\n\n"):
        lines += [*wrapped(" ".join(paragraph.split()), ""), ""]
    for what, template in (("it hits", rule.triggers), ("repaired", rule.repaired), ("healthy", rule.healthy)):
        lines += [f"{what}:", "", *(f"    {line}" for line in template.splitlines()), ""]
    return terminal(lines[:-1])


NEEDED = {
    "source": "the text alone",
    "renders": "a template that loads",
    "tokens": "token data",
    "files": "the files beside the template",
}


def _literal(text: str) -> str:
    """A text as Python would write it, cut to the line."""
    shown = repr(text)
    return shown if len(shown) <= WIDTH - 4 else shown[: WIDTH - 7] + "..."


def _table(rows: Iterable[tuple[str, str]], indent: str = "  ") -> Iterator[str]:
    rows = list(rows)
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        start = f"{indent}{name:{width}}  "
        yield from wrapped(value, " " * len(start), start) or [start.rstrip()]


def _head(report: ProbeReport) -> Iterator[str]:
    template = report.template
    family = f", {template.family.name}" if template.family is not None else ""
    yield f"{template.name or 'template'}: {report.status}{family}"
    yield f"  {template.lines} lines, {template.bytes:,} bytes, sha256 {template.sha256[:12]}"


def _findings(report: ProbeReport) -> Iterator[str]:
    if report.findings:
        yield "findings"
        for found in report.findings:
            yield from _finding(found)


def _finding(found: Finding) -> Iterator[str]:
    place = f" (line {found.line})" if found.line is not None else ""
    yield from wrapped(f"{found.message}{place}", "           ", f"  {found.severity:7} {found.code} {found.name}: ")
    yield from wrapped(f"on {', '.join(found.engines)}", "           ")
    yield from wrapped(f"-> {found.suggestion}", "           ")


def _engines(report: ProbeReport) -> Iterator[str]:
    yield "engines"
    rows = []
    for engine in report.engines:
        said = f"renders {engine.rendered} of {engine.of} conversations" if engine.loads else "does not load it"
        if engine.error is not None:
            where = f" (line {engine.error.line})" if engine.error.line is not None else ""
            first, _, _ = engine.error.message.partition("\n")
            said += f"; first error: {first}{where}"
        rows.append((f"{engine.id} {engine.version} {engine.path}", said))
    yield from _table(rows)


def _caps(report: ProbeReport) -> Iterator[str]:
    yield f"chat_template_caps of llama.cpp {report.caps.version}"
    if report.caps.flags is None:
        yield from wrapped(report.caps.error.message if report.caps.error is not None else "none", "  ")
        return
    yield from _table((name, "true" if value else "false") for name, value in report.caps.flags.items())


def _observed(report: ProbeReport) -> Iterator[str]:
    if report.observed:
        yield "observed"
        yield from _table((name, _observation(seen)) for name, seen in report.observed.items())


def _observation(seen: Observation) -> str:
    others = "".join(f" ({path}: {answer})" for path, answer in seen.by_path.items())
    caps = f"; llama.cpp says otherwise: {seen.differs_from_caps}" if seen.differs_from_caps else ""
    return f"{seen.answer}{others}: {seen.reason}{caps}"


def _shape(report: ProbeReport) -> Iterator[str]:
    shape = report.shape
    if shape is None:
        return
    yield "shape"
    rows = []
    for role, turn in shape.turns.items():
        rows.append((role, f"{turn.open!r} ... {turn.close!r}"))
    if shape.generation_prompt is not None:
        rows.append(("generation prompt", repr(shape.generation_prompt.text)))
    if shape.end_of_turn.text is not None:
        rows.append(("end of turn", repr(shape.end_of_turn.text)))
    if shape.system is not None and shape.system.default_text is not None:
        rows.append(("default system text", repr(shape.system.default_text)))
    yield from _table(rows)


def _prefix(report: ProbeReport) -> Iterator[str]:
    if report.prefix is not None:
        yield "prefix stability"
        rows = []
        for law in report.prefix.laws:
            if law.holds is None:
                rows.append((law.law, "not evaluated"))
            elif law.holds:
                rows.append((law.law, "holds"))
            else:
                where = f", line {law.line}" if law.line is not None else ""
                rows.append((law.law, f"broken: {law.shared} of {law.of} {law.unit} kept; {law.cause}{where}"))
        yield from _table(rows)


def _serving(report: ProbeReport) -> Iterator[str]:
    for advice in report.serving:
        yield f"how to serve it with {advice.engine}"
        rows = [("flag", flag) for flag in advice.flags]
        if advice.chat_template_kwargs:
            kwargs = json_text(advice.chat_template_kwargs)
            rows.append(("kwargs", f"by default the template takes {kwargs}"))
        rows += [("stop", repr(text)) for text in advice.stop]
        rows += [("send", text) for text in advice.send]
        rows += [("avoid", text) for text in advice.avoid]
        rows += [("note", text) for text in advice.notes]
        yield from _table(rows or [("note", "nothing special")])


def _differences(report: ProbeReport) -> Iterator[str]:
    if report.differences:
        yield f"the dialects differ on {len(report.differences)} of the conversations"
        names = ", ".join(difference.conversation for difference in report.differences)
        yield from wrapped(names, "  ")


def _server(report: ProbeReport) -> Iterator[str]:
    if report.server is not None:
        yield from _check(report.server)


def server_text(check: ServerCheck) -> str:
    """What a running server does otherwise than the path that is implemented."""
    return terminal(_check(check))


def _check(check: ServerCheck) -> list[str]:
    lines = [f"{check.url} (build {check.build or 'unknown'}) beside llama.cpp:llama-server {check.version}"]
    if check.equal:
        count = f"{check.asked} requests" if check.asked != 1 else "the request"
        lines.append(f"  equal: {count} and the caps")
    rows = [(name, f"{theirs} there, {ours} here") for name, (theirs, ours) in check.caps.items()]
    lines += _table(rows)
    for found in check.differences:
        place = "" if found.at is None else f" at character {found.at}"
        lines.append(f"  {found.conversation}: differs{place}")
        lines += [f"    there {_literal(found.server)}", f"    here  {_literal(found.ours)}"]
    adds = [name for name, added in (("BOS", check.adds_bos), ("EOS", check.adds_eos)) if added]
    if adds:
        lines.append(f"  its tokenizer adds {' and '.join(adds)}, so the prompt comes without")
    if check.days_apart:
        lines.append(f"  its date is {check.days_apart:+d} day from ours")
    if check.note:
        lines += wrapped(check.note, "  ")
    return lines


def _not_evaluated(report: ProbeReport) -> Iterator[str]:
    if report.not_evaluated:
        yield "not evaluated"
        yield from _table((missing.what, missing.why) for missing in report.not_evaluated)


FORMAT = Format("text", "a line a template, then the figures", write, (".txt",), lines=True)
