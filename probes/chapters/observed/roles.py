"""Who may speak, and where: system, developer, users in a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chapters.observed import explain
from probes.chapters.observed.question import Verdict, question, sought
from probes.chats import canaries as c
from probes.rendering.input_form import cached_chat
from probes.rendering.renders import LLAMA_SERVER, VLLM

if TYPE_CHECKING:
    from probes.rendering.input_form import PathObserver


@question(explain=explain.system_role, repaired=(LLAMA_SERVER,))
def system_role(on: PathObserver) -> Verdict:
    form = on.system_form
    alone = sought(
        on, (cached_chat(c.roles, form), cached_chat(c.system_user, form)), (c.SYSTEM,), "its text is written"
    )
    offered = on.ask(cached_chat(c.tools_offered, form))
    if alone.answer != "yes" or not offered.ok or c.TOOL not in (offered.text or ""):
        return alone
    beside = sought(on, (cached_chat(c.tools_offered, form),), (c.SYSTEM,), "its text is written, beside tools too")
    if beside.answer == "yes":
        return Verdict("yes", beside.reason, alone.shown + beside.shown)
    return Verdict(beside.answer, f"written alone, but beside tools {beside.reason}", beside.shown + alone.shown)


@question(repaired=(LLAMA_SERVER, VLLM))
def developer_role(on: PathObserver) -> Verdict:
    form = on.form
    verdict = sought(on, (cached_chat(c.developer, form),), (c.DEVELOPER,), "its text is written")
    if verdict.answer != "yes" or on.bare is not None:
        return verdict
    text = on.ask(cached_chat(c.developer, form)).text or ""
    system = on.ask(cached_chat(c.system_user, form)).text or ""
    if text.replace(c.DEVELOPER, c.SYSTEM) == system:
        how = "its text is written as that of a system message"
    elif "developer" in text:
        how = "its text is written in a turn with the name of its role"
    else:
        how = "its text is written, but not as that of a system message"
    return Verdict("yes", how, verdict.shown)


@question()
def late_system_message(on: PathObserver) -> Verdict:
    chats = (cached_chat(build, on.system_form) for build in (c.roles, c.late_system))
    return sought(on, chats, (c.LATE_SYSTEM,), "a system message in the middle is written")


@question()
def second_system_message(on: PathObserver) -> Verdict:
    chats = (cached_chat(build, on.system_form) for build in (c.roles, c.second_system))
    return sought(on, chats, (c.SYSTEM, c.SECOND_SYSTEM), "both system messages are written")


@question()
def several_user_turns_in_a_row(on: PathObserver) -> Verdict:
    chats = (cached_chat(build, on.form) for build in (c.roles, c.two_users))
    return sought(on, chats, (c.USER, c.SECOND_USER), "both texts are written")
