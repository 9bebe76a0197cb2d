"""Every text of the input stands in the prompt once, unaltered and in order."""

from __future__ import annotations

import html
import re
from itertools import pairwise
from typing import TYPE_CHECKING

from probes.chats.messages import REASONING_FIELDS
from probes.laws.case import Case
from probes.laws.growth import thinks
from probes.laws.law import Law, Violation
from probes.laws.prompt import Prompt, forms_of, inner_json, text_of
from probes.rendering.outcomes import is_dumped, is_unknown_role

if TYPE_CHECKING:
    from collections.abc import Iterator

    from probes.chats.messages import Message

LOST = {"system": "RL101", "developer": "RL103"}


def code_of(message: Message, usual: str) -> str:
    """The rule that speaks of what befell this message's text."""
    if isinstance(message.get("content"), list):
        return "CT104"
    if usual == "lost":
        return LOST.get(message["role"], "TL114" if message.get("tool_calls") else "CT106")
    return "CT106"


def place_name(index: int, message: Message) -> str:
    calls = " that calls tools" if message.get("tool_calls") else ""
    return f"message {index} ({message['role']}{calls})"


def texts_kept(case: Case) -> Iterator[Violation]:
    whole = case.whole
    if whole is None:
        return
    yield from _unknown_roles(case, whole)
    for index, message in enumerate(case.messages):
        text = text_of(message)
        if not text.strip() or index in whole.places or thinks(text) or parts_there(message, whole):
            continue
        if any(form in whole.text for form in escaped(text)):
            continue  # it is there, altered
        which = f"{message['role']} message" + (" that calls tools" if message.get("tool_calls") else "")
        late = "late " if message["role"] == "system" and index and case.messages[index - 1]["role"] != "system" else ""
        second = "further " if message["role"] == "system" and index and not late else ""
        cause = f"{second or late}{message['role']}{' with calls' if message.get('tool_calls') else ''}".strip()
        article = "an" if which.startswith("a") else "a"
        said = f"the text of {article} {second}{late}{which} leaves no trace in the prompt"
        yield Violation("texts-kept", code_of(message, "lost"), cause, said, whole.chat, text, whole.text)


def _unknown_roles(case: Case, whole: Prompt) -> Iterator[Violation]:
    """A developer message is written under a role that no model of this template knows."""
    for index, place in whole.places.items():
        message = case.messages[index]
        if message["role"] == "developer" and is_unknown_role(case.subject.source, whole.text[: place.start]):
            said = "a developer message is written under a role that the template names nowhere"
            text = text_of(message)
            yield Violation("texts-kept", "RL103", "unknown role", said, whole.chat, text, whole.text, known=True)


def parts_there(message: Message, prompt: Prompt) -> bool:
    """Whether every line of a message's text, or of each of its parts, stands somewhere in the prompt."""
    content = message.get("content")
    texts = [part["text"] for part in content if "text" in part] if isinstance(content, list) else [text_of(message)]
    return all(_is_there(text, prompt) for text in texts)


def _is_there(text: str, prompt: Prompt) -> bool:
    """Whether every line of a text stands somewhere in the prompt."""
    pieces = [piece.strip() for piece in text.splitlines() if piece.strip()]
    return all(any(form in prompt.text for form in forms_of(piece)) for piece in pieces)


def escaped(text: str) -> list[str]:
    """How a text may stand in a prompt altered: as HTML (the first two), in one case, as Python writes it."""
    bare = text.strip()
    return [html.escape(bare), html.escape(bare, quote=False), bare.upper(), text.lower(), repr(bare)[1:-1]]


def texts_unaltered(case: Case) -> Iterator[Violation]:
    whole = case.whole
    if whole is None:
        return
    for index, message in enumerate(case.messages):
        text = text_of(message)
        if not text.strip():
            continue
        place = whole.places.get(index)
        if place is None:
            cause = _altered_elsewhere(text, message, whole)
            if cause is None:
                continue
            found = whole.text
            line = None
        elif place.written == text:
            cause = _as_object(text, message, whole)
            if cause is None:
                continue
            found, line = whole.text, whole.line_at(place.start)
        else:
            cause = _alteration(text, place.written, message)
            found = place.written
            line = whole.line_at(place.start)
        known = cause in ("trimmed", "own_reasoning")
        code = "RS103" if cause in ("cut_at_think", "own_reasoning") else code_of(message, "altered")
        said = {
            "trimmed": "is trimmed",
            "cut_at_think": "is cut at a tag of reasoning that it quotes",
            "own_reasoning": "is cut at the end of the reasoning that it begins with",
            "dumped": "is printed raw, as the object of the request",
            "quoted": "is put into quotes, as JSON",
            "escaped": "is escaped as HTML",
        }.get(cause, "is altered")
        message_text = f"the text of {place_name(index, message)} {said}"
        cause = f"{cause} {message['role']}"
        yield Violation("texts-unaltered", code, cause, message_text, whole.chat, text, found, known=known, line=line)


def _alteration(text: str, written: str, message: Message) -> str:
    if written.strip() == text.strip():
        return "trimmed"
    if message["role"] == "assistant" and thinks(text):
        return cut_of(text)
    if isinstance(message.get("content"), list) and "".join(written.split()) == "".join(text.split()):
        return "trimmed"
    return "escaped" if written in (html.escape(text), html.escape(text.strip())) else "altered"


