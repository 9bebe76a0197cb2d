"""What is often wrong with a request whose template failed, and what to send instead; the first that applies counts."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinjarun.serving.chat_completions.errors import Check


def roles_of(body: dict[str, Any]) -> list[str]:
    messages = body.get("messages")
    return [str(message.get("role")) for message in messages if isinstance(message, dict)] if messages else []


def _system_late(body: dict[str, Any]) -> bool:
    return "system" in roles_of(body)[1:]


def _follow_each_other(role: str) -> Callable[[dict[str, Any]], bool]:
    def found(body: dict[str, Any]) -> bool:
        roles = [one for one in roles_of(body) if one != "system"]
        return any(pair == (role, role) for pair in pairwise(roles))

    return found


def _has_role(*roles: str) -> Callable[[dict[str, Any]], bool]:
    return lambda body: any(role in roles for role in roles_of(body))


def _odd_role(body: dict[str, Any]) -> bool:
    return any(role not in {"system", "user", "assistant", "tool", "developer", "function"} for role in roles_of(body))


def _has_parts(body: dict[str, Any]) -> bool:
    return any(isinstance(message.get("content"), list) for message in body.get("messages") or ())


def _has_calls(body: dict[str, Any]) -> bool:
    return any(message.get("tool_calls") for message in body.get("messages") or ())


def _bare_tools(body: dict[str, Any]) -> bool:
    functions = [tool.get("function") or {} for tool in body.get("tools") or () if isinstance(tool, dict)]
    return any(function.get("parameters") is None or function.get("description") is None for function in functions)


def _kwargs_have(*names: str) -> Callable[[dict[str, Any]], bool]:
    return lambda body: any(name in (body.get("chat_template_kwargs") or {}) for name in names)


CHECKS: tuple[Check, ...] = (
    (lambda body: not body.get("messages"), "send at least one message"),
    (
        lambda body: bool(body.get("continue_final_message")) or _kwargs_have("continue_final_message")(body),
        "send continue_final_message true together with add_generation_prompt false, both at the top of the body, with "
        "an assistant message of plain text last",
    ),
    (
        _kwargs_have("messages", "tools", "add_generation_prompt", "tokenize", "conversation"),
        "take messages, tools, add_generation_prompt and tokenize out of chat_template_kwargs: they are fields of the "
        "body",
    ),
    (_odd_role, "send the roles system, user, assistant and tool, in lower case"),
    (_has_role("developer"), "send the developer's text as the first message, with the role system"),
    (_has_role("function"), "send results with the role tool and the tool_call_id of their call"),
    (_system_late, "put all system texts into one message, the first"),
    (_bare_tools, "give every tool a description and parameters, for the template reads them without asking"),
    (_has_calls, "the template takes no tool calls in this form: see what `probe` says of its calls"),
    (_has_role("tool"), "send tool results right after the assistant message with their calls"),
    (_follow_each_other("user"), "join messages of one role that follow each other: roles have to alternate"),
    (_follow_each_other("assistant"), "join messages of one role that follow each other: roles have to alternate"),
    (lambda body: roles_of(body)[-1:] == ["assistant"], "end with a user message"),
    (_has_parts, "send content as a string"),
    (lambda body: roles_of(body)[:1] == ["system"], "send the system text inside the first user message"),
)
