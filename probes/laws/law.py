"""What a law is, and what it finds (`Violation`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jinjarun.sequences import common_prefix

if TYPE_CHECKING:
    from probes.chats.messages import Chat
    from probes.chats.supports import Supports
    from probes.laws.case import Case
    from probes.laws.prompt import Prompt


@dataclass(frozen=True, slots=True)
class Violation:
    """One law broken by one conversation.

    `cause` tells apart the ways in which a law breaks. `known` marks what a template does by design (old reasoning
    dropped, texts trimmed, a date): told, no failure. `expected` and `actual` are the two texts that should be equal,
    or of which the second should begin with the first; `at` is where they part. `second` is the later request of a law
    that compares two. `line` is of the template; until `located` it may be that which wrote what stands at `at` in
    `prompt`.
    """

    law: str
    code: str
    cause: str
    message: str
    chat: Chat
    expected: str = ""
    actual: str = ""
    second: Chat | None = None
    known: bool = False
    line: int | None = None
    prompt: Prompt | None = None

    def located(self) -> Violation:
        """The same with its line, which needs spans: asked for only of what is shown."""
        return self if self.prompt is None else replace(self, line=self.prompt.line_at(self.at), prompt=None)

    @property
    def key(self) -> tuple[str, str]:
        """What is one defect of a template: the law and the way in which it breaks."""
        return self.law, self.cause

    @property
    def at(self) -> int:
        return common_prefix(self.expected, self.actual)


@dataclass(frozen=True, slots=True)
class Law:
    """`needs` says what a template must support, in words that follow "the template"; `heavy` laws are asked of few
    conversations, because they render many times."""

    name: str
    codes: tuple[str, ...]
    says: str
    check: Callable[[Case], Iterator[Violation]]
    needs: str = ""
    supported: Callable[[Supports], bool] = lambda supports: True
    heavy: bool = False
