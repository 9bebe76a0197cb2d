"""`compare`: one request on every path, side by side, and where the answers part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from probes.probing import CONTEXT, first_difference
from probes.renders import PATHS, Renders, failure
from probes.report import Failure, Model

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from jinjarun.limits import Limits
    from probes.chats import Chat


class PathAnswer(Model):
    """What one path gives: a text, or an error."""

    path: str
    text: str | None
    error: Failure | None


class Parting(Model):
    """Where two paths part: the code point, and both sides from a little before it."""

    paths: tuple[str, str]
    at: int
    left: str
    right: str


class Comparison(Model):
    """`agree` if every path gives the same text, or every one fails. `groups` are the paths that give the same."""

    agree: bool
    answers: list[PathAnswer]
    groups: list[list[str]]
    partings: list[Parting]


def compare(
    template: str,
    messages: list[dict[str, Any]],
    *,
    tools: list[dict[str, Any]] | None = None,
    add_generation_prompt: bool = True,
    variables: Mapping[str, Any] | None = None,
    bos_token: str = "",
    eos_token: str = "",
    now: datetime | float | None = None,
    limits: Limits | None = None,
) -> Comparison:
    """The request on all four paths. Never raises because of the template: an error is an answer."""
    chat: Chat = {"messages": messages, "add_generation_prompt": add_generation_prompt}
    if tools is not None:
        chat["tools"] = tools
    if variables:
        chat["variables"] = dict(variables)
    renders = Renders(template, bos_token=bos_token, eos_token=eos_token, limits=limits, now=now)
    answers = []
    for path in PATHS:
        outcome = renders.render(path, chat)
        error = None if outcome.error is None else failure(outcome.error)
        answers.append(PathAnswer(path=path, text=outcome.text, error=error))
    by_text: dict[str | None, list[str]] = {}
    for answer in answers:
        by_text.setdefault(answer.text, []).append(answer.path)
    return Comparison(
        agree=len(by_text) == 1,
        answers=answers,
        groups=list(by_text.values()),
        partings=_partings([answer for answer in answers if answer.text is not None]),
    )


def _partings(answers: list[PathAnswer]) -> list[Parting]:
    """The first answer against each other that differs from it."""
    found: list[Parting] = []
    for other in answers[1:]:
        first, second = answers[0].text or "", other.text or ""
        if first == second:
            continue
        at = first_difference(first, second) or 0
        start = max(0, at - CONTEXT)
        found.append(
            Parting(
                paths=(answers[0].path, other.path),
                at=at,
                left=first[start : at + CONTEXT],
                right=second[start : at + CONTEXT],
            )
        )
    return found
