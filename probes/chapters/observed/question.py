"""What a question of `observed` is, and how most of them are answered: canaries are looked for in what a path writes.

A new question is a function from a `PathObserver` to a `Verdict` under `@question`, in the module of its topic; it asks
with conversations in the form that the path takes. What the report has to know of it stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from probes.chats import canaries as c
from probes.rendering.outcomes import Shown, complaint, fate_of, show

if TYPE_CHECKING:
    from probes.chapters.observed.explain import Case
    from probes.chats.messages import Chat
    from probes.rendering.input_form import PathObserver
    from probes.report import Answer

LABELS = {
    c.TOOL: "the name of a tool",
    c.SECOND_TOOL: "the second tool",
    c.PARAMETER: "a tool's parameter",
    c.VALUE: "an argument of a call",
    c.SECOND_VALUE: "the second call",
    c.RESULT: "a tool's result",
    c.SECOND_RESULT: "the second result",
    c.ID: "the id of a call",
    c.RESULT_NAME: "the name of a result",
    c.TEXT: "the text",
    c.PART: "the text of a part",
    c.SECOND_PART: "the second part",
    c.DOCUMENT: "the text of a document",
}
"""What a canary stands for, where it is lost."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer on one path, why, and the renders that show it."""

    answer: Answer
    reason: str
    shown: tuple[Shown, ...] = ()

    @property
    def fails(self) -> bool:
        """Whether nothing was rendered where another answer would tell what is written."""
        return self.reason.startswith(("fails", "refused"))


@dataclass(frozen=True, slots=True)
class Question:
    """One question, asked path by path.

    `explain`: why llama.cpp's flag of the same name is wrong where it is; None where it has no such flag. `reworked`:
    the served paths whose reworks may change the answer for better or worse, asked whatever the bare template answers;
    `repaired`: those that can only mend it, asked where the bare template does not say yes. A path that remakes all
    content, or all calls, is asked everything of that kind besides. `in_source`: both engines answer alike where the
    source names none of these. `projector`: servers take it only with a model that has eyes or ears.
    """

    name: str
    ask: Callable[[PathObserver], Verdict]
    explain: Callable[[Case], str] | None
    reworked: tuple[str, ...]
    repaired: tuple[str, ...]
    in_source: tuple[str, ...]
    projector: bool

    def differs(self, on: PathObserver, known: Verdict) -> bool:
        """Whether the answer on this path may be another than the one known of the path before it."""
        if on.bare is not None:
            if on.path in self.reworked or (on.path in self.repaired and known.answer != "yes"):
                return True
            return on.remakes_content or (on.remakes_calls and self.ask.__module__.endswith(".calls"))
        return not self.in_source or known.answer == "unknown" or any(x in on.renders.source for x in self.in_source)


ASKED: dict[str, Question] = {}
"""Every question by its name, in the order in which the modules define them."""

Ask = Callable[["PathObserver"], Verdict]


def question(
    *,
    explain: Callable[[Case], str] | None = None,
    reworked: tuple[str, ...] = (),
    repaired: tuple[str, ...] = (),
    in_source: tuple[str, ...] = (),
    projector: bool = False,
) -> Callable[[Ask], Ask]:
    """Registers a function as the question of its name; see `Question`."""

    def register(ask: Ask) -> Ask:
        name = ask.__name__
        ASKED[name] = Question(name, ask, explain, reworked, repaired, in_source, projector)
        return ask

    return register


def sought(on: PathObserver, chats: Iterable[Chat], canaries: tuple[str, ...], yes: str) -> Verdict:
    """Yes where one of the chats is rendered with all the canaries in it; no for the reason of the best failure, that
    in which most of them are written. A chat that does not hold what is looked for answers nothing."""
    failure: Verdict | None = None
    most = -1
    limited = False
    for chat in chats:
        sent = str(chat)
        if not all(canary in sent for canary in canaries):
            continue
        outcome = on.ask(chat)
        fate = fate_of(outcome, *canaries)
        missing = next((x for x in canaries if outcome.text is not None and x not in outcome.text), canaries[0])
        shown = show(chat, on.path, outcome, fate, missing)
        if fate == "written":
            return Verdict("yes", yes, (shown,))
        limited |= fate == "limit"
        reason = {
            "lost": f"{LABELS.get(missing, 'its text')} leaves no trace, without an error",
            "dumped": "it is only printed raw, inside an object of the request",
        }.get(fate) or complaint(outcome)
        written = sum(x in outcome.text for x in canaries) if outcome.text is not None and fate != "dumped" else 0
        if failure is None or (failure.fails and fate in {"lost", "dumped"}) or (not failure.fails and written > most):
            failure, most = Verdict("no", reason, (shown,)), written
    assert failure is not None
    return failure if not limited else Verdict("unknown", "a limit was hit", failure.shown)


def look(on: PathObserver, chat: Chat, fate: str, canary: str = "") -> Shown:
    """Evidence of what became of a canary in this conversation."""
    return show(chat, on.path, on.ask(chat), fate, canary)


def shown_at(on: PathObserver, chat: Chat, at: int) -> Shown:
    """Evidence of what stands at this place of the prompt."""
    text = on.ask(chat).text or ""
    start, end = max(0, at - 40), min(len(text), at + 60)
    return Shown(chat, on.path, "rendered", text[start:end], (start, end))
