"""`jinjarun render`: the prompt that an engine builds."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any

from probes.commands import Command
from probes.commands.llama_server import llama_server_options, served_setting, serving_flags
from probes.commands.options import DIALECTS, Usage, request_options, tokenizer_option
from probes.commands.output import CLEAN, FINDING, complain, print_json, print_spans, print_text, tell
from probes.commands.python_servers import SERVERS, check_renderer, given_flags, python_server_options

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from jinjarun.sources import Source
    from jinjarun.template import Rendered
    from probes.rendering.counting import Counter
    from probes.rendering.paths import PathAnswer


def add_options(added: argparse.ArgumentParser) -> None:
    added.add_argument("--dialect", choices=DIALECTS, help="whose rules (default llama.cpp)")
    request_options(added)
    added.add_argument("--spans", action="store_true", help="show where each part of the prompt comes from")
    added.add_argument(
        "--as",
        dest="engine",
        choices=("llama-server", "transformers", "vllm", "sglang"),
        help="the whole path of a request there, not the bare template",
    )
    added.add_argument("--request", metavar="FILE", help="with --as: a request body, read as that engine reads it")
    added.add_argument("--explain", action="store_true", help="with --as: show on stderr what was changed, and why")
    added.add_argument(
        "--mask", action="store_true", help="with --as transformers: show on stderr what training counts as answers"
    )
    tokenizer_option(added)
    llama_server_options(added)
    python_server_options(added)


def run(args: argparse.Namespace) -> int:
    from jinjarun.sources import SCHEMES
    from jinjarun.template import Template
    from probes.commands.inputs import limits, request, special_tokens, template_source

    dialect = args.dialect or DIALECTS[0]
    if args.engine is not None and args.dialect is not None:
        raise Usage("--dialect renders the bare template and --as takes a whole path: give one of them")
    if args.template.startswith(SCHEMES) and args.engine is args.dialect is None:
        args.engine = "llama-server"
    if args.engine is not None:
        return run_as(args)
    if args.explain or args.request or args.mask or args.tokenizer or serving_flags(args) or given_flags(args):
        raise Usage("--request, --explain, --mask, --tokenizer and the flags of servers are for --as ENGINE")
    chat: dict[str, Any] = dict(request(args))
    source = template_source(args, dialect)
    template = Template(source.template(args.variant), dialect=dialect, limits=limits(args))
    spans = args.spans or args.json
    answer = template.render(**chat, **special_tokens(args, source), now=args.now, spans=spans)
    if args.json:
        print_json(rendered_json(answer, dialect))
    elif args.spans:
        print_spans(answer.spans)
    else:
        print_text(answer.text, answer.data)
    return CLEAN


def run_as(args: argparse.Namespace) -> int:
    """The prompt of a whole request path; what it changed goes to stderr, so that the prompt stays exact."""
    from jinjarun.errors import JinjarunError
    from probes.commands.inputs import limits, read_json, read_once, request
    from probes.rendering.accounting import accounts, fault
    from probes.rendering.counting import counter
    from probes.rendering.paths import answer_on_path
    from probes.rendering.renders import ENGINES

    if args.request is not None and not (args.messages is args.conversation is args.tools is None):
        raise Usage("--request is a whole request: give it without --messages, --conversation and --tools")
    if args.mask and args.engine != "transformers":
        raise Usage("--mask is for --as transformers: servers know no training")
    if args.tokenizer and not args.mask:
        raise Usage("--tokenizer counts what --mask tells: give both")
    lengths = counter(args.tokenizer)
    if args.request is None:
        chat: dict[str, Any] = dict(request(args))
        body = {"chat_template_kwargs" if key == "variables" else key: value for key, value in chat.items()}
    else:
        read_once(args, args.request)
        body = read_json(args.request, limits(args).input_bytes)
        if args.no_generation_prompt and isinstance(body, dict):
            body["add_generation_prompt"] = False
    if args.mask and isinstance(body, dict):
        body["return_assistant_tokens_mask"] = True
    flags = given_flags(args)
    source, setting = served_setting(args, "llama.cpp" if args.engine == "llama-server" else "transformers")
    if args.engine in SERVERS:
        check_renderer(args.engine, source, dict(setting.templates))
        setting = dataclasses.replace(setting, flags=flags)
    if source.kind == "server" and args.engine == "llama-server" and not serving_flags(args):
        return run_there(args, source, body)
    path = ENGINES[args.engine]
    offered = isinstance(body, dict) and body.get("tools") and "tool_use" in setting.templates
    chosen = setting.templates.get("tool_use" if offered else "default", "")
    told = [f"  {row.path:{32}} {row.what}" for row in accounts(args.engine, chosen, body)]
    try:
        answer = answer_on_path(path, setting, body, spans=args.spans or args.json)
    except JinjarunError as error:
        at_fault = fault(chosen, lambda tried: answer_on_path(path, setting, tried), body, error)
        tell([*(["the request:", *told] if args.explain else []), *([at_fault] if at_fault is not None else [])])
        raise
    if args.json:
        print_json(answer.to_dict())
    elif args.spans:
        print_spans(answer.spans)
    else:
        print_text(answer.text, answer.data)
    if not args.json:
        sys.stdout.flush()
        if args.explain:
            tell([*explanation(answer), "the request:", *told])
        if answer.assistant_spans is not None:
            tell([mask_line(chosen, answer.text, answer.assistant_spans, lengths)])
        if setting.format is not None:
            tell(_strange_markers(setting.format, answer.text, source.templates.get("default", "")))
    return CLEAN


def run_there(args: argparse.Namespace, source: Source, body: Any) -> int:
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


def _strange_markers(name: str, text: str, source: str) -> list[str]:
    """A warning where a format of llama.cpp writes markers of which the model's own template knows none."""
    from probes.chapters.endings import markers_in

    strange = list(dict.fromkeys(marker.text for marker in markers_in(text) if marker.text not in source))
    if not source or not strange:
        return []
    return [f"warning: the format {name} writes {', '.join(strange)}, which the model's own template does not know"]


