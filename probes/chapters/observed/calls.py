"""Tools, calls of them and their results."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from probes.chapters.observed import explain
from probes.chapters.observed.question import Verdict, look, question, sought
from probes.chats import canaries as c
from probes.rendering.input_form import cached_chat
from probes.rendering.outcomes import prints_nothing_as_text
from probes.rendering.renders import APPLY, LLAMA_SERVER, SERVERS

if TYPE_CHECKING:
    from probes.chats.canaries import Form
    from probes.chats.messages import Beside, Chat
    from probes.rendering.input_form import PathObserver


@question(explain=explain.tools)
def tools(on: PathObserver) -> Verdict:
    form = on.form
    wanted = (c.TOOL, c.SECOND_TOOL, c.PARAMETER)
    chats = (
        cached_chat(c.tools_offered, form),
        cached_chat(c.tools_without_system, form),
        cached_chat(c.tools_offered, form.but(bare=True)),
    )
    verdict = sought(on, chats, wanted, "names and parameters are written")
    if verdict.answer == "yes":
        text = on.ask(verdict.shown[0].chat).text or ""
        if re.search(rf"'name'\s*:\s*'{c.TOOL}'", text):
            return Verdict("yes", "written as Python's repr, not as JSON", verdict.shown)
        if c.DESCRIPTION not in text:
            return Verdict("yes", "names and parameters are written, but not the descriptions", verdict.shown)
        if verdict.shown[0].chat == chats[2]:
            return Verdict("yes", "written if sent without 'function' around them", verdict.shown)
    return verdict


@question(explain=explain.tool_calls, reworked=SERVERS)
def tool_calls(on: PathObserver) -> Verdict:
    verdict = _sought_in_calls(on, (c.VALUE,), "name and arguments are written")
    if verdict.answer != "yes" or on.writes_name:
        return verdict
    if c.ID in on.calls_text:
        return Verdict("yes", "arguments and id are written; the name only if the id holds it", verdict.shown)
    return Verdict("no", "arguments are written without the function's name or the call's id", verdict.shown)


@question(explain=explain.parallel_tool_calls, reworked=(LLAMA_SERVER,))
def parallel_tool_calls(on: PathObserver) -> Verdict:
    verdict = _sought_in_calls(on, (c.VALUE, c.SECOND_VALUE), "both calls are written", c.parallel_calls)
    if verdict.answer == "yes":
        text = on.ask(verdict.shown[0].chat).text or ""
        if text.find(c.SECOND_VALUE) < text.find(c.VALUE):
            return Verdict("no", "the calls are written in another order", verdict.shown)
    return verdict


@question(repaired=(LLAMA_SERVER,))
def text_beside_calls(on: PathObserver) -> Verdict:
    return _beside(on, "text", (c.TEXT, c.VALUE), "text and call are written")


@question(repaired=(APPLY, *SERVERS))
def null_content_with_calls(on: PathObserver) -> Verdict:
    return _beside(on, "null", (c.VALUE,), "the call is written, and nothing for the null")


@question(reworked=(LLAMA_SERVER,))
def empty_content_with_calls(on: PathObserver) -> Verdict:
    return _beside(on, "empty", (c.VALUE,), "the call is written")


@question(repaired=(APPLY, *SERVERS))
def missing_content_with_calls(on: PathObserver) -> Verdict:
    return _beside(on, "missing", (c.VALUE,), "the call is written, and nothing for the missing content")


def _beside(on: PathObserver, beside: Beside, wanted: tuple[str, ...], yes: str) -> Verdict:
    form, chat = on.call_form, on.call_chat
    if form is None or chat is None:
        return _no_calls(on)
    if form.beside == beside == "empty":
        return sought(on, (chat,), wanted, yes)
    asked = [cached_chat(c.one_call, form.but(beside=beside))]
    if beside == "text":
        asked.append(cached_chat(c.one_call, form.but(beside="parts")))
    verdict = sought(on, asked, wanted, yes)
    if verdict.answer == "yes" and beside in {"null", "missing"}:
        written = on.ask(asked[0]).text or ""
        if prints_nothing_as_text(written, _with_content(on, form)):
            shown = replace(verdict.shown[0], outcome="printed as a word")
            return Verdict("no", f"a {beside} content is printed as a word", (shown,))
    return verdict


def _with_content(on: PathObserver, form: Form) -> str:
    """The text of a call in a message that has content."""
    texts = (on.ask(cached_chat(c.one_call, form.but(beside=beside))).text for beside in ("text", "empty"))
    return next((text for text in texts if text is not None), "")


@question(reworked=(LLAMA_SERVER,))
def several_results_in_a_row(on: PathObserver) -> Verdict:
    wanted = (c.RESULT, c.SECOND_RESULT)
    return _sought_in_calls(on, wanted, "both results are written", c.parallel_calls, c.two_results)


@question(reworked=(LLAMA_SERVER,))
def tool_call_id(on: PathObserver) -> Verdict:
    return _sought_in_calls(on, (c.ID,), "the id is written")


@question()
def tool_call_name(on: PathObserver) -> Verdict:
    chat = on.call_chat
    if chat is None:
        return _no_calls(on)
    if on.writes_name:
        return Verdict("yes", "the call holds the function's name", (look(on, chat, "written", c.TOOL),))
    return Verdict("no", "the function's name is missing from the call", (look(on, chat, "lost"),))


@question(reworked=(LLAMA_SERVER,))
def tool_result_name(on: PathObserver) -> Verdict:
    return _sought_in_calls(on, (c.RESULT_NAME,), "the name of a result is written")


def _sought_in_calls(on: PathObserver, canaries: tuple[str, ...], yes: str, *others: Callable[[Form], Chat]) -> Verdict:
    """Yes where the canaries are written in the conversation that showed calls, or in one of the others."""
    form, shown = on.call_form, on.call_chat
    if form is None or shown is None:
        return _no_calls(on)

    def chats() -> Iterator[Chat]:
        yield shown
        yield from (cached_chat(build, form) for build in others)

    return sought(on, chats(), canaries, yes)


def _no_calls(on: PathObserver) -> Verdict:
    """What is left to say of a question about calls where none is written."""
    verdict = sought(on, (cached_chat(c.one_call, form) for form in on.call_forms[:2]), (c.VALUE,), "")
    if verdict.answer == "unknown":
        return verdict
    return Verdict("no", f"tool calls are not written: {verdict.reason}", verdict.shown)
