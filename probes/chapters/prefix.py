"""Prefix stability: does a growing conversation keep the text that a KV cache already holds?

The laws are those of `probes.laws.growth`, asked here of conversations of canaries. Shared lengths are code points, or
tokens where a tokenizer is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from probes.chats import canaries
from probes.chats.messages import call, say
from probes.laws.case import Case
from probes.laws.frames import history_in
from probes.laws.growth import GROWTHS, Context, Growth, key_order
from probes.laws.prompt import Prompt
from probes.laws.subject import Subject
from probes.rendering.counting import CodePoints, Counter
from probes.rendering.renders import EvidenceBook, Renders
from probes.report import Law, NotEvaluated, Prefix, ToolLoop

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from jinjarun.limits import Limits
    from probes.chats.canaries import Form
    from probes.chats.messages import Chat, Message
    from probes.rendering.input_form import PathObserver

ROUNDS = 20
"""Rounds of the tool loop whose cost is measured."""
CONTEXT = 40
"""Code points of both texts that evidence quotes."""


@dataclass(frozen=True, slots=True)
class LawResult:
    """The outcome of one law: `growth` is None where the template does not support what the law needs, and then
    `skipped` says so. `remedy`: variables with which a broken law holds."""

    law: str
    growth: Growth | None
    cause: str | None = None
    line: int | None = None
    skipped: str | None = None
    remedy: dict[str, Any] | None = None

    @property
    def holds(self) -> bool | None:
        return None if self.growth is None else self.growth.holds

    def to_dict(self, counter: Counter | None = None) -> dict[str, Any]:
        """Plain JSON, with both requests and both sides from where they part."""
        growth, counter = self.growth, counter or CodePoints()
        return {
            "law": self.law,
            "holds": self.holds,
            "shared": None if growth is None else counter.shared(growth.expected, growth.actual),
            "of": None if growth is None else counter.count(growth.expected),
            "unit": counter.unit,
            "cause": self.cause,
            "line": self.line,
            "remedy": self.remedy,
            "skipped": self.skipped,
            "first": None if growth is None else growth.first,
            "second": None if growth is None else growth.second,
            "kept": None if growth is None else growth.expected[growth.at :],
            "later": None if growth is None else growth.actual[growth.at :],
        }


def _system(on: PathObserver) -> list[Message]:
    """A system message where the template writes it."""
    return [say("system", canaries.SYSTEM)] if on.writes_system else []


def _reasoning(on: PathObserver) -> dict[str, str]:
    return dict.fromkeys(on.reasoning_fields, canaries.REASONING)


def _talk(on: PathObserver, questions: int) -> Chat:
    """Questions, and answers with reasoning between them."""
    asked = (canaries.USER, canaries.SECOND_USER, canaries.THIRD_USER)
    messages = [*_system(on), say("user", asked[0])]
    for text in asked[1:questions]:
        messages += [say("assistant", canaries.ANSWER, **_reasoning(on)), say("user", text)]
    return on.system_form.chat(messages)


def _loop(on: PathObserver, rounds: int, *, answered: bool = False) -> Chat:
    """A question and rounds of one call and its result, the model reasoning before each call; then perhaps its answer
    and a next question."""
    messages = [*_system(on), say("user", canaries.USER)]
    for number in range(rounds):
        call = {**on.best_form.calling(), **_reasoning(on)}
        messages += [call, {**canaries.result(), "content": f"{canaries.RESULT} in round {number + 1}"}]
    if answered:
        answer = say("assistant", canaries.ANSWER, **_reasoning(on))
        messages += [answer, say("user", canaries.SECOND_USER)]
    return _form(on).chat(messages, [canaries.tool()])


def _form(on: PathObserver) -> Form:
    """The form of calls, system messages among them."""
    return on.best_form.but(parts=on.system_form.parts)


def _two_tools(on: PathObserver) -> Chat:
    tools = [canaries.tool(), canaries.tool(canaries.SECOND_TOOL, canaries.SECOND_DESCRIPTION)]
    bare = on.tools_chat is not None and "function" not in on.tools_chat["tools"][0]
    return on.system_form.but(bare=bare).chat([*_system(on), say("user", canaries.USER)], tools)


KEYS = ("zone_48201", "area_48202")


def _ordered(on: PathObserver, keys: tuple[str, ...]) -> Chat:
    """A call whose arguments have this order."""
    form, message = _form(on), on.best_form.calling()
    values = {key: f"value of {key}" for key in keys}
    message["tool_calls"] = [
        call(canaries.TOOL, values, canaries.ID, form=form.arguments, bare=form.bare),
    ]
    messages = [*_system(on), say("user", canaries.USER), message, canaries.result()]
    return form.chat(messages, [canaries.tool()])


LAWS: dict[str, Callable[[PathObserver], list[Chat]]] = {
    "next-user-turn": lambda on: [_talk(on, 3)],
    "within-tool-loop": lambda on: [_loop(on, 2)],
    "tool-loop-to-next-user": lambda on: [_loop(on, 2, answered=True)],
    "as-generated": lambda on: [_talk(on, 2)],
    "another-day": lambda on: [_talk(on, 1), canaries.user_only(on.form)],
    "key-order": lambda on: [_ordered(on, KEYS), _ordered(on, KEYS[::-1])],
    "tool-added": lambda on: [_two_tools(on)],
}
"""Each law, and the conversations of canaries that it is asked for. Of some templates the date stands in a system text
that they write where none is sent."""
NEEDS: dict[str, tuple[str, Callable[[PathObserver], bool]]] = {
    "within-tool-loop": ("writes tool calls", lambda on: on.call_form is not None),
    "tool-loop-to-next-user": ("writes tool calls", lambda on: on.call_form is not None),
    "key-order": ("writes the arguments of calls", lambda on: on.call_form is not None),
    "tool-added": ("writes the tools that are offered", lambda on: on.tools_chat is not None),
}


REASONS = frozenset({"next-user-turn", "within-tool-loop", "tool-loop-to-next-user", "as-generated"})
"""Laws that dropped reasoning may break."""


def judge(subject: Subject, law: str) -> LawResult:
    """One law; of several comparisons in its conversation the first that breaks it, or the last."""
    needs, met = NEEDS.get(law, ("renders such a conversation", lambda on: True))
    growths = list(_growths(subject, law)) if met(subject.on) else []
    if not growths:
        return LawResult(law, None, skipped=f"no form of asking was found in which the template {needs}")
    growth = next((growth for growth in growths if not growth.holds), growths[-1])
    remedy = None if growth.holds or law not in REASONS else _remedy(subject, law)
    cause = growth.cause if remedy is None else "reasoning_dropped"
    return LawResult(law, growth, cause, growth.line, remedy=remedy)


def _remedy(subject: Subject, law: str) -> dict[str, Any] | None:
    """One of the switches that keep earlier reasoning, where the law holds with it: then that was the cause."""
    for name, value in subject.on.keep_switches.items():
        growths = list(_growths(subject, law, {name: value}))
        if growths and all(growth.holds for growth in growths):
            return {name: value}
    return None


def _growths(subject: Subject, law: str, variables: Mapping[str, Any] | None = None) -> Iterator[Growth]:
    chats = LAWS[law](subject.on)
    if variables is not None:
        chats = [{**chat, "variables": {**chat.get("variables", {}), **variables}} for chat in chats]
    if law != "key-order":
        for chat in chats:
            yield from GROWTHS[law](Case(subject, chat))
        return
    before, after = map(subject.prompt, chats)
    if isinstance(before, Prompt) and isinstance(after, Prompt):
        growth = key_order(before, after, Context(law))
        if growth is not None:
            yield growth


def tool_loop_cost(subject: Subject, counter: Counter) -> int | None:
    """What a loop of 20 rounds computes again because a prompt changed before its end; None without tool calls."""
    if subject.on.call_form is None:
        return None
    lost = 0
    for rounds in range(1, ROUNDS):
        first = subject.prompt(_loop(subject.on, rounds))
        later = subject.prompt(_loop(subject.on, rounds + 1))
        if not isinstance(first, Prompt) or not isinstance(later, Prompt):
            return None
        history = history_in(subject, first)
        lost += 0 if later.text.startswith(history) else counter.count(history) - counter.shared(history, later.text)
    return lost


def prefix(
    renders: Renders, book: EvidenceBook, counter: Counter | None = None
) -> tuple[Prefix, list[NotEvaluated], list[LawResult]]:
    """The chapter, the laws that could not be asked, and the results with their texts for who wants to show them."""
    counter = counter or CodePoints()
    subject = Subject(renders.source, renders=renders)
    results = [judge(subject, law) for law in LAWS]
    skipped = [
        NotEvaluated(what=f"prefix law {result.law}", why=result.skipped, how=None)
        for result in results
        if result.skipped is not None
    ]
    within = next(result for result in results if result.law == "within-tool-loop")
    recomputed = 0 if within.holds else tool_loop_cost(subject, counter) if within.holds is False else None
    chapter = Prefix(
        laws=[_law(result, subject.path, book, counter) for result in results],
        tool_loop_20_rounds=ToolLoop(recomputed=recomputed, unit=counter.unit),
    )
    return chapter, skipped, results


def _law(result: LawResult, path: str, book: EvidenceBook, counter: Counter) -> Law:
    growth = result.growth
    evidence = []
    if growth is not None and not growth.holds:
        at = growth.at
        evidence.append(
            book.cite(
                growth.second,
                path,
                "prefix_broken",
                excerpt=f"{growth.expected[at : at + CONTEXT]!r} became {growth.actual[at : at + CONTEXT]!r}",
                span=(at, min(at + CONTEXT, len(growth.actual))),
                line=result.line,
                repeat=f"jinjarun prefix {book.name} --law {result.law}",
            )
        )
    return Law(
        law=result.law,
        holds=result.holds,
        shared=None if growth is None else counter.shared(growth.expected, growth.actual),
        of=None if growth is None else counter.count(growth.expected),
        unit=counter.unit,
        cause=result.cause,
        line=result.line,
        remedy=result.remedy,
        evidence=evidence,
    )


def check_prefix_stability(
    template: str,
    *,
    bos_token: str = "",
    eos_token: str = "",
    limits: Limits | None = None,
    now: datetime | float | None = None,
    laws: list[str] | None = None,
) -> list[LawResult]:
    """The laws of prefix stability for a template text; all of them unless `laws` names some. KeyError for a name that
    is none of `LAWS`."""
    renders = Renders(template, bos_token=bos_token, eos_token=eos_token, limits=limits, now=now)
    subject = Subject(template, renders=renders)
    return [judge(subject, law) for law in (LAWS if laws is None else {law: LAWS[law] for law in laws})]


__all__ = ["LAWS", "Growth", "LawResult", "check_prefix_stability", "prefix"]
