"""What a command is asked about: the template that was named, the request, the tokens, other files."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, TypedDict

from jinjarun.errors import InputError
from jinjarun.limits import Limits
from jinjarun.sources import READS_AS, Source, Token, open_source
from jinjarun.sources.files import decode, read_bytes, read_stream
from probes.chats.corpus import corpus_folder
from probes.chats.messages import Chat
from probes.chats.named import conversation
from probes.commands.options import Usage

if TYPE_CHECKING:
    import argparse

    from probes.report import TemplateInfo


class SpecialTokens(TypedDict):
    """The texts of BOS and EOS, empty where the model has none."""

    bos_token: str
    eos_token: str


def template_source(args: argparse.Namespace, dialect: str, *, vocabulary: bool = False) -> Source:
    """The template that was named, as the engine of this dialect would choose it from a folder."""
    reads_as = dialect if dialect in READS_AS else "transformers"
    return open_source(args.template, reads_as=reads_as, corpus=corpus_folder(), vocabulary=vocabulary)


def limits(args: argparse.Namespace) -> Limits:
    """What `--limit` says, and else the default."""
    return Limits(**dict(args.limits))


def read_json(path: str, most: int) -> Any:
    """A JSON file of at most so many bytes, or standard input for `-`."""
    return parse_json(path, read_whole(path, most))


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


def read_whole(path: str, most: int) -> str:
    """A text file of at most so many bytes, or standard input for `-`."""
    data = read_stream(path, sys.stdin.buffer, most) if path == "-" else read_bytes(path, most)
    return decode(path, data)[0]


def read_text(path: str) -> str:
    return decode(path, read_bytes(path, Limits().input_bytes))[0]


def request(args: argparse.Namespace) -> Chat:
    """The conversation that was asked for, with what the command line adds to it."""
    if args.messages is not None and args.conversation is not None:
        raise Usage("--messages and --conversation exclude each other")
    read_once(args, args.messages, args.tools)
    most = limits(args).input_bytes
    chat: dict[str, Any] = {}
    if args.messages is None:
        chat |= conversation(args.conversation or "user")
    else:
        body = read_json(args.messages, most)
        chat["messages"] = body.get("messages") if isinstance(body, dict) else body
        if isinstance(body, dict):
            names = {
                "tools": "tools",
                "add_generation_prompt": "add_generation_prompt",
                "chat_template_kwargs": "variables",
            }
            chat |= {ours: body[theirs] for theirs, ours in names.items() if body.get(theirs) is not None}
    if args.tools is not None:
        chat["tools"] = read_json(args.tools, most)
    if args.chat_template_kwargs is not None:
        variables = json_object("--chat-template-kwargs", args.chat_template_kwargs)
        chat["variables"] = {**chat.get("variables", {}), **variables}
    if args.no_generation_prompt:
        chat["add_generation_prompt"] = False
    return chat  # type: ignore[return-value]  # what is not JSON as it should be, Template.render refuses


def read_once(args: argparse.Namespace, *files: str | None) -> None:
    if [args.template, *files].count("-") > 1:
        raise Usage("standard input (-) can be read only once: give the others as files")


def special_tokens(args: argparse.Namespace, source: Source) -> SpecialTokens:
    """As given, else as the files say, else empty."""

    def text(given: str | None, found: Token | None) -> str:
        return given if given is not None else (found and found.text) or ""

    return {
        "bos_token": text(args.bos_token, source.tokens.bos),
        "eos_token": text(args.eos_token, source.tokens.eos),
    }


def upstream(args: argparse.Namespace) -> str | None:
    if args.upstream is None:
        return None
    return open_source(args.upstream, corpus=corpus_folder(), vocabulary=False).template()


def words(given: list[str]) -> tuple[str, ...]:
    """Codes as they are typed: several options, or several codes in one, with commas."""
    return tuple(word for text in given for word in text.replace(",", " ").split())


def info(target: str, source: Source, variant: str | None, text: str) -> TemplateInfo:
    """Which template was judged, and where it stands."""
    from probes.prober import template_info
    from probes.report import TemplateSource

    return template_info(text, target, variant or "default", TemplateSource.model_validate(source.report(variant)))
