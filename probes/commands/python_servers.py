"""Options of vLLM and SGLang, and what they are started with by them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, cast

from probes.commands.options import Usage
from probes.commands.output import CLEAN, complain

if TYPE_CHECKING:
    from jinjarun.serving.other_renderers import Server
    from jinjarun.sources import Source

SERVERS = ("vllm", "sglang")
VLLM_ONLY = ("chat_template_content_format", "enable_auto_tool_choice", "exclude_tools_when_tool_choice_none")
BOTH = ("default_chat_template_kwargs", "trust_request_chat_template", "transformers")


def python_server_options(added: argparse.ArgumentParser) -> None:
    """What vLLM and SGLang are started with, by their own names."""
    group = added.add_argument_group("with --as vllm (the first three) and --as sglang")
    group.add_argument("--chat-template-content-format", choices=("auto", "string", "openai"), help="form of content")
    group.add_argument(
        "--no-enable-auto-tool-choice",
        dest="enable_auto_tool_choice",
        action="store_false",
        default=None,
        help="be a server that was not set up for tools, and refuses them",
    )
    group.add_argument(
        "--exclude-tools-when-tool-choice-none", action="store_true", default=None, help="leave them out then"
    )
    group.add_argument("--default-chat-template-kwargs", metavar="JSON", help="variables of every request")
    group.add_argument(
        "--trust-request-chat-template", action="store_true", default=None, help="let a request bring a template"
    )
    group.add_argument("--transformers", metavar="VERSION", help="the one below the server (default: as installed)")


def given_flags(args: argparse.Namespace) -> dict[str, Any]:
    """The flags that were given, by the names of the options' fields. Raises Usage where the server has none such."""
    from probes.commands.inputs import json_object

    given = {name: getattr(args, name) for name in (*VLLM_ONLY, *BOTH) if getattr(args, name) is not None}
    if "default_chat_template_kwargs" in given:
        text = given["default_chat_template_kwargs"]
        given["default_chat_template_kwargs"] = json_object("--default-chat-template-kwargs", text)
    wrong = [name for name in given if args.engine not in SERVERS or (name in VLLM_ONLY and args.engine != "vllm")]
    if wrong:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in wrong)
        raise Usage(f"{flags}: for --as vllm{'' if set(wrong) & set(VLLM_ONLY) else ' and --as sglang'}")
    if given.get("enable_auto_tool_choice") is False:
        given["tool_call_parser"] = None
    return given


def check_renderer(server: str, source: Source, templates: dict[str, str]) -> None:
    """Raises SourceError where the model's files say that the server does not use its template; warns where the
    template only looks so."""
    from jinjarun.errors import SourceError
    from jinjarun.serving.other_renderers import caveat, other_renderer
    from jinjarun.sources.model_files import read_model_files

    named = cast("Server", server)
    if source.kind in ("model_folder", "hf_cache"):
        found = read_model_files(source.path)
        other = other_renderer(
            named,
            architectures=found.architectures,
            model_type=found.model_type,
            files=found.files,
            has_template=bool(templates),
        )
        if other is not None:
            reason = f"{server} does not use the template of this model: it writes its prompts by {other.name}"
            raise SourceError(f"{reason}; give the template's file to see what it would write", path=source.path)
        return
    doubt = caveat(named, templates.get("default", ""))
    if doubt is not None:
        complain(f"warning: {doubt}; give the model's folder to be told", CLEAN)
