"""What one template usually writes around turns, measured in conversations with plain texts, each part when asked."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from jinjarun.sequences import common_prefix
from probes.chats import canaries
from probes.chats.messages import call, result, say, tool
from probes.chats.supports import Supports
from probes.laws.documents import candidates, documents, inside
from probes.laws.prompt import Prompt
from probes.rendering.input_form import cached_chat
from probes.rendering.markers import ANY_MARKER, MARKER

if TYPE_CHECKING:
    from collections.abc import Callable

    from probes.chats.canaries import Form
    from probes.chats.messages import ArgumentForm, Chat, Message
    from probes.laws.subject import Subject

TEXTS = tuple(f"Canary {number} sings." for number in range(48301, 48320))
NAME = "tell_weather"
TOOL = tool(NAME, TEXTS[18], {"place": {"type": "string", "description": "A town."}}, ["place"])

Pair = tuple[str, str, bool, bool]
"""The roles of two neighbours, whether tools are offered, and whether the first is the first message of all."""


ENDS = re.compile(r"end|eot|eom|eos|return|call|/", re.IGNORECASE)
"""What markers that end something are called."""


@dataclass(frozen=True, slots=True)
class Marks:
    """`end` is the marker that ends an answer, `opener` the one that opens turns; None where there is none.
    `behind_answer` is what stands between an answer and the next question."""

    end: str | None = None
    opener: str | None = None
    behind_answer: str = ""


@dataclass(slots=True)
class Counts:
    """`closes`, `opens`: how often the markers stand between the texts of two neighbours, by the roles."""

    closes: dict[Pair, int] = field(default_factory=dict)
    opens: dict[Pair, int] = field(default_factory=dict)


class Frames:
    """What is usual in the prompts of one template."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.supports = subject.on.supports or Supports()
        self.form = subject.on.system_form
        self.call_form = subject.on.best_form

    @cached_property
    def prompts(self) -> dict[str, str]:
        """The generation prompt by the role of the last message, user or tool."""
        found = {}
        builds = {"user": (canaries.user_only, self.form)}
        if self.supports.tool_calls:
            builds["tool"] = (canaries.one_call, self.call_form)
        for role, (build, form) in builds.items():
            chat = cached_chat(build, form)
            asked = self.subject.on.ask(chat).text
            bare = self.subject.renders.render(self.subject.path, {**chat, "add_generation_prompt": False}).text
            if asked is not None and bare is not None and asked.startswith(bare):
                found[role] = asked[len(bare) :]
        return found

    @property
    def end(self) -> str | None:
        return self.marks.end

    @property
    def opener(self) -> str | None:
        return self.marks.opener

    @cached_property
    def marks(self) -> Marks:
        """Behind an answer the first marker that also stands before the first question, and that is none of an end by
        its name, opens the next turn; the one before it ends the answer. Of two answers that behind which more stands
        is taken."""
        plain = self._prompt(TURNS if self.supports.assistant else TURNS[:1])
        if plain is None or not self.supports.assistant:
            return Marks()
        places, shift = plain.places, len(plain.chat["messages"]) - len(TURNS)
        if not all(shift + i in places for i in range(len(TURNS))):
            return Marks()
        answers = [plain.text[places[shift + i].end : places[shift + i + 1].start] for i in (1, 3)]
        behind = max(answers, key=lambda text: len(MARKER.findall(text)))
        markers = MARKER.findall(behind)
        before_first = plain.text[: places[shift].start]
        opener = next((mark for mark in markers if mark in before_first and not ENDS.search(mark)), None)
        ends = markers[: markers.index(opener)] if opener is not None else markers[:1]
        end = ends[-1] if ends and ends[-1] != opener else None
        if end is not None and opener is None and end in before_first:
            end = None
        return Marks(end, opener, behind)

    @cached_property
    def markers(self) -> tuple[str, ...]:
        """Every marker that the template writes around plain turns, those that open and end turns first."""
        lead = [say("system", TEXTS[0])] if self.supports.system else []
        turns = TURNS[:3] if self.supports.assistant else TURNS[:1]
        prompt = self._prompt([*lead, *turns])
        text = "" if prompt is None else prompt.text  # with the roles, which are the input's and part of markers
        found = [mark for mark in (*MARKER.findall(text), *ANY_MARKER.findall(text)) if "Canary" not in mark]
        first = (mark for mark in (self.opener, self.end) if mark is not None)
        return tuple(dict.fromkeys([*first, *found]))

    @property
    def closes(self) -> dict[Pair, int]:
        return self._counts.closes

    @property
    def opens(self) -> dict[Pair, int]:
        return self._counts.opens

    @cached_property
    def _counts(self) -> Counts:
        supports, found = self.supports, Counts()
        lead = [say("system", TEXTS[0])] if supports.system else []
        turns = TURNS if supports.assistant else TURNS[:1]
        for led in (lead, [*lead, say("system", TEXTS[10])] if supports.second_system else lead, []):
            for offered in (False, True) if supports.tools else (False,):
                self._count(found, self._prompt([*led, *turns], offered=offered))
        if supports.tool_calls:
            for count in (1, 2) if supports.parallel_calls else (1,):
                loop = [
                    TURNS[0],
                    self._calling(count),
                    *(result(TEXTS[11 + n], _id(n), NAME) for n in range(1, count + 1)),
                ]
                ended = [*loop, TURNS[1], TURNS[2]] if supports.answer_after_calls else loop
                self._count(found, self._prompt(ended, offered=True, form=self.call_form))
        return found

    def _count(self, found: Counts, prompt: Prompt | None) -> None:
        if prompt is None:
            return
        messages = prompt.chat["messages"]
        for i, j in neighbours(prompt):
            pair = (messages[i]["role"], messages[j]["role"], "tools" in prompt.chat, i == 0)
            between = prompt.written(prompt.places[i].end, prompt.places[j].start)
            for marker, counts in ((self.end, found.closes), (self.opener, found.opens)):
                if marker is not None:
                    counts[pair] = max(counts.get(pair, 0), between.count(marker))

    @cached_property
    def arguments_as_json(self) -> dict[str, bool]:
        """By the form in which arguments are sent: whether they stand in the prompt as a JSON document."""
        found: dict[str, bool] = {}
        for kind in self.supports.arguments:
            form = self.call_form.but(arguments=kind)
            loop = [TURNS[0], self._calling(1, kind), result(TEXTS[12], _id(1), NAME)]
            text = self.subject.render(form.chat(loop, [TOOL])).text
            if text is not None:
                found[kind] = {"place": TEXTS[7]} in inside(documents(text))
        return found

    @cached_property
    def tool_form(self) -> int | None:
        """Which of `candidates` of a tool stands in the prompt as a JSON document; None where none does."""
        if not self.supports.tools:
            return None
        chat = self.form.but(bare=self.supports.bare).chat([TURNS[0]], [TOOL])
        text = self.subject.render(chat).text
        if text is None:
            return None
        values = list(inside(documents(text)))
        forms = candidates(chat["tools"][0])
        return next((number for number, wanted in enumerate(forms) if wanted in values), None)

    def _calling(self, count: int, kind: ArgumentForm | None = None) -> Message:
        form = self.call_form
        message = form.calling()
        if form.beside == "text":
            message["content"] = TEXTS[6]
        message["tool_calls"] = [
            call(NAME, {"place": TEXTS[6 + n]}, _id(n), form=kind or form.arguments, bare=form.bare)
            for n in range(1, count + 1)
        ]
        return message

    def _prompt(self, messages: list[Message], *, offered: bool = False, form: Form | None = None) -> Prompt | None:
        chat: Chat = (form or self.form).chat(messages, [TOOL] if offered else None)
        prompt = self.subject.prompt(chat, spans=True)
        return prompt if isinstance(prompt, Prompt) else None


TURNS = [
    say("user", TEXTS[1]),
    say("assistant", TEXTS[2]),
    say("user", TEXTS[3]),
    say("assistant", TEXTS[4]),
    say("user", TEXTS[5]),
]
"""A plain conversation."""


def _id(number: int) -> str:
    return f"call{number:05}"


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


def frames_of(subject: Subject) -> Frames:
    """The frames of a template, measured once."""
    return subject.measured(Frames)


def history_in(subject: Subject, asked: Prompt, bare: Callable[[], Prompt | None] | None = None) -> str:
    """A prompt up to where its generation prompt begins; `bare` gives the same without one (default: it is rendered),
    and is asked where the usual one does not stand there."""
    usual = frames_of(subject).prompts.get(asked.chat["messages"][-1]["role"])
    if usual is not None and asked.text.endswith(usual):
        return asked.text[: len(asked.text) - len(usual)]
    if bare is None:
        answer = subject.prompt({**asked.chat, "add_generation_prompt": False})
        without = answer if isinstance(answer, Prompt) else None
    else:
        without = bare()
    return asked.text if without is None else asked.text[: common_prefix(asked.text, without.text)]
