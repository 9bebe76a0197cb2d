"""A call in the history leaves a trace, whatever its content is, and its values keep their quotes.

Asked of templates that do something with tools: they write those that are offered, or name the role of results. Where
a conversation has no call, one is made behind its last question.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from probes.chats import canaries
from probes.chats.messages import Beside, beside_calls, function_of
from probes.laws.documents import leaves
from probes.laws.law import Law, Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from probes.chats.messages import Chat, Message
    from probes.laws.case import Case
    from probes.laws.subject import Subject

LAW = "calls-kept"
CONTENTS: tuple[Beside, ...] = ("empty", "null", "text")
LEAST = 6
"""Letters of a text of the arguments that is looked for: shorter ones may stand anywhere."""


def calls_kept(case: Case) -> Iterator[Violation]:
    if not case.subject.measured(knows_tools):
        return
    chat = _calling(case)
    if chat is None:
        return
    index = next(i for i, message in enumerate(chat["messages"]) if message.get("tool_calls"))
    silent: list[Beside] = []
    written: list[Beside] = []
    shown: dict[Beside, tuple[Chat, str]] = {}
    for beside in CONTENTS:
        fates: list[Chat] = []
        for asked in _forms(chat, index, beside):
            fate = _trace(case.subject, asked, index)
            if fate:
                written.append(beside)
                break
            fates += [] if fate is None else [asked]
        else:
            if fates:
                silent.append(beside)
                shown[beside] = fates[0], case.subject.render(fates[0]).text or ""
    if not silent:
        return
    asked, text = shown[silent[0]]
    what = "whatever its content is" if not written else f"where its content is {' or '.join(map(CALLED.get, silent))}"  # type: ignore[arg-type]
    said = f"a call in the history leaves no trace {what}"
    cause = "always" if not written else " ".join(silent)
    yield Violation(LAW, "TL115", cause, said, asked, _values(chat["messages"][index])[0], text)


CALLED: dict[Beside, str] = {"empty": "empty", "null": "null", "text": "a text"}


def _calling(case: Case) -> Chat | None:
    """The conversation up to the results of its first message that calls, or with such a message."""
    messages = case.messages
    index = next((i for i, message in enumerate(messages) if message.get("tool_calls")), None)
    if index is not None:
        if not _values(messages[index]):
            return None
        end = next((i for i in range(index + 1, len(messages)) if messages[i]["role"] != "tool"), len(messages))
        return {**case.chat, "messages": messages[:end], "add_generation_prompt": True}
    last = max((i for i, message in enumerate(messages) if message["role"] == "user"), default=None)
    if last is None:
        return None
    made = canaries.one_call(case.subject.on.form)
    asked: Any = [*messages[: last + 1], *made["messages"][-2:]]
    return {**case.chat, "messages": asked, "tools": made["tools"], "add_generation_prompt": True}


def _forms(chat: Chat, index: int, beside: Beside) -> Iterator[Chat]:
    """The call as it is, with its arguments in the other form, and without the wrapper around the function."""
    message = chat["messages"][index]
    content = beside_calls(beside, canaries.TEXT)
    if isinstance(message.get("content"), list) and beside == "text":
        content = beside_calls("parts", canaries.TEXT)
    plain = {key: value for key, value in message.items() if key != "content"} | content
    for calls in _turned(message["tool_calls"]):
        asked = [*chat["messages"][:index], {**plain, "tool_calls": calls}, *chat["messages"][index + 1 :]]
        yield {**chat, "messages": asked}


def _turned(calls: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    yield calls
    other = []
    for call in calls:
        function = function_of(call)
        sent = function["arguments"]
        try:
            turned = json.loads(sent) if isinstance(sent, str) else json.dumps(sent, ensure_ascii=False)
        except ValueError:
            turned = sent
        function = {**function, "arguments": turned}
        other.append({**call, "function": function} if "function" in call else function)
    yield other
    yield [function_of(call) for call in calls]


def _trace(subject: Subject, chat: Chat, index: int) -> bool | None:
    """Whether any text of the arguments or the name stands there because of the call; None where it fails."""
    text = subject.render(chat).text
    if text is None:
        return None
    message = chat["messages"][index]
    without: Message = {key: value for key, value in message.items() if key != "tool_calls"}
    without["content"] = message.get("content") or ""
    rest = {**chat, "messages": [*chat["messages"][:index], without, *chat["messages"][index + 1 :]]}
    other = subject.render(rest).text  # type: ignore[arg-type]  # the keys of a Chat
    if other is not None and text == other:
        return False
    if any(value in text for value in _values(message)):
        return True
    names = [function_of(call)["name"] for call in message["tool_calls"]]
    return other is None or any(text.count(name) > other.count(name) for name in names)


def _values(message: Message) -> list[str]:
    """Texts of the arguments that can be looked for."""
    found: list[str] = []
    for call in message["tool_calls"]:
        sent = function_of(call)["arguments"]
        try:
            sent = json.loads(sent) if isinstance(sent, str) else sent
        except ValueError:
            continue
        if isinstance(sent, dict):
            found += [leaf.strip() for leaf in leaves(list(sent.values())) if len(leaf.strip()) >= LEAST]
    return [text for text in found if json.dumps(text)[1:-1] == text]


def knows_tools(subject: Subject) -> bool:
    """Whether the template does something with tools: it writes those that are offered, or it has a branch for results
    and writes them."""
    if subject.on.tools_chat is not None:
        return True
    if not any(word in subject.source for word in ("'tool'", '"tool"')):
        return False
    text = subject.render(canaries.one_call(subject.on.form)).text or ""
    return canaries.RESULT in text


LAWS = (
    Law(
        LAW,
        ("TL115",),
        "a call leaves a trace, whatever its content is",
        calls_kept,
        heavy=True,
    ),
)
