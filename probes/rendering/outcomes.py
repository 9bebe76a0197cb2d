"""What became of a text of the input: written, printed raw inside a dump of its object, lost, or refused.

Judged from output alone. A canary (see `canaries`) that stands in the output was written, unless the template printed
the whole message or content part around it: that shows the caller's wire format, not the model's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from jinjarun.errors import REFUSAL_LIMIT, TemplateRaised, quote
from probes.chats.canaries import PARAMETER
from probes.rendering.renders import EvidenceBook, Outcome

if TYPE_CHECKING:
    from jinjarun.errors import JinjarunError
    from probes.chats.messages import Chat

Fate = Literal["written", "dumped", "lost", "raised", "limit"]
Style = Literal["json", "own", "repr", "escaped"]

AROUND = 40
"""Code points of output that evidence shows on both sides of a canary."""
SHORT = 120
"""Characters of an engine's error that are quoted."""
DUMP_REACH = 20_000
"""Code points within which the opening brace of a dump is looked for."""
DUMP = re.compile(
    r"""['"]role\\?['"]\s*:\s*\\?['"](?:system|developer|user|assistant|tool)\\?['"]"""
    r"""|['"]type\\?['"]\s*:\s*\\?['"](?:text|image|image_url|audio|input_audio|audio_url)\\?['"]"""
)
"""The keys by which a printed message or content part is known, as JSON, as Python's repr, or quoted once more."""
AS_REPR, AS_JSON = (re.compile(rf"{quote}{PARAMETER}{quote}\s*:") for quote in "'\"")
ESCAPED = re.compile(rf'{PARAMETER}\\+"')
NOTHING_PRINTED = re.compile(r"\b(?:None|null|none|undefined)\b")


@dataclass(frozen=True, slots=True)
class Shown:
    """One render that an answer rests on, and what is to be seen there."""

    chat: Chat
    path: str
    outcome: str
    excerpt: str = ""
    span: tuple[int, int] | None = None
    line: int | None = None

    def cited(self, book: EvidenceBook) -> str:
        return book.cite(self.chat, self.path, self.outcome, excerpt=self.excerpt, span=self.span, line=self.line)


def fate_of(outcome: Outcome, *canaries: str) -> Fate:
    """The fate of the canary that fared worst."""
    if outcome.text is None:
        return "limit" if outcome.limited else "raised"
    found: Fate = "written"
    for canary in canaries:
        if canary not in outcome.text:
            return "lost"
        if is_dumped(outcome.text, canary):
            found = "dumped"
    return found


def is_dumped(text: str, canary: str) -> bool:
    """Whether the canary stands nowhere but inside printed objects of messages or parts."""
    if not _holds_dump(text):
        return False
    at = text.find(canary)
    while at >= 0:
        if not _inside_dump(text, at):
            return False
        at = text.find(canary, at + 1)
    return True


@lru_cache(maxsize=32)
def _holds_dump(text: str) -> bool:
    return DUMP.search(text) is not None


def _inside_dump(text: str, at: int) -> bool:
    """Every pair of braces around the place is looked at, from the inmost out."""
    depth = 0
    for i in range(at - 1, max(-1, at - DUMP_REACH), -1):
        if text[i] == "}":
            depth += 1
        elif text[i] == "{" and depth:
            depth -= 1
        elif text[i] == "{" and DUMP.search(text, i, _closing(text, at)):
            return True
    return False


def _closing(text: str, at: int) -> int:
    """The end of the text that the object around `at` may still hold: after its last brace before a line ends."""
    end = text.find("\n", at)
    return text.rfind("}", at, end if end >= 0 else len(text)) + 1 or at


def argument_style(text: str) -> Style:
    """How the arguments of the canary calls were written: JSON, the template's own markup, Python's repr of the
    object, or JSON quoted a second time."""
    if ESCAPED.search(text):
        return "escaped"
    if AS_REPR.search(text):
        return "repr"
    return "json" if AS_JSON.search(text) else "own"


def prints_nothing_as_text(text: str, other: str) -> bool:
    """Whether `text` holds None, null or undefined as a word more often than `other`, the same with an empty text."""
    return text != other and len(NOTHING_PRINTED.findall(text)) > len(NOTHING_PRINTED.findall(other))


def is_unknown_role(source: str, before: str) -> bool:
    """Whether the word `developer` ends `before`, what stands before a text, only because the request holds it."""
    return "developer" not in source and re.search(r"developer\W{0,12}\Z", before) is not None


def show(chat: Chat, path: str, outcome: Outcome, fate: str, canary: str = "") -> Shown:
    """Evidence of a fate: the canary in its surroundings, the start of a text without it, or the error. What a server
    refuses before its template sees it is "refused"."""
    if outcome.text is None:
        error = outcome.error
        assert error is not None
        refused = outcome.turned_away or (fate == "raised" and isinstance(error, TemplateRaised))
        return Shown(chat, path, "refused" if refused else fate, error.message, None, error.line)
    at = outcome.text.find(canary) if canary else -1
    if at < 0:
        return Shown(chat, path, fate, canary and f"not written: {canary}")
    start, end = max(0, at - AROUND), at + len(canary) + AROUND
    return Shown(chat, path, fate, outcome.text[start:end], (at, at + len(canary)))


def said(error: JinjarunError) -> str:
    """What an error says, short. A refusal of the template is kept whole: its remedy may stand at its end."""
    return quote(error.message, REFUSAL_LIMIT if isinstance(error, TemplateRaised) else SHORT)


def complaint(outcome: Outcome) -> str:
    """A failure in a few words, for a reason: what the template itself refuses is no failure of it."""
    error = outcome.error
    assert error is not None
    if outcome.turned_away:
        return f"refused by the server: {error.details.get('why') or quote(error.message[:120])}"
    line = "" if error.line is None else f" (line {error.line})"
    what = "refused" if isinstance(error, TemplateRaised) else "fails"
    return f"{what}: {said(error)}{line}"
