"""How an assistant's turn ends in what a template writes: which markers stand after an answer, and after calls.

The text after the assistant's last word is looked at twice: where the conversation ends there, and where it goes on.
What both have in common closes the turn. Formats that close no turn (GLM) end it with the marker that opens the next
one; formats that close the last turn otherwise than the others (gpt-oss) generate what they write last.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from jinjarun.sequences import common_prefix
from probes.chats import canaries
from probes.chats.canaries import USUAL, Form
from probes.rendering.markers import CONTROL_SHAPES, TAG_SHAPES
from probes.rendering.renders import APPLY, LLAMA_RAW, LLAMA_SERVER, RAW, dialect_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from probes.chats.messages import Chat
    from probes.rendering.renders import Renders

SEPARATOR = 40
"""The longest ordinary text between two turns that is taken for one a client can stop at."""

_PATHS = (RAW, LLAMA_RAW, APPLY, LLAMA_SERVER)
_FORMS = (USUAL, USUAL.but(beside="null"), USUAL.but(arguments="string"), USUAL.but(parts="yes"))

CONTROL = re.compile(CONTROL_SHAPES)
"""Shapes that nobody writes as ordinary text: such a marker is meant as one token."""


@dataclass(frozen=True, slots=True)
class Marker:
    """A marker in a text, and where it stands."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ends, `after` an answer or after calls.

    `closing`: the markers that close it, in order. `opening`: the first marker of what follows. `marker`: the one that
    ends the turn, the last that closes it or what opens the next. `separator`: the ordinary text before the next turn
    where there is no marker at all. `path` and `chat`: where it was seen.
    """

    after: Literal["answer", "calls"]
    closing: tuple[str, ...]
    opening: str | None
    marker: str | None
    separator: str | None
    path: str
    chat: Chat

    @property
    def markers(self) -> tuple[str, ...]:
        """All that a model writes from its last word into the next turn, in order."""
        return self.closing if self.opening is None else (*self.closing, self.opening)


def endings(renders: Renders, known: Iterable[str] = ()) -> tuple[Ending, ...]:
    """The ending of an answer, and of a turn with calls where the template writes calls and closes them as it closes
    answers; those that could be found.

    `known`: texts that are tokens, whatever their shape.
    """
    texts = frozenset(known)
    answer = _ask(renders, _ANSWER, texts)
    calls = _ask(renders, _CALLS, texts)
    if calls is not None:
        calls = _as_answers_end(_without_call_ends(renders, calls, answer, texts), answer)
    if (
        calls is not None
        and answer is not None
        and answer.closing
        and not calls.closing
        and calls.marker != answer.marker
    ):
        calls = None  # a history that forgets to close calls does not tell how they end
    return tuple(ending for ending in (answer, calls) if ending is not None)


def markers_in(text: str, known: frozenset[str] = frozenset()) -> Iterator[Marker]:
    """The markers of a text in order: what is known, and what is shaped like one."""
    for match in _pattern(known).finditer(text):
        yield Marker(match[0], match.start(), match.end())


@lru_cache(maxsize=32)
def _pattern(known: frozenset[str]) -> re.Pattern[str]:
    shapes = re.compile(f"{CONTROL_SHAPES}|{TAG_SHAPES}")
    odd = [text for text in known if text.strip() and not shapes.fullmatch(text)]
    literal = [re.escape(text) for text in sorted(odd, key=lambda text: (-len(text), text))]
    return re.compile("|".join([*literal, shapes.pattern]))


@dataclass(frozen=True, slots=True)
class _Question:
    """Two conversations that are equal up to `word`, the assistant's last: one ends there, one goes on to `then`."""

    after: Literal["answer", "calls"]
    word: str
    then: str
    last: Callable[[Form], Chat]
    middle: Callable[[Form], Chat]


def _call_last(form: Form) -> Chat:
    chat = canaries.one_call(form)
    return {**chat, "messages": chat["messages"][:-1], "add_generation_prompt": False}