def cut_of(text: str) -> str:
    """A text that begins with a tag holds reasoning of its own, which templates take out by design; elsewhere a tag is
    only quoted."""
    return "own_reasoning" if BEGINS_WITH_TAG.match(text) else "cut_at_think"


BEGINS_WITH_TAG = re.compile(r"\s*[<\[]")


def _as_object(text: str, message: Message, whole: Prompt) -> str | None:
    """How a text stands there whole, but inside what is more than the text: an object of the request, or quotes."""
    if isinstance(message.get("content"), list):
        return "dumped" if is_dumped(whole.text, text) else None
    return "quoted" if message["role"] == "tool" and stands_quoted(whole.text, text) else None


def stands_quoted(prompt: str, text: str) -> bool:
    """Whether a text stands there as a JSON string that is no value of an object and no item of a list, and is another
    text for it."""
    quoted = inner_json(text)
    at = prompt.find(f'"{quoted}"') if quoted != text else -1
    return at >= 0 and not prompt[:at].rstrip().endswith((":", ",", "[", "{"))


def _altered_elsewhere(text: str, message: Message, whole: Prompt) -> str | None:
    """How a text without a place was altered; None where it left no trace or is whole."""
    if any(form in whole.text for form in escaped(text)[:2]):
        return "escaped"
    if message["role"] == "assistant" and thinks(text):
        return cut_of(text)
    if isinstance(message.get("content"), list) and parts_there(message, whole):
        return None  # something stands between the parts
    return "altered" if _is_there(text, whole) or any(form in whole.text for form in escaped(text)) else None


def texts_once(case: Case) -> Iterator[Violation]:
    whole = case.whole
    if whole is None:
        return
    for index, place in whole.places.items():
        if place.count > 1:
            said = f"the text of {place_name(index, case.messages[index])} stands there {place.count} times"
            text = text_of(case.messages[index])
            line = whole.line_at(place.end)
            yield Violation(
                "texts-once",
                "CT106",
                case.messages[index]["role"],
                said,
                whole.chat,
                text,
                text * place.count,
                line=line,
            )


def texts_in_order(case: Case) -> Iterator[Violation]:
    whole = case.whole
    if whole is None:
        return
    order = sorted(whole.places)
    for before, after in pairwise(order):
        if whole.places[before].start <= whole.places[after].start:
            continue
        roles = case.messages[before]["role"], case.messages[after]["role"]
        system = "system" in roles or "developer" in roles
        if system and len(set(roles)) == 1:
            system = False
        said = f"{place_name(after, case.messages[after])} stands before {place_name(before, case.messages[before])}"
        as_called = roles == ("tool", "tool") and _called_before(case.messages, after, before)
        yield Violation(
            "texts-in-order",
            "RL107" if system else "TL114" if case.messages[before].get("tool_calls") else "CT106",
            "system" if system else " before ".join(reversed(roles)),
            said,
            whole.chat,
            text_of(case.messages[before]),
            text_of(case.messages[after]),
            known=system or as_called,
            line=whole.line_at(whole.places[after].start),
        )


def _called_before(messages: list[Message], one: int, other: int) -> bool:
    """Whether the call that a result answers stands before the call of another: results written in that order."""
    ids = [call.get("id") for message in messages for call in message.get("tool_calls") or []]
    first, second = (messages[i].get("tool_call_id") for i in (one, other))
    return first in ids and second in ids and ids.index(first) < ids.index(second)


def reasoning_in_loop(case: Case) -> Iterator[Violation]:
    """Reasoning before a call whose turn still goes on."""
    end = case.points[-1] if case.points else 0
    if not end or case.messages[end - 1]["role"] != "tool":
        return
    prompt = case.prompt(end)
    if prompt is None:
        return
    start = max((i for i in range(end) if case.messages[i]["role"] == "user"), default=0)
    for index in range(start, end):
        for name in REASONING_FIELDS:
            thought = case.messages[index].get(name)
            if not isinstance(thought, str) or not thought.strip():
                continue
            if not any(form in prompt.text for form in forms_of(thought.strip())) and not thinks(thought):
                said = f"the reasoning of {place_name(index, case.messages[index])} is dropped while its turn goes on"
                yield Violation("reasoning-in-loop", "RS102", "dropped", said, prompt.chat, thought, prompt.text)


LAWS = (
    Law("texts-kept", ("CT106", "CT104", "RL101", "RL103", "TL114"), "every text leaves a trace", texts_kept),
    Law("texts-unaltered", ("CT106", "CT104", "RS103"), "every text stands as it was sent", texts_unaltered),
    Law("texts-once", ("CT106",), "every text stands there once", texts_once),
    Law("texts-in-order", ("CT106", "RL107", "TL114"), "the texts stand in the order of the messages", texts_in_order),
    Law(
        "reasoning-in-loop",
        ("RS102",),
        "reasoning before a call stays while the tool turn goes on",
        reasoning_in_loop,
        "writes reasoning and tool calls",
        lambda supports: supports.reasoning is not None and supports.tool_calls,
    ),
)
