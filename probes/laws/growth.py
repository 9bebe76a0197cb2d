"""What a growing conversation keeps, and what the same request gives again."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from jinjarun.sequences import common_prefix
from jinjarun.template import Rendered
from probes.chats.supports import REASONING_FIELDS
from probes.laws.base import Break, Case, Law, Prompt, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from probes.chats.named import Message
    from probes.laws.base import Place

DAY = datetime(2025, 11, 24, 12, 30, 15, tzinfo=UTC)
LATER = DAY + timedelta(days=40, hours=3, minutes=7, seconds=11)

EMPTY_BLOCK = re.compile(r"<([\w:|]+)>\s*</\1>")
"""A block of reasoning without any, as some templates write it before a last answer."""
THINKING = re.compile(r"[<\[][^<>\[\]]*(?:think|channel|reason)[^<>\[\]]*[>\]]", re.IGNORECASE)
NEAR = 40

STEPS = {
    "next-user-turn": "PS101",
    "within-tool-loop": "PS102",
    "tool-loop-to-next-user": "PS101",
}
SAYS = {
    "reasoning_dropped": "the reasoning of earlier turns is dropped",
    "inline_reasoning": "the reasoning inside an earlier answer is dropped",
    "system_text_moves": "the system text stands elsewhere",
    "late_system_moves": "a system message in the middle changes the turns before it",
    "tools_move": "the tools stand elsewhere",
    "history_trimmed": "a text of an earlier turn is gone",
    "last_turn_differs": "a message is written otherwise while it is the last",
    "end_differs": "what stands behind the last message is written otherwise",
    "generation_prompt_differs": "an earlier answer does not begin as the generation prompt does",
}
DESIGN = frozenset({"reasoning_dropped", "inline_reasoning", "late_system_moves"})
"""Causes that are a template's design between turns; within a tool loop every round pays for them."""


def step(messages: list[Message], before: int) -> str:
    """The law of the growth that follows the request of `before` messages."""
    if messages[before].get("tool_calls"):
        return "within-tool-loop"
    return "tool-loop-to-next-user" if messages[before - 1]["role"] == "tool" else "next-user-turn"


def grows(law: str) -> Law:
    def check(case: Case) -> Iterator[Break]:
        for before, after in pairwise(case.points):
            if step(case.messages, before) != law:
                continue
            kept, later = case.history(before), case.prompt(after)
            first = case.prompt(before)
            if kept is None or later is None or first is None or later.text.startswith(kept):
                continue
            at = common_prefix(kept, later.text)
            cause = cause_of(case.messages[:before], first, later, at)
            if cause == "end_differs" and generates(case, first, at):
                cause = "generation_prompt_differs"
            yield Break(
                law,
                STEPS[law],
                cause,
                f"{SAYS[cause]}: {len(kept) - at} of {len(kept)} characters are computed again",
                first.chat,
                kept,
                later.text,
                later.chat,
                known=(cause in DESIGN and law != "within-tool-loop") or cause == "generation_prompt_differs",
                prompt=later,
            )

    says = {
        "next-user-turn": "an answer and a further question leave the text before them as it was",
        "within-tool-loop": "a further round of calls and results leaves the text before it as it was",
        "tool-loop-to-next-user": "the answer after a tool loop, and a question, leave the text before them as it was",
    }[law]
    loops = law != "next-user-turn"
    return Law(
        law,
        (STEPS[law],),
        says,
        check,
        "writes tool calls" if loops else "takes an assistant's message",
        (lambda supports: supports.tool_calls) if loops else (lambda supports: supports.assistant),
    )


