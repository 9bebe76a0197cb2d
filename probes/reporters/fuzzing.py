"""What `fuzz` found, for a terminal of 80 columns, and as a bug report that stands by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from probes.reporters.escaping import json_text, markdown, terminal, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from probes.fuzzer.fuzz import Counterexample, FuzzReport

AROUND, AROUND_IN_TEXT = 60, 30
"""Code points of each text that are shown on both sides of the place where they part: in a bug report, and here."""
MARK = "⟦here⟧"


def fuzz_text(reports: Iterable[FuzzReport]) -> str:
    """Each template: its broken laws with their smallest conversations, what it is known to do, what was not asked."""
    return terminal(
        line for number, report in enumerate(reports) for line in ([""] if number else []) + list(_report(report))
    )


def _report(report: FuzzReport) -> Iterator[str]:
    yield _head(report)
    if report.why is not None:
        yield from wrapped(report.why, "  ")
        return
    for example in report.broken:
        yield ""
        yield from _example(report, example)
    for heading, fails in (("known to do (fails only with --strict)", True), ("to know (fails nothing)", False)):
        known = [example.found for example in report.known if example.fails is fails]
        if known:
            yield ""
            yield heading
        for found in known:
            line = "" if found.line is None else f" (line {found.line})"
            yield from wrapped(f"{found.code} {found.law}: {found.message}{line}", "    ", "  ")
    skipped = [law for law in report.laws if law.skipped is not None]
    if skipped:
        yield ""
        yield "not asked"
        for law in skipped:
            yield from wrapped(f"{law.law}: {law.skipped}", "    ", "  ")


def examples_text(report: FuzzReport, examples: Iterable[Counterexample]) -> str:
    """Some of a report's counterexamples, or why there is none."""
    if report.why is not None:
        lines = [f"{report.template}: not evaluated: {report.why}"]
    else:
        lines = [line for example in examples for line in _example(report, example)]
    return terminal(lines).removesuffix("\n")


def _head(report: FuzzReport) -> str:
    if report.why is not None:
        return f"{report.template}: not evaluated"
    asked = [law for law in report.laws if law.holds is not None]
    holding = sum(law.holds is True for law in asked)
    refused = f", {report.refused} refused" if report.refused else ""
    stopped = ", out of time" if report.status == "stopped" else ""
    return (
        f"{report.template}: {holding} of {len(asked)} laws hold over {_conversations(report)}"
        f"{refused}{stopped} ({report.dialect}, seed {report.seed})"
    )


def _conversations(report: FuzzReport) -> str:
    return "1 conversation" if report.examples == 1 else f"{report.examples} conversations"


def _example(report: FuzzReport, example: Counterexample) -> Iterator[str]:
    found = example.found
    line = "" if found.line is None else f" (line {found.line} of the template)"
    yield from wrapped(f"{example.severity} {found.code} {found.law}: {found.message}{line}", "      ", "  ")
    if example.count:
        yield f"      in {example.count} of {_conversations(report)}; the smallest:"
    else:
        yield "      found before, or while others were made smaller:"
    yield from (f"      {line}" for line in request_json(example.request))
    if found.second is not None:
        later = found.second["messages"][len(found.chat["messages"]) :]
        if later:
            yield "      and then:"
            yield from (f"      {json_text(message)}" for message in later)
    yield from _sides(found.expected, found.actual, found.at)
    yield f"      again: {report.repeat(found.law)}"


def request_json(request: dict[str, Any]) -> list[str]:
    """A request as JSON, a line for each message, tool and other key."""

    def value(given: Any) -> str:
        if not isinstance(given, list):
            return json_text(given)
        return "[\n  " + ",\n  ".join(map(json_text, given)) + "]"

    whole = "{" + ",\n ".join(f"{json_text(key)}: {value(given)}" for key, given in request.items()) + "}"
    return whole.split("\n")


def _sides(kept: str, came: str, at: int) -> Iterator[str]:
    if kept or came:
        yield f"    - {marked(kept, at, AROUND_IN_TEXT)}"
        yield f"    + {marked(came, at, AROUND_IN_TEXT)}"


def marked(text: str, at: int, around: int = AROUND) -> str:
    """A text as a literal around the place where it parts from the other, which is marked."""
    start, end = max(0, at - around), min(len(text), at + around)
    before = ("..." if start else "") + repr(text[start:at])[1:-1]
    after = repr(text[at:end])[1:-1] + ("..." if end < len(text) else "")
    return f"{before}{MARK}{after}"


def fuzz_export(reports: Iterable[tuple[FuzzReport, str]], version: str) -> str:
    """A bug report in Markdown for each template and its text: all that somebody else needs to see the same."""
    parts = []
    for report, source in reports:
        lines = [f"# Chat template {markdown(report.template)}", ""]
        engine, command = markdown(report.dialect), markdown(report.repeat())
        lines += [f"Found by jinjarun {markdown(version)}, engine {engine}, with {command}.", ""]
        for example in [*report.broken, *report.known]:
            lines += _exported(report, example)
        lines += ["## The template", "", *_source(source)]
        parts.append("\n".join(lines))
    return "\n".join(parts)


def _exported(report: FuzzReport, example: Counterexample) -> list[str]:
    found = example.found
    where = "" if found.line is None else f" Line {found.line} of the template."
    known = " The template is known to do this." if found.known else ""
    lines = [
        f"## {found.code} {example.name}: {markdown(found.law)}",
        "",
        f"Broken: {markdown(found.message)}.{where}{known}",
        "",
    ]
    lines += ["The request:", "", *_fenced(request_json(example.request), "json")]
    if found.second is not None:
        later = request_json({"messages": found.second["messages"]})
        lines += ["The messages of the later request:", "", *_fenced(later, "json")]
    lines += [f"Save the request and render it: {markdown(report.render_command(example))}", ""]
    lines += ["What was expected, and what came; they part at the mark:", ""]
    lines += _fenced([f"- {marked(found.expected, found.at)}", f"+ {marked(found.actual, found.at)}"], "diff")
    return lines


def _source(source: str) -> list[str]:
    """The template so that it can be taken from the page, byte for byte."""
    lines = source.split("\n")
    if all(line.replace("\t", "").isprintable() for line in lines):
        return _fenced(lines, "jinja")
    return [
        "As a string of JSON, because some of its characters do not print:",
        "",
        *_fenced([json_text(source)], "json"),
    ]


def _fenced(lines: list[str], language: str) -> list[str]:
    fence = "```"
    while any(fence in line for line in lines):
        fence += "`"
    return [f"{fence}{language}", *lines, fence, ""]
