"""Turns are opened and closed, generation starts in one, and a text cannot make one."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from jinjarun.sequences import common_prefix
from probes.chats.messages import REASONING_FIELDS
from probes.laws.case import Case
from probes.laws.frames import neighbours
from probes.laws.law import Law, Violation
from probes.laws.prompt import Prompt, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from probes.chats.messages import Message
    from probes.laws.frames import Pair

OTHER_ENDS = re.compile(r"<[|｜][^<>]*(?:end|eom|eot|eos|call|return)[^<>]*[|｜]>|</s>")
"""Markers that end a message which calls tools in formats that end it otherwise than an answer."""


def turns_closed(case: Case) -> Iterator[Violation]:
    whole, end = case.whole, case.frames.end
    if whole is None or end is None or sent_elsewhere(case, end):
        return
    yield from _pairs(case, whole, end, case.frames.closes, "closed")
    yield from _calls(case, whole, end)
    yield from _results(case, whole, end)
    yield from _last(case, whole, end)
    twice = re.search(rf"{re.escape(end)}\s*{re.escape(end)}", whole.written(0, len(whole.text)))
    if twice is not None:
        line = whole.line_at(whole.text.find(end))
        message = "a turn is closed twice"
        yield Violation("turns-closed", "TL108", "twice", message, whole.chat, end, twice.group(), line=line)


def turns_opened(case: Case) -> Iterator[Violation]:
    whole, opener = case.whole, case.frames.opener
    if whole is not None and opener is not None and not sent_elsewhere(case, opener):
        yield from _pairs(case, whole, opener, case.frames.opens, "opened")


def sent_elsewhere(case: Case, marker: str) -> bool:
    """Whether tools or calls hold the marker: what is written as JSON no longer shows whose it is."""
    calls = [message.get("tool_calls") for message in case.messages]
    return marker in json.dumps([case.chat.get("tools"), calls], ensure_ascii=False)


def _pairs(case: Case, whole: Prompt, marker: str, usual: dict[Pair, int], what: str) -> Iterator[Violation]:
    """Neighbours between whose texts the marker stands more or less often than usual."""
    for i, j in neighbours(whole):
        first, second = case.messages[i], case.messages[j]
        pair = (first["role"], second["role"], "tools" in case.chat, i == 0)
        if first.get("tool_calls") or second.get("tool_calls") or pair not in usual:
            continue
        if any(name in message for message in (first, second) for name in REASONING_FIELDS):
            continue
        between = whole.written(whole.places[i].end, whole.places[j].start)
        count = between.count(marker)
        if count == usual[pair]:
            continue
        yield Violation(
            f"turns-{what}",
            "TL108",
            f"{pair[0]} to {pair[1]}",
            f"between messages {i} ({pair[0]}) and {j} ({pair[1]}) stands {marker!r} {count} times, not {usual[pair]}",
            whole.chat,
            marker * usual[pair],
            between,
            line=whole.line_at(whole.places[i].end),
        )


def _calls(case: Case, whole: Prompt, end: str) -> Iterator[Violation]:
    """A message that calls is closed before its results."""
    frames = case.frames
    for i, message in enumerate(case.messages[:-1]):
        if not message.get("tool_calls") or i + 1 not in whole.places:
            continue
        at = whole.places[i].end if i in whole.places else _end_before(whole, i)
        start = whole.places[i + 1].start
        if at is None or at > start:
            continue
        between = whole.written(at, start)
        before = case.messages[i - 1]["role"] if i else "user"
        opened_by = (
            0 if i in whole.places else frames.closes.get((before, "assistant", "tools" in case.chat, i == 1), 0)
        )
        if between.count(end) - opened_by >= 1 or OTHER_ENDS.search(between.replace(end, "")):
            continue
        own = 0 if i in whole.places else 1
        if case.frames.opener is None or between.count(case.frames.opener) <= own:
            continue  # the results stand in the turn of the call
        yield Violation(
            "turns-closed",
            "TL108",
            "calls",
            f"message {i} calls tools, and its turn is not closed before their results: {end!r} is missing",
            whole.chat,
            end,
            between,
            line=whole.line_at(start - 1),
        )


def _results(case: Case, whole: Prompt, end: str) -> Iterator[Violation]:
    """The results of tools are closed before the assistant's turn is opened, where a user's text is."""
    frames = case.frames
    closed = any(count for pair, count in frames.closes.items() if pair[:2] == ("user", "assistant"))
    if not closed or frames.opener is None:
        return
    for i, j in neighbours(whole):
        if case.messages[i]["role"] != "tool" or case.messages[j]["role"] == "tool":
            continue
        between = whole.written(whole.places[i].end, whole.places[j].start)
        before = between.partition(frames.opener)[0]
        if frames.opener in between and end not in before and not OTHER_ENDS.search(before):
            message = f"after the results before message {j} the turn is not closed: {end!r} is missing"
            line = whole.line_at(whole.places[i].end)
            yield Violation("turns-closed", "TL108", "results", message, whole.chat, end, between, line=line)


def _last(case: Case, whole: Prompt, end: str) -> Iterator[Violation]:
    """The last message is closed before the generation prompt opens the next turn."""
    frames, last = case.frames, len(case.messages) - 1
    closed = any(count for pair, count in frames.closes.items() if pair[:2] == ("user", "assistant"))
    if not closed or frames.opener is None or last not in whole.places or case.messages[last]["role"] == "assistant":
        return
    tail = whole.written(whole.places[last].end, len(whole.text))
    before = tail.partition(frames.opener)[0]
    if frames.opener in tail and end not in before and not OTHER_ENDS.search(before):
        message = f"the last message is not closed before generation starts: {end!r} is missing"
        line = whole.line_at(whole.places[last].end)
        yield Violation("turns-closed", "TL108", "last", message, whole.chat, end, tail, line=line)


def _end_before(whole: Prompt, index: int) -> int | None:
    return whole.places[index - 1].end if index - 1 in whole.places else None


def generation_prompt(case: Case) -> Iterator[Violation]:
    """Behind the same kind of message stands the same generation prompt."""
    yield from _ungated(case)
    if not case.points:
        return
    end = case.points[-1]
    role = case.messages[end - 1]["role"]
    usual = case.frames.prompts.get(role)
    asked = case.prompt(end)
    if usual is None or asked is None or not text_of(case.messages[end - 1]).strip():
        return
    yield from _without_effect(case, asked, role)
    yield from _outside(case, asked, role)
    bare = None if asked.text.endswith(usual) else case.prompt(end, prompt=False)
    if bare is None:
        return
    if asked.text == bare.text:
        message = (
            f"no generation prompt stands behind a message of {role}, where {usual!r} does in a short conversation"
        )
        yield Violation(
            "generation-prompt",
            "TR101",
            "missing",
            message,
            asked.chat,
            bare.text + usual,
            asked.text,
            line=asked.line_at(len(asked.text)),
        )
    else:
        found = asked.text[common_prefix(asked.text, bare.text) :]
        message = f"the generation prompt behind a message of {role} is {found!r}, not {usual!r}"
        yield Violation(
            "generation-prompt",
            "TR101",
            "differs",
            message,
            asked.chat,
            bare.text + usual,
            asked.text,
            line=asked.line_at(common_prefix(asked.text, bare.text)),
        )


def _without_effect(case: Case, asked: Prompt, role: str) -> Iterator[Violation]:
    """Asking for a generation prompt changes nothing, here as in a short conversation."""
    frames = case.frames
    bare = case.prompt(case.points[-1], prompt=False) if role == "user" and frames.prompts["user"] == "" else None
    if bare is not None and bare.text == asked.text:
        message = "add_generation_prompt changes nothing"
        yield Violation(
            "generation-prompt", "TR101", "no effect", message, asked.chat, asked.text, asked.text, known=True
        )


def _ungated(case: Case) -> Iterator[Violation]:
    """A finished conversation opens no further turn."""
    whole, opener, last = case.whole, case.frames.opener, len(case.messages) - 1
    if whole is None or opener is None or case.messages[last]["role"] != "assistant" or last not in whole.places:
        return
    if case.messages[last].get("tool_calls"):
        return
    tail = whole.written(whole.places[last].end, len(whole.text))
    if tail.strip() and case.frames.marks.behind_answer.strip().startswith(tail.strip()):
        return  # what closes the answer holds the marker
    if opener in tail and tail.strip() != opener:
        message = "a turn is opened although no generation prompt was asked for"
        expected = whole.text[: len(whole.text) - len(tail)] + tail.partition(opener)[0]
        line = whole.line_at(len(whole.text))
        yield Violation("generation-prompt", "TR101", "ungated", message, whole.chat, expected, whole.text, line=line)


def _outside(case: Case, asked: Prompt, role: str) -> Iterator[Violation]:
    """After results generation must start in a turn: a new one, or the one that is still open."""
    frames = case.frames
    after_user, after_tool = frames.prompts.get("user"), frames.prompts.get("tool")
    if role != "tool" or not after_user or after_tool != "" or frames.end is None:
        return
    if asked.text.rstrip().endswith(frames.end):
        message = "after the results of tools the turn is closed and no other is opened: generation starts outside any"
        yield Violation(
            "generation-prompt",
            "TL108",
            "outside",
            message,
            asked.chat,
            asked.text + after_user,
            asked.text,
            line=asked.line_at(len(asked.text)),
        )


def forged_turns(case: Case) -> Iterator[Violation]:
    """Markers in a text of the input never become the template's own, and as plain text they are told of."""
    whole, frames = case.whole, case.frames
    if whole is None:
        return
    marks = frames.markers
    for index, place in whole.places.items():
        message = case.messages[index]
        forged = [mark for mark in marks if mark in text_of(message)]
        if message["role"] not in ("user", "tool") or not forged:
            continue
        if not place.own:
            lost = [mark for mark in forged if mark in whole.text[place.start : place.end]]
            if lost:
                said = f"{lost[0]!r} in the text of a {message['role']} message counts as the template's own"
                yield Violation(
                    "forged-turns",
                    "SC104",
                    f"own {message['role']}",
                    said,
                    whole.chat,
                    text_of(message),
                    whole.text[place.start : place.end],
                    known=True,
                    line=whole.line_at(place.start),
                )
            continue
        said = f"{forged[0]!r} in the text of a {message['role']} message makes a turn where prompts are plain text"
        yield Violation(
            "forged-turns",
            "SC104",
            f"text {message['role']}",
            said,
            whole.chat,
            "",
            forged[0],
            known=True,
            line=whole.line_at(place.start),
        )
    for message in case.messages:
        name = message.get("name", "") if message["role"] == "tool" else ""
        forged = [mark for mark in marks if mark in name]
        if forged and name in whole.text:
            said = f"{forged[0]!r} in the name of a result makes a turn where prompts are plain text"
            line = whole.line_at(whole.text.index(name))
            yield Violation("forged-turns", "SC104", "name", said, whole.chat, "", forged[0], known=True, line=line)


