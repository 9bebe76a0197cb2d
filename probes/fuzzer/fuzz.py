"""Fuzzing a template: conversations that it takes, every law asked of each, and for each broken law the smallest one.

First a number of conversations are made and every law is asked of each, so that one example serves all. Then, for each
way in which a law broke, Hypothesis looks for the smallest conversation that breaks it so. Both are drawn from the
seed alone: the same seed gives the same report. What was found is stored under the template's name and asked first
the next time, before anything new is made up.
"""

from __future__ import annotations

import json
import shlex
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis.database import DirectoryBasedExampleDatabase

from jinjarun.errors import JinjarunError, TemplateRaised
from probes.chats.messages import request_body, say
from probes.chats.search import see_each, see_smaller, size
from probes.fuzzer.examples import examples
from probes.laws import EXAMPLES, LAWS, Case, Subject, Violation
from probes.rules import rules

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime

    from hypothesis.database import ExampleDatabase

    from jinjarun.limits import Limits
    from probes.chats.messages import Chat
    from probes.chats.supports import Supports
    from probes.laws import Law
    from probes.report import Severity

HEAVY_EVERY, HEAVY_FIRST = 10, 4
"""Laws that render often are asked of one conversation in so many, the first of them none of the plainest."""
TRIES, KNOWN_TRIES = 400, 60
"""Conversations that are judged to make a counterexample smaller; what is known to break is made less small."""
KINDS_SHOWN = 4
"""Ways of breaking one law that are made small and shown."""


@dataclass(frozen=True, slots=True)
class Counterexample:
    """The smallest conversation found that breaks a law in one way, and how many of the examples broke it so."""

    found: Violation
    count: int

    @property
    def law(self) -> str:
        return self.found.law

    @property
    def known(self) -> bool:
        return self.found.known

    @property
    def fails(self) -> bool:
        """Whether it is a failure where nothing known is excused: more than a fact to know."""
        return self.severity != "info"

    @property
    def name(self) -> str:
        """The name of the rule that speaks of the defect."""
        return rules()[self.found.code].name

    @property
    def severity(self) -> Severity:
        """That of the rule."""
        return rules()[self.found.code].severity

    @property
    def request(self) -> dict[str, Any]:
        """The conversation as a request body that `jinjarun render --messages` reads."""
        return request_body(self.found.chat)

    def to_dict(self) -> dict[str, Any]:
        found = self.found
        at = found.at
        return {
            "law": found.law,
            "code": found.code,
            "name": self.name,
            "severity": self.severity,
            "cause": found.cause,
            "known": found.known,
            "message": found.message,
            "line": found.line,
            "count": self.count,
            "request": self.request,
            "later_request": None if found.second is None else request_body(found.second),
            "at": at,
            "expected": found.expected,
            "found": found.actual,
        }


@dataclass(frozen=True, slots=True)
class LawOutcome:
    """`holds` is None where the law was not asked, and `skipped` says why."""

    law: str
    codes: tuple[str, ...]
    holds: bool | None
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class FuzzReport:
    """What fuzzing one template found. `broken` are failures, `known` what it is known to do; `refused` counts the
    examples that it refused in words of its own. `status` is "complete", "stopped" (out of time, see `examples`) or
    "not_evaluated", and then `why` says why."""

    template: str
    status: str
    dialect: str
    seed: int
    examples: int
    refused: int
    laws: list[LawOutcome]
    broken: list[Counterexample] = field(default_factory=list)
    known: list[Counterexample] = field(default_factory=list)
    why: str | None = None

    def failed(self, *, strict: bool = False) -> bool:
        """Whether a law is broken, or with `strict` also one that the template is known to break and that is more than
        a fact to know; and where nothing could be asked at all."""
        told = any(example.fails for example in self.known)
        nothing = self.status != "complete" and all(law.holds is None for law in self.laws)
        return bool(nothing or self.broken or (strict and told))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "template": self.template,
            "status": self.status,
            "why": self.why,
            "dialect": self.dialect,
            "seed": self.seed,
            "examples": self.examples,
            "refused": self.refused,
            "laws": [
                {"law": law.law, "codes": list(law.codes), "holds": law.holds, "skipped": law.skipped}
                for law in self.laws
            ],
            "broken": [example.to_dict() for example in self.broken],
            "known": [example.to_dict() for example in self.known],
        }

    def repeat(self, law: str | None = None) -> str:
        """The command that gives this report again, or one law of it."""
        words = ["jinjarun", "fuzz", self.template, "--seed", str(self.seed)]
        words += [] if law is None else ["--law", law]
        return shlex.join([*words, "--max-examples", str(self.examples)])

    def render_command(self, example: Counterexample) -> str:
        """The command that renders a counterexample, read from standard input."""
        return shlex.join(["jinjarun", "render", self.template, "--dialect", self.dialect, "--messages", "-"])


