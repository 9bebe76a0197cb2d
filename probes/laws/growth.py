"""What a growing conversation keeps, and what the same request gives again.

A law of growth compares two prompts of one conversation, the later one after something was added. It is one pure
function of both and of what else is known (`Context`). What must stay is the *history* of the first: its text up to the
place where the generation prompt would begin. What the generation prompt itself does is the law `as-generated`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from jinjarun.sequences import common_prefix
from probes.chats.messages import REASONING_FIELDS, function_of
from probes.laws.case import Case
from probes.laws.law import Law, Violation
from probes.laws.prompt import Prompt, text_of

if TYPE_CHECKING:
    from probes.chats.messages import Chat, Message
    from probes.chats.supports import Supports
    from probes.laws.prompt import Place

DAY = datetime(2025, 11, 24, 12, 30, 15, tzinfo=UTC)
LATER = DAY + timedelta(days=40, hours=3, minutes=7, seconds=11)

EMPTY_BLOCK = re.compile(r"<([\w:|]+)>\s*</\1>")
"""A block of reasoning without any, as some templates write it before a last answer."""
THINKING = re.compile(r"[<\[][^<>\[\]]*(?:think|channel|reason)[^<>\[\]]*[>\]]", re.IGNORECASE)
NEAR = 40

STEPS = ("next-user-turn", "within-tool-loop", "tool-loop-to-next-user")
"""The laws of an added turn."""
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


@dataclass(frozen=True, slots=True)
class Growth:
    """Two requests of one conversation, and what came of them: `expected` must be the start of `actual`, the later
    prompt. `cause` says why it is not; None where it is. `known` marks what a template does by design."""

    law: str
    first: Chat
    second: Chat
    expected: str
    actual: str
    cause: str | None = None
    known: bool = False
    later: Prompt | None = None

    @property
    def holds(self) -> bool:
        return self.cause is None

    @property
    def at(self) -> int:
        """Where the two texts part."""
        return common_prefix(self.expected, self.actual)

    @property
    def line(self) -> int | None:
        """The line of the template that wrote what differs in the later prompt; it needs spans."""
        return None if self.later is None or self.holds else self.later.line_at(self.at)


@dataclass(frozen=True, slots=True)
class Context:
    """What is known beside the two prompts: the history of the first, the conversation with its answer as the template
    writes a last turn, and the marker that opens turns, where a law needs them."""

    law: str
    history: str = ""
    answered: Prompt | None = None
    opener: Callable[[], str | None] = lambda: None


def _growth(law: str, before: Prompt, after: Prompt, expected: str, cause: str | None, *, known: bool) -> Growth:
    return Growth(law, before.chat, after.chat, expected, after.text, cause, known, after)


# The laws: pure functions of the prompt before, the prompt after, and the context


def keeps_history(before: Prompt, after: Prompt, context: Context) -> Growth:
    """The later prompt begins with the history of the earlier one."""
    history, law = context.history, context.law
    if after.text.startswith(history):
        return _growth(law, before, after, history, None, known=False)
    at = common_prefix(history, after.text)
    cause = cause_of(before.chat["messages"], before, after, at)
    if cause == "end_differs" and _generates(before, at, context.opener()):
        cause = "generation_prompt_differs"
    known = (cause in DESIGN and law != "within-tool-loop") or cause == "generation_prompt_differs"
    return _growth(law, before, after, history, cause, known=known)


def as_generated(before: Prompt, after: Prompt, context: Context) -> Growth:
    """The later prompt begins with the earlier one and the answer as the template writes it in a last turn: what a
    model trained on such text generates."""
    whole, messages = context.answered, after.chat["messages"]
    assert whole is not None
    index = len(before.chat["messages"])
    answer = messages[index]
    if whole.text.startswith(before.text) and after.text.startswith(whole.text):
        at = whole.only(text_of(answer))
        expected = whole.text if at < 0 else whole.text[: at + len(text_of(answer))]
        return _growth("as-generated", before, after, expected, None, known=False)
    place = whole.place(index)
    expected = "" if place is None else _replayed(before, whole, place, answer)
    if after.text.startswith(expected):
        return _growth("as-generated", before, after, expected, None, known=False)
    at = common_prefix(expected, after.text)
    cause = cause_of(messages[: index + 1], whole, after, at)
    begun = common_prefix(before.text, whole.text)
    if cause not in DESIGN and begun <= at < len(before.text):
        cause = "generation_prompt_differs"
    known = cause in DESIGN or cause == "generation_prompt_differs"
    return _growth("as-generated", before, after, expected, cause, known=known)


def tool_added(before: Prompt, after: Prompt, context: Context) -> Growth | None:
    """What was written of the tools before stays when one more is offered; None where nothing of them is written."""
    functions = [function_of(tool) for tool in before.chat["tools"]]
    texts = [text for function in functions for text in (function["name"], function["description"])]
    known = [before.text.find(text) + len(text) for text in texts if text and text in before.text]
    if not known:
        return None
    expected = before.text[: max(known)]
    cause = None if after.text.startswith(expected) else "tools_move"
    return _growth(context.law, before, after, expected, cause, known=False)


def another_day(before: Prompt, after: Prompt, context: Context) -> Growth:
    """The same request at another moment gives the same text."""
    cause = None if before.text == after.text else "clock"
    return _growth(context.law, before, after, before.text, cause, known=True)


def key_order(before: Prompt, after: Prompt, context: Context) -> Growth | None:
    """Arguments stand in the order in which they are sent, `after` with the order of `before` turned round; None where
    they are not written."""
    growth = None
    for prompt in (before, after):
        calls = [call for message in prompt.chat["messages"] for call in message.get("tool_calls") or []]
        sent = function_of(calls[-1])["arguments"]
        keys = re.findall(KEY, sent) if isinstance(sent, str) else list(sent)
        if not all(key in prompt.text for key in keys):
            return None
        at = min(prompt.text.index(key) for key in keys)
        expected = prompt.text[:at] + keys[0] + prompt.text[at + len(keys[0]) :]
        cause = None if prompt.text == expected else "keys_sorted"
        growth = _growth(context.law, prompt, prompt, expected, cause, known=False)
        if cause is not None:
            break
    return growth


KEY = r'"(\w+)"\s*:'
"""A key in a text of JSON whose values are texts."""


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


def _generates(asked: Prompt, at: int, opener: str | None) -> bool:
    """Whether this place stands in the generation prompt of a template that always writes one."""
    behind = max((place.end for place in asked.places.values()), default=0)
    return opener is not None and behind <= asked.text.rfind(opener) < at


def thinks(text: str) -> bool:
    """Whether a text holds what some templates take for a tag of reasoning."""
    return THINKING.search(text) is not None


def _replayed(asked: Prompt, whole: Prompt, place: Place, answer: Message) -> str:
    if whole.text.startswith(asked.text):
        return whole.text[: place.end]
    starts = [span.start for name in REASONING_FIELDS for span in whole.of(f"messages[{place.index}].{name}")]
    thoughts = [answer[name] for name in REASONING_FIELDS if isinstance(answer.get(name), str)]
    starts += [whole.text.find(t.strip()) for t in thoughts if t.strip() and t.strip() in whole.text]
    return asked.text + whole.text[min([*starts, place.start]) : place.end]


# Which prompts of a conversation they compare


def _steps(law: str) -> Callable[[Case], Iterator[Growth]]:
    def compare(case: Case) -> Iterator[Growth]:
        for before, after in pairwise(case.points):
            if step(case.messages, before) != law:
                continue
            history, later, first = case.history(before), case.prompt(after), case.prompt(before)
            if history is not None and later is not None and first is not None:
                context = Context(law, history, opener=lambda: case.frames.opener)
                yield keeps_history(first, later, context)

    return compare


def step(messages: list[Message], before: int) -> str:
    """The law of the growth that follows the request of `before` messages."""
    if messages[before].get("tool_calls"):
        return "within-tool-loop"
    return "tool-loop-to-next-user" if messages[before - 1]["role"] == "tool" else "next-user-turn"


def _answers(case: Case) -> Iterator[Growth]:
    """The last answer that another request follows, as each costs a render that no other law needs."""
    for before, after in reversed(list(pairwise(case.points))):
        answer = case.messages[before]
        if answer.get("tool_calls") or thinks(text_of(answer)) or not text_of(answer).strip():
            continue
        asked, later = case.prompt(before), case.prompt(after)
        whole = case.prompt(before + 1, prompt=False)
        if asked is not None and later is not None and whole is not None:
            yield as_generated(asked, later, Context("as-generated", answered=whole))
        return


def _tools(case: Case) -> Iterator[Growth]:
    tools = case.chat.get("tools", [])
    if len(tools) < 2 or not case.points:
        return
    end = case.points[0]
    first, later = case.subject.prompt(case.request(end, tools=len(tools) - 1)), case.prompt(end)
    if isinstance(first, Prompt) and later is not None:
        growth = tool_added(first, later, Context("tool-added"))
        if growth is not None:
            yield growth


def _days(case: Case) -> Iterator[Growth]:
    first = case.prompt(case.points[0]) if case.points else None
    if first is None:
        return
    today, later = first, first
    if case.subject.uses_clock:
        texts = [case.subject.render(first.chat, now=now).text for now in (DAY, LATER)]
        if texts[0] is None or texts[1] is None:
            return
        today, later = (Prompt(first.chat, text or "", case.subject.spans) for text in texts)
    yield another_day(today, later, Context("another-day"))


GROWTHS: dict[str, Callable[[Case], Iterator[Growth]]] = {
    **{law: _steps(law) for law in STEPS},
    "as-generated": _answers,
    "tool-added": _tools,
    "another-day": _days,
}
"""The laws of growth: what each compares in a conversation, whether it holds or not."""
MESSAGES = {
    "as-generated": "{cause}: the answer as generated is not the start of the next prompt",
    "tool-added": "offering one more tool changes the text before it",
    "another-day": "the text depends on the clock: every new day it is computed again from the date on",
}


def violation(code: str, growth: Growth) -> Violation:
    """A law of growth that is broken, as every law says it."""
    lost = len(growth.expected) - growth.at
    usual = f"{{cause}}: {lost} of {len(growth.expected)} characters are computed again"
    message = MESSAGES.get(growth.law, usual).format(cause=SAYS.get(growth.cause or "", ""))
    return Violation(
        growth.law,
        code,
        growth.cause or "",
        message,
        growth.first,
        growth.expected,
        growth.actual,
        growth.second,
        known=growth.known,
        prompt=growth.later,
    )


def _law(
    name: str,
    code: str,
    says: str,
    needs: str = "",
    supported: Callable[[Supports], bool] = lambda supports: True,
    *,
    heavy: bool = False,
) -> Law:
    def check(case: Case) -> Iterator[Violation]:
        return (violation(code, growth) for growth in GROWTHS[name](case) if not growth.holds)

    return Law(name, (code,), says, check, needs, supported, heavy)


CONSTANT_DATE = re.compile(
    r"(?:set\s+(?P<name>\w*(?:date|today|time)\w*)\s*=\s*|(?P<other>\w*(?:date|today)\w*)\s*\|\s*default\(\s*)"
    r"(['\"])(?P<date>(?:\d{1,2}|[A-Z][a-z]{2,8})[ .,-]+(?:\d{1,2}|[A-Z][a-z]{2,8})[ .,-]+\d{4}|\d{4}-\d\d-\d\d)\3"
)
"""A date that the author of a template wrote down, and the variable that replaces it."""


def fixed_date(case: Case) -> Iterator[Violation]:
    """No date of the template's own, which no day changes."""
    found = CONSTANT_DATE.search(case.subject.source)
    prompt = case.prompt(case.points[0]) if found is not None and case.points else None
    if found is not None and prompt is not None and found["date"] in prompt.text and not case.subject.uses_clock:
        said = f"the date {found['date']!r} is a constant of the template"
        text = prompt.text
        yield Violation("fixed-date", "PS104", "constant", said, prompt.chat, text, text, known=True)


