"""A text in parts is the same text, whoever says it and wherever.

Asked of templates that take parts somewhere: one that takes none at all is told of by another rule. A role whose text
parts a template refuses in words of its own is no failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from jinjarun.errors import LimitExceeded, TemplateRaised, quote
from probes.chats import canaries
from probes.chats.messages import say, text_part
from probes.laws.growth import thinks
from probes.laws.law import Law, Violation
from probes.laws.prompt import text_of
from probes.rendering.markers import ANY_MARKER
from probes.rendering.outcomes import fate_of, is_dumped

if TYPE_CHECKING:
    from probes.chats.canaries import Form
    from probes.chats.messages import Chat, Message
    from probes.laws.case import Case
    from probes.laws.subject import Subject

LAW = "parts-as-string"


def parts_as_string(case: Case) -> Iterator[Violation]:
    """Each kind of message is asked once, in the other form than the conversation has it."""
    if not case.subject.measured(takes_parts):
        return
    seen: set[str] = set()
    for index, message in enumerate(case.messages):
        place = place_of(case.messages, index)
        text = text_of(message)
        if place in seen or len(text.split()) < 2 or thinks(text) or not _is_text(message):  # one word has no two parts
            continue
        seen.add(place)
        yield from _judged(case, index, place)


def place_of(messages: list[Message], index: int) -> str:
    """Who says it, and where: what templates have branches for."""
    message = messages[index]
    role: str = message["role"]
    calls = " that calls tools" if message.get("tool_calls") else ""
    later = "later " if role != "tool" and any(other["role"] == role for other in messages[:index]) else ""
    return f"{later}{role}{calls}"


def _is_text(message: Message) -> bool:
    content = message.get("content")
    return isinstance(content, str) or (
        isinstance(content, list) and bool(content) and all(part.get("type") == "text" for part in content)
    )


def in_two_parts(message: Message) -> Message:
    """The same text as two parts, cut before a space near its middle; what is in parts stays so."""
    content = message.get("content")
    if not isinstance(content, str):
        return message
    spaces = [found.start() for found in re.finditer(r"(?<=\S)\s+(?=\S)", content)]
    if not spaces:
        return message
    at = min(spaces, key=lambda space: abs(space - len(content) // 2))
    return {**message, "content": [text_part(content[:at]), text_part(content[at:])]}


def _judged(case: Case, index: int, place: str) -> Iterator[Violation]:
    message = case.messages[index]
    as_string, as_parts = (
        _with(case, index, {**message, "content": text_of(message)}),
        _with(case, index, in_two_parts(message)),
    )
    content: Any = as_parts["messages"][index]["content"]
    if isinstance(content, str):
        return
    pieces = [part["text"].strip() for part in content if part["text"].strip()]
    expected = case.subject.render(as_string).text
    if expected is None or any(piece not in expected or is_dumped(expected, piece) for piece in pieces):
        return  # not even the string is taken there
    outcome = case.subject.render(as_parts)
    error, found = outcome.error, outcome.text or ""
    if isinstance(error, TemplateRaised | LimitExceeded):
        return
    code = "CT104" if place == "user" else "CT107"
    line = None if error is None else error.line
    if error is not None:
        what, said = "fail", f"fail: {quote(error.message)[:100]}"
    elif any(is_dumped(found, piece) for piece in pieces if piece in found):
        what, said = "dumped", "are printed raw, as the objects of the request"
    elif lost := [piece for piece in pieces if piece not in found]:
        what = "lost"
        said = "leave no trace" if len(lost) == len(pieces) else "are written in part only"
    elif doubled := _doubled(found) - _doubled(expected):
        what, said = "doubled", f"make {min(doubled)!r} stand there twice in succession"
    else:
        return
    message_text = f"text parts of a message of {place} {said}, and as a string the text is written"
    yield Violation(LAW, code, f"{place} {what}", message_text, as_parts, expected, found, line=line)


def _with(case: Case, index: int, message: Message) -> Chat:
    messages = [*case.messages[:index], message, *case.messages[index + 1 :]]
    return {**case.chat, "messages": messages}


def _doubled(text: str) -> set[str]:
    """The markers that stand twice with nothing but space between."""
    found = list(ANY_MARKER.finditer(text))
    return {
        one[0] for one, other in pairwise(found) if one[0] == other[0] and not text[one.end() : other.start()].strip()
    }


def takes_parts(subject: Subject) -> bool:
    """Whether text parts of anybody are written as text."""
    form = subject.on.form
    if form.parts != "no":
        return True
    chats = [canaries.one_text_part(form), _parts_of("system", form), _parts_of("assistant", form)]
    return any(fate_of(subject.render(chat), canaries.PART) == "written" for chat in chats)


def _parts_of(role: str, form: Form) -> Chat:
    said = {"role": role, "content": [text_part(canaries.PART)]}
    turns = [say("user", canaries.USER), said, say("user", canaries.SECOND_USER)]
    return form.chat([said, say("user", canaries.USER)] if role == "system" else turns)


LAWS = (
    Law(
        LAW,
        ("CT107", "CT104"),
        "a text in parts is written as the string is, in every role",
        parts_as_string,
        heavy=True,
    ),
)