def structure_fixed(case: Case) -> Iterator[Violation]:
    """The template's own markers do not depend on what a text says."""
    whole, frames = case.whole, case.frames
    marks = [mark for mark in (frames.opener, frames.end) if mark is not None]
    if whole is None or not marks:
        return
    troubled = [m for m in case.messages if m["role"] in ("user", "tool") and any(k in text_of(m) for k in marks)]
    if not troubled:
        return
    plain = {**whole.chat, "messages": [_harmless(message, marks) for message in case.messages]}
    other = case.subject.prompt(plain)  # type: ignore[arg-type]  # the keys of a Chat
    if not isinstance(other, Prompt):
        return
    if all(_forged(troubled, mark) == whole.text.count(mark) - other.text.count(mark) for mark in marks):
        return
    texts = [prompt.written(0, len(prompt.text)) for prompt in (whole, other)]
    for mark in marks:
        forged = sum(whole.text[p.start : p.end].count(mark) for p in whole.places.values() if not p.own)
        if texts[0].count(mark) - texts[1].count(mark) not in (0, forged):
            said = (
                f"the template writes {mark!r} {texts[0].count(mark)} times, and {texts[1].count(mark)} times where no"
            )
            yield Violation(
                "forged-turns",
                "SC104",
                "structure",
                f"{said} text holds it",
                whole.chat,
                other.text,
                whole.text,
                line=whole.line_at(common_prefix(*texts)),
            )


def _forged(messages: list[Message], mark: str) -> int:
    """How many of a marker the contents bring along that `_harmless` takes out."""
    return sum(message["content"].count(mark) for message in messages if isinstance(message.get("content"), str))


def _harmless(message: dict[str, object], marks: list[str]) -> dict[str, object]:
    content = message.get("content")
    if message["role"] not in ("user", "tool") or not isinstance(content, str):
        return message
    for mark in marks:
        content = content.replace(mark, "mark")
    return {**message, "content": content}


LAWS = (
    Law("turns-closed", ("TL108",), "every turn is closed once", turns_closed),
    Law("turns-opened", ("TL108",), "every turn is opened once", turns_opened),
    Law("generation-prompt", ("TR101", "TL108"), "generation starts as the shape says", generation_prompt),
    Law(
        "forged-turns",
        ("SC104",),
        "no text of a user or a tool opens or closes a turn",
        lambda case: (found for law in (forged_turns, structure_fixed) for found in law(case)),
    ),
)
