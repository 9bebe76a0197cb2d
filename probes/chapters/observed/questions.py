"""`observed`: what a template can do, judged from what it writes, by path and with evidence.

Each question is asked with canaries (see `canaries` and `witness`). A path is asked only what can differ there from
what is already known: a served path what its reworks touch, the second engine what the source names at all.
"""

from __future__ import annotations

from collections.abc import Callable

from jinjarun.errors import JinjarunError
from probes.chapters.observed.disagreements import why_caps_differ
from probes.chapters.observed.witness import Verdict, Witness, made, witness_of
from probes.chats import canaries as c
from probes.rendering.outcomes import show
from probes.rendering.renders import APPLY, LLAMA_RAW, LLAMA_SERVER, PATHS, RAW, EvidenceBook, Renders
from probes.report import Observation

EVIDENCE_SHOWN = 2
"""Pieces of evidence that an answer cites on its main path."""

QUESTIONS: dict[str, Callable[[Witness], Verdict]] = {
    "system_role": Witness.system_role,
    "tools": Witness.tools,
    "tool_calls": Witness.tool_calls,
    "parallel_tool_calls": Witness.parallel_tool_calls,
    "string_content": Witness.string_content,
    "typed_content": Witness.typed_content,
    "object_arguments": Witness.object_arguments,
    "preserve_reasoning": Witness.preserve_reasoning,
    "reasoning_effort": Witness.reasoning_effort,
    "developer_role": Witness.developer_role,
    "late_system_message": Witness.late_system_message,
    "second_system_message": Witness.second_system_message,
    "several_user_turns_in_a_row": Witness.several_user_turns_in_a_row,
    "text_beside_calls": Witness.text_beside_calls,
    "null_content_with_calls": Witness.null_content_with_calls,
    "empty_content_with_calls": Witness.empty_content_with_calls,
    "missing_content_with_calls": Witness.missing_content_with_calls,
    "several_results_in_a_row": Witness.several_results_in_a_row,
    "tool_call_id": Witness.tool_call_id,
    "tool_call_name": Witness.tool_call_name,
    "tool_result_name": Witness.tool_result_name,
    "one_text_part": Witness.one_text_part,
    "several_text_parts": Witness.several_text_parts,
    "image_parts": Witness.image_parts,
    "audio_parts": Witness.audio_parts,
    "documents": Witness.documents,
    "assistant_prefill": Witness.assistant_prefill,
    "generation_mask": Witness.generation_mask,
}
"""Name of an observation -> how a path is asked for it, in the order of the report."""

NEEDS_PROJECTOR = frozenset({"image_parts", "audio_parts"})
"""What llama-server takes only with a model that has eyes or ears."""

IN_SOURCE = frozenset({"reasoning_effort", "documents", "generation_mask"})
"""What both engines answer alike where the source does not name it."""

REWORKED: dict[str, frozenset[str]] = {
    LLAMA_SERVER: frozenset(
        {
            "tool_calls",
            "parallel_tool_calls",
            "object_arguments",
            "several_results_in_a_row",
            "tool_call_id",
            "tool_result_name",
            "empty_content_with_calls",
            "string_content",
            "assistant_prefill",
        }
    ),
    APPLY: frozenset({"assistant_prefill"}),
}
"""What the reworks of a path may change for better or worse: asked there whatever the bare template answers."""

REPAIRED: dict[str, frozenset[str]] = {
    LLAMA_SERVER: frozenset(
        {
            "system_role",
            "developer_role",
            "preserve_reasoning",
            "text_beside_calls",
            "null_content_with_calls",
            "missing_content_with_calls",
            "typed_content",
            "one_text_part",
            "several_text_parts",
        }
    ),
    APPLY: frozenset({"preserve_reasoning", "null_content_with_calls", "missing_content_with_calls"}),
}
"""What the reworks of a path only mend: asked there where the bare template does not say yes."""