def cause_of(messages: list[Message], first: Prompt, later: Prompt, at: int) -> str:
    """Why the texts part, from where each input stands in both."""
    low = max(0, at - NEAR)
    blocks = EMPTY_BLOCK.finditer(first.text, low, at + NEAR)
    if any(block.start() <= at < block.end() for block in blocks):
        return "reasoning_dropped"
    late = [i for i, m in enumerate(later.chat["messages"]) if i >= len(messages) and m["role"] == "system"]
    last = later.place(len(messages) - 1)
    if last is not None and any((place := later.place(i)) and place.start < last.start for i in late):
        return "late_system_moves"
    for i, message in enumerate(messages):
        thoughts = [message[name] for name in REASONING_FIELDS if isinstance(message.get(name), str)]
        if any(t.strip() and t.strip() in first.text and t.strip() not in later.text for t in thoughts):
            return "reasoning_dropped"
        text = text_of(message)
        spot = first.only(text.strip()) if text.strip() else 0
        if spot >= 0 and spot + len(text.lstrip()) < at:
            continue  # it stands before the place where the texts part, or nowhere
        before, after = first.place(i), later.place(i)
        if before is None:
            continue
        if message["role"] == "assistant" and thinks(text) and (after is None or before.written != after.written):
            return "inline_reasoning"
        if message["role"] in ("system", "developer") and after is not None and before.start != after.start:
            return "system_text_moves"
        if after is None and late and message["role"] == "system":
            return "late_system_moves"
        if after is None or (before.written != after.written and before.end > at):
            return "history_trimmed"
    if late:
        return "late_system_moves"
    for tool in first.chat.get("tools", []):
        function = tool.get("function", tool)
        name = function["description"].strip().partition("\n")[0] or function["name"]
        if first.text.find(name) != later.text.find(name):
            return "tools_move"
    behind = max((place.end for place in first.places.values()), default=0)
    return "end_differs" if at >= behind else "last_turn_differs"


def generates(case: Case, asked: Prompt, at: int) -> bool:
    """Whether this place stands in the generation prompt of a template that always writes one."""
    opener = case.subject.frames.opener
    behind = max((place.end for place in asked.places.values()), default=0)
    return opener is not None and behind <= asked.text.rfind(opener) < at


def thinks(text: str) -> bool:
    """Whether a text holds what some templates take for a tag of reasoning."""
    return THINKING.search(text) is not None


def as_generated(case: Case) -> Iterator[Break]:
    """The answer is taken as the template writes it in a last turn: what a model trained on such text generates.

    Asked of the last answer that another request follows, as each costs a render that no other law needs.
    """
    for before, after in reversed(list(pairwise(case.points))):
        answer = case.messages[before]
        if answer.get("tool_calls") or thinks(text_of(answer)) or not text_of(answer).strip():
            continue
        asked, later, history = case.prompt(before), case.prompt(after), case.history(before)
        if asked is None or later is None or history is None or not later.text.startswith(history):
            continue  # a law of growth tells of it
        whole = case.prompt(before + 1, prompt=False)
        if whole is None or (whole.text.startswith(asked.text) and later.text.startswith(whole.text)):
            return
        place = whole.place(before)
        kept = "" if place is None else replayed(asked, whole, place, answer)
        if later.text.startswith(kept):
            return
        at = common_prefix(kept, later.text)
        cause = cause_of(case.messages[: before + 1], whole, later, at)
        begun = common_prefix(asked.text, whole.text)
        if cause not in DESIGN and begun <= at < len(asked.text):
            cause = "generation_prompt_differs"
        yield Break(
            "as-generated",
            "PS103",
            cause,
            f"{SAYS[cause]}: the answer as generated is not the start of the next prompt",
            asked.chat,
            kept,
            later.text,
            later.chat,
            known=cause in DESIGN or cause == "generation_prompt_differs",
            prompt=later,
        )
        return


def replayed(asked: Prompt, whole: Prompt, place: Place, answer: Message) -> str:
    if whole.text.startswith(asked.text):
        return whole.text[: place.end]
    starts = [span.start for name in REASONING_FIELDS for span in whole.of(f"messages[{place.index}].{name}")]
    thoughts = [answer[name] for name in REASONING_FIELDS if isinstance(answer.get(name), str)]
    starts += [whole.text.find(t.strip()) for t in thoughts if t.strip() and t.strip() in whole.text]
    return asked.text + whole.text[min([*starts, place.start]) : place.end]


