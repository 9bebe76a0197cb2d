"""What a rule sees and says. It asks on every path, in the form that the template takes there, and tells what a
defect on some paths means.

Everything is asked with the canaries of the probe, so that a rule mostly sees renders that a chapter has made before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jinjarun.errors import TemplateRaised
from probes.chapters.shape import shape
from probes.chats import canaries
from probes.laws.subject import Subject
from probes.rendering.input_form import BARE, observer
from probes.rendering.outcomes import Fate, fate_of, said, show
from probes.rendering.renders import APPLY, LLAMA_RAW, RAW, as_sent

if TYPE_CHECKING:
    from jinjarun.sources import Source, TokenData
    from probes.chats.canaries import Form
    from probes.chats.messages import Chat
    from probes.rendering.renders import EvidenceBook, Outcome, Renders
    from probes.report import Contract, EngineStatus, Observation, Prefix, Severity, Shape, Stop, TokensChapter

SOMETHING = (canaries.USER, canaries.SYSTEM, canaries.TOOL, canaries.PARAMETER, canaries.VALUE, canaries.RESULT)
"""Of a conversation with calls, what a template may write."""
EVIDENCE_SHOWN = 2


@dataclass(frozen=True, slots=True)
class Hit:
    """One place where a rule found its defect.

    `engines` are the paths on which it was seen, `not_on` those on which a request path repairs it. `severity`
    overrides the rule's own. `cause` names what the defect stems from: hits of several rules with one cause become
    one finding, the others stand under its `also`.
    """

    message: str
    engines: list[str]
    not_on: list[str] = field(default_factory=list)
    line: int | None = None
    column: int | None = None
    evidence: list[str] = field(default_factory=list)
    severity: Severity | None = None
    suggestion: str | None = None
    cause: str | None = None


@dataclass(frozen=True)
class Facts:
    """The chapters so far. A chapter is None where the template does not load or the probe did not get that far.

    `files` is what the template was taken from, `upstream` the template of the model that it should equal.
    """

    source: str
    renders: Renders
    book: EvidenceBook
    engines: list[EngineStatus]
    observed: dict[str, Observation]
    contract: Contract | None
    shape: Shape | None
    stop: Stop | None
    tokens_chapter: TokensChapter | None
    prefix: Prefix | None
    tokens: TokenData | None = None
    files: Source | None = None
    upstream: str | None = None

    @cached_property
    def view(self) -> TemplateView:
        """The template as rules ask it, path by path."""
        return TemplateView(self)


@dataclass(frozen=True, slots=True)
class Asked:
    """One question on one path, and the fate of the canaries that were looked for."""

    path: str
    chat: Chat
    outcome: Outcome
    fate: Fate
    canaries: tuple[str, ...]

    @property
    def text(self) -> str:
        return self.outcome.text or ""

    @property
    def refused(self) -> bool:
        """The template itself refused the request by raise_exception, or a server before it."""
        return isinstance(self.outcome.error, TemplateRaised) or self.outcome.turned_away

    @property
    def failed(self) -> bool:
        """It failed where it meant to go on."""
        return self.fate == "raised" and not self.refused

    @property
    def error(self) -> str:
        return "" if self.outcome.error is None else said(self.outcome.error)

    @property
    def line(self) -> int | None:
        return None if self.outcome.error is None else self.outcome.error.line


class TemplateView:
    """One template under the eyes of the rules."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.observers = {path: observer(facts.renders, path) for path in facts.renders.paths}
        self._subjects: dict[str, Subject] = {}

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The paths on which something of a conversation is written; a rule has nothing to say of the others."""
        renders = self.facts.renders
        return tuple(path for path in renders.paths if renders.loads(path) is None and self._speaks(path))

    def _speaks(self, path: str) -> bool:
        form = self.form(path)
        if self.fate(path, canaries.user_only(form), canaries.USER) == "written":
            return True
        whole = self.ask_path(path, canaries.calls(form)).text
        return any(text in whole for text in SOMETHING)

    @property
    def bare(self) -> str | None:
        """The bare path to ask where one is enough."""
        return next((path for path in (RAW, LLAMA_RAW) if path in self.paths), None)

    @property
    def loaded(self) -> str | None:
        """The same where it does not matter whether anything of a conversation is written."""
        return self.bare or next((path for path in (RAW, LLAMA_RAW) if self.facts.renders.loads(path) is None), None)

    def subject(self, path: str) -> Subject:
        """The template on this path as laws ask it; what is measured of it is kept."""
        if path not in self._subjects:
            self._subjects[path] = Subject(self.facts.source, renders=self.facts.renders, path=path)
        return self._subjects[path]

    def form(self, path: str) -> Form:
        return self.observers[path].form

    def calling(self, path: str) -> Form | None:
        """The form in which tool calls are written there; None where they are not."""
        return self.observers[path].call_form

    @cached_property
    def shape(self) -> Shape:
        if self.facts.shape is not None:
            return self.facts.shape
        return shape(self.facts.renders, self.facts.book)

    def fate(self, path: str, chat: Chat, *wanted: str) -> Fate:
        return fate_of(self.facts.renders.render(path, chat), *wanted)

    def ask_path(self, path: str, chat: Chat, *wanted: str) -> Asked:
        chat = as_sent(path, chat)
        outcome = self.facts.renders.render(path, chat)
        return Asked(path, chat, outcome, fate_of(outcome, *wanted), wanted)

    def ask(self, build: Callable[[Form], Chat], *wanted: str, **changes: Any) -> list[Asked]:
        """The same question on every path. `changes` are made to the form in which the path takes its input."""
        return list(self.asking(build, *wanted, **changes))

    def ask_calls(self, build: Callable[[Form], Chat], *wanted: str, **changes: Any) -> list[Asked]:
        """The same on the paths that write tool calls, in the form in which they do."""
        return list(self.asking_calls(build, *wanted, **changes))

    def asking(self, build: Callable[[Form], Chat], *wanted: str, **changes: Any) -> Iterator[Asked]:
        """`ask`, path by path as far as answers are wanted."""
        for path in self.paths:
            yield self.ask_path(path, build(self.form(path).but(**changes)), *wanted)

    def asking_calls(self, build: Callable[[Form], Chat], *wanted: str, **changes: Any) -> Iterator[Asked]:
        """`ask_calls`, path by path as far as answers are wanted."""
        for path in self.paths:
            form = self.calling(path)
            if form is not None:
                yield self.ask_path(path, build(form.but(**changes)), *wanted)

    def ask_named(self, **changes: Any) -> list[Asked]:
        """One call and its result, no tools offered, on the paths that write at least the name of what is called."""
        asked = []
        for path in self.paths:
            chat = canaries.one_call((self.calling(path) or self.form(path)).but(**changes))
            chat.pop("tools", None)
            asked.append(self.ask_path(path, chat, canaries.TOOL))
        return asked

    def hit(
        self,
        message: str,
        bad: Sequence[Asked],
        good: Iterable[Asked] = (),
        *,
        severity: Severity,
        line: int | None = None,
        suggestion: str | None = None,
        cause: str | None = None,
    ) -> Hit:
        """What `bad` shows. `severity` is that of a defect on every engine's own request path (see `graded`)."""
        engines = [asked.path for asked in bad]
        fine = [asked.path for asked in good]
        repaired = [path for path in fine if path in BARE and BARE[path] in engines]
        severity = self.graded(severity, engines)
        return Hit(
            message=message,
            engines=engines,
            not_on=repaired,
            line=line if line is not None else next((asked.line for asked in bad if asked.line is not None), None),
            evidence=[self.cite(asked) for asked in _one_an_engine(bad)[:EVIDENCE_SHOWN]],
            severity=severity,
            suggestion=suggestion,
            cause=cause,
        )

    def graded(self, severity: Severity, engines: Iterable[str]) -> Severity:
        """The severity by who is left with the defect. On every request path it is what it is; an error that a server
        repairs is a warning, and a warning that most servers repair is something to know; so is what only callers of
        transformers or of the bare template meet."""
        met = set(engines)
        served = {path for path in self.paths if path in BARE}
        if severity == "info" or served <= met:
            return severity
        servers = served - {APPLY}
        left = servers & met
        enough = left if severity == "error" else 2 * len(left) > len(servers)
        return "warning" if enough else "info"

    def cite(self, asked: Asked) -> str:
        text = asked.text
        missing = next((x for x in asked.canaries if x not in text), asked.canaries[0] if asked.canaries else "")
        return show(asked.chat, asked.path, asked.outcome, asked.fate, missing).cited(self.facts.book)


def _one_an_engine(asked: Sequence[Asked]) -> list[Asked]:
    first: dict[str, Asked] = {}
    for one in asked:
        first.setdefault(one.path.partition(":")[0], one)
    return list(first.values())


def fates(asked: Iterable[Asked], *which: Fate) -> list[Asked]:
    """Those of `asked` whose fate is one of these; a refusal by raise_exception is never among the failures."""
    return [one for one in asked if one.fate in which and not (one.fate == "raised" and one.refused)]