def fuzz(
    template: str,
    *,
    name: str = "TEMPLATE",
    laws: Collection[str] | None = None,
    max_examples: int = EXAMPLES,
    seed: int = 0,
    budget: float | None = None,
    bos_token: str = "",
    eos_token: str = "",
    limits: Limits | None = None,
    now: datetime | float | None = None,
    database: ExampleDatabase | str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    shrink: bool = True,
    supports: Supports | None = None,
) -> FuzzReport:
    """Looks for conversations that break the laws (all of `LAWS`, or those that `laws` names; KeyError for others).

    `template` is template text. `budget` bounds the time in seconds; a report that it cut short is no longer the same
    each time. `database` is a folder, or a Hypothesis database, that keeps what was found under `name`. `progress` is
    called with the number of examples done and wanted. Without `shrink` the smallest of the examples is shown as it
    is. `supports` is what the conversations may hold instead of what this template takes, where another is to be asked
    the same. Never raises because of a template.
    """
    chosen = list(LAWS.values()) if laws is None else [LAWS[law] for law in dict.fromkeys(laws)]
    subject = Subject(template, bos_token=bos_token, eos_token=eos_token, limits=limits, now=now)
    subject.renders.allow(max_examples)
    if subject.supports is None:
        return _nothing(name, subject, seed, chosen)
    if supports is None:
        supports = subject.supports
    subject.supports = supports
    asked = [law for law in chosen if law.supported(supports)]
    hunt = _Hunt(subject, supports, asked, seed, max_examples, budget, progress)
    store = _Store(database, name)
    hunt.recall(store.chats())
    hunt.ask_examples()
    hunt.gather()
    if shrink:
        hunt.shrink()
    examples = hunt.counterexamples()
    store.keep(
        [
            example.found.chat if example.found.law not in _LATER else example.found.second or example.found.chat
            for example in examples
        ]
    )
    broken_laws = {example.law for example in examples if not example.known}
    return FuzzReport(
        template=name,
        status="stopped" if hunt.stopped else "complete",
        dialect=subject.dialect,
        seed=seed,
        examples=hunt.done,
        refused=hunt.refused,
        laws=[_outcome(law, hunt, broken_laws) for law in chosen],
        broken=[example for example in examples if not example.known],
        known=[example for example in examples if example.known],
    )


_LATER = frozenset({"next-user-turn", "within-tool-loop", "tool-loop-to-next-user", "as-generated", "turn-count"})
"""Laws whose counterexample is the later of two requests of one conversation."""


def _outcome(law: Law, hunt: _Hunt, broken: set[str]) -> LawOutcome:
    if law not in hunt.laws:
        return LawOutcome(law.name, law.codes, None, f"no way was found in which the template {law.needs}")
    if law.name not in hunt.judged:
        return LawOutcome(law.name, law.codes, None, "the time was up before it was asked")
    return LawOutcome(law.name, law.codes, law.name not in broken)


def _nothing(name: str, subject: Subject, seed: int, chosen: list[Law]) -> FuzzReport:
    if subject.loads:
        answer = subject.prompt({"messages": [say("user", "Hi")]})
        said = f": {answer}" if isinstance(answer, JinjarunError) else ""
        why = f"a plain question does not render{said}"
    else:
        error = next(iter(subject.refusals.values()))
        why = f"{error.name}: {error}"
    laws = [LawOutcome(law.name, law.codes, None, why) for law in chosen]
    return FuzzReport(name, "not_evaluated", subject.dialect, seed, 0, 0, laws, why=why)


Key = tuple[str, str]


