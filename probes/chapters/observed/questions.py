"""`observed`: what a template can do, judged from what it writes, by path and with evidence.

Each question is asked with canaries, in the form in which the path takes its input. A path is asked only what can
differ there from what is already known: a served path what its reworks touch, the second engine what the source names
at all.
"""

from __future__ import annotations

from jinjarun.errors import JinjarunError
from probes.chapters.observed import arguments, calls, contents, endings, reasoning, roles
from probes.chapters.observed.explain import why_caps_differ
from probes.chapters.observed.question import ASKED, Question, Verdict
from probes.chats import canaries as c
from probes.rendering.input_form import BARE, PathObserver, cached_chat, observer
from probes.rendering.outcomes import show
from probes.rendering.renders import RAW, SERVERS, EvidenceBook, Renders
from probes.report import Observation

EVIDENCE_SHOWN = 2
"""Pieces of evidence that an answer cites on its main path."""

TOPICS = (roles, calls, contents, arguments, reasoning, endings)
"""The modules of the questions."""

QUESTIONS: dict[str, Question] = {
    question.name: question
    for flagged in (True, False)
    for topic in TOPICS
    for question in ASKED.values()
    if question.ask.__module__ == topic.__name__ and (question.explain is not None) == flagged
}
"""Every question by its name in the order of the report: those that llama.cpp's flags ask too, then topic by topic."""


def observe(renders: Renders, book: EvidenceBook) -> dict[str, Observation]:
    """The answers to all QUESTIONS, `unknown` where a path does not load the template or renders nothing."""
    verdicts: dict[str, dict[str, Verdict]] = {}
    for path in renders.paths:
        verdicts[path] = _verdicts(observer(renders, path), verdicts.get(BARE.get(path, RAW)))
    main = next((path for path in renders.paths if renders.loads(path) is None), RAW)
    caps = renders.caps
    flags = {} if isinstance(caps, JinjarunError) else caps.to_dict()
    observed = {}
    for name, question in QUESTIONS.items():
        by_path = {path: verdicts[path][name] for path in renders.paths}
        observed[name] = _observation(by_path, main, book)
        flag, explain = flags.get(f"supports_{name}"), question.explain
        if flag is not None and explain is not None:
            why = why_caps_differ(renders, explain, flag, by_path, main)
            observed[name] = observed[name].model_copy(update={"differs_from_caps": why})
    return observed


def _verdicts(on: PathObserver, known: dict[str, Verdict] | None) -> dict[str, Verdict]:
    """The verdicts of one path. `known` are those from which it may take over what cannot differ: of the other engine
    for a bare path, of the same engine for a served one."""
    refusal = on.renders.loads(on.path)
    if refusal is not None:
        return dict.fromkeys(QUESTIONS, Verdict("unknown", f"the template does not load: {refusal.message[:120]}"))
    user = cached_chat(c.user_only, c.USUAL)
    if on.ask(user).limited:
        reason = "one user message alone hits a limit, so nothing more was asked"
        return dict.fromkeys(QUESTIONS, Verdict("unknown", reason, (show(user, on.path, on.ask(user), "limit"),)))
    shared = {} if known is None else {name: v for name, v in known.items() if not QUESTIONS[name].differs(on, v)}
    asked = {name: question.ask(on) for name, question in QUESTIONS.items() if name not in shared}
    if not on.rendered:
        first = next(iter(asked.values()))
        return dict.fromkeys(
            QUESTIONS, Verdict("unknown", f"nothing renders here, for one: {first.reason}", first.shown)
        )
    if on.path in SERVERS:
        reason = "the server takes such parts only with a multimodal model"
        shared |= {name: Verdict("unknown", reason) for name, question in QUESTIONS.items() if question.projector}
    return {name: asked.get(name) or shared[name] for name in QUESTIONS}


def _observation(verdicts: dict[str, Verdict], main: str, book: EvidenceBook) -> Observation:
    answer = verdicts[main].answer
    others = {path: verdict for path, verdict in verdicts.items() if verdict.answer != answer}
    fails = verdicts[main].fails
    apart = {path: v for path, v in verdicts.items() if path in others or (v.fails != fails and v.answer == "no")}
    reasons = [verdicts[main].reason]
    reasons += [f"{path}: {reason}" for path, reason in _grouped(apart)]
    shown = [*verdicts[main].shown[:EVIDENCE_SHOWN], *(s for verdict in apart.values() for s in verdict.shown[:1])]
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
