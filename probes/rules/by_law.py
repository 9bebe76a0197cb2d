"""What a law finds on conversations of the probe, as hits: the rule and the law are then one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.laws.case import Case
from probes.rendering.input_form import BARE
from probes.rendering.renders import as_sent
from probes.rules.view import Asked, Hit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from probes.chats.messages import Chat
    from probes.laws.law import Violation
    from probes.rendering.input_form import PathObserver
    from probes.report import Severity
    from probes.rules.view import TemplateView


def broken_on(
    view: TemplateView,
    law: Callable[[Case], Iterator[Violation]],
    asks: Callable[[PathObserver], Iterable[Chat]],
    code: str,
) -> dict[str, dict[str, Violation]]:
    """By the cause, on which paths the law is broken in a way that the rule of this `code` speaks of. A served path is
    asked only where a bare one breaks the law: what servers do to a request they do to spare templates."""
    found: dict[str, dict[str, Violation]] = {}
    for path in sorted(view.paths, key=BARE.__contains__):
        if path in BARE and not found and BARE[path] in view.paths:
            continue
        subject = view.subject(path)
        for chat in asks(subject.on):
            for broken in law(Case(subject, chat)):
                if broken.code == code:
                    found.setdefault(broken.cause, {}).setdefault(path, broken)
    return found


def hit_of(
    view: TemplateView, broken: dict[str, Violation], *, severity: Severity, cause: str | None = None, message: str = ""
) -> Hit:
    """One hit for one cause; the paths on which it was not seen are those that do well."""
    asked = {path: _asked(view, path, found.chat) for path, found in broken.items()}
    first = next(iter(broken.values()))
    others = [_asked(view, path, first.chat) for path in view.paths if path not in broken]
    good = [one for one in others if not one.outcome.turned_away]
    return view.hit(
        message or first.message,
        list(asked.values()),
        good,
        severity=severity,
        line=first.line,
        cause=cause,
    )


def first_hit(
    view: TemplateView,
    law: Callable[[Case], Iterator[Violation]],
    asks: Callable[[PathObserver], Iterable[Chat]],
    code: str,
    *,
    severity: Severity,
) -> list[Hit]:
    """A hit for the first cause by which the law is broken, where there is one."""
    found = broken_on(view, law, asks, code)
    return [hit_of(view, broken, severity=severity) for broken in list(found.values())[:1]]


def _asked(view: TemplateView, path: str, chat: Chat) -> Asked:
    chat = as_sent(path, chat)
    outcome = view.facts.renders.render(path, chat)
    return Asked(path, chat, outcome, "written" if outcome.ok else "raised", ())
