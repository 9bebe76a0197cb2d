"""What one template usually writes around turns, measured in conversations with plain texts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from jinjarun.template import Rendered
from probes.chats.supports import NAME, TEXTS, Supports, beside_content, call, in_parts, result, say, tool
from probes.laws.base import Prompt, Subject
from probes.rendering.texts import MARKER

if TYPE_CHECKING:
    from probes.chats.named import Chat, Message


Pair = tuple[str, str, bool, bool]
"""The roles of two neighbours, whether tools are offered, and whether the first is the first message of all."""


ENDS = re.compile(r"end|eot|eom|eos|return|call|/", re.IGNORECASE)
"""What markers that end something are called."""


@dataclass(slots=True)
class Frames:
    """`end` is the marker that ends an answer, `opener` the one that opens turns; None where there is none.
    `closes`, `opens`: how often they stand between the texts of two neighbours, by the roles. `calls`: how often after
    a message with one, two calls. `prompts`: the generation prompt by the role of the last message."""

    end: str | None = None
    opener: str | None = None
    closes: dict[Pair, int] = field(default_factory=dict)
    opens: dict[Pair, int] = field(default_factory=dict)
    calls: dict[int, tuple[int, int]] = field(default_factory=dict)
    prompts: dict[str, str] = field(default_factory=dict)
    behind_answer: str = ""
    """What stands between an answer and the next question."""
    arguments_as_json: dict[str, bool] = field(default_factory=dict)
    """By the form in which arguments are sent: whether they stand in the prompt as a JSON document."""
    tool_form: int | None = None
    """Which of `calls.candidates` of a tool stands in the prompt as a JSON document; None where none does."""


def _form(supports: Supports, messages: list[Message]) -> list[Message]:
    lead = [say("system", TEXTS[0])] if supports.leading_system and messages[0]["role"] != "system" else []
    formed = [*lead, *messages]
    return formed if supports.string_content else [in_parts(message) for message in formed]


def _chat(supports: Supports, messages: list[Message], *, prompt: bool = True, offered: bool = False) -> Chat:
    chat: dict[str, Any] = {"messages": _form(supports, messages), "add_generation_prompt": prompt}
    if offered:
        chat["tools"] = [tool(bare=supports.bare)]
    if supports.variables:
        chat["variables"] = dict(supports.variables)
    return chat  # type: ignore[return-value]  # the keys of a Chat


def frames_of(subject: Subject) -> Frames:
    supports = subject.supports or Supports()
    found = Frames()
    user, answer = say("user", TEXTS[1]), say("assistant", TEXTS[2])
    turns = [user, answer, say("user", TEXTS[3]), say("assistant", TEXTS[4]), say("user", TEXTS[5])]
    _prompt(subject, found, "user", [user], offered=False)
    plain = _prompt_of(subject, _chat(supports, turns if supports.assistant else [user]))
    if plain is None:
        return found
    shift = len(plain.chat["messages"]) - len(turns)
    if supports.assistant and all(shift + i in plain.places for i in range(len(turns))):
        _markers(found, plain, shift)
        _count(found, plain)
    lead = [say("system", TEXTS[0])] if supports.system else []
    for led in (lead, [*lead, say("system", TEXTS[10])] if supports.second_system else lead, []):
        for offered in (False, True) if supports.tools else (False,):
            prompt = _prompt_of(subject, _chat(supports, [*led, *turns], offered=offered))
            if prompt is not None:
                _count(found, prompt)
    if supports.tool_calls:
        _calls(subject, supports, found, user, answer)
        _arguments(subject, supports, found, user)
    if supports.tools:
        _tools(subject, supports, found, user)
    return found


def _prompt_of(subject: Subject, chat: Chat) -> Prompt | None:
    rendered = subject.render(chat, spans=True)
    return Prompt(subject, chat, rendered) if isinstance(rendered, Rendered) else None


def _markers(found: Frames, plain: Prompt, shift: int) -> None:
    """Behind an answer the first marker that also stands before the first question, and that is none of an end by its
    name, opens the next turn; the one before it ends the answer. Of two answers that behind which more stands is taken.
    """
    places = plain.places
    answers = [plain.text[places[shift + i].end : places[shift + i + 1].start] for i in (1, 3)]
    after_answer = found.behind_answer = max(answers, key=lambda text: len(MARKER.findall(text)))
    markers = MARKER.findall(after_answer)
    before_first = plain.text[: places[shift].start]
    found.opener = next((mark for mark in markers if mark in before_first and not ENDS.search(mark)), None)
    ends = markers[: markers.index(found.opener)] if found.opener is not None else markers[:1]
    found.end = ends[-1] if ends and ends[-1] != found.opener else None
    if found.end is not None and found.opener is None and found.end in before_first:
        found.end = None


def _count(found: Frames, prompt: Prompt) -> None:
    messages = prompt.chat["messages"]
    for i, j in neighbours(prompt):
        pair = (messages[i]["role"], messages[j]["role"], "tools" in prompt.chat, i == 0)
        between = prompt.written(prompt.places[i].end, prompt.places[j].start)
        for marker, counts in ((found.end, found.closes), (found.opener, found.opens)):
            if marker is not None:
                counts[pair] = max(counts.get(pair, 0), between.count(marker))


def neighbours(prompt: Prompt) -> list[tuple[int, int]]:
    """Messages next to one another whose texts were both found; none where texts stand out of order."""
    starts = [prompt.places[i].start for i in sorted(prompt.places)]
    if starts != sorted(starts):
        return []
    return [
        (i, i + 1)
        for i in sorted(prompt.places)
        if i + 1 in prompt.places and prompt.places[i].end <= prompt.places[i + 1].start
    ]


def _calls(subject: Subject, supports: Supports, found: Frames, user: Message, answer: Message) -> None:
    for count in (1, 2) if supports.parallel_calls else (1,):
        message: Message = {"role": "assistant", **beside_content(supports.beside[0], TEXTS[6])}
        message["tool_calls"] = [call(n, {"place": TEXTS[6 + n]}, supports, NAME) for n in range(1, count + 1)]
        results = [result(n, TEXTS[11 + n]) for n in range(1, count + 1)]
        loop = [user, message, *results]
        ended = [*loop, answer, say("user", TEXTS[3])] if supports.answer_after_calls else loop
        prompt = _prompt_of(subject, _chat(supports, ended, offered=True))
        if prompt is None:
            continue
        _count(found, prompt)
        shift = len(prompt.chat["messages"]) - len(ended)
        first, reply = prompt.places.get(shift), prompt.places.get(shift + 2)
        if first is not None and reply is not None and first.end <= reply.start:
            between = prompt.written(first.end, reply.start)
            found.calls[count] = (
                between.count(found.end) if found.end is not None else 0,
                between.count(found.opener) if found.opener is not None else 0,
            )
        if count == 1:
            _prompt(subject, found, "tool", loop, offered=True)


def _prompt(subject: Subject, found: Frames, role: str, messages: list[Message], *, offered: bool) -> None:
    supports = subject.supports or Supports()
    asked = subject.render(_chat(supports, messages, offered=offered))
    bare = subject.render(_chat(supports, messages, prompt=False, offered=offered))
    if isinstance(asked, Rendered) and isinstance(bare, Rendered) and asked.text.startswith(bare.text):
        found.prompts[role] = asked.text[len(bare.text) :]


def _arguments(subject: Subject, supports: Supports, found: Frames, user: Message) -> None:
    from probes.laws.calls import documents, inside  # noqa: PLC0415  # it reads this module's Frames

    for form in supports.arguments:
        formed = replace(supports, arguments=(form,))
        message: Message = {"role": "assistant", **beside_content(supports.beside[0], TEXTS[6])}
        message["tool_calls"] = [call(1, {"place": TEXTS[7]}, formed)]
        rendered = subject.render(_chat(supports, [user, message, result(1, TEXTS[12])], offered=True))
        if isinstance(rendered, Rendered):
            found.arguments_as_json[form] = {"place": TEXTS[7]} in inside(documents(rendered.text))


def _tools(subject: Subject, supports: Supports, found: Frames, user: Message) -> None:
    from probes.laws.calls import candidates, documents, inside  # noqa: PLC0415

    rendered = subject.render(_chat(supports, [user], offered=True))
    if isinstance(rendered, Rendered):
        values = list(inside(documents(rendered.text)))
        forms = candidates(tool(bare=supports.bare))
        found.tool_form = next((number for number, wanted in enumerate(forms) if wanted in values), None)
