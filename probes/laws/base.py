"""What a law looks at (`Case`), and what it finds (`Break`).

A case is one conversation on the raw path of one engine, and every render of it that some law asked for, each made
once. Laws read where a text stands from the spans of a prompt: a text whose origin the template lost (by writing it as
JSON, by formatting it into another) is looked for by its characters.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from jinjarun.errors import JinjarunError, LimitExceeded
from jinjarun.limits import Limits
from jinjarun.sequences import common_prefix
from jinjarun.template import Rendered, Template
from probes.chats.supports import Supports, find_supports
from probes.rendering.renders import CLOCK, LLAMA_RAW, RAW, dialect_of
from probes.report import FROZEN_NOW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from jinjarun.template import Span
    from probes.chats.named import Chat, Message
    from probes.laws.frames import Frames

Severity = Literal["error", "warning", "info"]

CODES: dict[str, tuple[str, Severity]] = {
    "CT101": ("python-repr-in-prompt", "error"),
    "CT102": ("null-content-raises", "error"),
    "CT104": ("text-parts-lost-or-dumped", "error"),
    "CT106": ("content-altered", "error"),
    "PS101": ("earlier-turns-rewritten", "warning"),
    "PS102": ("tool-loop-rewritten", "error"),
    "PS103": ("answer-not-replayed", "warning"),
    "PS104": ("clock-in-prompt", "warning"),
    "PS105": ("keys-sorted", "warning"),
    "PT101": ("engines-differ", "warning"),
    "RL101": ("system-message-lost", "error"),
    "RL103": ("developer-role-lost", "warning"),
    "RL107": ("system-text-moves", "warning"),
    "RS102": ("reasoning-lost-in-tool-loop", "error"),
    "RS103": ("answer-text-cut-at-think", "error"),
    "SC104": ("forgeable-turn", "info"),
    "SC105": ("unbounded-work", "error"),
    "TL102": ("argument-form-raises", "error"),
    "TL104": ("double-encoded-arguments", "error"),
    "TL106": ("parallel-calls-broken", "error"),
    "TL107": ("call-name-missing", "error"),
    "TL108": ("turn-left-open-after-tools", "error"),
    "TL113": ("schema-forms-lost", "warning"),
    "TL114": ("text-beside-calls-lost", "error"),
    "TR101": ("generation-prompt-no-effect", "warning"),
}
"""The rules that laws speak for: code -> name and severity."""


@dataclass(frozen=True, slots=True)
class Break:
    """One law broken by one conversation.

    `cause` tells apart the ways in which a law breaks. `known` marks what a template does by design (old reasoning
    dropped, texts trimmed, a date): told, no failure. `kept` and `came` are the two texts that should be equal, or of
    which the second should begin with the first; `at` is where they part. `second` is the later request of a law that
    compares two. `line` is of the template; until `located` it may be that which wrote what stands at `at` in `prompt`.
    """

    law: str
    code: str
    cause: str
    message: str
    chat: Chat
    kept: str = ""
    came: str = ""
    second: Chat | None = None
    known: bool = False
    line: int | None = None
    prompt: Prompt | None = None

    def located(self) -> Break:
        """The same with its line, which needs spans: asked for only of what is shown."""
        return self if self.prompt is None else replace(self, line=self.prompt.line_at(self.at), prompt=None)

    @property
    def key(self) -> tuple[str, str]:
        """What is one defect of a template: the law and the way in which it breaks."""
        return self.law, self.cause

    @property
    def name(self) -> str:
        return CODES[self.code][0]

    @property
    def severity(self) -> Severity:
        return CODES[self.code][1]

    @property
    def at(self) -> int:
        return common_prefix(self.kept, self.came)


class Subject:
    """One template on the path that is judged: bare transformers if it renders there, else bare llama.cpp."""

    def __init__(
        self,
        source: str,
        *,
        bos_token: str = "",
        eos_token: str = "",
        limits: Limits | None = None,
        now: datetime | float | None = None,
    ) -> None:
        self.source = source
        self.bos_token, self.eos_token = bos_token, eos_token
        self.limits = limits if limits is not None else Limits()
        self.now: datetime | float = FROZEN_NOW if now is None else now
        self.templates: dict[str, Template] = {}
        self.refusals: dict[str, JinjarunError] = {}
        self.renders = 0
        for path in (RAW, LLAMA_RAW):
            dialect = dialect_of(path)
            try:
                self.templates[dialect] = Template(source, dialect, self.limits)
            except JinjarunError as error:
                self.refusals[dialect] = error
        self.dialect = "transformers"
        self.supports: Supports | None = None
        for dialect in self.templates:
            self.dialect = dialect
            self.supports = find_supports(self._text, source)
            if self.supports is not None:
                break

    def _text(self, chat: Chat) -> str | None:
        answer = self.render(chat)
        return answer.text if isinstance(answer, Rendered) else None

    def render(
        self, chat: Chat, *, dialect: str | None = None, now: datetime | float | None = None, spans: bool = False
    ) -> Rendered | JinjarunError:
        """The bare prompt of a request, or why there is none."""
        self.renders += 1
        try:
            return self.templates[dialect or self.dialect].render(
                chat["messages"],
                tools=chat.get("tools"),
                add_generation_prompt=chat.get("add_generation_prompt", True),
                bos_token=self.bos_token,
                eos_token=self.eos_token,
                variables=chat.get("variables"),
                now=self.now if now is None else now,
                spans=spans,
            )
        except JinjarunError as error:
            return error

    @property
    def other(self) -> str | None:
        """The engine that is not judged, where the template loads there too."""
        return next((dialect for dialect in self.templates if dialect != self.dialect), None)

    @cached_property
    def frames(self) -> Frames:
        from probes.laws.frames import frames_of  # noqa: PLC0415  # it asks this module's Subject

        return frames_of(self)

    @cached_property
    def engines_differ(self) -> frozenset[str]:
        from probes.laws.bounds import known_differences  # noqa: PLC0415  # it asks this module's Subject

        return known_differences(self)

    @cached_property
    def uses_clock(self) -> bool:
        return CLOCK in self.source


@dataclass(frozen=True, slots=True)
class Place:
    """Where the text of a message stands in a prompt. `exact`: unaltered; `own`: found by its origin, not by its
    characters; `count`: how often."""

    index: int
    start: int
    end: int
    written: str
    own: bool
    count: int = 1


GAP = "\0"
"""Stands for a text of the input in what the template wrote."""


class Prompt:
    """The text of a request, and where each message's text stands in it.

    Spans double the cost of a render, so that a prompt made without them makes them when a law first asks for places:
    most laws see from two texts that they hold.
    """

    def __init__(self, subject: Subject, chat: Chat, rendered: Rendered) -> None:
        self.subject = subject
        self.chat = chat
        self.text = rendered.text
        if rendered.spans:
            self.spans = rendered.spans

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """Empty where the request hits a limit only with spans."""
        rendered = self.subject.render(self.chat, spans=True)
        return rendered.spans if isinstance(rendered, Rendered) else ()

    @cached_property
    def places(self) -> dict[int, Place]:
        return _places(self.chat["messages"], self.text, self.spans)

    def only(self, text: str) -> int:
        """Where this text stands if it stands there once; else -1."""
        at = self.text.find(text)
        return at if at >= 0 and self.text.find(text, at + 1) < 0 else -1

    def place(self, index: int) -> Place | None:
        """Where the text of a message stands: by its characters, if they stand there once and nothing of them could be
        trimmed; else by its origin."""
        text = text_of(self.chat["messages"][index])
        at = self.only(text) if text and text == text.strip() and "places" not in self.__dict__ else -1
        return self.places.get(index) if at < 0 else Place(index, at, at + len(text), text, own=False)

    def of(self, origin: str) -> list[Span]:
        """The spans that stem from this place of the input or from below it."""
        return [span for span in self.spans if under(span.origin, origin)]

    def written(self, start: int, end: int) -> str:
        """What the template itself wrote between two places, a gap where the input's texts stood."""
        if start >= min(end, len(self.text)):
            return ""
        starts, own = self._own
        first, last = max(0, bisect_right(starts, start) - 1), bisect_left(starts, end)
        pieces = own[first:last]
        if pieces and pieces[-1] != GAP:
            pieces[-1] = pieces[-1][: end - starts[last - 1]]
        if pieces and pieces[0] != GAP:
            pieces[0] = pieces[0][max(0, start - starts[first]) :]
        return "".join(pieces)

    @cached_property
    def _own(self) -> tuple[list[int], list[str]]:
        """Where each span begins, and its text, or a gap where it is the input's."""
        return [span.start for span in self.spans], [
            GAP if of_request(span.origin) else span.text for span in self.spans
        ]

    def line_at(self, at: int) -> int | None:
        """The line of the template that wrote what stands there, or what stands before it."""
        line = None
        for span in self.spans:
            if span.start > at and line is not None:
                break
            if span.origin.startswith("line "):
                line = int(span.origin.removeprefix("line "))
                if span.end > at:
                    break
        return line


