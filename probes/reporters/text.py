"""Reports for people: what a person reads first stands first."""

from __future__ import annotations

from collections import Counter as Tallied
from typing import TYPE_CHECKING

from jinjarun.errors import quote
from probes.rendering.counting import SHOWN
from probes.reporters.document import Document, Line, Part, say, table
from probes.reporters.escaping import json_text, terminal
from probes.reporters.figures import headline, tables
from probes.reporters.findings import PATH_NAMES, finding_lines, for_people, sides
from probes.reporters.formats import Format
from probes.reporters.overview import path_of, verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from probes.chapters.prefix import LawResult
    from probes.comparison.engines import Comparison
    from probes.linter.lint import LintResult
    from probes.rendering.counting import Counter
    from probes.report import Observation, ProbeReport, ServerCheck
    from probes.reporters.formats import Out
    from probes.results.rows import Row
    from probes.results.tally import Tally
    from probes.rules import Rule


def report_text(report: ProbeReport, text: str = "", target: str | None = None) -> Document:
    """The whole report: the verdict, findings, then what the template can do, then how it is built. `text` is the
    template, `target` what the command line calls it."""
    sections = [
        _head(report),
        _findings(report, text, target),
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
    told: list[list[Line]] = [lines for lines in map(list, sections) if lines]
    return Document(line for number, lines in enumerate(told) for line in [*([""] if number else []), *lines])


def write(rows: Iterable[Row], out: Out, tally: Tally) -> None:
    """Of a scan: a line a row, then the figures."""
    for row in rows:
        out.write(terminal([_row(row)]).encode())
    out.write(figures_text(tally).encode())


def figures_text(tally: Tally) -> Document:
    """What is said of all the rows of a scan."""
    lines: list[Line] = [headline(tally)]
    for one in tables(tally):
        rows = [tuple(map(quote, cells)) for cells in one.rows]
        widths = [max(map(len, column)) for column in zip(one.heads, *rows, strict=True)]
        lines += ["", one.title]
        for cells in rows:
            padded = [
                f"{cell:>{width}}" if cell[:1].isdigit() else f"{cell:{width}}"
                for cell, width in zip(cells, widths, strict=True)
            ]
            lines.append(f"  {'  '.join(padded)}".rstrip())
    return Document(lines)


def _row(row: Row) -> str:
    place = quote(row.id) if row.key is None else f"{quote(row.id)} {quote(row.key)}"
    if row.summary is None:
        why = "" if row.error is None else f": {quote(row.error['message'].removeprefix(f'{row.id}: '))}"
        return f"{row.status.replace('_', ' '):13} {place}{why}"
    errors, warnings = row.summary.count("error"), row.summary.count("warning")
    found = " ".join(f"{count}{letter}" for count, letter in ((errors, "E"), (warnings, "W")) if count) or "clean"
    family = f" ({quote(row.summary.family)})" if row.summary.family is not None else ""
    return f"{found:13} {place}{family}"


def comparison_text(comparison: Comparison) -> Document:
    """Who agrees with whom, and where the others part."""
    agree = Part("all paths agree", "good") if comparison.agree else Part("the paths differ", "bad")
    lines: list[Line] = [say(agree), ""]
    for number, group in enumerate(comparison.groups, 1):
        answer = next(answer for answer in comparison.answers if answer.path == group[0])
        lines.append(say(f"{number}. {', '.join(PATH_NAMES.get(path, path) for path in group)}", indent="   "))
        if answer.error is not None:
            error = f"{answer.error.type}: {answer.error.message}"
            lines.append(say(Part(error, "bad"), first="     ", indent="     "))
        else:
            lines.append(f"     {len(answer.text or ''):,} characters")
    for parting in comparison.partings:
        left, right = (PATH_NAMES.get(path, path) for path in parting.paths)
        lines += ["", say(f"{left} and {right} part at character {parting.at}:")]
        lines += sides(repr(parting.left), repr(parting.right))
    return Document(lines)


def prefix_text(results: Iterable[LawResult], counter: Counter) -> Document:
    """Each law, and where it is broken the two sides of the first divergence."""
    unit = SHOWN[counter.unit]
    lines: list[Line] = []
    indent = " " * 24
    for result in results:
        growth = result.growth
        first = f"{result.law:24}"
        if growth is None:
            lines.append(say(Part(f"skipped: {result.skipped}", "faint"), first=first, indent=indent))
            continue
        if growth.holds:
            lines.append(say(Part("holds", "good"), first=first, indent=indent))
            continue
        kept, of = counter.shared(growth.expected, growth.actual), counter.count(growth.expected)
        share = 100 * kept // max(1, of)
        where = f", line {result.line}" if result.line is not None else ""
        broken = Part("BROKEN", "bad")
        lines += [
            say(broken, f": {kept} of {of} {unit} kept ({share} %)", first=first, indent=indent),
            say(f"{result.cause}{where}", first=indent, indent=indent),
        ]
        if result.remedy is not None:
            kwargs = json_text(result.remedy)
            lines.append(say(f"kept with chat_template_kwargs {kwargs}", first=indent, indent=indent))
        lines += sides(repr(growth.expected[growth.at :]), repr(growth.actual[growth.at :]))
    return Document(lines)


def lint_text(results: Iterable[LintResult]) -> Document:
    """The findings of each template, then what was not evaluated, then how many there are."""
    lines: list[Line] = []
    counts = {"error": 0, "warning": 0, "info": 0}
    results = list(results)
    for result in results:
        if result.findings or result.not_evaluated:
            lines.append(say(Part(result.name, "head"), cut=True))
        for found in result.findings:
            counts[found.severity] += 1
            lines += finding_lines(found, result.evidence, name=result.name, target=result.name, text=result.text)
        whys: dict[str, list[str]] = {}
        for missing in result.not_evaluated:
            whys.setdefault(missing.why, []).append(missing.what.removeprefix("rule "))
        for why, what in whys.items():
            lines.append(say(f"{', '.join(what)}: {why}", first="  not evaluated: ", indent=" " * 11))
    said = ", ".join(f"{count} {severity}" for severity, count in counts.items())
    exempt = sum(len(result.exempt) for result in results)
    templates = "1 template" if len(results) == 1 else f"{len(results)} templates"
    total = f"{templates}: {said}" + (f"; {exempt} left out" if exempt else "")
    lines.append(say(Part(total, "error" if counts["error"] else "warning" if counts["warning"] else "good")))
    return Document(lines)


def statistics_text(results: Iterable[LintResult]) -> Document:
    """How often each rule found something, the most frequent first."""
    found = [one for result in results for one in result.findings]
    counts = Tallied((one.code, one.name, one.severity) for one in found)
    rows = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return Document(
        say(f"{count:6}  ", Part(f"{code}  {severity:7}", severity), f"  {name}")
        for (code, name, severity), count in rows
    )


def rules_text(rules: Iterable[Rule]) -> Document:
    """A table of rules; those in preview are marked."""
    lines: list[Line] = []
    for rule in rules:
        mark = " (preview)" if rule.preview else ""
        head = Part(f"{rule.code}  {rule.severity:7}", rule.severity)
        lines.append(say(head, Part(f"  {rule.name}{mark}", "head"), cut=True))
        lines.append(say(rule.summary, first=" " * 16, indent=" " * 16))
    return Document(lines)


def conversations_text(asked: Mapping[str, str]) -> Document:
    """Names of conversations, and what each asks."""
    return Document(table(asked.items(), indent=""))


def rule_text(rule: Rule) -> Document:
    """All that is to be said of one rule, with the templates that show it."""
    mark = ", in preview" if rule.preview else ""
    head = f"{rule.code} {rule.name} ({rule.severity}{mark}; needs {NEEDED[rule.needs]})"
    lines: list[Line] = [say(Part(head, rule.severity)), ""]
    for paragraph in rule.documentation.strip().split("\n\n"):
        lines += [say(" ".join(paragraph.split())), ""]
    for what, template in (("it hits", rule.triggers), ("repaired", rule.repaired), ("healthy", rule.healthy)):
        lines += [say(Part(f"{what}:", "head")), "", *(f"    {line}" for line in template.splitlines()), ""]
    return Document(lines[:-1])


NEEDED = {
    "source": "the text alone",
    "renders": "a template that loads",
    "tokens": "token data",
    "files": "the files beside the template",
}


def _head(report: ProbeReport) -> Iterator[Line]:
    template = report.template
    family = f", {template.family.name}" if template.family is not None else ""
    yield from verdict(report)
    yield ""
    yield say(Part(f"{template.name or 'template'}: {report.status}{family}", "head"))
    yield f"  {template.lines} lines, {template.bytes:,} bytes, sha256 {template.sha256[:12]}"


def _title(text: str) -> Line:
    return say(Part(text, "head"))


def _findings(report: ProbeReport, text: str, target: str | None) -> Iterator[Line]:
    if report.findings:
        name = report.template.name or "template"
        every = [path_of(engine) for engine in report.engines if engine.loads]
        yield _title("findings")
        for found in report.findings:
            yield from finding_lines(found, report.evidence, name=name, target=target or name, text=text, every=every)


def _engines(report: ProbeReport) -> Iterator[Line]:
    yield _title("engines")
    rows = []
    for engine in report.engines:
        said = f"renders {engine.rendered} of {engine.of} conversations" if engine.loads else "does not load it"
        if engine.error is not None:
            where = f" (line {engine.error.line})" if engine.error.line is not None else ""
            first, _, _ = engine.error.message.partition("\n")
            said += f"; first error: {first}{where}"
        rows.append((f"{PATH_NAMES.get(path_of(engine), path_of(engine))} {engine.version}", said))
    yield from table(rows)


def _caps(report: ProbeReport) -> Iterator[Line]:
    yield _title(f"chat_template_caps of llama.cpp {report.caps.version}")
    if report.caps.flags is None:
        why = report.caps.error.message if report.caps.error is not None else "none"
        yield say(why, first="  ", indent="  ")
        return
    yield from table((name, _YES_NO[value]) for name, value in report.caps.flags.items())


def _observed(report: ProbeReport) -> Iterator[Line]:
    if report.observed:
        yield _title("observed")
        yield from table((name, _observation(seen)) for name, seen in report.observed.items())


def _observation(seen: Observation) -> str:
    others = "".join(f" ({PATH_NAMES.get(path, path)}: {answer})" for path, answer in seen.by_path.items())
    caps = f"; llama.cpp says otherwise: {seen.differs_from_caps}" if seen.differs_from_caps else ""
    return for_people(f"{seen.answer}{others}: {seen.reason}{caps}")


def _shape(report: ProbeReport) -> Iterator[Line]:
    shape = report.shape
    if shape is None:
        return
    yield _title("shape")
    rows = []
    for role, turn in shape.turns.items():
        rows.append((role, f"{turn.open!r} ... {turn.close!r}"))
    if shape.generation_prompt is not None:
        rows.append(("generation prompt", repr(shape.generation_prompt.text)))
    if shape.end_of_turn.text is not None:
        rows.append(("end of turn", repr(shape.end_of_turn.text)))
    if shape.system is not None and shape.system.default_text is not None:
        rows.append(("default system text", repr(shape.system.default_text)))
    yield from table(rows)


def _prefix(report: ProbeReport) -> Iterator[Line]:
    if report.prefix is not None:
        yield _title("prefix stability")
        rows = []
        for law in report.prefix.laws:
            if law.holds is None:
                rows.append((law.law, "not evaluated"))
            elif law.holds:
                rows.append((law.law, "holds"))
            else:
                where = f", line {law.line}" if law.line is not None else ""
                unit = SHOWN[law.unit]
                said = f"broken: {law.shared} of {law.of} {unit} kept; {law.cause}{where}"
                rows.append((law.law, said))
        yield from table(rows)


def _serving(report: ProbeReport) -> Iterator[Line]:
    for advice in report.serving:
        yield _title(f"how to serve it with {advice.engine}")
        rows = [("flag", flag) for flag in advice.flags]
        if advice.chat_template_kwargs:
            kwargs = json_text(advice.chat_template_kwargs)
            rows.append(("kwargs", f"by default the template takes {kwargs}"))
        rows += [("stop", repr(text)) for text in advice.stop]
        rows += [("send", text) for text in advice.send]
        rows += [("avoid", text) for text in advice.avoid]
        rows += [("note", text) for text in advice.notes]
        yield from table(rows or [("note", "nothing special")])


def _differences(report: ProbeReport) -> Iterator[Line]:
    if report.differences:
        yield _title(f"the dialects differ on {len(report.differences)} of the conversations")
        names = ", ".join(difference.conversation for difference in report.differences)
        yield say(names, first="  ", indent="  ")


def _server(report: ProbeReport) -> Iterator[Line]:
    if report.server is not None:
        yield from _check(report.server)


def server_text(check: ServerCheck) -> Document:
    """What a running server does otherwise than the path that is implemented."""
    return Document(_check(check))


def _check(check: ServerCheck) -> Iterator[Line]:
    head = f"{check.url} (build {check.build or 'unknown'}) beside llama-server {check.version}"
    yield say(Part(head, "head"))
    if check.equal:
        count = f"{check.asked} requests" if check.asked != 1 else "the request"
        yield f"  equal: {count} and the caps"
    yield from table((name, f"{theirs} there, {ours} here") for name, (theirs, ours) in check.caps.items())
    for found in check.differences:
        place = "" if found.at is None else f" at character {found.at}"
        yield f"  {found.conversation}: differs{place}"
        yield say(repr(found.server), first="    there ", cut=True)
        yield say(repr(found.ours), first="    here  ", cut=True)
    adds = [name for name, added in (("BOS", check.adds_bos), ("EOS", check.adds_eos)) if added]
    if adds:
        yield f"  its tokenizer adds {' and '.join(adds)}, so the prompt comes without"
    if check.days_apart:
        yield f"  its date is {check.days_apart:+d} day from ours"
    if check.note:
        yield say(check.note, first="  ", indent="  ")


def _not_evaluated(report: ProbeReport) -> Iterator[Line]:
    if report.not_evaluated:
        yield _title("not evaluated")
        yield from table((missing.what, missing.why) for missing in report.not_evaluated)


_YES_NO = {True: Part("true", "good"), False: Part("false", "faint")}

FORMAT = Format("text", "a line a template, then the figures", write, (".txt",), lines=True)
