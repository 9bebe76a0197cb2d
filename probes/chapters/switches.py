"""The variables that a template takes from the caller: found by what it reads, understood by toggling them."""

from __future__ import annotations

import re
from typing import Any, Literal

from jinjarun.errors import quote
from probes.chats import canaries as c
from probes.chats.messages import Chat
from probes.rendering.input_form import PathObserver, cached_chat
from probes.rendering.renders import Outcome
from probes.rendering.variables import assigned_names, compared_strings, is_compared_with_numbers
from probes.report import Variable

Kind = Literal["boolean", "string", "number", "object", "unknown"]

MOST_VARIABLES = 24
"""Variables of one template that are tried."""
MOST_LITERALS = 6
EFFORTS = ("low", "medium", "high")
NUMBERS = (0, 512)
OF_ITS_OWN = "unlike all values tested"
TOOL_LIST = "a list of tools"
"""Stands for itself among the values tested."""
SHOWN = 60
"""Code points of a change that an effect quotes."""


def switches(on: PathObserver) -> list[Variable]:
    """Every variable of the caller that the template reads, by name."""
    source = on.renders.source
    own = assigned_names(source)
    found = []
    for name in on.variables[:MOST_VARIABLES]:
        variable = _Toggled(on, name).variable()
        if variable.effect != NO_EFFECT or name not in own:
            found.append(variable)
    return found


NO_EFFECT = "none was seen in the conversations tried"


class _Toggled:
    """One variable on the conversations that show most."""

    def __init__(self, on: PathObserver, name: str) -> None:
        self.on = on
        self.name = name
        form = on.form
        rich = c.reasoning_with_calls if on.call_form is not None else c.three_turns
        self.chats = [cached_chat(c.user_only, form), cached_chat(rich, on.best_form)]
        thinking = {key: True for key in ("enable_thinking", "thinking") if key in on.names and key != name}
        if thinking:
            self.chats.append({**self.chats[0], "variables": self.chats[0].get("variables", {}) | thinking})
        self._tested: list[Any] = []

    def variable(self) -> Variable:
        """What is to be said of the variable; the first conversation that shows an effect is described."""
        for chat in self.chats:
            absent = self.on.ask(_without(chat, self.name))
            values = self._values()
            outcomes = [(value, self._with(chat, value)) for value in values]
            self._tested += [value for value in values if not _listed(value, self._tested)]
            if any(_differs(outcome, absent) for _, outcome in outcomes):
                return self._described(chat, absent, outcomes)
        return Variable(
            name=self.name, kind="unknown", when_absent="renders", tested=self.tested, effect=NO_EFFECT, note=None
        )

    @property
    def tested(self) -> list[Any]:
        return [TOOL_LIST if isinstance(value, list) else value for value in self._tested]

    def _values(self) -> list[Any]:
        if "tool" in self.name:
            return [True, False, [c.tool()]]
        source = self.on.renders.source
        values: list[Any] = [True, False, *compared_strings(source, self.name)[:MOST_LITERALS]]
        if is_compared_with_numbers(source, self.name):
            values += NUMBERS
        if len(values) == 2:
            values += EFFORTS if "effort" in self.name else [c.VARIABLE]
        return values

    def _with(self, chat: Chat, value: Any) -> Outcome:
        return self.on.ask(_setting(chat, self.name, value))

    def _described(self, chat: Chat, absent: Outcome, outcomes: list[tuple[Any, Outcome]]) -> Variable:
        kind = self._kind(absent, outcomes)
        telling = [(value, outcome) for value, outcome in outcomes if _tells(value, kind)]
        same = next((_spelled(value) for value, outcome in telling if not _differs(outcome, absent)), None)
        when_absent = "fails" if absent.text is None else OF_ITS_OWN if same is None else f"same as {same}"
        changes = [(value, outcome) for value, outcome in telling if _differs(outcome, absent)] or outcomes
        return Variable(
            name=self.name,
            kind=kind,
            when_absent=when_absent,
            tested=self.tested,
            effect="; ".join(f"{_spelled(value)} {_change(absent, outcome, value)}" for value, outcome in changes),
            note=self._note(chat, absent, outcomes) if kind == "boolean" else None,
        )

    def _kind(self, absent: Outcome, outcomes: list[tuple[Any, Outcome]]) -> Kind:
        (_, true), (_, false) = outcomes[:2]
        for value, outcome in outcomes[2:]:
            if not outcome.ok or not _differs(outcome, absent):
                continue
            if isinstance(value, list):
                return "object"
            if value == c.VARIABLE and c.VARIABLE in (outcome.text or ""):
                return "string"
            if _differs(outcome, true) and _differs(outcome, false):
                return "string" if isinstance(value, str) else "number"
        if _differs(true, false):
            return "boolean"
        return "string" if any(isinstance(v, str) and o.ok and _differs(o, absent) for v, o in outcomes) else "unknown"

    def _note(self, chat: Chat, absent: Outcome, outcomes: list[tuple[Any, Outcome]]) -> str | None:
        """How the string "false" is taken, which shells and forms send for false."""
        (_, true), (_, false) = outcomes[:2]
        text = self._with(chat, "false")
        self._tested.append("false")
        if not _differs(text, false):
            return None
        if text.text is None:
            return "the string 'false' fails"
        if not _differs(text, true):
            return "the string 'false' counts as true"
        return "the string 'false' has no effect" if not _differs(text, absent) else "the string 'false' is neither"


