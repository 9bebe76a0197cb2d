"""Channels and recipients: words in the headers of messages, as Harmony-like formats write them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from probes.chats.canaries import SECOND_TOOL, TOOL

if TYPE_CHECKING:
    from collections.abc import Iterable

CHANNEL = re.compile(r"<\|?channel\|?>\s*([a-z_]+)")
RECIPIENT = re.compile(r"(?:<\|?recipient\|?>\s*|(?<=\s)to=)([\w.]+)")
NAME = "{name}"
"""Stands for the name of a function in a recipient."""


def channels(texts: Iterable[str | None]) -> list[str]:
    """The channels that the texts write, in the order in which they first appear."""
    return list(dict.fromkeys(word for text in texts if text is not None for word in CHANNEL.findall(text)))


def recipients(texts: Iterable[str | None]) -> list[str]:
    """Whom messages are for, a function's own name as `{name}`."""
    found = [word for text in texts if text is not None for word in RECIPIENT.findall(text)]
    return list(dict.fromkeys(word.replace(TOOL, NAME).replace(SECOND_TOOL, NAME).rstrip(".") for word in found))
