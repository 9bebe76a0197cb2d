"""`contract`: what a template accepts, and what it says to what it does not accept."""

from __future__ import annotations

import re
from typing import Literal

from jinjarun.errors import QUOTE_LIMIT, TemplateRaised, quote
from probes.chapters.observed.witness import Verdict, Witness, made, witness_of
from probes.chapters.switches import switches
from probes.chats import canaries as c
from probes.chats.named import Chat, conversation
from probes.rendering.outcomes import argument_style, fate_of
from probes.rendering.renders import LLAMA_RAW, RAW, Outcome, Renders, dialect_of
from probes.report import Contract, Raise, ReasoningInput, ToolArguments

Same = Literal["same_as_absent", "differs", "unknown"]

WORDS = {
    "written": "yes",
    "rendered": "yes",
    "raised": "raises",
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
    witness = witness_of(renders, path)
    if witness.ask(made(c.user_only, c.USUAL)).limited:
        return None
    users = _two_users(witness)
    return Contract(
        roles=_roles(witness),
        alternation_required=None if users.limited else not users.ok,
        needs_user_turn=_needs_user_turn(witness),
        empty_conversation={dialect_of(path): _empty_conversation(renders, path) for path in (RAW, LLAMA_RAW)},
        content=_contents(witness),
        tool_arguments=_tool_arguments(witness),
        tool_call_id_length=_id_length(witness),
        empty_tools_list=_compared(witness, made(c.empty_tools, witness.form), made(c.user_only, witness.form)),
        empty_tool_calls_list=_compared(witness, made(c.empty_calls, witness.form), made(c.three_turns, witness.form)),
        reasoning_input=ReasoningInput(fields=_reasoning_fields(witness), inline_tags_in_content=_inline(witness)),
        variables=switches(witness),
        required_variables=[name for name, _ in witness.form.variables],
        raises=_raises(witness),
    )


def word(verdict: Verdict) -> str:
    if verdict.answer != "no":
        return verdict.answer
    return WORDS[verdict.shown[0].outcome]


# ------------------------------------------------------------------------------------------------------ roles and turns


def _roles(witness: Witness) -> dict[str, str]:
    """Role -> `yes`, `dropped`, `raises`, `printed_raw` or `unknown`; of a system message where it may stand."""
    form = witness.form
    system = word(witness.system_role())
    if system == "yes":
        late, second = witness.late_system_message().answer, witness.second_system_message().answer
        places = {
            ("yes", "yes"): "anywhere",
            ("yes", "no"): "anywhere_once",
            ("no", "yes"): "start",
            ("no", "no"): "first_only",
        }
        system = places.get((late, second), "unknown")
    tool = made(c.one_call, form) if witness.calling is None else witness.calling[1]
    return {
        "system": system,
        "developer": word(witness.developer_role()),
        "user": _fate_word(witness.ask(made(c.user_only, form)), c.USER),
        "assistant": _fate_word(witness.ask(made(c.three_turns, form)), c.ANSWER),
        "tool": _fate_word(witness.ask(tool), c.RESULT),
        "other": _fate_word(witness.ask(made(c.unknown_role, form)), c.ANSWER),
    }


def _fate_word(outcome: Outcome, canary: str) -> str:
    return WORDS[fate_of(outcome, canary)]


def _two_users(witness: Witness) -> Outcome:
    together = witness.ask(made(c.roles, witness.system_form))
    return together if together.ok else witness.ask(made(c.two_users, witness.form))


def _needs_user_turn(witness: Witness) -> bool | None:
    """Whether a conversation of a system message alone fails, where a user's turn makes it render."""
    form = witness.system_form
    alone = witness.ask(SYSTEM_ONLY if form == c.USUAL else made(c.system_only, form))
    led = witness.ask(made(c.system_user, form))
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


def _contents(witness: Witness) -> dict[str, str]:
    """Form of content -> what becomes of it. Null and missing content stand beside a call where calls are written,
    else in an answer."""
    if witness.calling is not None:
        nothing = {
            "null": word(witness.null_content_with_calls()),
            "missing": word(witness.missing_content_with_calls()),
        }
    else:
        nothing = {
            "null": _nothing_word(witness, made(c.null_answer, witness.form)),
            "missing": _nothing_word(witness, made(c.missing_answer, witness.form)),
        }
    return {
        "string": word(witness.string_content()),
        **nothing,
        "text_parts": word(witness.one_text_part()),
        "several_text_parts": word(witness.several_text_parts()),
        "image_part": word(witness.image_parts()),
    }


def _nothing_word(witness: Witness, chat: Chat) -> str:
    outcome = witness.ask(chat)
    if outcome.text is None:
        return "unknown" if outcome.limited else "raises"
    plain = witness.ask(made(c.three_turns, witness.form)).text
    words = re.compile(r"\b(?:None|null)\b")
    return "printed_as_word" if len(words.findall(outcome.text)) > len(words.findall(plain or "")) else "yes"


def _tool_arguments(witness: Witness) -> ToolArguments:
    if witness.calling is None:
        return ToolArguments(object="unsupported", json_string="unsupported", preferred="none")
    form = witness.calling[0]
    outcomes = [witness.ask(made(c.one_call, form.but(arguments=arguments))) for arguments in ("object", "string")]
    as_object, as_string = (fate_of(outcome, c.VALUE) for outcome in outcomes)
    words = {"raised": "raises", "limit": "unknown", "lost": "unsupported", "dumped": "unsupported"}
    if as_object != "written" or as_string != "written":
        return ToolArguments(
            object=words.get(as_object, "native"),
            json_string=words.get(as_string, "native"),
            preferred="object" if as_object == "written" else "json_string" if as_string == "written" else "none",
        )
    if outcomes[0].text == outcomes[1].text:
        return ToolArguments(object="native", json_string="same_text", preferred="object")
    if argument_style(_call_part(outcomes[0])) == "repr" or argument_style(_call_part(outcomes[1])) == "own":
        return ToolArguments(object="other_text", json_string="native", preferred="json_string")
    return ToolArguments(object="native", json_string="other_text", preferred="object")


def _call_part(outcome: Outcome) -> str:
    text = outcome.text or ""
    at = text.rfind(c.VALUE)
    return text[max(0, at - 100) : at + 100]


def _id_length(witness: Witness) -> int | None:
    """The only length that ids of calls may have: nine, where no other passes."""
    form = witness.form if witness.calling is None else witness.calling[0]
    if form.bare or not witness.ask(made(c.one_call, form)).ok:
        return None
    if witness.ask(made(c.long_call_id, form)).ok:
        return None
    others = (c.with_call_id(made(c.one_call, form), c.ID.ljust(length, "x")[:length]) for length in OTHER_LENGTHS)
    return None if any(witness.ask(chat).ok for chat in others) else len(c.ID)


def _compared(witness: Witness, chat: Chat, absent: Chat) -> Same:
    one, other = witness.ask(chat), witness.ask(absent)
    if one.limited or other.limited:
        return "unknown"
    return "same_as_absent" if one.text == other.text else "differs"


# ------------------------------------------------------------------------------------------------------------ reasoning


def _reasoning_fields(witness: Witness) -> list[str]:
    """The fields whose text is written, each found where those that win over it are absent."""
    left = witness.reasoning_names
    found: list[str] = []
    while left:
        written = [name for name in left if _writes_reasoning(witness, left, name)]
        if not written:
            break
        found += written
        left = tuple(name for name in left if name not in written)
    return found


def _writes_reasoning(witness: Witness, sent: tuple[str, ...], name: str) -> bool:
    """Whether one of the fields sent is written: before a call in an open turn, or else before an answer."""
    form = witness.form if witness.calling is None else witness.calling[0]
    chats = [] if witness.calling is None else [made(c.reasoning_in_loop, form, sent)]
    chats += [made(c.reasoning, form, sent), c.reasoning(form, sent, **witness.keeping)]
    return any(fate_of(witness.ask(chat), c.reasoning_under(name)) == "written" for chat in chats)


def _inline(witness: Witness) -> Literal["recognised", "plain_text", "unknown"]:
    """Whether reasoning between tags inside the text of an answer is anything but text."""
    source = witness.renders.source
    opening, closing = next((tags for tags in INLINE_TAGS if tags[1] in source), INLINE_TAGS[0])
    outcome = witness.ask(made(c.inline_reasoning, witness.form, opening, closing))
    if outcome.text is None or c.ANSWER not in outcome.text:
        return "unknown"
    return "plain_text" if f"{opening}{c.REASONING}{closing}{c.ANSWER}" in outcome.text else "recognised"


# ------------------------------------------------------------------------------------------------------------- refusals


def _raises(witness: Witness) -> list[Raise]:
    """The template's own refusals: each with a conversation that triggers it, or none that did."""
    sites = _sites(witness.renders.source)
    found: dict[tuple[str, int], Raise] = {}

    def note(name: str, outcome: Outcome) -> None:
        error = outcome.error
        if not isinstance(error, TemplateRaised):
            return
        fitting = [site for site in sites if site[1] == error.line and error.message.startswith(site[0])]
        site = max(fitting, default=(error.message, error.line or 0))
        found.setdefault(site, Raise(message=error.message, line=error.line, triggered_by=name))

    if sites:
        for name, outcome in witness.renders.named(witness.path).items():
            note(name, outcome)
    for name, build in c.MALFORMED.items():
        if found.keys() >= set(sites):
            break
        note(name, witness.ask(made(build, witness.form)))
    silent = [Raise(message=text, line=line, triggered_by=None) for text, line in sites if (text, line) not in found]
    return sorted([*found.values(), *silent], key=lambda raised: (raised.line or 0, raised.message))


def _sites(source: str) -> list[tuple[str, int]]:
    """Start of the message, as errors have it, and line of each call of `raise_exception`."""
    return list(
        dict.fromkeys(
            (quote((found["text"] or "")[:QUOTE_LIMIT]), source.count("\n", 0, found.start()) + 1)
            for found in RAISES.finditer(source)
        )
    )
