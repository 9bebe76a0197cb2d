"""One conversation on the path that is judged, and every render of it that some law asked for, each made once."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from jinjarun.errors import JinjarunError, LimitExceeded
from probes.laws.frames import Frames, frames_of, history_in
from probes.laws.prompt import Prompt

if TYPE_CHECKING:
    from probes.chats.messages import Chat
    from probes.laws.subject import Subject

REQUESTS = 3
"""Requests of one conversation that are rendered."""


class Case:
    """A conversation and its renders on one subject."""

    def __init__(self, subject: Subject, chat: Chat) -> None:
        self.subject = subject
        self.chat = chat
        self.messages = chat["messages"]
        self._whole = len(self.messages), self.messages[-1]["role"] != "assistant"
        self._prompts: dict[tuple[int, bool], Prompt | JinjarunError] = {}

    @property
    def frames(self) -> Frames:
        return frames_of(self.subject)

    def request(self, end: int | None = None, *, prompt: bool = True, tools: int | None = None) -> Chat:
        """The conversation up to `end` messages, with or without a generation prompt, with the first `tools` tools."""
        chat: dict[str, Any] = {**self.chat, "messages": self.messages[:end]}
        chat["add_generation_prompt"] = prompt
        if tools is not None:
            chat["tools"] = self.chat["tools"][:tools]
        return chat  # type: ignore[return-value]  # the keys of a Chat

    def prompt(self, end: int | None = None, *, prompt: bool = True) -> Prompt | None:
        """The prompt of that request; None where the template fails."""
        answer = self.answer(end, prompt=prompt)
        return answer if isinstance(answer, Prompt) else None

    def answer(self, end: int | None = None, *, prompt: bool = True) -> Prompt | JinjarunError:
        key = (len(self.messages) if end is None else end, prompt)
        if key not in self._prompts:
            chat = self.request(key[0], prompt=prompt)
            self._prompts[key] = self.subject.prompt(chat, spans=key == self._whole)
        return self._prompts[key]

    @cached_property
    def whole(self) -> Prompt | None:
        """The prompt of the whole conversation."""
        return self.prompt(prompt=self._whole[1])

    @cached_property
    def points(self) -> list[int]:
        """The counts of messages at which the conversation is a request: after the user's last message of a turn, and
        after the last result of a round. Of a long conversation only the last: shorter ones are made up, too."""
        found = []
        for i, message in enumerate(self.messages):
            after = self.messages[i + 1]["role"] if i + 1 < len(self.messages) else None
            if message["role"] in ("user", "tool") and after in (None, "assistant"):
                found.append(i + 1)
        return found[-REQUESTS:]

    def history(self, end: int) -> str | None:
        """The prompt of a request up to where its generation prompt begins."""
        asked = self.prompt(end)
        if asked is None:
            return None
        return history_in(self.subject, asked, lambda: self.prompt(end, prompt=False))

    @cached_property
    def failures(self) -> list[tuple[Chat, JinjarunError]]:
        """Renders that failed so far, with their requests."""
        return [
            (self.request(end, prompt=prompt), answer)
            for (end, prompt), answer in self._prompts.items()
            if isinstance(answer, JinjarunError)
        ]

    @property
    def limited(self) -> bool:
        return any(isinstance(answer, LimitExceeded) for answer in self._prompts.values())
