"""Prefix stability: does a growing conversation keep the text that a KV cache already holds?

A law compares two prompts of one conversation, the later one after something was added. What must stay is the *history*
of the first: its text up to the place where the generation prompt would begin. (What the generation prompt itself does
is the law `as-generated`.) Shared lengths are code points, or tokens where a tokenizer is given.

Laws are functions of `Growth` alone, so that the probe asks them with canaries and the fuzzer with anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from jinjarun.sequences import common_prefix
from probes.chats import canaries
from probes.chats.canaries import USUAL, Form, say
from probes.rendering.counting import CodePoints, Counter
from probes.rendering.renders import LLAMA_RAW, RAW, EvidenceBook, Outcome, Renders
from probes.report import Law, NotEvaluated, Prefix, ToolLoop

if TYPE_CHECKING:
    from jinjarun.limits import Limits
    from probes.chats.named import Chat, Message, Tool

ROUNDS = 20
"""Rounds of the tool loop whose cost is measured."""
REASONING_FIELDS = ("reasoning_content", "thinking", "reasoning")
FORMS = (USUAL, Form(parts="yes"), Form(arguments="string"), Form(beside="missing"), Form(bare=True))
"""Ways of asking, tried in turn: a template may want its contents or its arguments otherwise."""
CONTEXT = 40


@dataclass(frozen=True, slots=True)
class Growth:
    """Two requests of one conversation, and what came of them: `kept` must be the start of `later`.

    `kept` is the history of the first prompt, `later` the second prompt; `at` is where they part.
    """

    law: str
    first: Chat
    second: Chat
    kept: str
    later: str

    @property
    def at(self) -> int:
        return common_prefix(self.kept, self.later)

    @property
    def holds(self) -> bool:
        return self.later.startswith(self.kept)


@dataclass(frozen=True, slots=True)
class LawResult:
    """The outcome of one law: `growth` is None where the template does not support what the law needs, and then
    `skipped` says so."""

    law: str
    growth: Growth | None
    cause: str | None = None
    line: int | None = None
    skipped: str | None = None

    @property
    def holds(self) -> bool | None:
        return None if self.growth is None else self.growth.holds

    def to_dict(self, counter: Counter | None = None) -> dict[str, Any]:
        """Plain JSON, with both requests and both sides from where they part."""
        growth, counter = self.growth, counter or CodePoints()
        return {
            "law": self.law,
            "holds": self.holds,
            "shared": None if growth is None else counter.shared(growth.kept, growth.later),
            "of": None if growth is None else counter.count(growth.kept),
            "unit": counter.unit,
            "cause": self.cause,
            "line": self.line,
            "skipped": self.skipped,
            "first": None if growth is None else growth.first,
            "second": None if growth is None else growth.second,
            "kept": None if growth is None else growth.kept[growth.at :],
            "later": None if growth is None else growth.later[growth.at :],
        }


@dataclass(slots=True)
class Asker:
    """One template on the path that is judged, asked in a form that it takes."""

    renders: Renders
    path: str
    form: Form = field(default_factory=Form)

    def text(self, chat: Chat, *, now: datetime | None = None) -> str | None:
        return self.renders.render(self.path, chat, now=now).text

    def history(self, chat: Chat) -> str | None:
        """The prompt up to where its generation prompt begins."""
        prompt = self.text(chat)
        bare = self.text({**chat, "add_generation_prompt": False})
        if prompt is None or bare is None or prompt == bare:
            return prompt
        return prompt[: common_prefix(prompt, bare)]

    def in_form(self, form: Form) -> Asker:
        return replace(self, form=form)


def asker(renders: Renders) -> Asker:
    """On bare transformers if the template loads and says anything there, else on bare llama.cpp."""
    for path in (RAW, LLAMA_RAW):
        if any(renders.render(path, canaries.user_only(form)).ok for form in FORMS[:2]):
            return Asker(renders, path)
    return Asker(renders, RAW)


def _grown(ask: Asker, law: str, first: Chat, second: Chat) -> Growth | None:
    kept, later = ask.history(first), ask.text(second)
    return None if kept is None or later is None else Growth(law, first, second, kept, later)


def _system(ask: Asker) -> list[Message]:
    """A system message where the template takes one and writes it."""
    text = ask.text(canaries.system_user(ask.form))
    return [say("system", canaries.SYSTEM)] if text is not None and canaries.SYSTEM in text else []


def _tools(ask: Asker, count: int = 1) -> list[Tool]:
    return [canaries.tool(), canaries.tool(canaries.SECOND_TOOL, canaries.SECOND_DESCRIPTION)][:count]


def _answer() -> Message:
    return say("assistant", canaries.ANSWER, **_reasoning())


def _reasoning() -> dict[str, str]:
    return dict.fromkeys(REASONING_FIELDS, canaries.REASONING)


def next_user_turn(ask: Asker) -> Growth | None:
    """A plain exchange, then a further question."""
    start = [*_system(ask), say("user", canaries.USER)]
    grown = [*start, _answer(), say("user", canaries.SECOND_USER)]
    after = [*grown, _answer(), say("user", canaries.THIRD_USER)]
    first = _grown(ask, "next-user-turn", ask.form.chat(start), ask.form.chat(grown))
    if first is not None and not first.holds:
        return first
    return _grown(ask, "next-user-turn", ask.form.chat(grown), ask.form.chat(after)) or first


def _loop(ask: Asker, rounds: int) -> list[Message]:
    """A question and `rounds` rounds of one call and its result, the model reasoning before each call."""
    messages = [*_system(ask), say("user", canaries.USER)]
    for number in range(rounds):
        call = {**ask.form.calling(), **_reasoning()}
        messages += [call, {**canaries.result(), "content": f"{canaries.RESULT} in round {number + 1}"}]
    return messages


def within_tool_loop(ask: Asker) -> Growth | None:
    """A further round of call and result in the same turn."""
    if not _calls_shown(ask):
        return None
    for rounds in (0, 1, 2):
        first = ask.form.chat(_loop(ask, rounds), _tools(ask))
        grown = _grown(ask, "within-tool-loop", first, ask.form.chat(_loop(ask, rounds + 1), _tools(ask)))
        if grown is None or not grown.holds:
            break
    return grown


def tool_loop_to_next_user(ask: Asker) -> Growth | None:
    """The tool loop ends in an answer, and the user asks on."""
    if not _calls_shown(ask):
        return None
    loop = _loop(ask, 2)
    ended = [*loop, _answer(), say("user", canaries.SECOND_USER)]
    return _grown(ask, "tool-loop-to-next-user", ask.form.chat(loop, _tools(ask)), ask.form.chat(ended, _tools(ask)))


def as_generated(ask: Asker) -> Growth | None:
    """The prompt, and behind it the answer as the template itself writes a last assistant turn: what a model trained on
    such text generates. It must be the start of the next prompt."""
    start = [*_system(ask), say("user", canaries.USER)]
    answered = {**ask.form.chat([*start, _answer()]), "add_generation_prompt": False}
    prompt, whole = ask.text(ask.form.chat(start)), ask.text(answered)  # type: ignore[arg-type]
    later_chat = ask.form.chat([*start, _answer(), say("user", canaries.SECOND_USER)])
    later = ask.text(later_chat)
    if prompt is None or whole is None or later is None or canaries.ANSWER not in whole:
        return None
    end = whole.rindex(canaries.ANSWER) + len(canaries.ANSWER)
    shared = common_prefix(prompt, whole)
    begun = whole.find(canaries.REASONING)
    begun = whole.rindex(canaries.ANSWER) if begun < 0 else begun
    kept = whole[:end] if shared == len(prompt) else prompt + whole[begun:end]
    return Growth("as-generated", ask.form.chat(start), later_chat, kept, later)


def tool_added(ask: Asker) -> Growth | None:
    """A second tool is offered behind the first; what was written of the first must stay."""
    start = [*_system(ask), say("user", canaries.USER)]
    first, second = ask.form.chat(start, _tools(ask)), ask.form.chat(start, _tools(ask, 2))
    one, two = ask.text(first), ask.text(second)
    if one is None or two is None or canaries.TOOL not in one:
        return None
    known = (canaries.TOOL, canaries.DESCRIPTION, canaries.PARAMETER_DESCRIPTION, canaries.PARAMETER)
    end = max(one.rfind(text) + len(text) for text in known if text in one)
    return Growth("tool-added", first, second, one[:end], two)


def key_order(ask: Asker) -> Growth | None:
    """Arguments with their keys in another order: the text must have that order too, as the model had written it."""
    keys = ("zone_48201", "area_48202")
    growth = None
    for order in (keys, keys[::-1]):
        values = {key: f"value of {key}" for key in order}
        call = ask.form.calling()
        for made in call["tool_calls"]:
            function = made if ask.form.bare else made["function"]
            function["arguments"] = values if ask.form.arguments == "object" else _json(values)
        chat = ask.form.chat([*_system(ask), say("user", canaries.USER), call, canaries.result()], _tools(ask))
        text = ask.text(chat)
        if text is None or not all(key in text for key in keys):
            return None
        at = min(text.index(key) for key in keys)
        growth = Growth("key-order", chat, chat, text[:at] + order[0] + text[at + len(order[0]) :], text)
        if not growth.holds:
            break
    return growth


def _json(values: dict[str, str]) -> str:
    return "{" + ", ".join(f'"{key}": "{value}"' for key, value in values.items()) + "}"


DAY = datetime(2025, 11, 24, 12, 30, 15, tzinfo=UTC)
LATER = DAY + timedelta(days=40, hours=3, minutes=7, seconds=11)


def another_day(ask: Asker) -> Growth | None:
    """The same request on another day, month and time of day."""
    chat = ask.form.chat([*_system(ask), say("user", canaries.USER)])
    today, later = ask.text(chat, now=DAY), ask.text(chat, now=LATER)
    return None if today is None or later is None else Growth("another-day", chat, chat, today, later)


LAWS: dict[str, Callable[[Asker], Growth | None]] = {
    "next-user-turn": next_user_turn,
    "within-tool-loop": within_tool_loop,
    "tool-loop-to-next-user": tool_loop_to_next_user,
    "as-generated": as_generated,
    "another-day": another_day,
    "key-order": key_order,
    "tool-added": tool_added,
}
NEEDS = {
    "within-tool-loop": "writes tool calls",
    "tool-loop-to-next-user": "writes tool calls",
    "key-order": "writes the arguments of calls",
    "tool-added": "writes the tools that are offered",
}


def _calls_shown(ask: Asker) -> bool:
    """Whether a call and its result both reach the text."""
    text = ask.text(ask.form.chat(_loop(ask, 1), _tools(ask)))
    return text is not None and canaries.VALUE in text and canaries.RESULT in text


def judge(ask: Asker, law: str) -> LawResult:
    """One law, in the first form of asking that the template takes."""
    growth = None
    for form in FORMS:
        formed = ask.in_form(form)
        growth = LAWS[law](formed)
        if growth is not None:
            ask = formed
            break
    if growth is None:
        return LawResult(law, None, skipped=f"no form of asking was found in which the template {_need(law)}")
    if growth.holds:
        return LawResult(law, growth)
    return LawResult(law, growth, cause_of(ask, growth), line_of(ask, growth))


def _need(law: str) -> str:
    return NEEDS.get(law, "renders such a conversation")


def cause_of(ask: Asker, growth: Growth) -> str:
    """Why the texts part: `clock`, `keys_sorted`, `generation_prompt_differs`, `reasoning_dropped`,
    `system_text_moves`, `tools_move`, `history_trimmed`; else `last_turn_differs` if a message is written otherwise
    while it is the last, and `end_differs` if only the text behind the last message is."""
    if growth.law == "another-day":
        return "clock"
    if growth.law == "key-order":
        return "keys_sorted"
    lost = growth.kept[growth.at :]
    if growth.law == "as-generated":
        history, prompt = ask.history(growth.first) or "", ask.text(growth.first) or ""
        if len(history) <= growth.at < len(prompt):
            return "generation_prompt_differs"
    said = (canaries.USER, canaries.ANSWER, canaries.RESULT)
    if any(text in growth.kept and text not in growth.later for text in said):
        return "history_trimmed"
    for text, cause in (
        (canaries.REASONING, "reasoning_dropped"),
        (canaries.SYSTEM, "system_text_moves"),
        (canaries.DESCRIPTION, "tools_move"),
    ):
        if text in growth.kept and growth.kept.count(text) != growth.later[: len(growth.kept)].count(text):
            if cause == "reasoning_dropped" and canaries.REASONING not in lost and not _is_near(growth, text):
                continue
            return cause
    return "last_turn_differs" if any(text in lost for text in said) else "end_differs"


def _is_near(growth: Growth, text: str) -> bool:
    """Whether `text` begins within a few characters after the place where the texts part."""
    found = growth.kept.find(text, growth.at)
    return 0 <= found - growth.at < CONTEXT


def line_of(ask: Asker, growth: Growth) -> int | None:
    """The line of the template that wrote what differs in the later prompt."""
    outcome: Outcome = ask.renders.spans(ask.path, growth.second)
    line = None
    for span in outcome.spans:
        if span.origin.startswith("line "):
            line = int(span.origin.removeprefix("line "))
        if span.end > growth.at and line is not None:
            return line
    return line


def tool_loop_cost(ask: Asker, counter: Counter) -> int | None:
    """What a loop of 20 rounds computes again because a prompt changed before its end; None without tool calls."""
    for form in FORMS:
        formed = ask.in_form(form)
        if not _calls_shown(formed):
            continue
        lost = 0
        for rounds in range(1, ROUNDS):
            first = form.chat(_loop(formed, rounds), _tools(formed))
            kept = formed.history(first)
            later = formed.text(form.chat(_loop(formed, rounds + 1), _tools(formed)))
            if kept is None or later is None:
                return None
            lost += 0 if later.startswith(kept) else counter.count(kept) - counter.shared(kept, later)
        return lost
    return None


def prefix(
    renders: Renders, book: EvidenceBook, counter: Counter | None = None
) -> tuple[Prefix, list[NotEvaluated], list[LawResult]]:
    """The chapter, the laws that could not be asked, and the results with their texts for who wants to show them."""
    counter = counter or CodePoints()
    ask = asker(renders)
    results = [judge(ask, law) for law in LAWS]
    skipped = [
        NotEvaluated(what=f"prefix law {result.law}", why=result.skipped, how=None)
        for result in results
        if result.skipped is not None
    ]
    within = next(result for result in results if result.law == "within-tool-loop")
    recomputed = 0 if within.holds else tool_loop_cost(ask, counter) if within.holds is False else None
    chapter = Prefix(
        laws=[_law(result, ask, book, counter) for result in results],
        tool_loop_20_rounds=ToolLoop(recomputed=recomputed, unit=counter.unit),
    )
    return chapter, skipped, results


def _law(result: LawResult, ask: Asker, book: EvidenceBook, counter: Counter) -> Law:
    growth = result.growth
    evidence = []
    if growth is not None and not growth.holds:
        at = growth.at
        evidence.append(
            book.cite(
                growth.second,
                ask.path,
                "prefix_broken",
                excerpt=f"{growth.kept[at : at + CONTEXT]!r} became {growth.later[at : at + CONTEXT]!r}",
                span=(at, min(at + CONTEXT, len(growth.later))),
                line=result.line,
                repeat=f"jinjarun prefix {book.name} --law {result.law}",
            )
        )
    return Law(
        law=result.law,
        holds=result.holds,
        shared=None if growth is None else counter.shared(growth.kept, growth.later),
        of=None if growth is None else counter.count(growth.kept),
        unit=counter.unit,
        cause=result.cause,
        line=result.line,
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
    ask = asker(renders)
    return [judge(ask, law) for law in (LAWS if laws is None else {law: LAWS[law] for law in laws})]


def broken(results: list[LawResult]) -> Iterator[LawResult]:
    return (result for result in results if result.holds is False)


__all__ = ["LAWS", "Growth", "LawResult", "check_prefix_stability", "prefix"]
