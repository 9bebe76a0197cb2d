"""Readers of the recordings: each row of a file becomes one `Case` a dialect."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
SHARED = ROOT.parent / "shared"
ENGINES = {"llama.cpp": "llamacpp", "transformers": "transformers"}
"""Our name of a dialect -> its key in the recordings."""

NO_SHARED = f"the recordings of whole templates are not beside this clone ({SHARED})"


def have_shared() -> bool:
    return (SHARED / "golden" / "templates.jsonl.gz").exists()


@dataclass(frozen=True, slots=True)
class Case:
    """One template, one context and what one engine answered.

    `output` and `data` (bytes, where the output is not UTF-8) are None where the engine failed. `parts` are
    llama.cpp's `(is_input, UTF-8 bytes)`, neighbours merged; None where there is no record of them.
    """

    id: str
    group: str
    dialect: str
    source: str
    context: dict[str, Any]
    now: float | None
    output: str | None = None
    data: bytes | None = None
    error: str | None = None
    parts: list[tuple[bool, int]] | None = None
    deterministic: bool = field(default=True)


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a .jsonl or .jsonl.gz file."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def merged(parts: list[list[int]]) -> list[tuple[bool, int]]:
    """Parts without empty ones, neighbours of the same kind as one."""
    result: list[tuple[bool, int]] = []
    for is_input, size in parts:
        if not size:
            continue
        if result and result[-1][0] == bool(is_input):
            result[-1] = (bool(is_input), result[-1][1] + size)
        else:
            result.append((bool(is_input), size))
    return result


def answer(recorded: dict[str, Any]) -> dict[str, Any]:
    """The fields of `Case` that a recorded answer fills."""
    if "output_hex" in recorded:
        return {"data": bytes.fromhex(recorded["output_hex"])}
    return {
        "output": recorded.get("output"),
        "error": recorded.get("error"),
        "parts": merged(recorded["parts"]) if "parts" in recorded else None,
        "deterministic": "nondeterministic" not in recorded and "crash" not in recorded,
    }


def snippet_setting() -> dict[str, Any]:
    """`context` and `now` of all snippets, read anew."""
    loaded: dict[str, Any] = json.loads((DATA / "dialects-context.json").read_text(encoding="utf-8"))
    return loaded


def snippets(dialect: str) -> Iterator[Case]:
    """The one-line snippets, all with the same context."""
    yield from _rows(DATA / "dialects.jsonl.gz", snippet_setting(), dialect)


def edges(dialect: str) -> Iterator[Case]:
    """Where an engine surprises: small templates by the kind of surprise, all with the same context. They were asked of
    llama.cpp's engine, built from the sources of b11434, and of Jinja2 3.1.6 as `jinjarun.reference` sets it up."""
    setting = json.loads((DATA / "edges-context.json").read_text(encoding="utf-8"))
    yield from _rows(DATA / "edges.jsonl", setting, dialect)


def _rows(path: Path, setting: dict[str, Any], dialect: str) -> Iterator[Case]:
    for row in lines(path):
        yield Case(
            id=row["id"],
            group=row["group"],
            dialect=dialect,
            source=row["template"],
            context=setting["context"],
            now=setting["now"],
            **answer(row[ENGINES[dialect]]),
        )


@cache
def suite() -> dict[str, Any]:
    """The conversations behind the recordings of whole templates, with their clock and special tokens."""
    loaded: dict[str, Any] = json.loads((SHARED / "golden" / "suite.json").read_text(encoding="utf-8"))
    return loaded


REASONING_NAMES = ("reasoning_content", "thinking", "reasoning")


def reasoning_filled(message: dict[str, Any]) -> dict[str, Any]:
    """A message as transformers' `render_jinja_template` hands it to the template."""
    reasoning = next((message[name] for name in REASONING_NAMES if message.get(name) is not None), None)
    return message if reasoning is None else {"thinking": reasoning, **message, "reasoning_content": reasoning}


@cache
def suite_context(name: str, dialect: str) -> dict[str, Any]:
    """The variables that the recording engine had for the conversation `name`."""
    chat = suite()["conversations"][name]
    context = {
        "messages": chat["messages"],
        "add_generation_prompt": chat.get("add_generation_prompt", True),
        **suite()["special_tokens"],
        **chat.get("kwargs", {}),
    }
    if dialect == "transformers":
        context["messages"] = [reasoning_filled(message) for message in chat["messages"]]
        return {**context, "tools": chat.get("tools"), "documents": None}
    return {**context, "tools": chat["tools"]} if "tools" in chat else context


def template_source(name: str) -> str:
    return (SHARED / "corpus" / "templates" / f"{name}.jinja").read_bytes().decode("utf-8")


@cache
def template_rows() -> list[dict[str, Any]]:
    return list(lines(SHARED / "golden" / "templates.jsonl.gz"))


def templates(dialect: str) -> Iterator[Case]:
    """Every real template with every conversation of the suite; the group is the template's name."""
    for row in template_rows():
        source = template_source(row["template"])
        for name, recorded in row["renders"].items():
            yield Case(
                id=f"{row['template']}/{name}",
                group=row["template"],
                dialect=dialect,
                source=source,
                context=suite_context(name, dialect),
                now=suite()["now"],
                **answer(recorded[ENGINES[dialect]]),
            )


def caps() -> Iterator[tuple[str, str, dict[str, bool] | None]]:
    """Name, source and the nine booleans of each real template; None where llama.cpp refuses the template."""
    for row in template_rows():
        yield row["template"], template_source(row["template"]), row["caps"]


REPORTS_NOW = 1927857906.0
"""The clock of the recorded public reports: 2031-02-03 04:05:06 UTC."""


def report_context(asked: dict[str, Any], variant: dict[str, Any], dialect: str) -> dict[str, Any]:
    """The variables that the recording engine had for a public report, or for one of its variants."""
    merged_request = {**asked, **{key: variant[key] for key in ("messages", "tools") if key in variant}}
    variables = {**(asked.get("kwargs") or {}), **(variant.get("kwargs") or {})}
    omitted = variant.get("omit", ())
    context = {"messages": merged_request["messages"], "add_generation_prompt": False}
    if dialect == "transformers":
        context |= {"tools": merged_request.get("tools"), "documents": None, **variables}
    else:
        if merged_request.get("tools"):
            context["tools"] = merged_request["tools"]
        context |= {"bos_token": "", "eos_token": "", **variables}
    return {key: value for key, value in context.items() if key not in omitted}


def reports(dialect: str) -> Iterator[Case]:
    """Small templates rebuilt from public bug reports, each with its variants; the group is the kind of fault."""
    for row in lines(DATA / "public-reports.jsonl"):
        recorded = row["transformers_answers"] if dialect == "transformers" else row["llamacpp_answers"]["render"]
        for variant in [{"name": "base"}, *row["context"].get("variants", [])]:
            said = recorded.get(variant["name"])
            if said is None:
                continue
            yield Case(
                id=f"{row['id']}/{variant['name']}",
                group=row["kind"],
                dialect=dialect,
                source=variant.get("template", row["template"]),
                context=report_context(row["context"], variant, dialect),
                now=REPORTS_NOW,
                output=said.get("out"),
                error=said.get("err", "") if not said["ok"] else None,
            )


def report_caps() -> Iterator[tuple[str, str, dict[str, bool] | None]]:
    """Id, source and the nine booleans of each public report; None where llama.cpp refuses it, absent where it died."""
    for row in lines(DATA / "public-reports.jsonl"):
        recorded = row["llamacpp_answers"]["caps"]
        if "crash" not in recorded:
            yield row["id"], row["template"], None if "error" in recorded else recorded