def of_request(origin: str) -> bool:
    """Whether a text stems from messages or tools, not from the template or the model's special tokens."""
    return origin.startswith(("messages", "tools"))


def under(place: str, origin: str) -> bool:
    return place.startswith(origin) and place[len(origin) : len(origin) + 1] in ("", ".", "[")


def text_of(message: Message) -> str:
    """The text of a message: its content, or the texts of its parts one after the other."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return ""


def inner_json(text: str) -> str:
    """A text as it stands between the quotes of a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def forms_of(text: str) -> Iterator[str]:
    """How a text may stand in a prompt unharmed: as it is, or inside a JSON string."""
    yield text
    yield inner_json(text)
    yield json.dumps(text)[1:-1]


def _places(messages: list[Message], prompt: str, spans: tuple[Span, ...]) -> dict[int, Place]:
    places: dict[int, Place] = {}
    own: dict[int, list[Span]] = {}
    for span in spans:
        found = CONTENT.match(span.origin)
        if found is not None:
            own.setdefault(int(found[1]), []).append(span)
    cursor = 0
    for index, message in enumerate(messages):
        text = text_of(message)
        if not text.strip():
            continue
        place = _by_origin(index, text, own.get(index, [])) or _by_text(index, text, prompt, cursor)
        if place is not None:
            places[index] = place
            cursor = max(cursor, place.start)
    return places