def _tells(value: Any, kind: Kind) -> bool:
    """Whether a value is of the kind, so that its effect is worth telling."""
    kinds: dict[Kind, tuple[type, ...]] = {"boolean": (bool,), "string": (str,), "object": (list,), "number": (int,)}
    return kind == "unknown" or (isinstance(value, kinds[kind]) and (kind == "boolean") == isinstance(value, bool))


LONGEST_WORD = 24
OPEN_WORD = re.compile(r"<[^\s<>]*$|[^\s<>]+$")
REST_OF_WORD = re.compile(r"[^\s<>]{0,24}>?")


def _setting(chat: Chat, name: str, value: Any) -> Chat:
    return {**chat, "variables": {**chat.get("variables", {}), name: value}}


def _without(chat: Chat, name: str) -> Chat:
    if name not in chat.get("variables", {}):
        return chat
    rest = {other: value for other, value in chat["variables"].items() if other != name}
    return {**chat, "variables": rest}


def _differs(a: Outcome, b: Outcome) -> bool:
    return a.text != b.text


def _listed(value: Any, values: list[Any]) -> bool:
    return any(value == other and type(value) is type(other) for other in values)


def _spelled(value: Any) -> str:
    """A value as a request would have it, for a sentence."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return TOOL_LIST if isinstance(value, list) else "a text" if value == c.VARIABLE else f"{value!r}"


def _change(absent: Outcome, outcome: Outcome, value: Any) -> str:
    """What a value makes of the text that stands there without it."""
    if outcome.text is None:
        assert outcome.error is not None
        return f"fails: {quote(outcome.error.message)[:SHOWN]}"
    if absent.text is None:
        at = outcome.text.find(value) if value == c.VARIABLE else -1
        return "makes it render" + (f", and is written after {_quoted(outcome.text[:at][-20:])}" if at >= 0 else "")
    before, after = absent.text, outcome.text
    start, end = _changed(before, after)
    gone, come = before[start : len(before) - end], after[start : len(after) - end]
    where = "at the end" if end == 0 else "at the start" if start == 0 else "after " + _quoted(after[:start][-20:])
    if isinstance(value, str) and value == c.VARIABLE and c.VARIABLE in come:
        return f"is written {where}"
    if not gone:
        return f"adds {_quoted(come)} {where}"
    return f"removes {_quoted(gone)} {where}" if not come else f"writes {_quoted(come)} for {_quoted(gone)} {where}"


def _changed(before: str, after: str) -> tuple[int, int]:
    """How much both texts share at the start and at the end, words and tags left whole."""
    shorter = min(len(before), len(after))
    start = next((i for i, (x, y) in enumerate(zip(before, after, strict=False)) if x != y), shorter)
    end = 0
    while end < shorter - start and before[-1 - end] == after[-1 - end]:
        end += 1
    replaces = start + end < shorter
    replaces = start + end < shorter
    cut = OPEN_WORD.search(before, max(0, start - LONGEST_WORD), start)
    word = "" if cut is None else cut[0]
    if not (replaces or word.startswith("<")):
        return start, end
    rest = REST_OF_WORD.match(before, len(before) - end)
    return start - len(word), max(0, end - (len(rest[0]) if rest is not None else 0))


def _quoted(text: str) -> str:
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}...")