def mask_line(source: str, text: str, places: Sequence[tuple[int, int]], lengths: Counter) -> str:
    """How much of a prompt training would count as the assistant's."""
    from probes.chapters.observed.endings import GENERATION_TAG

    if GENERATION_TAG.search(source) is None:
        return "the template has no {% generation %} block, so every mask is zero: training on it learns nothing"
    from probes.rendering.counting import SHOWN

    unit = SHOWN[lengths.unit]
    many = "1 place" if len(places) == 1 else f"{len(places)} places"
    return f"the mask covers {lengths.within(text, places):,} of {lengths.count(text):,} {unit}, in {many}"


OF_EVERY_REQUEST = frozenset({"variables-added", "reasoning-preserved", "thinking-off-by-default", "chatml-assumed"})
"""Reworks that are made of every request alike: not a change of this one."""


def explanation(answer: PathAnswer) -> list[str]:
    """A line for each place that the path changed, and why; then what every request of this template gets."""
    usual = [row for row in answer.reworks if row["name"] in OF_EVERY_REQUEST]
    rows = [_row(row) for row in answer.reworks if row not in usual] or ["  nothing was changed"]
    if usual:
        rows += ["with every request:", *map(_row, usual)]
    known = "" if answer.family is None else f", known to it as {answer.family}"
    form = "" if answer.content_format is None else f", content as {answer.content_format}"
    head = f"{answer.path} {answer.version}, template {answer.template}{known}{form}:"
    return [head, *rows]


def _row(row: dict[str, str]) -> str:
    return f"  {row['path']:{32}} {row['name']}: {row['why']}"


def rendered_json(answer: Rendered, dialect: str) -> dict[str, Any]:
    from jinjarun.dialects import dialect_named

    return {
        "engine": {"id": dialect, "version": dialect_named(dialect).version, "path": "raw"},
        "text": answer.text,
        "spans": [dataclasses.asdict(span) for span in answer.spans],
        "cost": {"steps": answer.cost},
    }


COMMAND = Command(
    "print the prompt that an engine would build",
    run,
    add_options,
    work=("probes.commands.inputs", "jinjarun.template"),
)
