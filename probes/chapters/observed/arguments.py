"""Arguments of calls that are objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chapters.observed import explain
from probes.chapters.observed.question import Verdict, question, sought
from probes.chats import canaries as c
from probes.chats.messages import function_of
from probes.rendering.input_form import cached_chat, call_text
from probes.rendering.outcomes import argument_style
from probes.rendering.renders import LLAMA_SERVER, VLLM

if TYPE_CHECKING:
    from probes.chats.messages import Chat
    from probes.rendering.input_form import PathObserver


@question(explain=explain.object_arguments, reworked=(LLAMA_SERVER, VLLM))
def object_arguments(on: PathObserver) -> Verdict:
    forms = [on.best_form.but(arguments="object")]
    forms += [form for form in on.call_forms if form.arguments == "object"]
    chats = [on.call_chat] if on.call_chat is not None and _holds_objects(on.call_chat) else []
    verdict = sought(
        on, [*chats, *(cached_chat(c.one_call, form) for form in forms)], (c.PARAMETER, c.VALUE), "an object is written"
    )
    if verdict.answer != "yes":
        return verdict
    style = argument_style(call_text(on.ask(verdict.shown[0].chat)))
    if style == "repr":
        return Verdict("no", "an object is written as Python's repr, which is no JSON", verdict.shown)
    if style == "escaped":
        return Verdict("no", "an object is written as JSON quoted a second time", verdict.shown)
    how = "as JSON" if style == "json" else "in the template's own markup"
    return Verdict("yes", f"an object is written {how}", verdict.shown)


def _holds_objects(chat: Chat) -> bool:
    calls = (call for message in chat["messages"] for call in message.get("tool_calls") or [])
    return any(isinstance(function_of(call)["arguments"], dict) for call in calls)
