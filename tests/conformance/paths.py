"""How far the paths of vLLM and SGLang agree with the recordings: `python -m tests.conformance.paths`.

`--server NAME` takes one file of recordings, `--show N` prints the first N differing rows. A row agrees where the
prompt, or else the status and the stage of the refusal are the recorded ones; texts of errors are counted beside. Exit
code 1 where a row differs.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from jinjarun.errors import JinjarunError
from jinjarun.serving import sglang, vllm
from tests.conformance.golden import SHARED, lines, suite, template_source

PATHS = SHARED / "golden" / "paths"
TOKENS = {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}
CUT = 200
"""Characters of an error that were recorded."""

NEWEST = "5.24"
SERVERS: dict[str, Any] = {
    "vllm": vllm.VllmOptions(transformers=NEWEST),
    "sglang": sglang.SglangOptions(transformers=NEWEST),
    "vllm-pinned": vllm.VllmOptions(),
    "sglang-pinned": sglang.SglangOptions(),
    "probes-vllm": vllm.VllmOptions(transformers=NEWEST),
    "probes-sglang": sglang.SglangOptions(transformers=NEWEST),
}
"""Files of recordings -> what the server was started with."""

NO_PATHS = f"the recordings of the servers' paths are not beside this clone ({PATHS})"


def have_paths() -> bool:
    return (PATHS / "PATHS.md").exists()


@dataclass(frozen=True, slots=True)
class Row:
    """A request and what a server answered to it: `prompt`, or `error`, `status` and `kind`."""

    group: str
    template: str
    name: str
    source: str
    options: Any
    recorded: dict[str, Any]

    @property
    def id(self) -> str:
        return f"{self.group}/{self.template}/{self.name}"


@cache
def bodies() -> dict[str, dict[str, Any]]:
    """The bodies of all requests by name; the recording client adds the name of the model."""
    asked: dict[str, dict[str, Any]] = {}
    for name, chat in suite()["conversations"].items():
        body = {key: chat[key] for key in ("messages", "tools", "add_generation_prompt") if key in chat}
        asked[name] = {**body, "chat_template_kwargs": chat["kwargs"]} if "kwargs" in chat else body
    asked |= json.loads((PATHS / "request-bodies.json").read_text(encoding="utf-8"))
    return {name: {"model": "m", **body} for name, body in asked.items()}


def source_of(template: str) -> str:
    probe = PATHS / "probe-templates" / f"{template}.jinja"
    return probe.read_bytes().decode() if probe.exists() else template_source(template)


def rows(server: str) -> Iterator[Row]:
    for recorded in lines(PATHS / f"{server}.jsonl.gz"):
        source = source_of(recorded["template"])
        for name, answer in recorded["answers"].items():
            yield Row(server, recorded["template"], name, source, SERVERS[server], answer)


LOW_EFFORT = {"enable_thinking": False, "reasoning_effort": "low"}
FLAGS: dict[str, dict[str, tuple[str, dict[str, Any]]]] = {
    "vllm": {
        "no flags": ("probe-string", {"enable_auto_tool_choice": False, "tool_call_parser": None}),
        "exclude_tools_when_tool_choice_none": ("probe-string", {"exclude_tools_when_tool_choice_none": True}),
        "default_chat_template_kwargs enable_thinking=False reasoning_effort=low": (
            "probe-string",
            {"default_chat_template_kwargs": LOW_EFFORT},
        ),
        "trust_request_chat_template": ("probe-string", {"trust_request_chat_template": True}),
        "chat_template_content_format=string": ("probe-openai", {"chat_template_content_format": "string"}),
        "chat_template_content_format=openai": ("probe-string", {"chat_template_content_format": "openai"}),
    },
    "sglang": {
        "multimodal model probe-openai": ("probe-openai", {"multimodal": True}),
        "multimodal model probe-string": ("probe-string", {"multimodal": True}),
        "default_chat_template_kwargs enable_thinking=False reasoning_effort=low probe-string": (
            "probe-string",
            {"default_chat_template_kwargs": LOW_EFFORT},
        ),
        "trust_request_chat_template probe-string": ("probe-string", {"trust_request_chat_template": True}),
    },
}
"""By server, what was recorded with other flags: the name in the file, the template, the flags."""


def flag_rows(server: str) -> Iterator[Row]:
    recorded = json.loads((PATHS / f"flags-{server}.json").read_text(encoding="utf-8"))
    for title, (template, flags) in FLAGS[server].items():
        options = replace(SERVERS[server], **flags)
        for name, answer in recorded[title].items():
            yield Row(f"flags-{server}: {title}", template, name, source_of(template), options, answer)


def answer(row: Row) -> tuple[dict[str, Any], str]:
    """Our answer in the form of a recorded one, and the text of an error."""
    server = vllm.VllmServer if isinstance(row.options, vllm.VllmOptions) else sglang.SglangServer
    started = server(row.source, special_tokens=TOKENS, options=row.options, advises=False)
    try:
        prompt = started.apply(bodies()[row.name], now=suite()["now"])
    except JinjarunError as error:
        text = error.details.get("server_text", error.message)
        return {"status": error.status, "kind": error.details.get("stage")}, text
    return {"prompt": prompt}, ""


def expected(row: Row) -> dict[str, Any]:
    keys = ("prompt",) if "prompt" in row.recorded else ("status", "kind")
    return {key: row.recorded[key] for key in keys}


@dataclass(slots=True)
class Account:
    total: int = 0
    texts: int = 0
    same_texts: int = 0
    differing: list[tuple[Row, dict[str, Any], str]] = field(default_factory=list)
    other_texts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, row: Row) -> None:
        self.total += 1
        got, text = answer(row)
        if got != expected(row):
            self.differing.append((row, got, text))
        elif "prompt" not in got:
            self.texts += 1
            if text[:CUT] == row.recorded["error"][:CUT]:
                self.same_texts += 1
            else:
                self.other_texts[text[:CUT], row.recorded["error"]] += 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.paths", description=__doc__.splitlines()[0])
    groups = [*SERVERS, "flags-vllm", "flags-sglang"]
    parser.add_argument("--server", choices=groups, action="append", help="one file only (may be repeated)")
    parser.add_argument("--template", help="only templates whose name contains this")
    parser.add_argument("--body", help="only requests whose name contains this")
    parser.add_argument("--show", type=int, default=5, metavar="N", help="differing rows to print (default 5)")
    parser.add_argument("--texts", type=int, default=0, metavar="N", help="other texts of errors to print (default 0)")
    args = parser.parse_args()
    if not have_paths():
        print(NO_PATHS)
        return 2
    differing = 0
    for group in args.server or groups:
        start = time.process_time()
        account = Account()
        for row in flag_rows(group.removeprefix("flags-")) if group.startswith("flags-") else rows(group):
            if (not args.template or args.template in row.template) and (not args.body or args.body in row.name):
                account.add(row)
        agreeing = account.total - len(account.differing)
        print(
            f"{group:14} {agreeing} of {account.total} agree, {account.same_texts} of {account.texts} texts of errors, "
            f"{time.process_time() - start:.0f} s CPU"
        )
        for name, count in Counter(row.name for row, _, _ in account.differing).most_common(args.show):
            print(f"    {name}: {count}")
        for row, got, text in account.differing[: args.show]:
            print(f"  {row.id}\n    recorded {str(row.recorded)[:900]}\n    got      {str(got)[:900]} {text[:200]!r}")
        for (ours, theirs), count in account.other_texts.most_common(args.texts):
            print(f"  {count} texts\n    recorded {theirs!r}\n    got      {ours!r}")
        differing += len(account.differing)
    return 1 if differing else 0


if __name__ == "__main__":
    raise SystemExit(main())