def turn_count(case: Case) -> Iterator[Break]:
    """Counted before the last question or result, which both prompts hold."""
    opener = case.subject.frames.opener
    if opener is None:
        return
    for before, after in pairwise(case.points):
        first, later, history = case.prompt(before), case.prompt(after), case.history(before)
        if first is None or later is None or history is None or later.text.startswith(history):
            continue
        last = before - 1
        spots = [prompt.only(text_of(case.messages[last]).strip()) for prompt in (first, later)]
        if min(spots) >= 0 and first.text.count(opener, 0, spots[0]) == later.text.count(opener, 0, spots[1]):
            continue  # as many, even with those that texts hold
        at = common_prefix(first.text, later.text)
        if cause_of(case.messages[:before], first, later, at) in DESIGN:
            continue
        if last not in first.places or last not in later.places:
            continue
        counts = [prompt.written(0, prompt.places[last].start).count(opener) for prompt in (first, later)]
        if counts[0] == counts[1]:
            continue
        yield Break(
            "turn-count",
            "PS101",
            "count",
            f"{counts[0]} turns are opened up to message {last}, and {counts[1]} once the conversation has grown",
            first.chat,
            first.text,
            later.text,
            later.chat,
            prompt=later,
        )


def tool_added(case: Case) -> Iterator[Break]:
    tools = case.chat.get("tools", [])
    if len(tools) < 2 or not case.points:
        return
    end = case.points[0]
    fewer = {**case.request(end), "tools": tools[:-1]}
    first, later = case.subject.render(fewer), case.prompt(end)  # type: ignore[arg-type]  # the keys of a Chat
    if not isinstance(first, Rendered) or later is None:
        return
    names = [(tool.get("function", tool)["name"], tool.get("function", tool)["description"]) for tool in tools[:-1]]
    known = [text for pair in names for text in pair if text and text in first.text]
    if not known:
        return
    kept = first.text[: max(first.text.find(text) + len(text) for text in known)]
    if not later.text.startswith(kept):
        yield Break(
            "tool-added",
            "PS101",
            "tools_move",
            "offering one more tool changes the text before it",
            fewer,  # type: ignore[arg-type]
            kept,
            later.text,
            later.chat,
            prompt=later,
        )


def another_day(case: Case) -> Iterator[Break]:
    if not case.subject.uses_clock or not case.points:
        return
    chat = case.request(case.points[0])
    today, later = case.subject.render(chat, now=DAY), case.subject.render(chat, now=LATER)
    if isinstance(today, Rendered) and isinstance(later, Rendered) and today.text != later.text:
        prompt = case.prompt(case.points[0])
        message = "the text depends on the clock: every new day it is computed again from the date on"
        yield Break("another-day", "PS104", "clock", message, chat, today.text, later.text, known=True, prompt=prompt)


def same_again(case: Case) -> Iterator[Break]:
    whole = case.whole
    if whole is None:
        return
    again = case.subject.render(whole.chat)
    text = again.text if isinstance(again, Rendered) else f"error: {again}"
    if text != whole.text:
        message = "the same request gives another text the second time"
        yield Break("same-again", "PS101", "random", message, whole.chat, whole.text, text, prompt=whole)


LAWS = (
    *(grows(law) for law in STEPS),
    Law(
        "as-generated",
        ("PS103",),
        "a prompt and the answer as generated are the start of the next prompt",
        as_generated,
        "takes an assistant's message",
        lambda supports: supports.assistant,
    ),
    Law("turn-count", ("PS101",), "an added turn changes no earlier count of turns", turn_count),
    Law(
        "tool-added",
        ("PS101",),
        "one more tool leaves the text of the others as it was",
        tool_added,
        "writes the tools that are offered",
        lambda supports: supports.tools,
    ),
    Law("another-day", ("PS104",), "the text does not depend on the clock", another_day, heavy=True),
    Law("same-again", ("PS101",), "the same request gives the same text", same_again, heavy=True),
)
