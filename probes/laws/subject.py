"""One template on the bare path that is judged, as laws ask it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from jinjarun.errors import JinjarunError
from jinjarun.sequences import common_prefix
from probes.laws.prompt import Prompt
from probes.rendering.input_form import judged
from probes.rendering.renders import CLOCK, LLAMA_RAW, RAW, Renders, dialect_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from jinjarun.limits import Limits
    from probes.chats.messages import Chat
    from probes.chats.supports import Supports
    from probes.laws.frames import Frames
    from probes.rendering.renders import Outcome


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
    ) -> None:
        """With `renders` every render is kept there; without, only those of what is measured of the template."""
        self.kept = renders is not None
        self.renders = renders or Renders(source, bos_token=bos_token, eos_token=eos_token, limits=limits, now=now)
        self.source = source
        self.on = judged(self.renders)
        self.path = self.on.path
        self.dialect = dialect_of(self.path)
        self.refusals = {
            path: refusal for path in (RAW, LLAMA_RAW) if (refusal := self.renders.loads(path)) is not None
        }
        self._supports: Supports | None = None

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
        if not self.kept:
            return self.renders.render_once(path, chat, now=now, spans=spans)
        return self.renders.spans(path, chat) if spans else self.renders.render(path, chat, now=now)

    def prompt(self, chat: Chat, *, spans: bool = False) -> Prompt | JinjarunError:
        """The prompt of a request, or why there is none."""
        outcome = self.render(chat, spans=spans)
        if outcome.text is None:
            assert outcome.error is not None
            return outcome.error
        return Prompt(self, chat, outcome.text, outcome.spans)

    def history(self, asked: Prompt, bare: Callable[[], Prompt | None]) -> str:
        """A prompt up to where its generation prompt begins; `bare` gives the same without one, and is asked where the
        usual one does not stand there."""
        usual = self.frames.prompts.get(asked.chat["messages"][-1]["role"])
        if usual is not None and asked.text.endswith(usual):
            return asked.text[: len(asked.text) - len(usual)]
        without = bare()
        return asked.text if without is None else asked.text[: common_prefix(asked.text, without.text)]

    def history_of(self, asked: Prompt) -> str:
        """`history` of a prompt that stands alone."""

        def bare() -> Prompt | None:
            chat: Chat = {**asked.chat, "add_generation_prompt": False}
            answer = self.prompt(chat)
            return answer if isinstance(answer, Prompt) else None

        return self.history(asked, bare)

    @property
    def other(self) -> str | None:
        """The bare path that is not judged, where the template loads there too."""
        return next((path for path in (RAW, LLAMA_RAW) if path != self.path and path not in self.refusals), None)

    @cached_property
    def frames(self) -> Frames:
        from probes.laws.frames import Frames  # noqa: PLC0415  # it measures this module's Subject

        return Frames(self)

    @cached_property
    def engines_differ(self) -> frozenset[str]:
        from probes.laws.bounds import known_differences  # noqa: PLC0415  # it asks this module's Subject

        return known_differences(self)

    @cached_property
    def uses_clock(self) -> bool:
        return CLOCK in self.source
