"""A request renders, in every engine alike, and costs no more than its size."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jinjarun.errors import JinjarunError, LimitExceeded, TemplateRaised, quote
from jinjarun.sequences import common_prefix
from probes.chats.messages import function_of
from probes.chats.named import CHATS
from probes.laws.case import Case
from probes.laws.law import Law, Violation
from probes.rendering.renders import dialect_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from probes.chats.messages import Chat, Message
    from probes.laws.subject import Subject

DOUBLED = (1, 2, 4)
LEAST_MESSAGES, LEAST_TEXT = 8, 256
"""Turns are repeated to about so many messages, and a text lengthened to so many characters; then doubled, twice."""
GROWTH = 2.3
"""What the second doubling may cost more than the first: 2 is linear, 4 is quadratic."""
FEWEST_STEPS = 400
"""Growth of less than this many steps is not judged."""


def renders(case: Case) -> Iterator[Violation]:
    """What the template refuses in words of its own is its contract, not a failure."""
    for end in case.points:
        case.answer(end)
    if case.messages[-1]["role"] == "assistant":
        case.answer(prompt=False)
    for chat, error in case.failures:
        if isinstance(error, TemplateRaised):
            continue
        if isinstance(error, LimitExceeded):
            yield Violation("renders", "SC105", f"limit {error.limit}", error.message, chat, line=error.line)
        else:
            cause = f"{error.name} line {error.line}"
            message = f"fails: {quote(error.message)}"
            yield Violation("renders", failing_code(case.subject, chat), cause, message, chat, line=error.line)


def failing_code(subject: Subject, chat: Chat) -> str:
    """The rule that speaks of the least ordinary thing in a request that fails."""
    messages = chat["messages"]
    if any(message.get("tool_calls") for message in messages) and subject.render(_otherwise(chat)).ok:
        return "TL102"
    if any(message.get("content") is None for message in messages):
        return "CT102"
    if any(isinstance(message["content"], list) for message in messages):
        return "CT104"
    if any(message.get("tool_calls") for message in messages):
        return "TL102"
    return "TL113" if chat.get("tools") else "CT106"


def _otherwise(chat: Chat) -> Chat:
    """The same with the arguments of its calls in the other form."""
    messages = [
        {**message, "tool_calls": [_turned(call) for call in message["tool_calls"]]}
        if message.get("tool_calls")
        else message
        for message in chat["messages"]
    ]
    return {**chat, "messages": messages}


def _turned(made: dict[str, Any]) -> dict[str, Any]:
    function = function_of(made)
    sent = function["arguments"]
    if not isinstance(sent, str):
        sent = json.dumps(sent, ensure_ascii=False)
    else:
        with suppress(ValueError):
            sent = json.loads(sent)
    turned = {**function, "arguments": sent}
    return {**made, "function": turned} if "function" in made else turned


def paths_agree(case: Case) -> Iterator[Violation]:
    """What differs on the conversations of the set already is known; so is what each engine takes for space."""
    for found in differences(case):
        yield replace(found, known=found.cause == "space" or found.cause in case.subject.measured(known_differences))


def differences(case: Case) -> Iterator[Violation]:
    other, whole = case.subject.other, case.whole
    if other is None:
        return
    prompt = case.messages[-1]["role"] != "assistant"
    chat = case.request(prompt=prompt)
    theirs = case.subject.render(chat, path=other)
    ours = case.answer(prompt=prompt)
    failed = theirs.error if theirs.error is not None else ours if isinstance(ours, JinjarunError) else None
    if theirs.error is not None and isinstance(ours, JinjarunError):
        return
    if whole is None or failed is not None:
        assert failed is not None
        who = dialect_of(other) if failed is theirs.error else case.subject.dialect
        cause = f"only {who} fails: line {failed.line}"
        message = f"only {who} fails: {quote(failed.message)[:120]}"
        expected = whole.text if whole is not None else ""
        yield Violation("paths-agree", "PT101", cause, message, chat, expected, theirs.text or "", line=failed.line)
    elif theirs.text is not None and theirs.text != whole.text:
        line = whole.line_at(common_prefix(whole.text, theirs.text))
        only_space = "".join(theirs.text.split()) == "".join(whole.text.split())
        cause = "space" if only_space else f"text: line {line}"
        message = f"{case.subject.dialect} and {dialect_of(other)} write different texts"
        yield Violation("paths-agree", "PT101", cause, message, chat, whole.text, theirs.text, line=line)


def linear_cost(case: Case) -> Iterator[Violation]:
    """Steps, never time: of the conversation repeated, and of its last user's text lengthened."""
    unit = _unit(case.messages)
    if unit is not None:
        lead, turns = unit
        least = max(1, LEAST_MESSAGES // len(turns))
        longer = [[*lead, *turns * (least * factor)] for factor in DOUBLED]
        yield from _judged(case, longer, "messages", least * len(turns))
    if case.points:
        end = case.points[-1]
        at = max((i for i in range(end) if isinstance(case.messages[i].get("content"), str)), default=None)
        if at is not None:
            longer = [
                [
                    *case.messages[:at],
                    {**case.messages[at], "content": "long " * (LEAST_TEXT * factor // 5)},
                    *case.messages[at + 1 : end],
                ]
                for factor in DOUBLED
            ]
            yield from _judged(case, longer, "text", LEAST_TEXT)


def _unit(messages: list[Message]) -> tuple[list[Message], list[Message]] | None:
    """The leading system messages, and turns that can be repeated: they end in an answer."""
    start = next((i for i, message in enumerate(messages) if message["role"] == "user"), None)
    if start is None:
        return None
    last = max(
        (i for i, m in enumerate(messages) if m["role"] == "assistant" and not m.get("tool_calls")), default=None
    )
    if last is None or last < start:
        behind = max((i for i, message in enumerate(messages) if message["role"] == "tool"), default=start)
        return messages[:start], [*messages[start : behind + 1], {"role": "assistant", "content": "Yes."}]
    return messages[:start], messages[start : last + 1]


def _cost(case: Case, messages: list[Message]) -> int | None:
    chat: Any = {**case.chat, "messages": messages, "add_generation_prompt": False}
    outcome = case.subject.render(chat)
    return outcome.cost if outcome.ok else None


def _judged(case: Case, longer: list[list[Message]], what: str, least: int) -> Iterator[Violation]:
    large = _cost(case, longer[-1])
    if large is None or large <= FEWEST_STEPS:
        return
    small, middle = (_cost(case, messages) or 0 for messages in longer[:-1])
    costs = small, middle, large
    if 0 not in costs and large - middle > FEWEST_STEPS and large - middle > GROWTH * (middle - small):
        unit = "messages" if what == "messages" else "characters of a text"
        counts = " and ".join(f"{steps:,} for {least * factor}" for steps, factor in zip(costs, DOUBLED, strict=True))
        message = f"steps grow faster than the {what}: {counts} {unit}"
        chat = case.request() if what == "text" else case.request(prompt=case.messages[-1]["role"] != "assistant")
        yield Violation("linear-cost", "SC105", what, message, chat)


def known_differences(subject: Subject) -> frozenset[str]:
    """The causes of what the engines write differently on the conversations of the set."""
    cases = (Case(subject, build()) for name, build in CHATS.items() if name != "empty")
    return frozenset(found.cause for case in cases for found in differences(case))


LAWS = (
    Law(
        "renders", ("CT102", "CT104", "TL102", "TL113", "CT106", "SC105"), "what the template takes it renders", renders
    ),
    Law("paths-agree", ("PT101",), "both engines write the same text", paths_agree),
    Law("linear-cost", ("SC105",), "cost grows at most as messages and texts do", linear_cost, heavy=True),
)