CONTENT = re.compile(r"messages\[(\d+)\]\.content(?![\w])")


def _by_origin(index: int, text: str, spans: list[Span]) -> Place | None:
    if not spans:
        return None
    written = "".join(span.text for span in spans)
    count = (
        len(written) // len(text) if len(written) >= len(text) and written == text * (len(written) // len(text)) else 1
    )
    if count > 1:
        return Place(index, spans[0].start, spans[0].start + len(text), text, own=True, count=count)
    return Place(index, spans[0].start, spans[-1].end, written, own=True)


def _by_text(index: int, text: str, prompt: str, cursor: int) -> Place | None:
    for wanted in (text, text.strip()):
        for form in forms_of(wanted):
            at = prompt.find(form, cursor)
            at = at if at >= 0 else prompt.find(form)
            if at >= 0:
                return Place(index, at, at + len(form), wanted, own=False)
    return None


REQUESTS = 3
"""Requests of one conversation that are rendered."""


class Case:
    """A conversation and its renders on one subject."""

    def __init__(self, subject: Subject, chat: Chat) -> None:
        self.subject = subject
        self.chat = chat
        self.messages = chat["messages"]
        self._whole = len(self.messages), self.messages[-1]["role"] != "assistant"
        self._prompts: dict[tuple[int, bool], Prompt | JinjarunError] = {}

    @property
    def supports(self) -> Supports:
        return self.subject.supports or Supports()

    def request(self, end: int | None = None, *, prompt: bool = True, tools: int | None = None) -> Chat:
        """The conversation up to `end` messages, with or without a generation prompt, with the first `tools` tools."""
        chat: dict[str, Any] = {**self.chat, "messages": self.messages[:end]}
        chat["add_generation_prompt"] = prompt
        if tools is not None:
            chat["tools"] = self.chat["tools"][:tools]
        return chat  # type: ignore[return-value]  # the keys of a Chat

    def prompt(self, end: int | None = None, *, prompt: bool = True) -> Prompt | None:
        """The prompt of that request; None where the template fails."""
        answer = self.answer(end, prompt=prompt)
        return answer if isinstance(answer, Prompt) else None

    def answer(self, end: int | None = None, *, prompt: bool = True) -> Prompt | JinjarunError:
        key = (len(self.messages) if end is None else end, prompt)
        if key not in self._prompts:
            chat = self.request(key[0], prompt=prompt)
            rendered = self.subject.render(chat, spans=key == self._whole)
            self._prompts[key] = Prompt(self.subject, chat, rendered) if isinstance(rendered, Rendered) else rendered
        return self._prompts[key]

    @cached_property
    def whole(self) -> Prompt | None:
        """The prompt of the whole conversation."""
        return self.prompt(prompt=self._whole[1])

    @cached_property
    def points(self) -> list[int]:
        """The counts of messages at which the conversation is a request: after the user's last message of a turn, and
        after the last result of a round. Of a long conversation only the last: shorter ones are made up, too."""
        found = []
        for i, message in enumerate(self.messages):
            after = self.messages[i + 1]["role"] if i + 1 < len(self.messages) else None
            if message["role"] in ("user", "tool") and after in (None, "assistant"):
                found.append(i + 1)
        return found[-REQUESTS:]

    def history(self, end: int) -> str | None:
        """The prompt of a request up to where its generation prompt begins."""
        asked = self.prompt(end)
        if asked is None:
            return None
        usual = self.subject.frames.prompts.get(self.messages[end - 1]["role"])
        if usual is not None and asked.text.endswith(usual):
            return asked.text[: len(asked.text) - len(usual)]
        bare = self.prompt(end, prompt=False)
        return asked.text if bare is None else asked.text[: common_prefix(asked.text, bare.text)]

    @cached_property
    def failures(self) -> list[tuple[Chat, JinjarunError]]:
        """Renders that failed so far, with their requests."""
        return [
            (self.request(end, prompt=prompt), answer)
            for (end, prompt), answer in self._prompts.items()
            if isinstance(answer, JinjarunError)
        ]

    @property
    def limited(self) -> bool:
        return any(isinstance(answer, LimitExceeded) for answer in self._prompts.values())


@dataclass(frozen=True, slots=True)
class Law:
    """`needs` says what a template must support, in words that follow "the template"; `heavy` laws are asked of few
    conversations, because they render many times."""

    name: str
    codes: tuple[str, ...]
    says: str
    check: Callable[[Case], Iterator[Break]]
    needs: str = ""
    supported: Callable[[Supports], bool] = lambda supports: True
    heavy: bool = False