# Laws that only generated conversations are asked for


def turn_count(case: Case) -> Iterator[Violation]:
    """Counted before the last question or result, which both prompts hold."""
    opener = case.frames.opener
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
        yield Violation(
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


def same_again(case: Case) -> Iterator[Violation]:
    whole = case.whole
    if whole is None:
        return
    again = case.subject.render(whole.chat)
    text = f"error: {again.error}" if again.text is None else again.text
    if text != whole.text:
        message = "the same request gives another text the second time"
        yield Violation("same-again", "PS101", "random", message, whole.chat, whole.text, text, prompt=whole)


CALLS = ("writes tool calls", lambda supports: supports.tool_calls)
ASSISTANT = ("takes an assistant's message", lambda supports: supports.assistant)
TOOLS = ("writes the tools that are offered", lambda supports: supports.tools)
"""What a law needs, in words and as a test."""

LAWS = (
    _law(
        "next-user-turn",
        "PS101",
        "an answer and a further question leave the text before them as it was",
        *ASSISTANT,
    ),
    _law(
        "within-tool-loop",
        "PS102",
        "a further round of calls and results leaves the text before it as it was",
        *CALLS,
    ),
    _law(
        "tool-loop-to-next-user",
        "PS101",
        "the answer after a tool loop, and a question, leave the text before them as it was",
        *CALLS,
    ),
    _law(
        "as-generated",
        "PS103",
        "a prompt and the answer as generated are the start of the next prompt",
        *ASSISTANT,
    ),
    Law("turn-count", ("PS101",), "an added turn changes no earlier count of turns", turn_count),
    _law("tool-added", "PS101", "one more tool leaves the text of the others as it was", *TOOLS),
    _law("another-day", "PS104", "the text does not depend on the clock", heavy=True),
    Law("fixed-date", ("PS104",), "no date that the template itself holds stands in the prompt", fixed_date),
    Law("same-again", ("PS101",), "the same request gives the same text", same_again, heavy=True),
)
