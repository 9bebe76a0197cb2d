"""The variables that a template takes from the caller: found by what it reads, understood by toggling them."""

from __future__ import annotations

from typing import Any, Literal

from jinjarun.errors import quote
from probes import canaries as c
from probes.chats import Chat
from probes.renders import Outcome
from probes.report import Variable
from probes.variables import assigned_names, compared_strings
from probes.witness import Witness, made

Kind = Literal["boolean", "string", "number", "object", "unknown"]

MOST_VARIABLES = 24
"""Variables of one template that are tried."""
MOST_LITERALS = 6
EFFORTS = ("low", "medium", "high")
TOOL_LIST = "a list of tools"
"""Stands for itself among the values tested."""
SHOWN = 60
"""Code points of a change that an effect quotes."""


def switches(witness: Witness) -> list[Variable]:
    """Every variable of the caller that the template reads, by name."""
    source = witness.renders.source
    own = assigned_names(source)
    found = []
    for name in witness.variables[:MOST_VARIABLES]:
        variable = _Toggled(witness, name).variable()
        if variable.effect != NO_EFFECT or name not in own:
            found.append(variable)
    return found


NO_EFFECT = "none was seen in the conversations tried"


class _Toggled:
    """One variable on the conversations that show most."""

    def __init__(self, witness: Witness, name: str) -> None:
        self.witness = witness
        self.name = name
        form = witness.form
        rich = c.reasoning_with_calls if witness.calling is not None else c.three_turns
        self.chats = [made(rich, form if witness.calling is None else witness.calling[0]), made(c.user_only, form)]
        self._tested: list[Any] = []

    def variable(self) -> Variable:
        """What is to be said of the variable; the first conversation that shows an effect is described."""
        for chat in self.chats:
            absent = self.witness.ask(_without(chat, self.name))
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
        if literals := self._literals():
            return [True, False, *literals]
        return [True, False, *(EFFORTS if "effort" in self.name else [c.VARIABLE])]

    def _literals(self) -> list[str]:
        """The strings that the template compares the variable with."""
        return compared_strings(self.witness.renders.source, self.name)[:MOST_LITERALS]

    def _with(self, chat: Chat, value: Any) -> Outcome:
        return self.witness.ask(_setting(chat, self.name, value))

    def _described(self, chat: Chat, absent: Outcome, outcomes: list[tuple[Any, Outcome]]) -> Variable:
        by_value = {_spelled(value): outcome for value, outcome in outcomes}
        kind = self._kind(absent, outcomes)
        same = next((spelled for spelled, outcome in by_value.items() if not _differs(outcome, absent)), None)
        when_absent = "fails" if absent.text is None else "a text of its own" if same is None else f"same as {same}"
        told = [
            f"{_spelled(value)} {_change(absent, outcome, value)}"
            for value, outcome in outcomes
            if _differs(outcome, absent) and not (kind in {"string", "object"} and isinstance(value, bool))
        ]
        note = self._note(chat, absent, by_value) if kind == "boolean" else None
        return Variable(
            name=self.name,
            kind=kind,
            when_absent=when_absent,
            tested=self.tested,
            effect="; ".join(dict.fromkeys(told)) or "; ".join(self._failures(outcomes)),
            note=note,
        )

    def _failures(self, outcomes: list[tuple[Any, Outcome]]) -> list[str]:
        return [f"{_spelled(value)} {_change(outcome, outcome, value)}" for value, outcome in outcomes]

    def _kind(self, absent: Outcome, outcomes: list[tuple[Any, Outcome]]) -> Kind:
        if any(isinstance(value, list) and _differs(outcome, absent) and outcome.ok for value, outcome in outcomes):
            return "object"
        strings = [outcome for value, outcome in outcomes if isinstance(value, str)]
        (_, true), (_, false) = outcomes[:2]
        if any(value == c.VARIABLE and c.VARIABLE in (outcome.text or "") for value, outcome in outcomes):
            return "string"
        if any(o.ok and _differs(o, absent) and _differs(o, true) and _differs(o, false) for o in strings):
            return "string"
        if _differs(true, false):
            return "boolean"
        return "string" if any(o.ok and _differs(o, absent) for o in strings) else "unknown"

    def _note(self, chat: Chat, absent: Outcome, by_value: dict[str, Outcome]) -> str | None:
        """How the string "false" is taken, which shells and forms send for false."""
        text = self._with(chat, "false")
        self._tested.append("false")
        if not _differs(text, by_value["false"]):
            return None
        if text.text is None:
            return "the string 'false' fails"
        if not _differs(text, by_value["true"]):
            return "the string 'false' counts as true"
        return "the string 'false' has no effect" if not _differs(text, absent) else "the string 'false' is neither"


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
        return "renders"
    before, after = absent.text, outcome.text
    start = next(
        (i for i, (x, y) in enumerate(zip(before, after, strict=False)) if x != y), min(len(before), len(after))
    )
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    gone, come = before[start : len(before) - end], after[start : len(after) - end]
    where = "at the end" if end == 0 else "at the start" if start == 0 else "after " + _quoted(after[:start][-20:])
    if isinstance(value, str) and value == c.VARIABLE and c.VARIABLE in come:
        return f"is written {where}"
    if not gone:
        return f"adds {_quoted(come)} {where}"
    return f"removes {_quoted(gone)} {where}" if not come else f"writes {_quoted(come)} for {_quoted(gone)} {where}"


def _quoted(text: str) -> str:
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}...")
