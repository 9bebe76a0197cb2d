"""Made-up conversations, drawn from a seed alone: all of them, or one that shows something and then smaller ones."""

from __future__ import annotations

import json
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.errors import NoSuchExample

from probes.chats.strategies import conversations

if TYPE_CHECKING:
    from collections.abc import Callable

    from probes.chats.messages import Chat
    from probes.chats.supports import Supports


def see_each(supports: Supports, look: Callable[[Chat], None], *, max_examples: int, seed: int) -> None:
    """Shows about `max_examples` conversations to `look`."""

    def seen(chat: Chat) -> bool:
        look(chat)
        return False

    _search(supports, seen, max_examples, seed, (Phase.generate,))


def see_smaller(supports: Supports, shows: Callable[[Chat], bool], *, max_examples: int, seed: int, tries: int) -> None:
    """Looks among the same conversations for one that `shows` something, and then for smaller ones, which it asks of
    `tries` more. Whoever asks keeps what was found on the way."""
    first: int | None = None
    asked = 0

    def shown(chat: Chat) -> bool:
        nonlocal first, asked
        asked += 1
        if first is not None and asked - first > tries:
            raise _Enough
        found = shows(chat)
        if found and first is None:
            first = asked
        return found

    with suppress(_Enough):
        _search(supports, shown, max_examples, seed, (Phase.generate, Phase.shrink))


def size(chat: Chat) -> tuple[int, int, str]:
    """What makes a conversation small: few messages, then little text."""
    text = json.dumps(chat, ensure_ascii=False)
    return len(chat["messages"]), len(text), text


def _search(
    supports: Supports, look: Callable[[Chat], bool], max_examples: int, seed: int, phases: tuple[Phase, ...]
) -> None:
    wanted = settings(
        max_examples=max_examples,
        database=None,
        deadline=None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
    )
    with suppress(NoSuchExample):
        find(conversations(supports), look, settings=wanted, random=Random(seed))


class _Enough(BaseException):
    """Ends a search from inside: no Exception, which Hypothesis would take for what it is looking for."""