def observe(renders: Renders, book: EvidenceBook) -> dict[str, Observation]:
    """The answers to all QUESTIONS, `unknown` where a path does not load the template or renders nothing."""
    verdicts: dict[str, dict[str, Verdict]] = {}
    for path, bare in ((RAW, None), (LLAMA_RAW, None), (LLAMA_SERVER, LLAMA_RAW), (APPLY, RAW)):
        verdicts[path] = _verdicts(witness_of(renders, path), verdicts.get(bare or RAW))
    main = next((path for path in PATHS if renders.loads(path) is None), RAW)
    caps = renders.caps
    flags = {} if isinstance(caps, JinjarunError) else caps.to_dict()
    observed = {}
    for name in QUESTIONS:
        by_path = {path: verdicts[path][name] for path in PATHS}
        observed[name] = _observation(by_path, main, book)
        flag = flags.get(f"supports_{name}")
        if flag is not None:
            why = why_caps_differ(renders, name, flag, by_path, main)
            observed[name] = observed[name].model_copy(update={"differs_from_caps": why})
    return observed


def _verdicts(witness: Witness, known: dict[str, Verdict] | None) -> dict[str, Verdict]:
    """The verdicts of one path. `known` are those from which it may take over what cannot differ: of the other engine
    for a bare path, of the same engine for a served one."""
    path = witness.path
    refusal = witness.renders.loads(path)
    if refusal is not None:
        return dict.fromkeys(QUESTIONS, Verdict("unknown", f"the template does not load: {refusal.message[:120]}"))
    user = made(c.user_only, c.USUAL)
    if witness.ask(user).limited:
        reason = "one user message alone hits a limit, so nothing more was asked"
        return dict.fromkeys(QUESTIONS, Verdict("unknown", reason, (show(user, path, witness.ask(user), "limit"),)))
    shared = {} if known is None else {name: v for name, v in known.items() if not _to_ask(name, v, witness)}
    asked = {name: question(witness) for name, question in QUESTIONS.items() if name not in shared}
    if not witness.rendered:
        first = next(iter(asked.values()))
        return dict.fromkeys(
            QUESTIONS, Verdict("unknown", f"nothing renders here, for one: {first.reason}", first.shown)
        )
    if path == LLAMA_SERVER:
        reason = "the server takes such parts only with a multimodal model"
        shared |= dict.fromkeys(NEEDS_PROJECTOR, Verdict("unknown", reason))
    return {name: asked.get(name) or shared[name] for name in QUESTIONS}


def _to_ask(name: str, known: Verdict, witness: Witness) -> bool:
    """Whether the answer on the path of `witness` may differ from the known one."""
    path = witness.path
    if path in REWORKED:
        return name in REWORKED[path] or (name in REPAIRED[path] and known.answer != "yes")
    return name not in IN_SOURCE or known.answer == "unknown" or witness.reads(name)


def _observation(verdicts: dict[str, Verdict], main: str, book: EvidenceBook) -> Observation:
    answer = verdicts[main].answer
    others = {path: verdict for path, verdict in verdicts.items() if verdict.answer != answer}
    reasons = [verdicts[main].reason]
    reasons += [f"{path}: {reason}" for path, reason in _grouped(others)]
    shown = [*verdicts[main].shown[:EVIDENCE_SHOWN], *(s for verdict in others.values() for s in verdict.shown[:1])]
    return Observation(
        answer=answer,
        by_path={path: verdict.answer for path, verdict in others.items()},
        reason="; ".join(reasons),
        evidence=list(dict.fromkeys(piece.cited(book) for piece in shown)),
    )


def _grouped(verdicts: dict[str, Verdict]) -> list[tuple[str, str]]:
    """The paths of each reason, together."""
    paths: dict[str, list[str]] = {}
    for path, verdict in verdicts.items():
        paths.setdefault(verdict.reason, []).append(path)
    return [(" and ".join(found), reason) for reason, found in paths.items()]
