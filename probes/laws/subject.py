"""One template on the path that is judged, as laws ask it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from jinjarun.errors import JinjarunError
from probes.laws.prompt import Prompt
from probes.rendering.input_form import judged, observer
from probes.rendering.renders import CLOCK, LLAMA_RAW, RAW, Renders, as_sent, dialect_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from jinjarun.limits import Limits
    from jinjarun.template import Span
    from probes.chats.messages import Chat
    from probes.chats.supports import Supports
    from probes.rendering.renders import Outcome


T = TypeVar("T")


class Subject:
    """A template, its renders, and what was measured of it. `supports` is what conversations may hold that are
    generated for it; None where not even a plain question renders."""

    def __init__(
        self,
        source: str,
        *,
        bos_token: str = "",
        eos_token: str = "",
        limits: Limits | None = None,
        now: datetime | float | None = None,
        renders: Renders | None = None,
        path: str | None = None,
    ) -> None:
        """With `renders` every render is kept there; without, only those of what is measured of the template. `path`
        is judged instead of the bare path on which most comes through; on a served one no origins are known."""
        self.kept = renders is not None
        self.renders = renders or Renders(source, bos_token=bos_token, eos_token=eos_token, limits=limits, now=now)
        self.source = source
        self.on = judged(self.renders) if path is None else observer(self.renders, path)
        self.path = self.on.path
        self.dialect = dialect_of(self.path)
        self.refusals = {
            bare: refusal for bare in (RAW, LLAMA_RAW) if (refusal := self.renders.loads(bare)) is not None
        }
        self._supports: Supports | None = None
        self._measured: dict[Callable[[Subject], Any], Any] = {}

    @property
    def supports(self) -> Supports | None:
        return self._supports or self.on.supports

    @supports.setter
    def supports(self, supports: Supports | None) -> None:
        self._supports = supports

    @property
    def loads(self) -> bool:
        return self.path not in self.refusals

    def render(
        self, chat: Chat, *, path: str | None = None, now: datetime | float | None = None, spans: bool = False
    ) -> Outcome:
        """What a bare path, by default the judged one, gives for a request."""
        path = path or self.path
        chat = as_sent(path, chat)
        if not self.kept:
            return self.renders.render_once(path, chat, now=now, spans=spans)
        return self.renders.spans(path, chat) if spans else self.renders.render(path, chat, now=now)

    def prompt(self, chat: Chat, *, spans: bool = False) -> Prompt | JinjarunError:
        """The prompt of a request, or why there is none."""
        outcome = self.render(chat, spans=spans)
        if outcome.text is None:
            assert outcome.error is not None
            return outcome.error
        return Prompt(chat, outcome.text, self.spans, outcome.spans)

    def spans(self, chat: Chat) -> tuple[Span, ...]:
        """Where the characters of a prompt come from; empty where it fails."""
        return self.render(chat, spans=True).spans

    @property
    def other(self) -> str | None:
        """The bare path that is not judged, where the template loads there too."""
        return next((path for path in (RAW, LLAMA_RAW) if path != self.path and path not in self.refusals), None)

    def measured(self, measure: Callable[[Subject], T]) -> T:
        """What `measure` finds out of this template, once."""
        if measure not in self._measured:
            self._measured[measure] = measure(self)
        found: T = self._measured[measure]
        return found

    @cached_property
    def uses_clock(self) -> bool:
        return CLOCK in self.source
