"""Reasoning of earlier turns, and how much of it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinjarun.sequences import common_prefix
from probes.chapters.observed import explain
from probes.chapters.observed.question import Verdict, look, question, shown_at
from probes.chats import canaries as c
from probes.chats.messages import REASONING_FIELDS
from probes.chats.named import conversation
from probes.rendering.input_form import cached_chat
from probes.rendering.outcomes import complaint, fate_of
from probes.rendering.renders import APPLY, LLAMA_SERVER, SGLANG, VLLM

if TYPE_CHECKING:
    from probes.chats.messages import Chat
    from probes.rendering.input_form import PathObserver
    from probes.rendering.renders import Outcome
    from probes.report import Answer

NOT_KEPT = "reasoning of earlier turns leaves no trace"
EFFORT_CHAT = conversation("effort-low")
MORE_EFFORTS = ("none", "minimal", "medium", "xhigh", "max")
"""Efforts beside low and high, tried where the source holds the word."""
EFFORT_NAMES = ("reasoning_effort", "reasoning_strength")


@question(explain=explain.preserve_reasoning, repaired=(LLAMA_SERVER, APPLY), reworked=(VLLM, SGLANG))
def preserve_reasoning(on: PathObserver) -> Verdict:
    """Yes where reasoning before an answer is kept, with and without calls in its turn, and before calls too."""
    failure: Verdict | None = None
    for variables in ({}, on.keeping) if on.keeping else ({},):
        verdict = _preserved(on, variables)
        if verdict.answer != "no":
            return verdict
        if failure is None or failure.reason == NOT_KEPT or failure.fails:
            failure = verdict
    assert failure is not None
    return failure


def _preserved(on: PathObserver, variables: dict[str, Any]) -> Verdict:
    names = on.reasoning_names or REASONING_FIELDS[:1]
    form = on.best_form
    plain = c.reasoning(form, names, **variables)
    by = f"with {_named(variables)}" if variables else "by default"
    chats = [plain] if on.call_form is None else [c.reasoning_with_calls(form, names, **variables), plain]
    kept: dict[str, bool] = {}
    shown = []
    failed: Verdict | None = None
    for chat in chats:
        outcome = on.ask(chat)
        if outcome.limited:
            return Verdict("unknown", "a limit was hit", (look(on, chat, "limit"),))
        if outcome.text is None:
            failed = failed or Verdict("no", complaint(outcome), (look(on, chat, "raised"),))
            continue
        written = _kept(outcome, names)
        if chat is plain:
            kept["in a plain answer"] = "call" in written
        else:
            kept |= {"before a call": "call" in written, "before an answer after calls": "answer" in written}
        shown.append(look(on, chat, "written" if written else "lost", c.REASONING))
        if not any(kept.values()):
            return Verdict("no", NOT_KEPT, tuple(shown))
    if not kept:
        assert failed is not None
        return failed
    if all(kept.values()):
        return Verdict("yes", f"reasoning of earlier turns is written {by}", tuple(shown))
    only = " and ".join(where for where, yes in kept.items() if yes)
    return Verdict("no", f"of earlier turns only the reasoning {only} is written, {by}", tuple(shown))


@question(explain=explain.reasoning_effort, in_source=EFFORT_NAMES)
def reasoning_effort(on: PathObserver) -> Verdict:
    """Yes where the prompt depends on it."""
    form = on.form
    if not on.names.intersection(EFFORT_NAMES):
        chat = EFFORT_CHAT if form == c.USUAL else cached_chat(c.effort_low, form)
        return Verdict("no", "no variable for it is read", (look(on, chat, "rendered"),))
    values = [
        "low",
        "high",
        *(x for x in MORE_EFFORTS if f"'{x}'" in on.renders.source or f'"{x}"' in on.renders.source),
    ]
    asked = [c.effort(form, value) for value in values]
    plain = cached_chat(c.user_only, form)
    pairs = [(asked[0], asked[1]), (_thinking(asked[0]), _thinking(asked[1]))]
    pairs += [(plain, chat) for chat in asked]
    pairs += [(_thinking(plain), _thinking(chat)) for chat in asked[2:]]
    failures: list[tuple[Chat, Outcome]] = []
    for chats in pairs:
        low, high = map(on.ask, chats)
        if low.ok and high.ok and low.text != high.text:
            at = common_prefix(low.text or "", high.text or "")
            shown = tuple(shown_at(on, chat, at) for chat in chats)
            return Verdict("yes", "the prompt depends on the effort asked for", shown)
        failures += [(chat, outcome) for chat, outcome in zip(chats, (low, high), strict=True) if not outcome.ok]
    shown = tuple(look(on, chat, "rendered") for chat in pairs[0])
    if failures:
        chat, outcome = failures[0]
        answer: Answer = "unknown" if outcome.limited else "no"
        return Verdict(answer, complaint(outcome), (look(on, chat, "raised"),))
    tried = ", ".join(values)
    return Verdict("no", f"the variable is read, but no effort changes the text (tried: {tried})", shown)


def _thinking(chat: Chat) -> Chat:
    variables = chat.get("variables", {}) | {"enable_thinking": True, "thinking": True}
    return {**chat, "variables": variables}


def _kept(outcome: Outcome, names: tuple[str, ...]) -> set[str]:
    """Which of the two canaries of reasoning are written, under any of the names."""
    kept = set()
    for which, text in (("call", c.REASONING), ("answer", c.LATER_REASONING)):
        if any(fate_of(outcome, c.reasoning_under(name, text)) == "written" for name in names):
            kept.add(which)
    return kept


def _named(variables: dict[str, Any]) -> str:
    return ", ".join(f"{name}={str(value).lower()}" for name, value in variables.items())
