"""Messages of every kind that answers have, written and read back: what of them cannot be told from its text."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from probes.chapters.response.law import Meaning, Reading, Verdict
from probes.chats.messages import tool

if TYPE_CHECKING:
    from jinjarun.responses import ResponseSyntax
    from probes.chapters.shape.requests import Requests

PROPERTIES: dict[str, Any] = {
    "text": {"type": "string"},
    "count": {"type": "integer"},
    "ratio": {"type": "number"},
    "sure": {"type": "boolean"},
    "words": {"type": "array", "items": {"type": "string"}},
    "more": {"type": "object"},
}
TOOLS = [tool("look_up", "Looks something up", PROPERTIES, ["text"]), tool("files.list-all", "Lists files", {})]
"""What is offered to the template, and named in the calls below."""


@dataclass(frozen=True, slots=True)
class Check:
    """A kind of message and what became of it: see `ReadBack`. `meant` and `other` are two messages with one `text`
    where the verdict is "same text"."""

    kind: str
    verdict: Verdict
    text: str
    meant: Meaning
    other: Meaning | None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


def meanings(syntax: ResponseSyntax) -> dict[str, Meaning]:
    """A message of each kind, with the syntax's own markers in some."""

    def call(**arguments: Any) -> tuple[tuple[str, Any], ...]:
        return (("look_up", arguments),)

    thought = "First the garden.\nThen the house."
    found: dict[str, Meaning] = {
        "text": ("The wren sings.", "", ()),
        "text with space at its edges": ("  \n The wren sings. \n\n", "", ()),
        "code": ('```json\n{"name": "look_up", "arguments": {"text": "x"}}\n```', "", ()),
        "reasoning": ("The wren sings.", thought, ()),
        "reasoning with space at its edges": ("The wren sings.", f"\n  {thought} \n", ()),
    }
    if syntax.calls is None:
        return found
    found |= {
        "call without arguments": ("", "", (("files.list-all", {}),)),
        "call": ("", "", call(text="Zürich", count=3)),
        "quotes and line breaks": ("", "", call(text='"no" \\ twice\n\tit\'s <b>')),
        "space at the edges of an argument": ("", "", call(text="  a b\n")),
        "empty argument": ("", "", call(text="")),
        "texts that look like other values": ("", "", call(text="12")),
        "a text that looks like true": ("", "", call(text="true")),
        "numbers and truth": ("", "", call(text="t", count=-2, ratio=0.5, sure=True)),
        "false": ("", "", call(text="t", sure=False)),
        "list": ("", "", call(text="t", words=["a b", "", "null"])),
        "object": ("", "", call(text="t", more={"name": 'a"b', "deep": {"x": {}, "y": [1, True]}})),
        "null inside of an object": ("", "", call(text="t", more={"none": None})),
        "two calls": ("", "", (*call(text="a"), *call(text="b"))),
        "text beside a call": ("I look.", "", call(text="a")),
        "reasoning before a call": ("", thought, call(text="a")),
        "reasoning and text before a call": ("I look.", thought, call(text="a")),
    }
    for mark in _closes(syntax):
        found[f"an argument that holds {mark}"] = ("", "", call(text=f"a {mark} b", count=1))
    start = (syntax.calls.section.open + syntax.calls.open).split()
    if start:
        found[f"a text that quotes {start[0]}"] = (f"Calls begin with {start[0]} here.", "", ())
    return found


def _closes(syntax: ResponseSyntax) -> list[str]:
    """What closes a value, and what closes a call."""
    calls = syntax.calls
    if calls is None:
        return []
    found = [calls.close.strip(), calls.section.close.strip()]
    if calls.call.style == "pieces" and calls.call.arguments.style == "tagged":
        for value in calls.call.arguments.values:
            found.append("".join(piece.text or "text" for piece in value.close).strip())
    return [mark.split()[0] for mark in dict.fromkeys(found) if mark]


def checks(ask: Requests, syntax: ResponseSyntax) -> list[Check]:
    """What becomes of a message of each kind; those that the template does not write at all are left out."""
    found = []
    plain, calling = Reading(ask, syntax), Reading(ask, syntax, TOOLS)
    for kind, meant in meanings(syntax).items():
        reading = calling if meant[2] else plain
        back = reading.back(meant)
        if back.verdict != "not written":
            found.append(Check(kind, back.verdict, back.text, meant, back.other))
    return found
