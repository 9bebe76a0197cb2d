"""`probe`: every chapter of the report, in the order in which they build on one another."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from typing import TYPE_CHECKING, Literal

from jinjarun.dialects import dialect_named
from jinjarun.errors import InputError, JinjarunError, LimitExceeded
from jinjarun.sequences import common_prefix
from jinjarun.serving import sglang, vllm
from jinjarun.serving.caps import BUILD
from jinjarun.serving.other_renderers import caveat
from probes.chapters.contract import contract
from probes.chapters.family import family_of
from probes.chapters.observed.questions import observe
from probes.chapters.prefix import prefix
from probes.chapters.serving_advice import advice
from probes.chapters.shape import shape
from probes.chapters.tokens import not_judged, stop_chapter, tokens_chapter
from probes.chats.named import CHATS, CONVERSATION_SET
from probes.rendering.renders import (
    APPLY,
    LLAMA_RAW,
    LLAMA_SERVER,
    PATHS,
    RAW,
    SGLANG,
    VLLM,
    EvidenceBook,
    Renders,
    dialect_of,
    failure,
)
from probes.report import (
    FROZEN_CLOCK,
    RULE_SET,
    CapsChapter,
    Cost,
    Coverage,
    Difference,
    EngineStatus,
    Failure,
    Finding,
    NotEvaluated,
    ProbeReport,
    ServingAdvice,
    TemplateInfo,
    TemplateSource,
    ToolInfo,
)
from probes.rules import Facts, run_rules

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from jinjarun.limits import Limits
    from jinjarun.sources import Source, TokenData
    from probes.rendering.counting import Counter
    from probes.rules import Rule

Depth = Literal["quick", "full"]
Status = Literal["complete", "partial", "invalid", "not_evaluated"]
LIMITS_ENOUGH = 2
"""Conversations that hit a limit on a path before the others are not asked any more."""
VERSIONS = {VLLM: vllm.VERSION, SGLANG: sglang.VERSION}
"""Of the servers that are not versioned as a dialect."""
CONTEXT = 30
"""Code points around a difference that the report quotes."""


def probe(
    template: str,
    *,
    name: str | None = None,
    tokens: TokenData | None = None,
    limits: Limits | None = None,
    now: datetime | float | None = None,
    depth: Depth = "full",
    source: TemplateSource | None = None,
    variant: str = "default",
    rules: dict[str, Rule] | None = None,
    files: Source | None = None,
    upstream: str | None = None,
    counter: Counter | None = None,
    paths: Collection[str] = PATHS,
) -> ProbeReport:
    """The report on `template`, which is always template text, never a path.

    `name` stands in the commands that repeat evidence; `tokens` is the token data of the model's files; `now` replaces
    the frozen clock. `depth` "quick" has engines (without transformers' own path), caps and stop alone. `rules` are
    those to run, by their codes (default: all that are not in preview); some need `files`, whatever the place of the
    template holds, or `upstream`, the text of the template that this one should equal. `counter` counts tokens in
    prefix figures (default: code points). `paths` are the request paths to ask, ids of PATHS; the bare templates are
    asked in any case. Never raises because of a template: one that parses in neither dialect gives `status: "invalid"`,
    and "not_evaluated" where that is because of a limit.
    """
    if not isinstance(template, str):
        raise InputError(f"a template is a str, not {type(template).__name__}", path="template")
    renders = Renders(
        template,
        bos_token=_text(tokens, "bos"),
        eos_token=_text(tokens, "eos"),
        limits=limits,
        now=now,
        paths=paths,
    )
    book = EvidenceBook(name)
    not_evaluated: list[NotEvaluated] = []
    asked = [path for path in renders.paths if depth == "full" or path != APPLY]
    engines = [engine_status(renders, path, not_evaluated) for path in asked]
    loads = [engine.loads for engine in engines]
    status: Status = "partial" if not_evaluated else "complete"
    if not any(loads):
        status = "not_evaluated" if not_evaluated else "invalid"
    full = depth == "full" and any(loads)
    if full:
        not_evaluated += not_judged(tokens)
    prefix_chapter = None
    if full:
        prefix_chapter, skipped, _ = prefix(renders, book, counter)
        not_evaluated += skipped
    info = template_info(template, name, variant, source)
    facts = Facts(
        source=template,
        renders=renders,
        book=book,
        engines=engines,
        observed=observe(renders, book) if full else {},
        contract=contract(renders) if full else None,
        shape=shape(renders, book) if full else None,
        stop=stop_chapter(renders, tokens) if any(loads) else None,
        tokens_chapter=tokens_chapter(renders, tokens) if full else None,
        prefix=prefix_chapter,
        tokens=tokens,
        files=files,
        upstream=upstream,
    )
    if facts.shape is not None:
        info = info.model_copy(update={"family": family_of(facts.shape)})
    covered = coverage(renders)
    findings: list[Finding] = []
    if depth == "full":
        findings, unjudged = run_rules(facts, info.sha256, rules)
        not_evaluated += unjudged
    return ProbeReport(
        status=status,
        tool=tool_info(),
        template=info,
        engines=engines,
        caps=caps_chapter(renders),
        observed=facts.observed,
        contract=facts.contract,
        shape=facts.shape,
        stop=facts.stop,
        tokens=facts.tokens_chapter,
        prefix=prefix_chapter,
        coverage=_with_rules(covered, coverage(renders)),
        differences=differences(renders),
        findings=findings,
        serving=[
            _doubted(one, template)
            for one in advice(
                engines=engines,
                observed=facts.observed,
                evidence=book.entries,
                contract=facts.contract,
                shape=facts.shape,
                stop=facts.stop,
                tokens=facts.tokens_chapter,
                prefix=prefix_chapter,
            )
        ],
        evidence=book.entries,
        not_evaluated=not_evaluated,
        cost=Cost(renders=renders.count, steps_max=renders.steps_max, isolation="none"),
    )


def _doubted(advised: ServingAdvice, source: str) -> ServingAdvice:
    """With a note where the server may not use the template at all, which only the model's files can tell."""
    doubt = caveat(advised.engine, source) if advised.engine in ("vllm", "sglang") else None
    return advised if doubt is None else advised.model_copy(update={"notes": [doubt, *advised.notes]})


def _text(tokens: TokenData | None, which: Literal["bos", "eos"]) -> str:
    token = getattr(tokens, which, None)
    text = getattr(token, "text", None)
    return text if isinstance(text, str) else ""


def tool_info() -> ToolInfo:
    return ToolInfo(
        name="jinjarun",
        version=version("jinjarun"),
        conversation_set=CONVERSATION_SET,
        rule_set=RULE_SET,
        frozen_clock=FROZEN_CLOCK,
    )


def template_info(template: str, name: str | None, variant: str, source: TemplateSource | None) -> TemplateInfo:
    data = template.encode("utf-8", "surrogatepass")
    return TemplateInfo(
        name=name,
        variant=variant,
        sha256=hashlib.sha256(data).hexdigest(),
        bytes=len(data),
        lines=template.count("\n") + (not template.endswith("\n")),
        source=source,
        family=None,
    )


def engine_status(renders: Renders, path: str, not_evaluated: list[NotEvaluated]) -> EngineStatus:
    """How `path` fares with the conversations; its first error, and a note for each that hit a limit."""
    engine, _, way = path.partition(":")
    refusal = renders.loads(path)
    rendered = limits_hit = 0
    first: Failure | None = failure(refusal) if refusal is not None else None
    if isinstance(refusal, LimitExceeded):
        not_evaluated.append(NotEvaluated(what=f"everything on {path}", why=refusal.message, how="raise the limit"))
    if refusal is None:
        for chat_name in CHATS:
            if limits_hit >= LIMITS_ENOUGH:
                why = f"{limits_hit} conversations before it hit a limit"
                not_evaluated.append(NotEvaluated(what=f"conversation {chat_name} on {path}", why=why, how=None))
                continue
            outcome = renders.conversation(path, chat_name)
            if outcome.error is None:
                rendered += 1
                continue
            if outcome.limited:
                limits_hit += 1
                what = f"conversation {chat_name} on {path}"
                not_evaluated.append(NotEvaluated(what=what, why=outcome.error.message, how="raise the limit"))
            first = first or failure(outcome.error)
    return EngineStatus(
        id=engine,  # type: ignore[arg-type]  # the ids are those of PATHS
        version=VERSIONS[path] if path in VERSIONS else dialect_named(engine).version,
        path=way,  # type: ignore[arg-type]  # and the ways are those of PATHS
        loads=refusal is None,
        rendered=rendered,
        of=len(CHATS),
        error=first,
    )


def caps_chapter(renders: Renders) -> CapsChapter:
    caps = renders.caps
    if isinstance(caps, JinjarunError):
        return CapsChapter(engine="llama.cpp", version=BUILD, error=failure(caps), flags=None)
    return CapsChapter(engine="llama.cpp", version=BUILD, error=None, flags=caps.to_dict())


def coverage(renders: Renders) -> Coverage | None:
    """Which branches the renders so far reached, on the dialect that reached more; None where neither loads."""
    best: Coverage | None = None
    for dialect in ("transformers", "llama.cpp"):
        template = renders.template(dialect)
        if isinstance(template, JinjarunError):
            continue
        reached = renders.reached.get(dialect, bytes(len(template.branches)))
        lines = {line for (line, _), hit in zip(template.branches, reached, strict=True) if not hit}
        found = Coverage(
            branches=len(reached),
            reached=sum(reached),
            lines_never_reached=sorted(lines),
            reached_by_rules_only=[],
        )
        if best is None or found.reached > best.reached:
            best = found
    return best


def _with_rules(before: Coverage | None, after: Coverage | None) -> Coverage | None:
    """The coverage of all renders, which tells what only the rules reached."""
    if before is None or after is None:
        return after
    late = set(before.lines_never_reached) - set(after.lines_never_reached)
    return after.model_copy(update={"reached_by_rules_only": sorted(late)})


def differences(renders: Renders) -> list[Difference]:
    """The conversations that both bare dialects render, and differently; or that one of them only renders."""
    if renders.loads(RAW) is not None or renders.loads(LLAMA_RAW) is not None:
        return []
    found = []
    for name in CHATS:
        ours, theirs = renders.conversation(RAW, name), renders.conversation(LLAMA_RAW, name)
        if ours.text == theirs.text and ours.ok == theirs.ok:
            continue
        at = first_difference(ours.text, theirs.text)
        line = next((o.error.line for o in (ours, theirs) if o.error is not None and o.error.line is not None), None)
        found.append(
            Difference(
                conversation=name,
                at=at,
                transformers=_side(ours.text, ours.error, at),
                llama_cpp=_side(theirs.text, theirs.error, at),
                line=line,
            )
        )
    return found


def first_difference(a: str | None, b: str | None) -> int | None:
    """The first code point at which two texts part; None where one is missing."""
    return None if a is None or b is None else common_prefix(a, b)


def _side(text: str | None, error: JinjarunError | None, at: int | None) -> str:
    if text is None or at is None:
        return f"error: {error.message}" if error is not None else (text or "")[:CONTEXT]
    return text[max(0, at - CONTEXT) : at + CONTEXT]


__all__ = ["APPLY", "LLAMA_SERVER", "Depth", "dialect_of", "probe"]
