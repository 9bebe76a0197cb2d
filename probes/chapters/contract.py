"""`contract`: what a template accepts, and what it says to what it does not accept."""

from __future__ import annotations

import re
from typing import Literal

from jinjarun.errors import REFUSAL_LIMIT, TemplateRaised, quote
from probes.chapters.observed import calls, contents, roles
from probes.chapters.observed.question import Verdict
from probes.chapters.switches import switches
from probes.chats import canaries as c
from probes.chats.messages import Chat
from probes.chats.named import conversation
from probes.rendering.input_form import READABLE, PathObserver, cached_chat, call_text, observer
from probes.rendering.outcomes import argument_style, fate_of
from probes.rendering.renders import LLAMA_RAW, RAW, Outcome, Renders, dialect_of
from probes.report import Contract, Raise, ReasoningInput, ToolArguments

Same = Literal["same_as_absent", "differs", "unknown"]

WORDS = {
    "written": "yes",
    "rendered": "yes",
    "raised": "raises",
    "refused": "raises",
    "lost": "dropped",
    "dumped": "printed_raw",
    "printed as a word": "printed_as_word",
    "limit": "unknown",
}
"""What a render showed -> the contract's word for it."""

INLINE_TAGS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<mm:think>", "</mm:think>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
)
"""Tags between which formats write reasoning inside the text of an answer."""

OTHER_LENGTHS = (8, 10)
"""Lengths of call ids around the nine of the canaries."""
RAISES = re.compile(r"raise_exception\s*\(\s*((['\"])(?P<text>(?:(?!\2).)*)\2)?", re.DOTALL)


def contract(renders: Renders) -> Contract | None:
    """The contract on the first bare engine that loads the template; None where none does, or where one user message
    alone hits a limit."""
    path = next((path for path in (RAW, LLAMA_RAW) if renders.loads(path) is None), None)
    if path is None:
        return None
    on = observer(renders, path)
    if on.ask(cached_chat(c.user_only, c.USUAL)).limited:
        return None
    users = _two_users(on)
    return Contract(
        roles=_roles(on),
        alternation_required=None if users.limited else not users.ok,
        needs_user_turn=_needs_user_turn(on),
        empty_conversation={dialect_of(path): _empty_conversation(renders, path) for path in (RAW, LLAMA_RAW)},
        content=_contents(on),
        tool_arguments=_tool_arguments(on),
        tool_call_id_length=_id_length(on),
        empty_tools_list=_compared(on, cached_chat(c.empty_tools, on.form), cached_chat(c.user_only, on.form)),
        empty_tool_calls_list=_compared(on, cached_chat(c.empty_calls, on.form), cached_chat(c.three_turns, on.form)),
        reasoning_input=ReasoningInput(fields=on.reasoning_fields, inline_tags_in_content=_inline(on)),
        variables=switches(on),
        required_variables=[name for name, _ in on.form.variables],
        raises=_raises(on),
    )


def word(verdict: Verdict) -> str:
    if verdict.answer != "no":
        return verdict.answer
    return WORDS[verdict.shown[0].outcome]


# ------------------------------------------------------------------------------------------------------ roles and turns


def _roles(on: PathObserver) -> dict[str, str]:
    """Role -> `yes`, `dropped`, `raises`, `printed_raw` or `unknown`; of a system message where it may stand."""
    form = on.form
    system = word(roles.system_role(on))
    if system == "yes":
        late, second = roles.late_system_message(on).answer, roles.second_system_message(on).answer
        places = {
            ("yes", "yes"): "anywhere",
            ("yes", "no"): "anywhere_once",
            ("no", "yes"): "start",
            ("no", "no"): "first_only",
        }
        system = places.get((late, second), "unknown")
    tool = cached_chat(c.one_call, form) if on.call_chat is None else on.call_chat
    return {
        "system": system,
        "developer": word(roles.developer_role(on)),
        "user": _fate_word(on.ask(cached_chat(c.user_only, form)), c.USER),
        "assistant": _fate_word(on.ask(cached_chat(c.three_turns, form)), c.ANSWER),
        "tool": _fate_word(on.ask(tool), c.RESULT),
        "other": _fate_word(on.ask(cached_chat(c.unknown_role, form)), c.ANSWER),
    }


def _fate_word(outcome: Outcome, canary: str) -> str:
    return WORDS[fate_of(outcome, canary)]


def _two_users(on: PathObserver) -> Outcome:
    together = on.ask(cached_chat(c.roles, on.system_form))
    return together if together.ok else on.ask(cached_chat(c.two_users, on.form))


def _needs_user_turn(on: PathObserver) -> bool | None:
    """Whether a conversation of a system message alone fails, where a user's turn makes it render."""
    form = on.system_form
    alone = on.ask(SYSTEM_ONLY if form == c.USUAL else cached_chat(c.system_only, form))
    led = on.ask(cached_chat(c.system_user, form))
    if alone.ok or alone.limited:
        return None if alone.limited else False
    return True if led.ok else None


SYSTEM_ONLY = conversation("system-only")
EMPTY = conversation("empty")


def _empty_conversation(renders: Renders, path: str) -> str:
    if renders.loads(path) is not None:
        return "does_not_load"
    outcome = renders.render(path, EMPTY)
    return "unknown" if outcome.limited else "renders" if outcome.ok else "raises"


# ------------------------------------------------------------------------------------------------- contents, tool calls