def _answer_middle(form: Form) -> Chat:
    return canaries.reasoning(form, ())


_ANSWER = _Question("answer", canaries.ANSWER, canaries.SECOND_USER, canaries.prefill, _answer_middle)
_CALLS = _Question("calls", canaries.VALUE, canaries.RESULT, _call_last, canaries.one_call)


def _ask(renders: Renders, question: _Question, known: frozenset[str]) -> Ending | None:
    """The first answer over forms and paths. Where the usual form renders and the word is not written, only content
    null beside the calls is tried too: the template does not write calls, whatever their form."""
    loaded = [path for path in _PATHS if renders.loads(path) is None]
    for form in _FORMS:
        rendered: set[str] = set()
        for path in loaded:
            if dialect_of(path) in rendered:
                continue
            if (ending := _ending(renders, path, question, form, known)) is not None:
                return ending
            if renders.render(path, question.last(form)).ok:
                rendered.add(dialect_of(path))
        if rendered and form != USUAL:
            return None
    return None


def _ending(renders: Renders, path: str, question: _Question, form: Form, known: frozenset[str]) -> Ending | None:
    chat = question.last(form)
    outcome = renders.render(path, chat)
    last = _after(outcome.text, question.word)
    if outcome.ok and last is None:
        return None
    going_on = renders.render(path, question.middle(form)).text
    middle = _after(going_on, question.word, question.then)
    if last is None:
        last, chat = middle, question.middle(form)
    if middle is None:
        middle = last
    if last is None or middle is None:
        return None
    shared = common_prefix(last, middle)
    closing = [marker.text for marker in markers_in(last, known) if marker.end <= shared]
    following = [marker.text for marker in markers_in(middle, known) if marker.end > shared][:1]
    if not closing and (own := [marker.text for marker in markers_in(last, known)]):
        closing, following = own, []
    opens = _opens_turns(going_on or outcome.text or "", known)
    if opens in closing:
        cut = closing.index(opens)
        closing, following = closing[:cut], closing[cut : cut + 1]
    opening = following[0] if following else None
    separator = None
    if not closing and opening is None and middle.strip() and len(middle) <= SEPARATOR:
        separator = middle.rstrip()
    marker = closing[-1] if closing else opening
    return Ending(question.after, tuple(closing), opening, marker, separator, path, chat)


def _opens_turns(text: str, known: frozenset[str]) -> str | None:
    """The first marker before a conversation's first word that returns later. It closes nothing, but some templates
    open the model's turn whether or not that is asked for, and then it stands after every last message."""
    head = text.partition(canaries.USER)[0]
    return next((marker.text for marker in markers_in(head, known) if text.count(marker.text) > 1), None)


def _without_call_ends(renders: Renders, calls: Ending, answer: Ending | None, known: frozenset[str]) -> Ending:
    """Less the markers that end one call: those that also stand between two calls, and end no answer."""
    for form in _FORMS:
        text = renders.render(calls.path, canaries.parallel_calls(form)).text
        between = _after(text, canaries.VALUE, canaries.SECOND_VALUE)
        if between is not None:
            ends = {marker.text for marker in markers_in(between, known)}
            ends -= set(answer.closing if answer is not None else ())
            closing = tuple(text for text in calls.closing if text not in ends)
            return replace(calls, closing=closing, marker=closing[-1] if closing else calls.opening)
    return calls


def _as_answers_end(calls: Ending, answer: Ending | None) -> Ending:
    """The same marker that ends an answer, where it ends calls too."""
    ends = answer is not None and answer.marker is not None and answer.marker in calls.markers
    return replace(calls, marker=answer.marker) if answer is not None and ends else calls


def _after(text: str | None, word: str, then: str | None = None) -> str | None:
    """What stands after the last `word`, up to `then`; None where either is missing."""
    if text is None or (at := text.rfind(word)) < 0:
        return None
    rest = text[at + len(word) :]
    if then is None:
        return rest
    end = rest.find(then)
    return None if end < 0 else rest[:end]
