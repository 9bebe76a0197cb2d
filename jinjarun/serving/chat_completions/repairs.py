"""What to send instead of a request whose template failed: repairs that are tried until the template renders.

A repair is a row: a function of the body that gives another body, or the same one where there is nothing for it to
mend, and the sentence that says what it did. None of them looks at the template: whether it helps is seen by rendering.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jinjarun.errors import JinjarunError, LimitExceeded, TemplateSyntaxError

if TYPE_CHECKING:
    from jinjarun.limits import Limits

Body = dict[str, Any]
Repair = tuple[Callable[[Body], Body], str]

RESERVED = ("messages", "tools", "add_generation_prompt", "tokenize", "conversation", "return_dict")
HOPELESS = (LimitExceeded, TemplateSyntaxError)
"""Failures that no other request changes."""
NOTHING_HELPS = "the template fails on every form of this request that was tried: mend the template"


TRIALS = 20
"""All trials together may take about as many steps as the request itself: there are as many repairs."""


def trial_limits(limits: Limits) -> Limits:
    """The limits of a server that only tries repairs."""
    return replace(limits, steps=limits.steps // TRIALS)


def what_helps(body: Body, error_text: str, apply: Callable[[Body], str], repairs: Sequence[Repair]) -> str:
    """The sentence of the first repair with which `apply` gives a prompt; where none is enough, of several together."""

    def renders(mended: Body) -> bool:
        try:
            apply(mended)
        except JinjarunError:
            return False
        return True

    rows = [*repairs, *_missing_variable(error_text)]
    for repair, hint in rows:
        mended = repair(body)
        if mended != body and renders(mended):
            return hint
    done: list[str] = []
    for repair, hint in rows:
        mended = repair(body)
        if mended != body:
            body = mended
            done.append(hint)
            if len(done) > 1 and renders(body):
                return "; ".join(done)
    return NOTHING_HELPS


def _missing_variable(error_text: str) -> list[Repair]:
    """A variable that the template needs and nobody sets."""
    found = re.fullmatch(r"'(\w+)' is undefined", error_text)
    if found is None:
        return []
    name = found[1]

    def set_it(body: Body) -> Body:
        return _with_kwargs(body, {**_kwargs(body), name: ""})

    return [(set_it, f"give {name} in chat_template_kwargs: the template needs it, and the server does not set it")]


def _kwargs(body: Body) -> Body:
    kwargs = body.get("chat_template_kwargs")
    return kwargs if isinstance(kwargs, dict) else {}


def _with_kwargs(body: Body, kwargs: Body) -> Body:
    return {**body, "chat_template_kwargs": kwargs} if kwargs != _kwargs(body) else body


def _messages(body: Body) -> list[Body]:
    return body["messages"] if isinstance(body.get("messages"), list) else []


def _with(body: Body, messages: list[Body]) -> Body:
    return {**body, "messages": messages}


def _text(message: Body) -> str:
    content = message.get("content")
    if isinstance(content, list):
        parts = [part if isinstance(part, str) else part.get("text") or "" for part in content]
        return "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _is_system(message: Body) -> bool:
    return str(message.get("role")).lower() in ("system", "developer")


def take_reserved_out(body: Body) -> Body:
    return _with_kwargs(body, {name: value for name, value in _kwargs(body).items() if name not in RESERVED})


def continue_at_the_top(body: Body) -> Body:
    if not body.get("continue_final_message") and not _kwargs(body).get("continue_final_message"):
        return body
    kwargs = {name: value for name, value in _kwargs(body).items() if name != "continue_final_message"}
    return {**_with_kwargs(body, kwargs), "continue_final_message": True, "add_generation_prompt": False}


def do_not_continue(body: Body) -> Body:
    kwargs = {name: value for name, value in _kwargs(body).items() if name != "continue_final_message"}
    rest = {key: value for key, value in body.items() if key != "continue_final_message"}
    return _with_kwargs(rest, kwargs)


def add_a_message(body: Body) -> Body:
    return body if _messages(body) else _with(body, [{"role": "user", "content": "Hello"}])


def fill_tools(body: Body) -> Body:
    tools = body.get("tools")
    if not isinstance(tools, list):
        return body
    filled = []
    for tool in tools:
        function = {"description": "", "parameters": {"type": "object", "properties": {}}}
        function |= {key: value for key, value in tool["function"].items() if value is not None}
        filled.append({**tool, "type": "function", "function": function})
    return {**body, "tools": filled}


def content_as_text(body: Body) -> Body:
    return _with(
        body,
        [
            {**message, "content": _text(message)} if isinstance(message.get("content"), list) else message
            for message in _messages(body)
        ],
    )


def content_everywhere(body: Body) -> Body:
    return _with(
        body,
        [message if message.get("content") is not None else {**message, "content": ""} for message in _messages(body)],
    )


def known_roles(body: Body) -> Body:
    known = {"system", "user", "assistant", "tool"}

    def role_of(message: Body) -> str:
        role = str(message.get("role")).lower()
        role = {"developer": "system", "function": "tool"}.get(role, role)
        return role if role in known else "user"

    return _with(body, [{**message, "role": role_of(message)} for message in _messages(body)])


def system_first(body: Body) -> Body:
    texts = [_text(message) for message in _messages(body) if _is_system(message)]
    if not texts:
        return body
    first = {"role": "system", "content": "\n\n".join(texts)}
    return _with(body, [first, *(message for message in _messages(body) if not _is_system(message))])


def system_in_user(body: Body) -> Body:
    texts = [_text(message) for message in _messages(body) if _is_system(message)]
    others = [message for message in _messages(body) if not _is_system(message)]
    at = next((i for i, message in enumerate(others) if message.get("role") == "user"), None)
    if not texts:
        return body
    if at is None:
        return _with(body, [{"role": "user", "content": "\n\n".join(texts)}, *others])
    joined = {**others[at], "content": "\n\n".join([*texts, _text(others[at])])}
    return _with(body, [*others[:at], joined, *others[at + 1 :]])


def calls_as_text(body: Body) -> Body:
    messages = []
    for message in _messages(body):
        if message.get("role") in ("tool", "function"):
            messages.append({"role": "user", "content": _text(message)})
        else:
            messages.append(
                {key: value for key, value in message.items() if key not in ("tool_calls", "function_call")}
            )
    return _with(body, messages)


def one_call_a_message(body: Body) -> Body:
    """Several calls of one message become messages of one call, each before its result."""
    messages: list[Body] = []
    results = {one.get("tool_call_id"): one for one in _messages(body) if one.get("role") == "tool"}
    for message in _messages(body):
        calls = message.get("tool_calls")
        if isinstance(calls, list) and calls:
            for call in calls:
                messages.append({**message, "tool_calls": [call]})
                if call.get("id") in results:
                    messages.append(results[call["id"]])
        elif message.get("role") != "tool" or message.get("tool_call_id") is None:
            messages.append(message)
    return _with(body, messages)


def join_neighbours(body: Body) -> Body:
    messages: list[Body] = []
    for message in _messages(body):
        last = messages[-1] if messages else None
        plain = not message.get("tool_calls") and message.get("role") in ("user", "assistant")
        if last is not None and plain and last.get("role") == message["role"] and not last.get("tool_calls"):
            messages[-1] = {**last, "content": f"{_text(last)}\n\n{_text(message)}"}
        else:
            messages.append(message)
    return _with(body, messages)


def user_last(body: Body) -> Body:
    messages = _messages(body)
    if not messages or messages[-1].get("role") == "user":
        return body
    return _with(body, [*messages, {"role": "user", "content": "Go on."}])


def no_tools(body: Body) -> Body:
    return {key: value for key, value in body.items() if key not in ("tools", "tool_choice")}


REPAIRS: tuple[Repair, ...] = (
    (add_a_message, "send at least one message"),
    (
        take_reserved_out,
        "take messages, tools, add_generation_prompt and tokenize out of chat_template_kwargs: they are fields of the "
        "body",
    ),
    (
        continue_at_the_top,
        "send continue_final_message true and add_generation_prompt false at the top of the body, with an assistant "
        "message of text last",
    ),
    (do_not_continue, "leave continue_final_message out: this template does not write a final message as it is"),
    (system_first, "put all system texts into one message, the first"),
    (known_roles, "send the roles system, user, assistant and tool, in lower case"),
    (content_as_text, "send content as a string"),
    (content_everywhere, "send content with every message, be it an empty string"),
    (join_neighbours, "join messages of one role that follow each other: roles have to alternate"),
    (system_in_user, "send the system text inside the first user message: the template takes no system message"),
    (user_last, "end with a user message"),
    (fill_tools, "give every tool a description and parameters: the template reads them without asking"),
    (one_call_a_message, "send one call a message, each followed by its result"),
    (no_tools, "leave tools out: the template fails on them"),
    (
        calls_as_text,
        "send calls as text of the assistant and results as messages of the user: the template takes neither",
    ),
)
"""In the order in which they are tried: first what loses nothing of the request."""
