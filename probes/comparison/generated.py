"""What differs between two templates over made-up conversations: the laws that one of them breaks, and their prompts.

The conversations are those that the older template takes, drawn from the seed alone, and the same for both; what only
the newer one takes is told by its capabilities. Prompts are compared on the paths that load both. Of each way in which
they differ, the smallest conversation that was found is shown.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from probes.chats.messages import request_body
from probes.chats.search import see_each, see_smaller, size
from probes.comparison.reports import IMPACTS, Impact, MadeUp, TemplateChange, changed_prompts, law_impact
from probes.comparison.snapshot import prompts_of
from probes.fuzzer.fuzz import fuzz
from probes.rendering.input_form import judged
from probes.rendering.renders import dialect_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from probes.chats.messages import Chat
    from probes.chats.supports import Supports
    from probes.fuzzer.fuzz import Counterexample, FuzzReport
    from probes.rendering.renders import Renders
    from probes.report import ProbeReport

NAME = "made-up"
TRIES = 100
"""Conversations that are rendered to make one smaller."""
KINDS_SHOWN = 3
"""Ways in which prompts differ that are shown, of each impact."""


def made_up_changes(
    reports: Sequence[ProbeReport],
    renders: Sequence[Renders],
    told: Sequence[TemplateChange],
    *,
    max_examples: int,
    seed: int,
) -> Iterator[TemplateChange]:
    """What `told` does not hold yet: laws by their names; prompts that are broken, and other differences of prompts
    where the conversation set shows none. `reports` and `renders` are of the older and the newer template. Where one of
    them does not answer a plain question, there is nothing to compare."""
    supports = _supports(renders[0])
    if supports is None or _supports(renders[1]) is None:
        return
    ask = _Ask(renders, supports, max_examples, seed)
    yield from _laws(ask, {change.name for change in told if change.chapter == "prefix"})
    differences = _Differences(reports, ask)
    differences.gather()
    yield from differences.changes({change.impact for change in told if change.chapter == "prompts"} - {"broken"})


def _supports(side: Renders) -> Supports | None:
    return judged(side).supports


@dataclass(frozen=True, slots=True)
class _Ask:
    """Whom to ask, and with which conversations."""

    renders: Sequence[Renders]
    supports: Supports
    max_examples: int
    seed: int

    def fuzz(self, laws: Collection[str] | None, *, shrink: bool) -> list[FuzzReport]:
        return [
            fuzz(
                side.source,
                laws=laws,
                max_examples=self.max_examples,
                seed=self.seed,
                bos_token=side.bos_token,
                eos_token=side.eos_token,
                limits=side.limits,
                now=side.now,
                shrink=shrink,
                supports=self.supports,
            )
            for side in self.renders
        ]


# Laws


def _laws(ask: _Ask, told: Collection[str]) -> Iterator[TemplateChange]:
    """The laws that the two templates do not keep alike. Only of these are conversations made small."""
    old, new = ask.fuzz(None, shrink=False)
    differing = [
        (before, after)
        for before, after in zip(old.laws, new.laws, strict=True)
        if before.law not in told
        and before.holds is not None
        and after.holds is not None
        and _words(old, before.law) != _words(new, before.law)
    ]
    if not differing:
        return
    small = ask.fuzz([before.law for before, _ in differing], shrink=True)
    for before, after in differing:
        yield TemplateChange(
            impact=law_impact(before.holds, after.holds),
            chapter="laws",
            name=before.law,
            old=_words(old, before.law),
            new=_words(new, before.law),
            paths=[],
            at=None,
            made_up=next(_shown(report, before.law) for report in reversed(small) if _examples(report, before.law)),
        )


def _examples(report: FuzzReport, law: str) -> list[Counterexample]:
    return [example for example in (*report.broken, *report.known) if example.law == law]


def _words(report: FuzzReport, law: str) -> str:
    """What breaks the law, else what the template is known to do about it."""
    examples = _examples(report, law)
    broken = [example for example in examples if not example.known]
    causes = {f"{one.severity} {one.found.code} {one.found.cause}" for one in broken or examples}
    return f"{'broken by' if broken else 'holds but for'} {', '.join(sorted(causes))}" if causes else "holds"


def _shown(report: FuzzReport, law: str) -> MadeUp:
    example = _examples(report, law)[0]
    chat = example.found.second or example.found.chat
    return MadeUp(request=request_body(chat), count=example.count, of=report.examples)


# Prompts

Kind = tuple[Impact, tuple[str, ...], tuple[str, ...]]
"""A way in which prompts differ: the impact, the errors of both sides, and the engines."""


def _by_kind(changes: Iterable[TemplateChange]) -> dict[Kind, TemplateChange]:
    """The changes of one conversation; those of paths that differ in the request alone are one."""
    merged: dict[tuple[Impact, tuple[str, ...]], TemplateChange] = {}
    for change in changes:
        sides = (change.old or "", change.new or "") if change.at is None else ()
        key = change.impact, tuple(side if side.startswith("error: ") else "" for side in sides)
        paths = [*merged[key].paths, *change.paths] if key in merged else change.paths
        merged[key] = merged.get(key, change).model_copy(update={"paths": paths})
    return {
        (*key, tuple(sorted({dialect_of(path) for path in change.paths}))): change for key, change in merged.items()
    }


@dataclass(slots=True)
class _Differences:
    """Prompts of made-up conversations, side by side. `smallest` holds a conversation and its change of each kind."""

    reports: Sequence[ProbeReport]
    ask: _Ask
    done: int = 0
    counts: Counter[Kind] = field(default_factory=Counter)
    smallest: dict[Kind, tuple[Chat, TemplateChange]] = field(default_factory=dict)

    def gather(self) -> None:
        def look(chat: Chat) -> None:
            if self.done < self.ask.max_examples:
                self.done += 1
                self.counts.update(self._kinds(chat))

        see_each(self.ask.supports, look, max_examples=self.ask.max_examples, seed=self.ask.seed)

    def _kinds(self, chat: Chat) -> set[Kind]:
        """The kinds that a conversation shows; it is kept where it is the smallest so far."""
        chats = {NAME: chat}
        prompts = [prompts_of(side, chats) for side in self.ask.renders]
        found = _by_kind(changed_prompts(self.reports, prompts, chats))
        for kind, change in found.items():
            known = self.smallest.get(kind)
            if known is None or size(chat) < size(known[0]):
                self.smallest[kind] = chat, change
        return set(found)

    def changes(self, without: Collection[Impact]) -> Iterator[TemplateChange]:
        """Of each impact the kinds that most conversations show, each made small."""
        for impact in (impact for impact in IMPACTS if impact not in without):
            kinds = sorted((-count, kind) for kind, count in self.counts.items() if kind[0] == impact)
            for count, kind in kinds[:KINDS_SHOWN]:
                self._shrink(kind)
                chat, change = self.smallest[kind]
                made_up = MadeUp(request=request_body(chat), count=-count, of=self.done)
                yield change.model_copy(update={"made_up": made_up})

    def _shrink(self, kind: Kind) -> None:
        def shows(chat: Chat) -> bool:
            return kind in self._kinds(chat)

        ask = self.ask
        see_smaller(ask.supports, shows, max_examples=ask.max_examples, seed=ask.seed, tries=TRIES)
