"""What a template supports, as far as a generated conversation has to know it, as data.

A feature is supported where the template neither fails nor stays silent about it: what it does not support is left out
of the conversations that are generated for it, and no law speaks of it. `PathObserver.supports` finds it out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from probes.chats.messages import function_of

if TYPE_CHECKING:
    from probes.chats.messages import ArgumentForm, Beside, Chat, Message


@dataclass(frozen=True, slots=True)
class Supports:
    """What generated conversations may hold. The defaults are what most templates with tools take.

    `leading_system`: every conversation has a system message. `second_system`, `late_system`: further ones behind the
    first, or in the middle. `consecutive_users`: two user messages in a row. `calls_only_offered`: tools are offered
    wherever the history calls some. `arguments`: the forms in which arguments are taken, `beside` the contents of a
    message that calls tools. `bare`: tools and calls without `type` and `function` around them. `reasoning`: the field
    of it, or None. `markers` are the
    template's own, and texts are made to hold them. `variables` are sent with every request.
    """

    string_content: bool = True
    text_parts: bool = False
    system: bool = True
    leading_system: bool = False
    second_system: bool = False
    late_system: bool = False
    developer: bool = False
    consecutive_users: bool = False
    assistant: bool = True
    tools: bool = True
    tool_calls: bool = True
    calls_only_offered: bool = False
    parallel_calls: bool = True
    several_rounds: bool = True
    answer_after_calls: bool = True
    arguments: tuple[ArgumentForm, ...] = ("object",)
    beside: tuple[Beside, ...] = ("empty", "text")
    bare: bool = False
    reasoning: str | None = None
    markers: tuple[str, ...] = ()
    variables: tuple[tuple[str, Any], ...] = ()

    def but(self, **changes: Any) -> Supports:
        """The same with some of it changed."""
        return replace(self, **changes)

    def covers(self, chat: Chat) -> bool:
        """Whether a conversation holds only what is supported, so that laws speak of it."""
        return (
            all(name in chat.get("variables", {}) for name, _ in self.variables)
            and self._covers_roles(chat["messages"])
            and self._covers_contents(chat["messages"])
            and self._covers_calls(chat)
        )

    def _covers_roles(self, messages: list[Message]) -> bool:
        roles = [message["role"] for message in messages]
        lead = next((i for i, role in enumerate(roles) if role not in ("system", "developer")), len(roles))
        return all(
            (
                lead < len(roles),
                self.system or "system" not in roles,
                self.second_system or roles[:lead].count("system") < 2,
                self.late_system or "system" not in roles[lead:],
                self.developer or "developer" not in roles,
                self.consecutive_users or ("user", "user") not in set(pairwise(roles)),
                self.assistant or "assistant" not in roles,
            )
        )

    def _covers_contents(self, messages: list[Message]) -> bool:
        contents = [message["content"] for message in messages if message.get("content")]
        if not self.string_content:
            return all(isinstance(content, list) for content in contents)
        return self.text_parts or all(isinstance(content, str) for content in contents)

    def _covers_calls(self, chat: Chat) -> bool:
        callers = [message for message in chat["messages"] if message.get("tool_calls")]
        sent = [function_of(call)["arguments"] for message in callers for call in message["tool_calls"]]
        kinds: set[ArgumentForm] = {"string" if isinstance(arguments, str) else "object" for arguments in sent}
        return all(
            (
                self.tools or not chat.get("tools"),
                self.tool_calls or not callers,
                not self.calls_only_offered or not callers or bool(chat.get("tools")),
                self.parallel_calls or all(len(message["tool_calls"]) == 1 for message in callers),
                kinds <= set(self.arguments),
                {_beside(message) for message in callers} <= set(self.beside),
            )
        )


def _beside(message: Message) -> Beside:
    """What stands beside the calls of a message."""
    if "content" not in message:
        return "missing"
    content = message["content"]
    return "null" if content is None else "text" if content else "empty"