@dataclass(slots=True)
class _Hunt:
    subject: Subject
    supports: Supports
    laws: list[Law]
    seed: int
    max_examples: int
    budget: float | None
    progress: Callable[[int, int], None] | None
    done: int = 0
    refused: int = 0
    stopped: bool = False
    counts: Counter[Key] = field(default_factory=Counter)
    smallest: dict[Key, Violation] = field(default_factory=dict)
    judged: set[str] = field(default_factory=set)
    """The laws that were asked of at least one conversation."""
    _until: float | None = None

    def __post_init__(self) -> None:
        self._until = None if self.budget is None else time.monotonic() + self.budget

    def judge(self, chat: Chat, laws: list[Law]) -> list[Violation]:
        case = Case(self.subject, chat)
        self.judged.update(law.name for law in laws)
        found = [broken for law in laws for broken in law.check(case)]
        self.refused += any(isinstance(error, TemplateRaised) for _, error in case.failures)
        return found

    def recall(self, chats: list[Chat]) -> None:
        """What was found before is asked first."""
        for chat in chats:
            self._note(self.judge(chat, self.laws))
        self.refused = 0

    def ask_examples(self) -> None:
        """The conversations of chapters and rules; laws that render often are asked of those of the prefix laws."""
        grown, others = examples(self.subject)
        for chats, heavy in ((grown, True), (others, False)):
            for chat in chats:
                if not self._late():
                    self._noted(chat, heavy)
        self.refused = 0

    def gather(self) -> None:
        """Every law is asked of every example; nothing counts as found, so that nothing ends the search."""

        def look(chat: Chat) -> None:
            if self.done >= self.max_examples or self._late():
                return
            heavy = self.done % HEAVY_EVERY == min(HEAVY_FIRST, self.max_examples - 1)
            for key in {found.key for found in self._noted(chat, heavy)}:
                self.counts[key] += 1
            self.done += 1
            if self.progress is not None:
                self.progress(self.done, self.max_examples)

        see_each(self.supports, look, max_examples=self.max_examples, seed=self.seed)

    def _noted(self, chat: Chat, heavy: bool) -> list[Violation]:
        found = self.judge(chat, [law for law in self.laws if heavy or not law.heavy])
        self._note(found)
        return found

    def _note(self, found: list[Violation]) -> None:
        for broken in found:
            known = self.smallest.get(broken.key)
            if known is None or _smaller(broken.second or broken.chat, known.second or known.chat):
                self.smallest[broken.key] = broken

    def _late(self) -> bool:
        if self._until is not None and time.monotonic() > self._until:
            self.stopped = True
        return self.stopped

    def shrink(self) -> None:
        """Each way of breaking a law is looked for again, this time to the smallest conversation that shows it."""
        for key in self._shown():
            law = [
                law for law in self.laws if law.name == key[0] or (key[0] == "within-limits" and law.name == "renders")
            ]

            self._shrink(key, law, KNOWN_TRIES if self.smallest[key].known else TRIES)
        for broken in list(self.smallest.values()):
            self._note(self.judge(broken.second or broken.chat, self.laws))

    def _shrink(self, key: Key, laws: list[Law], tries: int) -> None:
        """Whatever is found on the way is noted, so that the search may be cut short."""

        def breaks(chat: Chat) -> bool:
            found = [broken for broken in self.judge(chat, laws) if broken.key == key]
            self._note(found)
            return bool(found) and not self._late()

        before = self.refused
        see_smaller(self.supports, breaks, max_examples=self.max_examples, seed=self.seed, tries=tries)
        self.refused = before

    def _shown(self) -> list[Key]:
        """The keys to be shown. Of each law a failure comes before what is known, one of each rule before a second of
        the same, and then what broke most often."""
        often = sorted(self.smallest, key=lambda key: (self.smallest[key].known, -self.counts[key], key))
        of_rule: Counter[tuple[str, str]] = Counter()
        order = []
        for key in often:
            found = self.smallest[key]
            of_rule[key[0], found.code] += 1
            order.append((found.known, of_rule[key[0], found.code]))
        shown: Counter[str] = Counter()
        keys = []
        for _, key in sorted(zip(order, often, strict=True), key=lambda row: row[0]):
            if shown[key[0]] < KINDS_SHOWN:
                shown[key[0]] += 1
                keys.append(key)
        return sorted(keys)

    def counterexamples(self) -> list[Counterexample]:
        """In the order of the laws, the worst first."""
        order = {name: number for number, name in enumerate(LAWS)}
        found = [Counterexample(self.smallest[key].located(), self.counts[key]) for key in self._shown()]
        return sorted(
            found,
            key=lambda example: (
                ("error", "warning", "info").index(example.severity),
                order.get(example.found.law, -1),
                example.found.cause,
            ),
        )


def _smaller(chat: Chat, other: Chat) -> bool:
    return len(chat["messages"]) <= len(other["messages"]) and size(chat) < size(other)


class _Store:
    """What was found in earlier runs, in a Hypothesis database: conversations as JSON, under the template's name."""

    def __init__(self, database: ExampleDatabase | str | Path | None, name: str) -> None:
        self.key = f"jinjarun fuzz {name}".encode()
        self.database = DirectoryBasedExampleDatabase(database) if isinstance(database, str | Path) else database

    def chats(self) -> list[Chat]:
        found = (
            [] if self.database is None else sorted(self.database.fetch(self.key), key=lambda data: (len(data), data))
        )
        return [chat for data in found if (chat := _chat(data)) is not None]

    def keep(self, chats: list[Chat]) -> None:
        if self.database is None:
            return
        kept = {json.dumps(chat, ensure_ascii=False).encode("utf-8", "surrogatepass") for chat in chats}
        for data in set(self.database.fetch(self.key)) - kept:
            self.database.delete(self.key, data)
        for data in sorted(kept):
            self.database.save(self.key, data)


def _chat(data: bytes) -> Chat | None:
    try:
        chat = json.loads(data)
    except ValueError:
        return None
    usable = isinstance(chat, dict) and isinstance(chat.get("messages"), list) and chat["messages"]
    return chat if usable else None


__all__ = ["LAWS", "Counterexample", "FuzzReport", "LawOutcome", "fuzz"]
