"""What is read from an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that the syntax does not write. `at`: the offset in the answer, in code points."""

    at: int
    message: str


class ParsedMessage(dict[str, Any]):
    """An assistant's message as the OpenAI API has it, arguments as objects.

    Keys: `role`; `content` (null beside calls without text); `reasoning_content` and `tool_calls` where there are any.
    A call has `type`, `function` with `name` and `arguments`, and `id` where one is written.

    `complete`: nothing was left open at the end. `problems`: what did not parse and where, in the order of the text.
    """

    def __init__(self) -> None:
        super().__init__(role="assistant", content=None)
        self.complete = True
        self.problems: list[Problem] = []
