"""llama-server's own options, and what it is started with by them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from probes.commands.options import Usage
from probes.commands.output import CLEAN, complain

if TYPE_CHECKING:
    from jinjarun.sources import Source
    from probes.rendering.paths import Setting

TOKENIZER = "transformers tokenizer"
NO_JINJA = "--no-jinja runs no templates: name a format of llama.cpp with --chat-template NAME"


def llama_server_options(added: argparse.ArgumentParser) -> None:
    """What llama-server is started with, by its own names."""
    added.add_argument("--chat-template", metavar="TEXT", help="a template, or with --no-jinja a format of llama.cpp")
    added.add_argument("--chat-template-file", metavar="FILE", help="a template instead of the model's own")
    added.add_argument(
        "--jinja",
        action=argparse.BooleanOptionalAction,
        help="run templates (default), or write a format of llama.cpp",
    )


def serving_flags(args: argparse.Namespace) -> bool:
    return not (args.chat_template is args.chat_template_file is args.jinja is None)


def served_setting(args: argparse.Namespace, reads_as: str) -> tuple[Source, Setting]:
    """What an engine is started with: the model's templates and tokens, or what the command line says instead."""
    from probes.chapters.tokens import llama_cpp_adds_bos
    from probes.commands.inputs import json_object, limits, special_tokens, template_source
    from probes.rendering.paths import Setting

    source = template_source(args, reads_as)
    if reads_as == "transformers" and source.readings and not source.readings.get(TOKENIZER) and source.candidates:
        message = "warning: the tokenizer of transformers finds no template here, only its processor does"
        complain(f"{message}; write chat_template.jinja", CLEAN)
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
        limits=limits(args),
    )


def given_template(args: argparse.Namespace) -> str | None:
    """`--chat-template` or `--chat-template-file`, of which llama-server takes whichever comes last; we want one."""
    from jinjarun.serving.builtin_formats import misread_name
    from probes.commands.inputs import read_text

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