def _contents(on: PathObserver) -> dict[str, str]:
    """Form of content -> what becomes of it. Null and missing content stand beside a call where calls are written,
    else in an answer."""
    if on.call_form is not None:
        nothing = {
            "null": word(calls.null_content_with_calls(on)),
            "missing": word(calls.missing_content_with_calls(on)),
        }
    else:
        nothing = {
            "null": _nothing_word(on, cached_chat(c.null_answer, on.form)),
            "missing": _nothing_word(on, cached_chat(c.missing_answer, on.form)),
        }
    return {
        "string": word(contents.string_content(on)),
        **nothing,
        "text_parts": word(contents.one_text_part(on)),
        "several_text_parts": word(contents.several_text_parts(on)),
        "image_part": word(contents.image_parts(on)),
    }


def _nothing_word(on: PathObserver, chat: Chat) -> str:
    outcome = on.ask(chat)
    if outcome.text is None:
        return "unknown" if outcome.limited else "raises"
    plain = on.ask(cached_chat(c.three_turns, on.form)).text
    words = re.compile(r"\b(?:None|null)\b")
    return "printed_as_word" if len(words.findall(outcome.text)) > len(words.findall(plain or "")) else "yes"


def _tool_arguments(on: PathObserver) -> ToolArguments:
    form = on.call_form
    if form is None:
        return ToolArguments(object="unsupported", json_string="unsupported", preferred="none")
    as_object, as_string = (on.ask(cached_chat(c.one_call, form.but(arguments=kind))) for kind in ("object", "string"))
    taken, text = _argument_word(as_object), _argument_word(as_string)
    if taken == text == "native":
        text = "same_text" if as_object.text == as_string.text else "other_text"
    wanted: list[tuple[Literal["object", "json_string"], str]] = [("object", taken), ("json_string", text)]
    for best in ("native", "other_text"):
        for name, found in wanted:
            if found == best:
                return ToolArguments(object=taken, json_string=text, preferred=name)
    return ToolArguments(object=taken, json_string=text, preferred="none")


def _argument_word(outcome: Outcome) -> str:
    """What becomes of a form of arguments: `native` as the format means it, `other_text` where they are printed as
    Python does or quoted twice, `raises`, `unsupported` or `unknown`."""
    fate = fate_of(outcome, c.VALUE)
    if fate != "written":
        return {"raised": "raises", "limit": "unknown"}.get(fate, "unsupported")
    return "native" if argument_style(call_text(outcome)) in READABLE else "other_text"


def _id_length(on: PathObserver) -> int | None:
    """The only length that ids of calls may have: nine, where no other passes."""
    form = on.best_form
    if form.bare or not on.ask(cached_chat(c.one_call, form)).ok:
        return None
    if on.ask(cached_chat(c.long_call_id, form)).ok:
        return None
    others = (
        c.with_call_id(cached_chat(c.one_call, form), c.ID.ljust(length, "x")[:length]) for length in OTHER_LENGTHS
    )
    return None if any(on.ask(chat).ok for chat in others) else len(c.ID)


def _compared(on: PathObserver, chat: Chat, absent: Chat) -> Same:
    one, other = on.ask(chat), on.ask(absent)
    if one.limited or other.limited:
        return "unknown"
    return "same_as_absent" if one.text == other.text else "differs"


# ------------------------------------------------------------------------------------------------------------ reasoning


def _inline(on: PathObserver) -> Literal["recognised", "plain_text", "unknown"]:
    """Whether reasoning between tags inside the text of an answer is anything but text."""
    source = on.renders.source
    opening, closing = next((tags for tags in INLINE_TAGS if tags[1] in source), INLINE_TAGS[0])
    outcome = on.ask(cached_chat(c.inline_reasoning, on.form, opening, closing))
    if outcome.text is None or c.ANSWER not in outcome.text:
        return "unknown"
    return "plain_text" if f"{opening}{c.REASONING}{closing}{c.ANSWER}" in outcome.text else "recognised"


# ------------------------------------------------------------------------------------------------------------- refusals


def _raises(on: PathObserver) -> list[Raise]:
    """The template's own refusals: each with a conversation that triggers it, or none that did."""
    sites = _sites(on.renders.source)
    found: dict[tuple[str, int], Raise] = {}

    def note(name: str, outcome: Outcome) -> None:
        error = outcome.error
        if not isinstance(error, TemplateRaised):
            return
        fitting = [site for site in sites if site[1] == error.line and error.message.startswith(site[0])]
        site = max(fitting, default=(error.message, error.line or 0))
        found.setdefault(site, Raise(message=error.message, line=error.line, triggered_by=name))

    if sites:
        for name, outcome in on.renders.named(on.path).items():
            note(name, outcome)
    for name, build in c.MALFORMED.items():
        if found.keys() >= set(sites):
            break
        note(name, on.ask(cached_chat(build, on.form)))
    silent = [Raise(message=text, line=line, triggered_by=None) for text, line in sites if (text, line) not in found]
    return sorted([*found.values(), *silent], key=lambda raised: (raised.line or 0, raised.message))


def _sites(source: str) -> list[tuple[str, int]]:
    """Start of the message, as errors have it, and line of each call of `raise_exception`."""
    return list(
        dict.fromkeys(
            (quote(found["text"] or "", REFUSAL_LIMIT), source.count("\n", 0, found.start()) + 1)
            for found in RAISES.finditer(source)
        )
    )
