"""What the servers of chat completions have in common: how they are made, asked, and how they say what would help."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from jinjarun.errors import JinjarunError
from jinjarun.limits import Limits
from jinjarun.serving.chat_completions.errors import engine_text
from jinjarun.serving.chat_completions.repairs import HOPELESS, REPAIRS, Repair, trial_limits, what_helps
from jinjarun.template import Template

if TYPE_CHECKING:
    from datetime import datetime

    from jinjarun.serving.cache import Renderer
    from jinjarun.serving.chat_completions.answers import PromptAnswer

Options = TypeVar("Options")
Handed = TypeVar("Handed")


class ChatCompletionsServer(ABC, Generic[Options, Handed]):
    """A server that was started with a template; no weights.

    `source` is the model's template, or its templates by name ("default", "tool_use"); `special_tokens` are the texts
    of its tokens by names such as `bos_token`, None where the tokenizer has none. `render` renders the template. May
    be used from many threads.
    """

    default_options: ClassVar[type]
    repairs: ClassVar[Sequence[Repair]] = REPAIRS

    def __init__(
        self,
        source: str | Mapping[str, str],
        *,
        special_tokens: Mapping[str, str | None] | None = None,
        options: Options | None = None,
        limits: Limits | None = None,
        render: Renderer = Template.render_context,
        advises: bool = True,
    ) -> None:
        self.source = source
        self.options: Options = options if options is not None else self.default_options()
        self.limits = limits if limits is not None else Limits()
        self._tokens = dict(special_tokens or {})
        self._render = render
        self.advises = advises

    def apply(self, body: Any, *, now: datetime | float | None = None) -> str:
        """The prompt. Raises JinjarunError with the server's HTTP `status` where the server answers with an error."""
        return self.answer(body, now=now).prompt

    def answer(self, body: Any, *, now: datetime | float | None = None, spans: bool = False) -> PromptAnswer:
        """The prompt with its explanation. `spans` asks for the origins of the rendered text.

        Where the template fails, the error says what to send instead: other forms of the request are rendered until
        one succeeds, unless the server was made without `advises`.
        """
        try:
            return self._answer(body, now=now, spans=spans)
        except JinjarunError as error:
            if error.details.get("stage") != "template" or isinstance(error, HOPELESS) or not self.advises:
                raise
            trial = type(self)(
                self.source,
                special_tokens=self._tokens,
                options=self.options,
                limits=trial_limits(self.limits),
                render=self._render,
                advises=False,
            )
            hint = what_helps(body, engine_text(error), lambda other: trial.apply(other, now=now), self.repairs)
            raise error.answered_with(error.status, hint=hint) from None

    def _answer(self, body: Any, *, now: datetime | float | None, spans: bool) -> PromptAnswer:
        """The same without advice."""
        return self.rendered(self.hand_over(body), now=now, spans=spans)

    @property
    @abstractmethod
    def reads(self) -> Hashable:
        """All that `hand_over` looks at in a single template: with equal options and limits, servers whose templates
        are equal in this hand over the same."""

    @abstractmethod
    def hand_over(self, body: Any) -> Handed:
        """What the server makes of a body before it renders. Raises what it refuses with."""

    @abstractmethod
    def rendered(self, handed: Handed, *, now: datetime | float | None, spans: bool) -> PromptAnswer:
        """The prompt of what was handed over, which stays as it is."""
