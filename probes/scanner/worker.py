"""What is asked of each template, in a process of its own."""

from __future__ import annotations

import json
import sys
import zlib
from base64 import b64decode, b64encode
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from jinjarun.errors import JinjarunError, WorkerError
from jinjarun.isolation import IsolatedExecutor
from jinjarun.limits import Limits
from jinjarun.template import Template
from probes.chats.named import CHATS
from probes.prober import probe
from probes.report import FROZEN_NOW
from probes.results.rows import Summary, limited, summarise

if TYPE_CHECKING:
    from probes.prober import Depth

TIMEOUT_SECONDS = 60.0
CPU_SECONDS = 10
MEMORY_BYTES = 500_000_000

SHOWN = ("system-user", "call-object-args", "parallel-calls", "reasoning-tool-turn", "call-answered")
"""The conversations whose renders are kept with the origin of every character."""
SHOWN_CHARACTERS = 20_000


SUMMARY_BYTES = 500_000
DETAIL_BYTES = 50_000_000
"""The most that is taken of a worker: real ones have a hundredth of it."""


class Answered(TypedDict):
    """`summary` is that of a row; `limited` says why nothing is known, else null; `detail` is base64 of the zlib
    compressed JSON of `Detail`."""

    summary: dict[str, Any]
    limited: str | None
    detail: str


class Render(TypedDict):
    """A prompt in parts of one origin each: `[text, origin]`, origin null where the template wrote it."""

    conversation: str
    engine: str
    error: str | None
    parts: list[tuple[str, str | None]]


class Detail(TypedDict):
    """All that is known of a template: `report` is a `ProbeReport` as JSON."""

    source: str
    report: dict[str, Any]
    renders: list[Render]


def evaluate(template: str, depth: Depth, limits: dict[str, int] | None = None) -> Answered:
    """Probes one template. Arguments and answer are plain JSON, so that any executor can carry them; `limits` are
    fields of `Limits`."""
    allowed = Limits(**(limits or {}))
    report = probe(template, depth=depth, limits=allowed)
    detail: Detail = {
        "source": template,
        "report": report.model_dump(mode="json"),
        "renders": renders(template, allowed) if depth == "full" else [],
    }
    return {
        "summary": summarise(report, depth, allowed).model_dump(mode="json"),
        "limited": limited(report),
        "detail": b64encode(zlib.compress(json.dumps(detail).encode(), 6)).decode(),
    }


class Evaluation(NamedTuple):
    """An answer that was looked through: `detail` is compressed."""

    summary: Summary
    limited: str | None
    detail: bytes


def checked(answer: Any, tool: str) -> Evaluation:
    """What `evaluate` answered, from whichever machine: a worker that was taken over answers what it likes. Raises
    WorkerError ("protocol") for all that no probe by this `tool` could have answered."""
    try:
        summary = Summary.model_validate(answer["summary"])
        limited, detail = answer["limited"], b64decode(answer["detail"], validate=True)
        unpacked(detail)
        if summary.tool == tool and len(summary.as_json) <= SUMMARY_BYTES and isinstance(limited, str | None):
            return Evaluation(summary, limited, detail)
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        pass
    what = "its worker answered something that no probe answers; not evaluated; please report it with the template"
    raise WorkerError(f"evaluate: {what}", reason="protocol", function="evaluate")


def unpacked(detail: bytes) -> bytes:
    """The JSON of a `Detail`, of which `Row.detail` gives the compressed form. ValueError where it is none, or one of
    more than DETAIL_BYTES."""
    unpacking = zlib.decompressobj()
    try:
        data = unpacking.decompress(detail, DETAIL_BYTES)
    except zlib.error:
        raise ValueError("the detail is not compressed as it should be") from None
    if not unpacking.eof or unpacking.unused_data:
        raise ValueError(f"the detail is cut off, or larger than {DETAIL_BYTES:,} bytes")
    return data


def walled(template: str, depth: Depth, limits: dict[str, int] | None = None) -> Answered:
    """`evaluate` for executors without walls of their own, wherever they run: the walls stand in the process that this
    is called in."""
    if sys.platform == "win32":
        return evaluate(template, depth, limits)
    return _walls().submit(evaluate, template, depth, limits).result()


@cache
def _walls() -> IsolatedExecutor:
    return isolated(None)


def isolated(jobs: int | None) -> IsolatedExecutor:
    """Workers for `evaluate`: a template may take fifty times what a real one needs."""
    return IsolatedExecutor(
        jobs,
        timeout_seconds=TIMEOUT_SECONDS,
        cpu_seconds=CPU_SECONDS,
        memory_bytes=MEMORY_BYTES,
        initializer=warm,
    )


def warm() -> None:
    """Imports all that a probe needs, by making one."""
    evaluate("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}", "full")


def renders(template: str, limits: Limits) -> list[Render]:
    """Some prompts with the origin of every character: on bare transformers, or where only that loads it llama.cpp."""
    for dialect in ("transformers", "llama.cpp"):
        try:
            compiled = Template(template, dialect, limits)
        except JinjarunError:
            continue
        return [_render(compiled, name) for name in SHOWN]
    return []


def _render(template: Template, name: str) -> Render:
    chat = CHATS[name]()
    parts: list[tuple[str, str | None]] = []
    error = None
    try:
        rendered = template.render(
            chat["messages"],
            tools=chat.get("tools"),
            add_generation_prompt=chat.get("add_generation_prompt", True),
            variables=chat.get("variables"),
            now=FROZEN_NOW,
            spans=True,
        )
    except JinjarunError as failed:
        error = str(failed)
    else:
        for span in rendered.spans:
            if span.start >= SHOWN_CHARACTERS:
                break
            origin = span.origin if span.is_input else None
            if parts and parts[-1][1] == origin:
                parts[-1] = (parts[-1][0] + span.text, origin)
            else:
                parts.append((span.text, origin))
    return {"conversation": name, "engine": template.dialect, "error": error, "parts": parts}
