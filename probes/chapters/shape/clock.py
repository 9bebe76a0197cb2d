"""Today's date in a prompt: found by asking again at another moment."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from jinjarun.sequences import common_prefix
from probes.chapters.shape.requests import question, two_tools
from probes.chats.canaries import SYSTEM
from probes.chats.messages import say
from probes.rendering.renders import CLOCK
from probes.report import FROZEN_NOW, Clock

if TYPE_CHECKING:
    from probes.chapters.shape.requests import Requests
    from probes.chats.messages import Chat

STEPS: tuple[tuple[Literal["second", "minute", "hour", "day"], int], ...] = (
    ("second", 1),
    ("minute", 60),
    ("hour", 3600),
    ("day", 86400),
)
FAR = 86400 * 430 + 5 * 3600 + 7 * 60 + 9
"""So long after the frozen moment that every part of date and time is another."""
PINNED = "Friday of 48203"


def clock(ask: Requests) -> Clock | None:
    """Where the date stands; None where no prompt depends on the moment."""
    if CLOCK not in ask.renders.source:
        return None
    for chat in (
        ask.chat([question()], prompt=True),
        ask.chat([say("system", SYSTEM), question()], two_tools(), prompt=True),
    ):
        text, other = ask.at(chat, FROZEN_NOW), ask.at(chat, FROZEN_NOW + FAR)
        if text is None or other is None or text == other:
            continue
        at = common_prefix(text, other)
        return Clock(
            at=_start(text, at),
            resolution=_resolution(ask, chat, text),
            pinned_by=_pin(ask, chat),
            line=_line(ask, chat, at),
        )
    return None


def _start(text: str, at: int) -> int:
    """Back to where the number or word that differs begins."""
    while at > 0 and (text[at - 1].isalnum()):
        at -= 1
    return at


def _resolution(ask: Requests, chat: Chat, text: str) -> Literal["day", "hour", "minute", "second"]:
    for name, seconds in STEPS:
        if ask.at(chat, FROZEN_NOW + seconds) != text:
            return name
    return "day"


def _pin(ask: Requests, chat: Chat) -> str | None:
    """The variable that stands in for the clock."""
    for name in ask.switches:
        pinned: Chat = {**chat, "variables": {**chat.get("variables", {}), name: PINNED}}
        text = ask.at(pinned, FROZEN_NOW)
        if text is not None and PINNED in text and text == ask.at(pinned, FROZEN_NOW + FAR):
            return name
    return None


def _line(ask: Requests, chat: Chat, at: int) -> int | None:
    """The template's line that writes it."""
    for span in ask.origins(chat).spans:
        if span.start <= at < span.end and (found := re.fullmatch(r"line (\d+)", span.origin)):
            return int(found.group(1))
    return None
