"""What the commands print and where: exit codes, messages, JSON, prompts, findings in a format."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from jinjarun.errors import JinjarunError, TemplateSyntaxError
from probes.commands.options import SEVERITIES, Usage
from probes.reporters.document import Document
from probes.reporters.escaping import json_text, line, terminal, visible

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Sequence

    from jinjarun.template import Span
    from probes.report import Finding
    from probes.reporters.formats import Format
    from probes.results.rows import Row


CLEAN, FINDING, UNUSABLE, INTERRUPTED, CLOSED_PIPE = 0, 1, 2, 130, 141


def complain(message: str | Sequence[str], code: int) -> int:
    """A message, or the lines of one, on standard error."""
    first, *more = [message] if isinstance(message, str) else message
    tell([f"jinjarun: {first}", *more])
    return code


def tell(lines: Iterable[str]) -> None:
    """To standard error."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            sys.stderr.write(terminal(lines))
            sys.stderr.flush()


def describe(error: JinjarunError, where: str = "") -> list[str]:
    """What is wrong and where, as lines; the class stands first, because a script may look for it."""
    text = JinjarunError.__str__(error)
    first = text if text.startswith(error.name) else f"{error.name}: {text}"
    keys = ("excerpt", "hint") if isinstance(error, TemplateSyntaxError) else ()
    shown = [row for key in keys if error.details.get(key) for row in error.details[key].split("\n")]
    if "stage" in error.details:
        first, *more = first.split("\n")  # a server writes a line for each fault
        shown = [*more, *shown, *refusal(error)]
    return [f"{where}: {first}" if where else first, *shown]


def refusal(error: JinjarunError) -> list[str]:
    """The status that a server answers with, why, and what to send instead, as far as it is known."""
    said = [f"the server answers {error.status}", error.details.get("why")]
    hint = None if isinstance(error, TemplateSyntaxError) else error.details.get("hint")
    return [": ".join(part for part in said if part), *([] if hint is None else [f"instead: {hint}"])]


def fails(findings: Sequence[Finding], fail_on: str) -> bool:
    """Whether one of the findings is as severe as `--fail-on` says, or more."""
    return any(SEVERITIES.index(found.severity) <= SEVERITIES.index(fail_on) for found in findings)


def finding_format(args: argparse.Namespace) -> Format:
    from probes.reporters.registry import FINDING_FORMATS, chosen_format

    return chosen_format("json" if args.json else args.format, args.out, FINDING_FORMATS)


def show(
    args: argparse.Namespace, made: Format, text: Callable[[], str], data: Callable[[], Any], rows: list[Row]
) -> None:
    """What was found, in the format that was asked for: text, plain JSON, or rows as a reporter writes them."""
    from probes.scanner.running import whole_file

    out = io.BytesIO()
    if made.findings:
        made.write(rows, out, args.command)
    else:
        out.write(encoded(_as_asked(args, made, text, data)))
    if args.out is None:
        write_bytes(out.getvalue())
    else:
        with whole_file(args.out) as file:
            file.write(out.getvalue())
        complain(f"{args.out}: {counted(rows)}", CLEAN)


def _as_asked(args: argparse.Namespace, made: Format, text: Callable[[], str], data: Callable[[], Any]) -> str:
    if made.name != "text":
        return as_json(data())
    return str(text()) if args.out is not None else shown_text(text())


def counted(rows: list[Row]) -> str:
    """How many findings of each severity are in the rows, and rows that could not be judged."""
    found = Counter(one.severity for row in rows if row.summary is not None for one in row.summary.findings)
    failed = sum(row.error is not None for row in rows)
    said = ", ".join(f"{found[severity]} {severity}" for severity in SEVERITIES)
    return f"{said}, {failed} not judged" if failed else said


def print_json(value: Any) -> None:
    text = as_json(value)
    if on_screen():
        from probes.reporters.screen import painted_json, width_of

        text = painted_json(text, width_of(sys.stdout))
    write_bytes(encoded(text))


def as_json(value: Any) -> str:
    return json_text(value, indent=2) + "\n"


def on_screen() -> bool:
    """Whether standard output is a terminal, or is to be written to as if it were one."""
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()


def write(text: str) -> None:
    """To standard output; a document with colours, and as wide as the terminal, where there is one."""
    write_bytes(encoded(shown_text(text)))


def shown_text(text: str) -> str:
    if not (isinstance(text, Document) and on_screen()):
        return text
    from probes.reporters.screen import painted, width_of

    return painted(text.lines, width_of(sys.stdout))


def encoded(text: str) -> bytes:
    """UTF-8, whatever the locale."""
    return text.encode("utf-8", "surrogatepass")


def write_bytes(data: bytes) -> None:
    """All of it: an unbuffered standard output (PYTHONUNBUFFERED) may take less at once."""
    left = memoryview(data)
    while left:
        left = left[sys.stdout.buffer.write(left) :]


def print_text(text: str, data: bytes) -> None:
    """The exact bytes of a prompt; on a terminal with control characters made visible, so that they do nothing."""
    if not sys.stdout.isatty():
        write_bytes(data)
        return
    text = visible(text, keep=PROMPT_KEEPS)
    write(text if text.endswith("\n") else text + "\n")


PROMPT_KEEPS = "\n\t"
"""Of the characters that do not print, those that a terminal shows as they are meant."""

COLOURS = (36, 32, 33, 35, 34, 31)
"""Of the origins that come from the caller, in the order in which they appear; the template's own text is dim."""


def print_spans(spans: Sequence[Span]) -> None:
    """A prompt coloured by origin; without colours, a line a span: its origin and its text as a literal."""
    if not (sys.stdout.isatty() and not os.environ.get("NO_COLOR")):
        width = max((len(span.origin) for span in spans), default=0)
        for span in spans:
            shown = repr(visible(span.text, keep=PROMPT_KEEPS))
            write(terminal([f"{'input' if span.is_input else 'text ':5}  {span.origin:{width}}  {shown}"]))
        return
    colours: dict[str, int] = {}
    for span in spans:
        if span.is_input:
            colours.setdefault(span.origin, COLOURS[len(colours) % len(COLOURS)])
        write(f"\x1b[{colours.get(span.origin, 2)}m{visible(span.text, keep=PROMPT_KEEPS)}\x1b[0m")
    write("\n\n")
    for origin, colour in colours.items():
        write(f"\x1b[{colour}m{line(origin)}\x1b[0m\n")


def write_file(path: str, text: str) -> None:
    from probes.scanner.running import whole_file

    try:
        with whole_file(path) as file:
            file.write(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise Usage(f"cannot write {path}: {error.strerror or error}") from None


class Progress:
    """How far a search is, on one line of the terminal."""

    def __init__(self, what: str) -> None:
        self.what = line(what)

    def __call__(self, done: int, wanted: int) -> None:
        end = "\r\x1b[K" if done == wanted else ""
        print(f"\r{self.what}: {done} of {wanted} conversations{end}", end="", file=sys.stderr, flush=True)
