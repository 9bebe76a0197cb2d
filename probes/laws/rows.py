"""Two answers in a row are two turns or one, and nothing between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from probes.chats import canaries
from probes.chats.messages import say
from probes.laws.law import Law, Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from probes.laws.case import Case


ALIKE = 20
"""Characters of a header that are compared."""


def answers_in_a_row(case: Case) -> Iterator[Violation]:
    """Between two answers in a row a turn is closed as often as one is opened. Where the conversation has none, its
    last answer is followed by another. Asked where an answer between questions is closed and the next turn opened
    with markers of their own."""
    messages = case.messages
    first = next((i for i in range(len(messages) - 1) if _answers(messages[i]) and _answers(messages[i + 1])), None)
    chat: dict[str, Any] = {**case.chat}
    if first is None:
        first = max((i for i in range(len(messages)) if _answers(messages[i])), default=None)
        if first is None:
            return
        answer = case.subject.on.form.chat([say("assistant", canaries.TEXT)])["messages"][-1]
        chat["messages"] = [*messages[: first + 1], answer, *messages[first + 1 :]]
    one, other = (chat["messages"][i]["content"] for i in (first, first + 1))
    text = case.subject.render(chat).text  # type: ignore[arg-type]  # the keys of a Chat
    if text is None or not isinstance(one, str) or not isinstance(other, str):
        return
    if (
        text.count(one.strip()) != 1
        or text.count(other.strip()) != 1
        or text.index(one.strip()) > text.index(other.strip())
    ):
        return
    between = text[text.index(one.strip()) + len(one.strip()) : text.index(other.strip())]
    if _whole_turns(text, one.strip(), between):
        return  # most templates: no need to find out their markers
    frames = case.frames
    end, opener = frames.end, frames.opener
    if end is None or opener is None or frames.closes.get(("assistant", "user", False, False)) != 1:
        return
    if frames.opens.get(("user", "assistant", False, True)) != 1:
        return
    closed, opened = between.count(end), between.count(opener)
    if closed != opened:
        said = f"between two answers in a row {end!r} stands {closed} times and {opener!r} {opened} times"
        cause = "closed" if closed > opened else "opened"
        yield Violation("answers-in-a-row", "RL109", cause, said, chat, "", between)  # type: ignore[arg-type]


def _whole_turns(text: str, answer: str, between: str) -> bool:
    """Whether what stands before the second answer ends as what stands before the first, with its header."""
    before = text[: text.index(answer)]
    header = before[before.rfind("<") if "<" in before else max(0, len(before) - ALIKE) :][-ALIKE:]
    return len(between) > len(header) > 0 and between.endswith(header) and between.strip() != header.strip()


def _answers(message: dict[str, Any]) -> bool:
    return message["role"] == "assistant" and not message.get("tool_calls") and bool(message.get("content"))


LAWS = (
    Law(
        "answers-in-a-row",
        ("RL109",),
        "between two answers in a row as many turns are closed as opened",
        answers_in_a_row,
        heavy=True,
    ),
)
