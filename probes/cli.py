"""The command `jinjarun`: what it does is a public function each; here stand only words, files and exit codes.

Exit codes: 0 clean; 1 a finding, a failed law, or a template that fails to render; 2 wrong usage or unreadable input.
A closed pipe ends it with 141 and Ctrl-C with 130, as the shell's own tools end.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import io
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib import metadata
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypedDict

from jinjarun.dialects import dialect_named
from jinjarun.errors import InputError, JinjarunError, SourceError, quote
from jinjarun.limits import Limits
from jinjarun.serving.caps import chat_template_caps
from jinjarun.sources import READS_AS, SCHEMES, Source, Token, open_source
from jinjarun.sources.files import decode, read_bytes, read_stream
from jinjarun.template import Rendered, Span, Template
from probes.chats.canaries import EVERY
from probes.chats.corpus import corpus_folder
from probes.chats.named import Chat, conversation
from probes.rendering.counting import counter
from probes.report import Finding
from probes.reporters.text import comparison_text, lint_text, prefix_text, report_text, rule_text, rules_text

if TYPE_CHECKING:
    from probes.rendering.counting import Counter as LengthCounter
    from probes.rendering.paths import PathAnswer, Setting
    from probes.report import Severity, TemplateInfo
    from probes.reporters import Format
    from probes.results.rows import Row

DIALECTS = ("llama.cpp", "transformers")
CLEAN, FINDING, UNUSABLE, INTERRUPTED, CLOSED_PIPE = 0, 1, 2, 130, 141

TEMPLATE_HELP = """\
TEMPLATE is a .jinja file, a tokenizer_config.json, a model folder, a
repository in the local Hugging Face cache (org/name), a GGUF file, a format
family that comes with this package (family:chatml), the address of a running
llama-server (http://localhost:8080), or - for standard input.
"""


class Usage(Exception):
    """Arguments that do not fit together."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line, prints every failure as one message, and returns the exit code."""
    if sys.stdout is None:
        return complain("cannot write: standard output is closed", UNUSABLE)
    try:
        return run(argv)
    except Usage as error:
        return complain(str(error), UNUSABLE)
    except JinjarunError as error:
        return complain(describe(error), UNUSABLE if isinstance(error, SourceError | InputError) else FINDING)
    except BrokenPipeError:
        drop_output()
        return CLOSED_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        drop_output()
        return complain(f"cannot write: {error.strerror or error}", UNUSABLE)
    except Exception as error:
        if os.environ.get("JINJARUN_TRACEBACK"):
            raise
        message = f"internal error, a bug of jinjarun: {type(error).__name__}: {quote(str(error))}"
        return complain(f"{message}\nJINJARUN_TRACEBACK=1 shows where; please report it", UNUSABLE)


def run(argv: Sequence[str] | None) -> int:
    """The command's exit code, once all that it printed (help too) is written."""
    try:
        args = parser().parse_args(argv)
        code: int = args.run(args)
    finally:
        sys.stdout.flush()
    return code


def complain(message: str, code: int) -> int:
    with contextlib.suppress(OSError):
        print(f"jinjarun: {message}", file=sys.stderr)
    return code


def describe(error: JinjarunError) -> str:
    """What is wrong and where; the class stands first, because a script may look for it."""
    text = str(error)
    return text if text.startswith(error.name) else f"{error.name}: {text}"


def drop_output() -> None:
    """What is still in the buffer cannot be written: it goes nowhere, without a second error at exit."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# What is asked


def template_source(args: argparse.Namespace, dialect: str) -> Source:
    """The template that was named, as the engine of this dialect would choose it from a folder."""
    reads_as = dialect if dialect in READS_AS else "transformers"
    return open_source(args.template, reads_as=reads_as, corpus=corpus_folder(), vocabulary=args.run is run_probe)


def read_json(path: str) -> Any:
    """A JSON file, or standard input for `-`."""
    limit = Limits().input_bytes
    data = read_stream(path, sys.stdin.buffer, limit) if path == "-" else read_bytes(path, limit)
    return parse_json(path, decode(path, data)[0])


def parse_json(what: str, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError(f"{what}: {place}: is not JSON: {error.msg}", path=what, place=place) from None
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InputError(f"{what}: is not usable JSON: {reason}", path=what) from None


def json_object(option: str, text: str | None) -> dict[str, Any]:
    value = {} if text is None else parse_json(option, text)
    if not isinstance(value, dict):
        raise Usage(f"{option} must be a JSON object, such as '{{\"enable_thinking\": false}}'")
    return value


def request(args: argparse.Namespace) -> Chat:
    """The conversation that was asked for, with what the command line adds to it."""
    if args.messages is not None and args.conversation is not None:
        raise Usage("--messages and --conversation exclude each other")
    read_once(args, args.messages, args.tools)
    chat: dict[str, Any] = {}
    if args.messages is None:
        chat |= conversation(args.conversation or "user")
    else:
        body = read_json(args.messages)
        chat["messages"] = body.get("messages") if isinstance(body, dict) else body
        if isinstance(body, dict):
            names = {
                "tools": "tools",
                "add_generation_prompt": "add_generation_prompt",
                "chat_template_kwargs": "variables",
            }
            chat |= {ours: body[theirs] for theirs, ours in names.items() if body.get(theirs) is not None}
    if args.tools is not None:
        chat["tools"] = read_json(args.tools)
    if args.chat_template_kwargs is not None:
        variables = json_object("--chat-template-kwargs", args.chat_template_kwargs)
        chat["variables"] = {**chat.get("variables", {}), **variables}
    if args.no_generation_prompt:
        chat["add_generation_prompt"] = False
    return chat  # type: ignore[return-value]  # what is not JSON as it should be, Template.render refuses


def read_once(args: argparse.Namespace, *files: str | None) -> None:
    if [args.template, *files].count("-") > 1:
        raise Usage("standard input (-) can be read only once: give the others as files")


class SpecialTokens(TypedDict):
    """The texts of BOS and EOS, empty where the model has none."""

    bos_token: str
    eos_token: str


def special_tokens(args: argparse.Namespace, source: Source) -> SpecialTokens:
    """As given, else as the files say, else empty."""

    def text(given: str | None, found: Token | None) -> str:
        return given if given is not None else (found and found.text) or ""

    return {
        "bos_token": text(args.bos_token, source.tokens.bos),
        "eos_token": text(args.eos_token, source.tokens.eos),
    }


def clock(text: str) -> datetime:
    """`--now`: a Unix timestamp, read as UTC, or an ISO 8601 time."""
    with contextlib.suppress(ValueError):
        return datetime.fromisoformat(text)
    try:
        return datetime.fromtimestamp(float(text), UTC)
    except (ValueError, OverflowError, OSError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time: give a Unix timestamp or an ISO 8601 time such as 2026-10-03T12:00:00+00:00"
        ) from None


# What is answered


def run_render(args: argparse.Namespace) -> int:
    dialect = args.dialect or DIALECTS[0]
    if args.engine is not None and args.dialect is not None:
        raise Usage("--dialect renders the bare template and --as takes a whole path: give one of them")
    if args.template.startswith(SCHEMES) and args.engine is args.dialect is None:
        args.engine = "llama-server"
    if args.engine is not None:
        return run_render_as(args)
    if args.explain or args.request or args.mask or args.tokenizer or serving_flags(args):
        raise Usage("--request, --explain, --mask, --tokenizer and llama-server's flags are for --as ENGINE")
    chat: dict[str, Any] = dict(request(args))
    source = template_source(args, dialect)
    template = Template(source.template(args.variant), dialect=dialect)
    spans = args.spans or args.json
    answer = template.render(**chat, **special_tokens(args, source), now=args.now, spans=spans)
    if args.json:
        print_json(rendered_json(answer, dialect))
    elif args.spans:
        print_spans(answer.spans)
    else:
        print_text(answer.text, answer.data)
    return CLEAN


def run_render_as(args: argparse.Namespace) -> int:
    """The prompt of a whole request path; what it changed goes to stderr, so that the prompt stays exact."""
    from probes.rendering.paths import ENGINES, answer_on_path

    if args.request is not None and not (args.messages is args.conversation is args.tools is None):
        raise Usage("--request is a whole request: give it without --messages, --conversation and --tools")
    if args.mask and args.engine != "transformers":
        raise Usage("--mask is for --as transformers: llama-server knows no training")
    if args.tokenizer and not args.mask:
        raise Usage("--tokenizer counts what --mask tells: give both")
    lengths = counter(args.tokenizer)
    if args.request is None:
        chat: dict[str, Any] = dict(request(args))
        body = {"chat_template_kwargs" if key == "variables" else key: value for key, value in chat.items()}
    else:
        read_once(args, args.request)
        body = read_json(args.request)
        if args.no_generation_prompt and isinstance(body, dict):
            body["add_generation_prompt"] = False
    if args.mask and isinstance(body, dict):
        body["return_assistant_tokens_mask"] = True
    source, setting = served_setting(args, "llama.cpp" if args.engine == "llama-server" else "transformers")
    if source.kind == "server" and args.engine == "llama-server" and not serving_flags(args):
        return run_render_there(args, source, body)
    answer = answer_on_path(ENGINES[args.engine], setting, body, spans=args.spans or args.json)
    if args.json:
        print_json(answer.to_dict())
    elif args.spans:
        print_spans(answer.spans)
    else:
        print_text(answer.text, answer.data)
    if not args.json:
        sys.stdout.flush()
        if args.explain:
            print(explanation(answer), file=sys.stderr)
        if answer.assistant_spans is not None:
            print(mask_line(answer.text, answer.assistant_spans, lengths), file=sys.stderr)
    return CLEAN


def mask_line(text: str, places: Sequence[tuple[int, int]], lengths: LengthCounter) -> str:
    """How much of a prompt training would count as the assistant's."""
    unit = lengths.unit.replace("_", " ")
    many = "1 place" if len(places) == 1 else f"{len(places)} places"
    return f"the mask covers {lengths.within(text, places):,} of {lengths.count(text):,} {unit}, in {many}"


def run_render_there(args: argparse.Namespace, source: Source, body: Any) -> int:
    """The prompt of a running server, and on stderr where it is not the one that is expected of its build."""
    from jinjarun.sources.server import RunningServer
    from probes.reporters.text import server_text
    from probes.serve.check import Asked, check_server

    if args.spans or args.explain or args.variant or args.bos_token is not None or args.eos_token is not None:
        raise Usage("a server gives its prompt and no more: save its template for --spans, --explain and other tokens")
    if args.chat_template_kwargs is not None and args.request is not None:
        raise Usage("a running server has its --chat-template-kwargs: put variables into the request")
    server = RunningServer(source.path)
    prompt = server.apply_template(body)
    check = check_server(server, [Asked("request", body, prompt)], now=args.now)
    if args.json:
        print_json({"status": prompt.status, "text": prompt.text, "error": prompt.error, "check": check.model_dump()})
    elif prompt.text is not None:
        print_text(prompt.text, prompt.text.encode("utf-8", "surrogatepass"))
    else:
        complain(f"{source.path} answers {prompt.status}: {prompt.error}", FINDING)
    if not args.json and not check.equal:
        sys.stdout.flush()
        print(server_text(check), end="", file=sys.stderr)
    return CLEAN if prompt.text is not None and check.equal else FINDING


def explanation(answer: PathAnswer) -> str:
    """A line for each place that the path changed, and why."""
    rows = [f"  {row['path']:{32}} {row['name']}: {row['why']}" for row in answer.reworks]
    known = "" if answer.family is None else f", known to it as {answer.family}"
    head = f"{answer.path} {answer.version}, template {answer.template}{known}:"
    return "\n".join([head, *(rows or ["  nothing was changed"])])


def served_setting(args: argparse.Namespace, reads_as: str) -> tuple[Source, Setting]:
    """What an engine is started with: the model's templates and tokens, or what the command line says instead."""
    from probes.chapters.tokens import llama_cpp_adds_bos
    from probes.rendering.paths import Setting

    source = template_source(args, reads_as)
    default_kwargs = json_object("--chat-template-kwargs", args.chat_template_kwargs)
    given = given_template(args)
    name = None
    if args.jinja is False:
        if given is None:
            raise Usage(NO_JINJA)
        name, templates = given, {}
    elif given is not None:
        templates = {"default": given}
    elif args.variant is not None or source.default is not None or source.candidates or reads_as != "llama.cpp":
        templates = {"default": source.template(args.variant)}
        if args.variant is None and "tool_use" in source.templates:
            templates["tool_use"] = source.templates["tool_use"]
    else:
        complain(f"{source.path} holds no chat template: llama-server takes its own ChatML one", CLEAN)
        templates = {"default": ""}
    return source, Setting(
        templates,
        **special_tokens(args, source),
        add_bos=llama_cpp_adds_bos(source.tokens) is True,
        add_eos=source.tokens.add_eos is True,
        default_kwargs=default_kwargs,
        now=args.now,
        format=name,
    )


NO_JINJA = "--no-jinja runs no templates: name a format of llama.cpp with --chat-template NAME"


def given_template(args: argparse.Namespace) -> str | None:
    """`--chat-template` or `--chat-template-file`, of which llama-server takes whichever comes last; we want one."""
    from jinjarun.serving.builtin_formats import misread_name

    if args.chat_template is not None and args.chat_template_file is not None:
        raise Usage("--chat-template and --chat-template-file exclude each other")
    if args.chat_template_file is not None and args.jinja is False:
        raise Usage(NO_JINJA)
    if args.chat_template_file is not None:
        return read_text(args.chat_template_file)
    if args.chat_template is not None and args.jinja is not False:
        warning = misread_name(args.chat_template)
        if warning is not None:
            complain(f"warning: {warning}", CLEAN)
    text: str | None = args.chat_template
    return text


def serving_flags(args: argparse.Namespace) -> bool:
    return not (args.chat_template is args.chat_template_file is args.jinja is None)


def run_serve(args: argparse.Namespace) -> int:
    from ipaddress import ip_address

    from probes.serve import app as server

    source, setting = served_setting(args, "llama.cpp")
    bound = server.listen(args.host, args.port)
    with bound:
        application = server.TemplateServer(setting, name=source.name)
        host, port = bound.getsockname()[:2]
        where = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        complain(f"{where} answers as llama-server {application.props['build_info']} with {source.name}", CLEAN)
        if not ip_address(host.partition("%")[0]).is_loopback:
            complain("warning: other machines can reach this server, and it asks nobody for a key", CLEAN)
        server.serve(application, bound)
    return CLEAN


def rendered_json(answer: Rendered, dialect: str) -> dict[str, Any]:
    return {
        "engine": {"id": dialect, "version": dialect_named(dialect).version, "path": "raw"},
        "text": answer.text,
        "spans": [dataclasses.asdict(span) for span in answer.spans],
        "cost": {"steps": answer.cost},
    }


def run_caps(args: argparse.Namespace) -> int:
    source = template_source(args, "llama.cpp")
    print_json(chat_template_caps(source.template(args.variant)).to_dict())
    return CLEAN


def run_probe(args: argparse.Namespace) -> int:
    import probes

    source = template_source(args, "transformers")
    report = probes.probe(
        source.template(args.variant),
        name=source.name,
        tokens=source.tokens,
        now=args.now,
        files=source,
        upstream=upstream(args),
        counter=counter(args.tokenizer),
    )
    if source.kind == "server":
        from jinjarun.sources.server import RunningServer
        from probes.serve.check import check_server

        report = report.model_copy(update={"server": check_server(RunningServer(source.path), now=args.now)})
    write(report.to_json() + "\n" if args.json else report_text(report))
    differs = report.server is not None and not report.server.equal
    return FINDING if differs or report.status != "complete" or fails(report.findings, args.fail_on) else CLEAN


SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


def fails(findings: Sequence[Finding], fail_on: str) -> bool:
    """Whether one of the findings is as grave as `--fail-on` says, or graver."""
    return any(SEVERITIES.index(found.severity) <= SEVERITIES.index(fail_on) for found in findings)


def upstream(args: argparse.Namespace) -> str | None:
    if args.upstream is None:
        return None
    return open_source(args.upstream, corpus=corpus_folder(), vocabulary=False).template()


def run_lint(args: argparse.Namespace) -> int:
    from probes.linter import lint as linting
    from probes.linter.targets import Options, find_targets, lint_all
    from probes.reporters.rows import error_row, lint_row
    from probes.rules import selected

    made = finding_format(args)
    options = Options(words(args.select), words(args.ignore), args.preview, args.variant, upstream(args))
    _, unknown = selected(options.select, options.ignore)
    if unknown:
        raise Usage(f"no rule is called {', '.join(unknown)}; all are listed by: jinjarun rules")
    exemptions = linting.read_exemptions(read_text(args.ignore_file), args.ignore_file) if args.ignore_file else []
    known = read_text(args.baseline) if args.baseline else None
    results, unusable = [], []
    for target, found in lint_all([one for given in args.template for one in find_targets(given)], options):
        if isinstance(found, JinjarunError):
            unusable.append(error_row(target, found))
            complain(f"{target}: not evaluated: {describe(found)}", UNUSABLE)
            continue
        for result in found:
            result = linting.without_exemptions(result, exemptions)
            results.append(result if known is None else linting.without_baseline(result, known, args.baseline))
    if args.write_baseline:
        write_file(args.write_baseline, linting.baseline(results))
    rows = [*unusable, *map(lint_row, results)]
    tell(args, made, lambda: lint_text(results), lambda: [result.to_dict() for result in results], rows)
    if unusable:
        return UNUSABLE
    graver = any(fails(result.findings, args.fail_on) for result in results)
    return FINDING if graver and not args.write_baseline else CLEAN


def words(given: list[str]) -> tuple[str, ...]:
    """Codes as they are typed: several options, or several codes in one, with commas."""
    return tuple(word for text in given for word in text.replace(",", " ").split())


def read_text(path: str) -> str:
    return decode(path, read_bytes(path, Limits().input_bytes))[0]


def write_file(path: str, text: str) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise Usage(f"cannot write {path}: {error.strerror or error}") from None


def run_rules(args: argparse.Namespace) -> int:
    from probes.rules import rules

    known = rules()
    if args.code is None:
        rows = [
            {"code": rule.code, "name": rule.name, "severity": rule.severity, "needs": rule.needs}
            | {"preview": rule.preview, "summary": rule.summary}
            for rule in known.values()
        ]
        print_json(rows) if args.json else write(rules_text(known.values()))
        return CLEAN
    rule = next((one for one in known.values() if args.code in {one.code, one.code.lower(), one.name}), None)
    if rule is None:
        raise Usage(f"no rule is called {args.code}; all are listed by: jinjarun rules")
    fields = {field.name: getattr(rule, field.name) for field in dataclasses.fields(rule) if field.name != "check"}
    print_json(fields) if args.json else write(rule_text(rule))
    return CLEAN


def run_prefix(args: argparse.Namespace) -> int:
    """Exit code 1 where a tool loop is rewritten: each of its rounds pays. What breaks otherwise is told."""
    from probes.chapters.prefix import check_prefix_stability

    source = template_source(args, "transformers")
    results = check_prefix_stability(
        source.template(args.variant), **special_tokens(args, source), now=args.now, laws=args.law
    )
    unit = counter(args.tokenizer)
    if args.json:
        print_json([result.to_dict(unit) for result in results])
    else:
        write(prefix_text(results, unit))
    failing = {"within-tool-loop"} if args.fail_on == "error" else {result.law for result in results}
    return FINDING if any(result.holds is False and result.law in failing for result in results) else CLEAN


def run_snapshot(args: argparse.Namespace) -> int:
    from probes.comparison.snapshot import Kept, Mode, keep, snapshot_file
    from probes.linter.targets import find_targets
    from probes.reporters.changes import snapshot_text
    from probes.reporters.rows import error_row, snapshot_row

    made = finding_format(args)
    mode: Mode = "check" if args.check else "update" if args.update else "write"
    kept: dict[str, Kept] = {}
    rows: list[Row] = []
    code = CLEAN
    for target in [target for given in args.template for target in find_targets(given)]:
        try:
            source = open_source(target, corpus=corpus_folder(), vocabulary=False)
            variant = args.variant or source.default or "default"
            file = snapshot_file(source, variant, args.dir)
            if file in kept:
                raise Usage(f"{target} and {kept[file].template} would both be kept in {file}")
            text = source.template(args.variant)
            kept[file] = keep(text, target, file, mode, **special_tokens(args, source))
            rows.append(snapshot_row(info(target, source, variant, text), kept[file]))
        except JinjarunError as error:
            rows.append(error_row(target, error))
            complain(f"{target}: {describe(error)}", UNUSABLE)
            code = max(code, UNUSABLE if isinstance(error, SourceError | InputError) else FINDING)
    states = {one.state for one in kept.values()}
    tell(args, made, lambda: snapshot_text(kept.values()), lambda: [one.to_dict() for one in kept.values()], rows)
    return max(code, UNUSABLE if "missing" in states else FINDING if "changed" in states else CLEAN)


def run_fuzz(args: argparse.Namespace) -> int:
    from probes.fuzzer.fuzz import fuzz
    from probes.linter.targets import find_targets
    from probes.reporters.fuzzing import fuzz_export, fuzz_text
    from probes.reporters.rows import error_row, fuzz_row

    made = finding_format(args)
    targets = [target for given in args.template for target in find_targets(given)]
    database = None if args.database == "none" else args.database
    reports, sources, rows, unusable = [], [], [], False
    for target in targets:
        try:
            source = open_source(target, corpus=corpus_folder(), vocabulary=False)
            text = source.template(args.variant)
        except JinjarunError as error:
            unusable = True
            rows.append(error_row(target, error))
            complain(f"{target}: not evaluated: {describe(error)}", UNUSABLE)
            continue
        report = fuzz(
            text,
            name=target,
            laws=args.law,
            max_examples=args.max_examples,
            seed=args.seed,
            budget=args.budget,
            **special_tokens(args, source),
            now=args.now,
            database=database,
            progress=Progress(target) if sys.stderr is not None and sys.stderr.isatty() else None,
        )
        reports.append(report)
        sources.append(text)
        rows.append(fuzz_row(info(target, source, args.variant or source.default, text), report, strict=args.strict))
    if args.export:
        write_file(args.export, fuzz_export(zip(reports, sources, strict=True), metadata.version("jinjarun")))
    tell(args, made, lambda: fuzz_text(reports), lambda: [report.to_dict() for report in reports], rows)
    if unusable:
        return UNUSABLE
    return FINDING if any(report.failed(strict=args.strict) for report in reports) else CLEAN


def info(target: str, source: Source, variant: str | None, text: str) -> TemplateInfo:
    """Which template was judged, and where it stands."""
    from probes.prober import template_info
    from probes.report import TemplateSource

    return template_info(text, target, variant or "default", TemplateSource.model_validate(source.report(variant)))


class Progress:
    """How far a search is, on one line of the terminal."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __call__(self, done: int, wanted: int) -> None:
        end = "\r\x1b[K" if done == wanted else ""
        print(f"\r{self.what}: {done} of {wanted} conversations{end}", end="", file=sys.stderr, flush=True)


def run_scan(args: argparse.Namespace) -> int:
    from probes.commands import scan

    return scan.run(args)


def run_compare(args: argparse.Namespace) -> int:
    import probes

    if args.new is not None:
        return run_compare_templates(args)
    chat = request(args)
    source = template_source(args, "transformers")
    result = probes.compare(source.template(args.variant), **chat, **special_tokens(args, source), now=args.now)
    print_json(result.model_dump(mode="json")) if args.json else write(comparison_text(result))
    return CLEAN if result.agree else FINDING


def run_compare_templates(args: argparse.Namespace) -> int:
    from probes.comparison.engines import compare_templates
    from probes.reporters.changes import template_comparison_text

    asked = (args.messages, args.conversation, args.tools, args.chat_template_kwargs, args.bos_token, args.eos_token)
    if args.no_generation_prompt or any(option is not None for option in asked):
        raise Usage("two templates are compared over all conversations, with their own tokens: no request fits")
    read_once(args, args.new)
    old, new = template_source(args, "transformers"), open_source(args.new, corpus=corpus_folder(), vocabulary=False)
    found = compare_templates(
        old.template(args.variant),
        new.template(args.variant),
        old_name=args.template,
        new_name=args.new,
        old_tokens=old.tokens,
        new_tokens=new.tokens,
        now=args.now,
        max_examples=args.max_examples,
        seed=args.seed,
    )
    print_json(found.model_dump(mode="json")) if args.json else write(template_comparison_text(found))
    failing = {"broken", "changed"} if args.fail_on == "changed" else {"broken"}
    return FINDING if found.outcome in failing else CLEAN


def finding_format(args: argparse.Namespace) -> Format:
    from probes.reporters import FINDING_FORMATS, chosen_format

    return chosen_format("json" if args.json else args.format, args.out, FINDING_FORMATS)


def tell(
    args: argparse.Namespace, made: Format, text: Callable[[], str], data: Callable[[], Any], rows: list[Row]
) -> None:
    """What was found, in the format that was asked for: text, plain JSON, or rows as a reporter writes them."""
    from probes.scanner.running import whole_file

    out = io.BytesIO()
    if made.findings:
        made.write(rows, out, args.command)
    else:
        out.write(encoded(text() if made.name == "text" else as_json(data())))
    if args.out is None:
        write_bytes(out.getvalue())
    else:
        with whole_file(args.out) as file:
            file.write(out.getvalue())
        complain(f"{args.out}: {counted(rows)}", CLEAN)


def counted(rows: list[Row]) -> str:
    """How many findings of each severity are in the rows, and rows that could not be judged."""
    found = Counter(one.severity for row in rows if row.summary is not None for one in row.summary.findings)
    failed = sum(row.error is not None for row in rows)
    said = ", ".join(f"{found[severity]} {severity}" for severity in SEVERITIES)
    return f"{said}, {failed} not judged" if failed else said


def print_json(value: Any) -> None:
    write(as_json(value))


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def write(text: str) -> None:
    """To standard output."""
    write_bytes(encoded(text))


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
    text = visible(text)
    write(text if text.endswith("\n") else text + "\n")


def visible(text: str) -> str:
    """Text for a terminal: line breaks and tabs as they are, other characters that do not print escaped."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


COLOURS = (36, 32, 33, 35, 34, 31)
"""Of the origins that come from the caller, in the order in which they appear; the template's own text is dim."""


def print_spans(spans: Sequence[Span]) -> None:
    """A prompt coloured by origin; without colours, a line a span: its origin and its text as a literal."""
    if not (sys.stdout.isatty() and not os.environ.get("NO_COLOR")):
        width = max((len(span.origin) for span in spans), default=0)
        for span in spans:
            write(f"{'input' if span.is_input else 'text ':5}  {span.origin:{width}}  {visible(span.text)!r}\n")
        return
    colours: dict[str, int] = {}
    for span in spans:
        if span.is_input:
            colours.setdefault(span.origin, COLOURS[len(colours) % len(COLOURS)])
        write(f"\x1b[{colours.get(span.origin, 2)}m{visible(span.text)}\x1b[0m")
    write("\n\n")
    for origin, colour in colours.items():
        write(f"\x1b[{colour}m{origin}\x1b[0m\n")


# What can be typed


class Parser(argparse.ArgumentParser):
    """argparse with our layout; abbreviated options are refused, so that a new option never changes an old call."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=Layout, allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        self.exit(UNUSABLE, f"{self.prog}: {message}\ntry: {self.prog} --help\n")


class Layout(argparse.RawDescriptionHelpFormatter):
    """80 columns on every terminal, so that the README can quote the help."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26, width=79)


class Version(argparse.Action):
    """`--version`: of this package and of the engines that it stands for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        try:
            ours = metadata.version("jinjarun")
        except metadata.PackageNotFoundError:
            ours = "(not installed)"
        engines = ", ".join(f"{name} {dialect_named(name).version}" for name in DIALECTS)
        write(f"jinjarun {ours}, as {engines}\n")
        parser.exit(CLEAN)


def render_options(added: argparse.ArgumentParser) -> None:
    added.add_argument("--dialect", choices=DIALECTS, help="whose rules (default llama.cpp)")
    request_options(added)
    added.add_argument("--spans", action="store_true", help="show where each part of the prompt comes from")
    added.add_argument(
        "--as",
        dest="engine",
        choices=("llama-server", "transformers"),
        help="the whole path of a request there, not the bare template",
    )
    added.add_argument("--request", metavar="FILE", help="with --as: a request body, read as that engine reads it")
    added.add_argument("--explain", action="store_true", help="with --as: tell on stderr what was changed, and why")
    added.add_argument(
        "--mask", action="store_true", help="with --as transformers: tell on stderr what training counts as answers"
    )
    tokenizer_option(added)
    llama_server_options(added)


def llama_server_options(added: argparse.ArgumentParser) -> None:
    """What llama-server is started with, by its own names."""
    added.add_argument("--chat-template", metavar="TEXT", help="a template, or with --no-jinja a format of llama.cpp")
    added.add_argument("--chat-template-file", metavar="FILE", help="a template instead of the model's own")
    added.add_argument(
        "--jinja",
        action=argparse.BooleanOptionalAction,
        help="run templates (default), or write a format of llama.cpp",
    )


def serve_options(added: argparse.ArgumentParser) -> None:
    added.add_argument("--host", default="127.0.0.1", metavar="HOST", help="where to listen (default 127.0.0.1)")
    added.add_argument("--port", default=8080, type=port, metavar="PORT", help="default 8080; 0 takes a free one")
    llama_server_options(added)
    variable_options(added)
    token_options(added)
    clock_option(added)


def port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text!r} is no port")
    return int(text)


def variable_options(added: argparse.ArgumentParser) -> None:
    added.add_argument(
        "--chat-template-kwargs", metavar="JSON", help="more variables, such as '{\"enable_thinking\": false}'"
    )


def format_options(added: argparse.ArgumentParser) -> None:
    """How a command that finds something in templates tells it."""
    from probes.reporters import FINDING_FORMATS

    formats = f"one of: {', '.join(FINDING_FORMATS)} (default text)"
    added.add_argument("--format", choices=FINDING_FORMATS, metavar="NAME", help=formats)
    added.add_argument("--out", metavar="FILE", help="write there; its ending chooses the format")


def no_options(added: argparse.ArgumentParser) -> None:
    """Nothing beside what every command takes."""


def prefix_options(added: argparse.ArgumentParser) -> None:
    from probes.chapters.prefix import LAWS

    added.add_argument("--law", choices=LAWS, action="append", metavar="LAW", help=f"one of: {', '.join(LAWS)}")
    added.add_argument(
        "--fail-on",
        choices=("error", "warning"),
        default="error",
        help="exit with 1 for a rewritten tool loop (error), or for any broken law (warning)",
    )
    tokenizer_option(added)
    token_options(added)
    clock_option(added)


def scan_options(added: argparse.ArgumentParser) -> None:
    from probes.commands import scan

    scan.add_options(added)


def token_options(added: argparse.ArgumentParser) -> None:
    added.add_argument("--bos-token", metavar="TEXT", help="instead of the model's own")
    added.add_argument("--eos-token", metavar="TEXT", help="instead of the model's own")


def clock_option(added: argparse.ArgumentParser) -> None:
    added.add_argument("--now", type=clock, metavar="TIME", help="freeze the clock: a Unix timestamp or ISO 8601 time")


def request_options(added: argparse.ArgumentParser) -> None:
    """What is rendered, with llama-server's names where it has one."""
    added.add_argument("--messages", metavar="FILE", help="a JSON list of messages, or a whole request body")
    added.add_argument(
        "--conversation",
        choices=EVERY,
        metavar="NAME",
        help="a built-in conversation instead (default: user)",
    )
    added.add_argument("--tools", metavar="FILE", help="a JSON list of tools")
    variable_options(added)
    token_options(added)
    added.add_argument("--no-generation-prompt", action="store_true", help="end after the last message")
    clock_option(added)


def finding_options(added: argparse.ArgumentParser) -> None:
    added.add_argument("--fail-on", choices=SEVERITIES, default="error", help="the least grave finding of exit code 1")
    added.add_argument("--upstream", metavar="TEMPLATE", help="the template of the base model, for PK301")


def tokenizer_option(added: argparse.ArgumentParser) -> None:
    added.add_argument(
        "--tokenizer", metavar="FILE", help="count tokens by this tokenizer.json (extra: tokens), not characters"
    )


def probe_options(added: argparse.ArgumentParser) -> None:
    clock_option(added)
    tokenizer_option(added)
    finding_options(added)


def fuzz_options(added: argparse.ArgumentParser) -> None:
    from probes.laws import DATABASE, EXAMPLES, LAWS

    added.add_argument("--law", choices=LAWS, action="append", metavar="LAW", help=f"one of: {', '.join(LAWS)}")
    made_up_options(added, EXAMPLES)
    added.add_argument("--budget", type=seconds, metavar="SECONDS", help="stop a template's search after so long")
    added.add_argument("--strict", action="store_true", help="fail for what a template is known to do, too")
    added.add_argument("--export", metavar="FILE", help="write a bug report that stands by itself, in Markdown")
    added.add_argument(
        "--database",
        default=DATABASE,
        metavar="FOLDER",
        help=f"where what was found is kept for the next time (default {DATABASE}), or none",
    )
    token_options(added)
    clock_option(added)
    format_options(added)


def made_up_options(added: argparse.ArgumentParser, examples: int) -> None:
    """How many conversations are made up, and which."""
    made = f"conversations that are made up (default {examples})"
    added.add_argument("--max-examples", type=positive, default=examples, metavar="N", help=made)
    added.add_argument("--seed", type=int, default=0, metavar="N", help="another seed makes up other conversations")


def compare_options(added: argparse.ArgumentParser) -> None:
    from probes.comparison.engines import EXAMPLES

    added.add_argument("new", metavar="NEW", nargs="?", help="compare the first template with this newer one instead")
    request_options(added)
    added.add_argument(
        "--fail-on",
        choices=("broken", "changed"),
        default="broken",
        help="of two templates: the least change of exit code 1 (default broken)",
    )
    made_up_options(added, EXAMPLES)


def snapshot_options(added: argparse.ArgumentParser) -> None:
    mode = added.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true", help="write nothing; a missing snapshot is exit code 2")
    mode.add_argument("--update", action="store_true", help="write it anew where it differs, too")
    added.add_argument("--dir", metavar="FOLDER", help="keep them there, not beside the templates")
    token_options(added)
    format_options(added)


def positive(text: str) -> int:
    """A count of examples."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return int(text)


def seconds(text: str) -> float:
    """A time that is given to a search."""
    try:
        given = float(text)
    except ValueError:
        given = 0.0
    if not 0 < given < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number of seconds")
    return given


def lint_options(added: argparse.ArgumentParser) -> None:
    several: dict[str, Any] = {"action": "append", "default": [], "metavar": "CODES"}
    added.add_argument("--select", **several, help="only these rules: TL104, TL1, RS, a name")
    added.add_argument("--ignore", **several, help="all but these rules")
    added.add_argument("--preview", action="store_true", help="with rules that still give false alarms")
    finding_options(added)
    added.add_argument(
        "--ignore-file", metavar="FILE", help="findings that stay, a line each: FINGERPRINT REASON, or CODE PATH REASON"
    )
    added.add_argument("--baseline", metavar="FILE", help="leave out the findings that this file holds")
    added.add_argument("--write-baseline", metavar="FILE", help="write today's findings there; exit code 0")
    format_options(added)


def rules_options(added: argparse.ArgumentParser) -> None:
    added.add_argument("code", metavar="CODE", nargs="?", help="one rule, by its code or name: all that is to be said")


@dataclasses.dataclass(frozen=True)
class Command:
    """`what` stands in the help; `run` does it and returns the exit code; `options` adds what only it takes.

    `templates`: how many it takes, as argparse counts (None: one); 0 for none. `json`: whether it has `--json`.
    """

    what: str
    run: Callable[[argparse.Namespace], int]
    options: Callable[[argparse.ArgumentParser], None]
    templates: Literal[0, "+"] | None = None
    json: bool = True


COMMANDS = {
    "render": Command("print the prompt that an engine would build", run_render, render_options),
    "caps": Command("print chat_template_caps as llama-server's /props has it", run_caps, no_options),
    "probe": Command("report what a template can do, with evidence", run_probe, probe_options),
    "lint": Command("check templates, or folders of them, by the rules", run_lint, lint_options, "+"),
    "rules": Command("list the rules, or print the documentation of one", run_rules, rules_options, 0),
    "prefix": Command("check what a growing conversation keeps of the KV cache", run_prefix, prefix_options),
    "serve": Command("answer llama-server's endpoints for a template", run_serve, serve_options, json=False),
    "snapshot": Command("keep what templates write, and tell what changed", run_snapshot, snapshot_options, "+"),
    "fuzz": Command("make up conversations and check that every law holds", run_fuzz, fuzz_options, "+"),
    "scan": Command("probe every template of many files, each distinct one once", run_scan, scan_options, 0),
    "compare": Command("show where engines differ, or two templates", run_compare, compare_options),
}


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = Parser(prog="jinjarun", description="Run LLM chat templates as the engines do, and find out what they do.")
    top.add_argument("--version", action=Version, nargs=0, help="print the versions of this package and of the engines")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        description = f"{command.what[0].upper()}{command.what[1:]}."
        epilog = None if command.templates == 0 else TEMPLATE_HELP
        added = commands.add_parser(name, help=command.what, description=description, epilog=epilog)
        if command.templates is None:
            added.add_argument("template", metavar="TEMPLATE", help="what to read the template from, see below")
        elif command.templates:
            added.add_argument("template", metavar="TEMPLATE", nargs=command.templates, help="see below; or a folder")
        command.options(added)
        if command.templates != 0:
            added.add_argument("--variant", metavar="NAME", help="a named template of the model, such as tool_use")
        if command.json:
            added.add_argument("--json", action="store_true", help="print JSON")
        added.set_defaults(run=command.run)
    return top


if __name__ == "__main__":
    sys.exit(main())
