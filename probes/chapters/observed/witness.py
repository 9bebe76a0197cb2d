"""One path, and how it answers each question of `evidence`.

A question is first asked in a conversation that asks many at once; where that one fails or loses something, smaller
ones and other shapes of the same input are tried before the answer is no.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from jinjarun.errors import JinjarunError
from probes.chapters.variables import caller_variables
from probes.chats import canaries as c
from probes.chats.canaries import Form
from probes.chats.named import Chat, Message, conversation
from probes.rendering.outcomes import (
    Shown,
    argument_style,
    complaint,
    fate_of,
    prints_nothing_as_text,
    show,
)
from probes.rendering.renders import APPLY, LLAMA_RAW, LLAMA_SERVER, RAW, Outcome, Renders, dialect_of
from probes.report import Answer

UNMARKED = "the part leaves no trace, without an error"
NOT_KEPT = "reasoning of earlier turns leaves no trace"
KEEPS = re.compile(r"(?:preserv|keep|retain)\w*(?:think|reason)")
DROPS = re.compile(r"(?:clear|drop|truncate|strip|remove|skip)\w*(?:think|reason)")
KEEP_REASONING: dict[str, Any] = {
    "preserve_reasoning": True,
    "enable_thinking": True,
    "thinking": True,
}
"""Switches without which some templates write no reasoning at all; those that keep it are known by KEEPS and DROPS."""
EFFORT_CHAT = conversation("effort-low")
PREFIX_KEYS = (".prefix", "'prefix'", '"prefix"')
"""How a template names the key by which some clients ask to continue a message."""
MORE_EFFORTS = ("none", "minimal", "medium", "xhigh", "max")
"""Efforts beside low and high, tried where the source holds the word."""
EFFORT_NAMES = frozenset({"reasoning_effort", "reasoning_strength"})
GENERATION_TAG = re.compile(r"\{%[-+]?\s*generation\b")

CALL_FORMS: tuple[dict[str, Any], ...] = (
    {},
    {"arguments": "string"},
    {"beside": "null"},
    {"arguments": "string", "beside": "null"},
    {"beside": "missing"},
    {"beside": "text"},
    {"arguments": "string", "beside": "text"},
    {"beside": "parts"},
    {"bare": True},
)
"""Shapes of a message with calls, the usual one first."""


LABELS = {
    c.TOOL: "the name of a tool",
    c.SECOND_TOOL: "the second tool",
    c.PARAMETER: "a tool's parameter",
    c.VALUE: "an argument of a call",
    c.SECOND_VALUE: "the second call",
    c.RESULT: "a tool's result",
    c.SECOND_RESULT: "the second result",
    c.ID: "the id of a call",
    c.RESULT_NAME: "the name of a result",
    c.TEXT: "the text",
    c.PART: "the text of a part",
    c.SECOND_PART: "the second part",
    c.DOCUMENT: "the text of a document",
}
"""What a canary stands for, where it is lost."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer on one path, why, and the renders that show it."""

    answer: Answer
    reason: str
    shown: tuple[Shown, ...] = ()


@lru_cache(maxsize=256)
def made(build: Callable[..., Chat], form: Form, *arguments: Any) -> Chat:
    """A conversation, the same object each time: nobody here changes it."""
    return build(form, *arguments)


class Witness:
    """What one path does with the canaries. `bare` is the witness of the bare template behind a served path."""

    def __init__(self, renders: Renders, path: str, bare: Witness | None = None) -> None:
        self.renders = renders
        self.path = path
        self.bare = bare
        self.shapes = CALL_FORMS if bare is None else CALL_FORMS[:1]
        self.rendered = False
        self._answers: dict[int, tuple[Chat, Outcome]] = {}

    def ask(self, chat: Chat) -> Outcome:
        """What the path gives; remembered by the identity of the chat (see `made`)."""
        if id(chat) not in self._answers:
            outcome = self.renders.render(self.path, chat)
            self.rendered |= outcome.ok
            self._answers[id(chat)] = chat, outcome
        return self._answers[id(chat)][1]

    @cached_property
    def names(self) -> frozenset[str]:
        template = self.renders.template(dialect_of(self.path))
        return frozenset() if isinstance(template, JinjarunError) else template.names

    @cached_property
    def variables(self) -> list[str]:
        """The names of the variables that only the caller can have set."""
        return self.bare.variables if self.bare is not None else caller_variables(self.renders.source, self.names)

    def reads(self, observation: str) -> bool:
        """Whether the source names what one of IN_SOURCE needs."""
        if observation == "generation_mask":
            return "generation" in self.renders.source
        return observation in self.names or (observation == "reasoning_effort" and bool(EFFORT_NAMES & self.names))

    def sought(self, chats: Iterable[Chat], canaries: tuple[str, ...], yes: str) -> Verdict:
        """Yes where one of the chats is rendered with all the canaries in it; no for the reason of the best failure."""
        failure: Verdict | None = None
        limited = False
        for chat in chats:
            outcome = self.ask(chat)
            fate = fate_of(outcome, *canaries)
            missing = next((x for x in canaries if outcome.text is not None and x not in outcome.text), canaries[0])
            shown = show(chat, self.path, outcome, fate, missing)
            if fate == "written":
                return Verdict("yes", yes, (shown,))
            limited |= fate == "limit"
            reason = {
                "lost": f"{LABELS.get(missing, 'its text')} leaves no trace, without an error",
                "dumped": "it is only printed raw, inside an object of the request",
            }.get(fate) or complaint(outcome)
            if failure is None or (failure.reason.startswith("fails") and fate in {"lost", "dumped"}):
                failure = Verdict("no", reason, (shown,))
        assert failure is not None
        return failure if not limited else Verdict("unknown", "a limit was hit", failure.shown)

    # ---------------------------------------------------------------------------------------------- contents and roles

    @cached_property
    def form(self) -> Form:
        """How the content of a plain message must be sent, and the variables without which nothing renders."""
        if self.path == APPLY and self.bare is not None:
            return self.bare.form
        for form in (c.USUAL, Form(parts="yes"), Form(offering=True)):
            if fate_of(self.ask(made(c.user_only, form)), c.USER) == "written":
                return form
        return self._with_variables() or c.USUAL

    def _with_variables(self) -> Form | None:
        """The form with the fewest variables of the caller under which a user message is written."""
        if self.bare is not None:
            return self.bare.form
        chosen = [(name, c.VARIABLE) for name in self.variables]
        if not chosen or not self._writes_user(chosen):
            return None
        for variable in list(chosen):
            fewer = [other for other in chosen if other != variable]
            if self._writes_user(fewer):
                chosen = fewer
        return Form(variables=tuple(chosen))

    def _writes_user(self, variables: list[tuple[str, Any]]) -> bool:
        return fate_of(self.ask(made(c.user_only, Form(variables=tuple(variables)))), c.USER) == "written"

    def string_content(self) -> Verdict:
        plain = self.form.but(parts="no")
        chats = (made(c.user_only, plain), made(c.system_user, plain), made(c.tools_without_system, plain))
        return self.sought(chats, (c.USER,), "a string is written")

    @cached_property
    def system_form(self) -> Form:
        """The form of requests with system messages."""
        if self.form.parts == "no" or fate_of(self.ask(made(c.system_user, self.form)), c.SYSTEM) == "written":
            return self.form
        return self.form.but(parts="but system")

    def system_role(self) -> Verdict:
        form = self.system_form
        alone = self.sought((made(c.roles, form), made(c.system_user, form)), (c.SYSTEM,), "its text is written")
        offered = self.ask(made(c.tools_offered, form))
        if alone.answer != "yes" or not offered.ok or c.TOOL not in (offered.text or ""):
            return alone
        beside = self.sought((made(c.tools_offered, form),), (c.SYSTEM,), "its text is written, beside tools too")
        if beside.answer == "yes":
            return Verdict("yes", beside.reason, alone.shown + beside.shown)
        return Verdict(beside.answer, f"written alone, but beside tools {beside.reason}", beside.shown + alone.shown)

    def developer_role(self) -> Verdict:
        form = self.form
        verdict = self.sought((made(c.developer, form),), (c.DEVELOPER,), "its text is written")
        if verdict.answer != "yes" or self.bare is not None:
            return verdict
        text = self.ask(made(c.developer, form)).text or ""
        system = self.ask(made(c.system_user, form)).text or ""
        if text.replace(c.DEVELOPER, c.SYSTEM) == system:
            how = "its text is written as that of a system message"
        elif "developer" in text:
            how = "its text is written in a turn with the name of its role"
        else:
            how = "its text is written, but not as that of a system message"
        return Verdict("yes", how, verdict.shown)

    def late_system_message(self) -> Verdict:
        chats = (made(build, self.system_form) for build in (c.roles, c.late_system))
        return self.sought(chats, (c.LATE_SYSTEM,), "a system message in the middle is written")

    def second_system_message(self) -> Verdict:
        chats = (made(build, self.system_form) for build in (c.roles, c.second_system))
        return self.sought(chats, (c.SYSTEM, c.SECOND_SYSTEM), "both system messages are written")

    def several_user_turns_in_a_row(self) -> Verdict:
        chats = (made(build, self.form) for build in (c.roles, c.two_users))
        return self.sought(chats, (c.USER, c.SECOND_USER), "both texts are written")

    # ----------------------------------------------------------------------------------------------------------- tools

    def tools(self) -> Verdict:
        form = self.form
        wanted = (c.TOOL, c.SECOND_TOOL, c.PARAMETER)
        chats = (
            made(c.tools_offered, form),
            made(c.tools_without_system, form),
            made(c.tools_offered, form.but(bare=True)),
        )
        verdict = self.sought(chats, wanted, "names and parameters are written")
        if verdict.answer == "yes":
            text = self.ask(verdict.shown[0].chat).text or ""
            if re.search(rf"'name'\s*:\s*'{c.TOOL}'", text):
                return Verdict("yes", "written as Python's repr, not as JSON", verdict.shown)
            if c.DESCRIPTION not in text:
                return Verdict("yes", "names and parameters are written, but not the descriptions", verdict.shown)
            if verdict.shown[0].chat == chats[2]:
                return Verdict("yes", "written if sent without 'function' around them", verdict.shown)
        return verdict

    @cached_property
    def calling(self) -> tuple[Form, Chat] | None:
        """The form in which calls are written, and the richest conversation that shows it; None if there is none."""
        if self.path == APPLY and self.bare is not None:
            return self.bare.calling
        found: tuple[Form, Chat] | None = None
        for shape in self.shapes:
            form = self.form.but(**shape)
            for chat in (made(c.calls, form), made(c.one_call, form)) if not shape else (made(c.one_call, form),):
                outcome = self.ask(chat)
                if fate_of(outcome, c.VALUE) == "written":
                    if argument_style(_call_text(outcome)) in {"json", "own"}:
                        return form, chat
                    found = found or (form, chat)
        return found

    def _sought_in_calls(self, canaries: tuple[str, ...], yes: str, *others: Callable[[Form], Chat]) -> Verdict:
        """Yes where the canaries are written in the conversation that showed calls, or in one of the others."""
        if self.calling is None:
            return self._no_calls()
        form, chat = self.calling

        def chats() -> Iterator[Chat]:
            yield chat
            yield from (made(build, form) for build in others)

        return self.sought(chats(), canaries, yes)

    def _no_calls(self) -> Verdict:
        """What is left to say of a question about calls where none is written."""
        verdict = self.sought((made(c.one_call, self.form.but(**shape)) for shape in self.shapes[:2]), (c.VALUE,), "")
        if verdict.answer == "unknown":
            return verdict
        return Verdict("no", f"tool calls are not written: {verdict.reason}", verdict.shown)

    def tool_calls(self) -> Verdict:
        verdict = self._sought_in_calls((c.VALUE,), "name and arguments are written")
        if verdict.answer != "yes" or self.name_is_written:
            return verdict
        if c.ID in self.call_text:
            return Verdict("yes", "arguments and id are written; the name only if the id holds it", verdict.shown)
        return Verdict("no", "arguments are written without the function's name or the call's id", verdict.shown)

    @property
    def call_text(self) -> str:
        return "" if self.calling is None else self.ask(self.calling[1]).text or ""

    @cached_property
    def name_is_written(self) -> bool:
        """Whether the function's name stands in the call: it is there more often than with the tools alone."""
        if self.bare is not None:
            return self.bare.name_is_written
        if self.calling is None:
            return False
        form, chat = self.calling
        opening = c.tools_offered if chat["messages"][0]["role"] == "system" else c.tools_without_system
        alone = self.ask(made(opening, form))
        if alone.ok:
            return self.call_text.count(c.TOOL) > (alone.text or "").count(c.TOOL)
        at = self.call_text.rfind(c.VALUE)
        return c.TOOL in self.call_text[max(0, at - 300) : at + 300]

    def tool_call_name(self) -> Verdict:
        if self.calling is None:
            return self._no_calls()
        chat = self.calling[1]
        if self.name_is_written:
            return Verdict("yes", "the call holds the function's name", (self._look(chat, "written", c.TOOL),))
        return Verdict("no", "the function's name is missing from the call", (self._look(chat, "lost"),))

    def _look(self, chat: Chat, fate: str, canary: str = "") -> Shown:
        return show(chat, self.path, self.ask(chat), fate, canary)

    def parallel_tool_calls(self) -> Verdict:
        verdict = self._sought_in_calls((c.VALUE, c.SECOND_VALUE), "both calls are written", c.parallel_calls)
        if verdict.answer == "yes":
            text = self.ask(verdict.shown[0].chat).text or ""
            if text.find(c.SECOND_VALUE) < text.find(c.VALUE):
                return Verdict("no", "the calls are written in another order", verdict.shown)
        return verdict

    def several_results_in_a_row(self) -> Verdict:
        wanted = (c.RESULT, c.SECOND_RESULT)
        return self._sought_in_calls(wanted, "both results are written", c.parallel_calls, c.two_results)

    def tool_call_id(self) -> Verdict:
        return self._sought_in_calls((c.ID,), "the id is written")

    def tool_result_name(self) -> Verdict:
        return self._sought_in_calls((c.RESULT_NAME,), "the name of a result is written")

    def object_arguments(self) -> Verdict:
        shapes = [shape for shape in self.shapes if "arguments" not in shape]
        forms = [self.form.but(**shape) for shape in shapes]
        if self.calling is not None:
            forms.insert(0, self.calling[0].but(arguments="object"))
        chats: list[Chat] = [] if self.calling is None else [self.calling[1]]
        chats = [chat for chat in chats if _has_object_arguments(chat)]
        verdict = self.sought(
            [*chats, *(made(c.one_call, form) for form in forms)], (c.PARAMETER, c.VALUE), "an object is written"
        )
        if verdict.answer != "yes":
            return verdict
        style = argument_style(_call_text(self.ask(verdict.shown[0].chat)))
        if style == "repr":
            return Verdict("no", "an object is written as Python's repr, which is no JSON", verdict.shown)
        if style == "escaped":
            return Verdict("no", "an object is written as JSON quoted a second time", verdict.shown)
        how = "as JSON" if style == "json" else "in the template's own markup"
        return Verdict("yes", f"an object is written {how}", verdict.shown)

    def text_beside_calls(self) -> Verdict:
        return self._beside("text", (c.TEXT, c.VALUE), "text and call are written")

    def empty_content_with_calls(self) -> Verdict:
        return self._beside("empty", (c.VALUE,), "the call is written")

    def null_content_with_calls(self) -> Verdict:
        return self._beside("null", (c.VALUE,), "the call is written, and nothing for the null")

    def missing_content_with_calls(self) -> Verdict:
        return self._beside("missing", (c.VALUE,), "the call is written, and nothing for the missing content")

    def _beside(self, beside: c.Beside, wanted: tuple[str, ...], yes: str) -> Verdict:
        if self.calling is None:
            return self._no_calls()
        form, chat = self.calling
        if form.beside == beside == "empty":
            return self.sought((chat,), wanted, yes)
        asked = [made(c.one_call, form.but(beside=beside))]
        if beside == "text":
            asked.append(made(c.one_call, form.but(beside="parts")))
        verdict = self.sought(asked, wanted, yes)
        if verdict.answer == "yes" and beside in {"null", "missing"}:
            written = self.ask(asked[0]).text or ""
            if prints_nothing_as_text(written, self._with_content(form)):
                shown = replace(verdict.shown[0], outcome="printed as a word")
                return Verdict("no", f"a {beside} content is printed as a word", (shown,))
        return verdict

    def _with_content(self, form: Form) -> str:
        """The text of a call in a message that has content."""
        texts = (self.ask(made(c.one_call, form.but(beside=beside))).text for beside in ("text", "empty"))
        return next((text for text in texts if text is not None), "")

    # ------------------------------------------------------------------------------------------------------- reasoning

    @cached_property
    def reasoning_names(self) -> tuple[str, ...]:
        """The names of reasoning fields that stand in the source: no other can be read."""
        return tuple(name for name in c.REASONING_FIELDS if name in self.renders.source)

    @cached_property
    def keeping(self) -> dict[str, Any]:
        """The variables of this template that may keep the reasoning of earlier turns, set to do so."""
        found = {name: value for name, value in KEEP_REASONING.items() if name in self.names}
        for name in self.variables:
            if name in found:
                continue
            if KEEPS.search(name):
                found[name] = True
            elif DROPS.search(name):
                found[name] = False
        return found

    def preserve_reasoning(self) -> Verdict:
        """Yes where reasoning before an answer is kept, with and without calls in its turn, and before calls too."""
        failure: Verdict | None = None
        for variables in ({}, self.keeping) if self.keeping else ({},):
            verdict = self._preserved(variables)
            if verdict.answer != "no":
                return verdict
            if failure is None or failure.reason == NOT_KEPT or failure.reason.startswith("fails"):
                failure = verdict
        assert failure is not None
        return failure

    def _preserved(self, variables: dict[str, Any]) -> Verdict:
        names = self.reasoning_names or c.REASONING_FIELDS[:1]
        form = self.form if self.calling is None else self.calling[0]
        plain = c.reasoning(form, names, **variables)
        by = f"with {_named(variables)}" if variables else "by default"
        chats = [plain] if self.calling is None else [c.reasoning_with_calls(form, names, **variables), plain]
        kept: dict[str, bool] = {}
        shown = []
        failed: Verdict | None = None
        for chat in chats:
            outcome = self.ask(chat)
            if outcome.limited:
                return Verdict("unknown", "a limit was hit", (self._look(chat, "limit"),))
            if outcome.text is None:
                failed = failed or Verdict("no", complaint(outcome), (self._look(chat, "raised"),))
                continue
            written = _kept(outcome, names)
            if chat is plain:
                kept["in a plain answer"] = "call" in written
            else:
                kept |= {"before a call": "call" in written, "before an answer after calls": "answer" in written}
            shown.append(self._look(chat, "written" if written else "lost", c.REASONING))
            if not any(kept.values()):
                return Verdict("no", NOT_KEPT, tuple(shown))
        if not kept:
            assert failed is not None
            return failed
        if all(kept.values()):
            return Verdict("yes", f"reasoning of earlier turns is written {by}", tuple(shown))
        only = " and ".join(where for where, yes in kept.items() if yes)
        return Verdict("no", f"of earlier turns only the reasoning {only} is written, {by}", tuple(shown))

    def reasoning_effort(self) -> Verdict:
        form = self.form
        if not EFFORT_NAMES & self.names:
            chat = EFFORT_CHAT if form == c.USUAL else made(c.effort_low, form)
            return Verdict("no", "no variable for it is read", (self._look(chat, "rendered"),))
        values = [
            "low",
            "high",
            *(x for x in MORE_EFFORTS if f"'{x}'" in self.renders.source or f'"{x}"' in self.renders.source),
        ]
        asked = [c.effort(form, value) for value in values]
        plain = made(c.user_only, form)
        pairs = [(asked[0], asked[1]), (self._thinking(asked[0]), self._thinking(asked[1]))]
        pairs += [(plain, chat) for chat in asked]
        pairs += [(self._thinking(plain), self._thinking(chat)) for chat in asked[2:]]
        failures: list[tuple[Chat, Outcome]] = []
        for chats in pairs:
            low, high = map(self.ask, chats)
            if low.ok and high.ok and low.text != high.text:
                at = _first_difference(low.text or "", high.text or "")
                shown = tuple(self._shown_at(chat, at) for chat in chats)
                return Verdict("yes", "the prompt depends on the effort asked for", shown)
            failures += [(chat, outcome) for chat, outcome in zip(chats, (low, high), strict=True) if not outcome.ok]
        shown = tuple(self._look(chat, "rendered") for chat in pairs[0])
        if failures:
            chat, outcome = failures[0]
            answer: Answer = "unknown" if outcome.limited else "no"
            return Verdict(answer, complaint(outcome), (self._look(chat, "raised"),))
        tried = ", ".join(values)
        return Verdict("no", f"the variable is read, but no effort changes the text (tried: {tried})", shown)

    def _thinking(self, chat: Chat) -> Chat:
        variables = chat.get("variables", {}) | {"enable_thinking": True, "thinking": True}
        return {**chat, "variables": variables}

    def _shown_at(self, chat: Chat, at: int) -> Shown:
        text = self.ask(chat).text or ""
        start, end = max(0, at - 40), min(len(text), at + 60)
        return Shown(chat, self.path, "rendered", text[start:end], (start, end))

    # ------------------------------------------------------------------------------------------------ parts, documents

    def one_text_part(self) -> Verdict:
        chats = (made(build, self._plain) for build in (c.text_parts, c.one_text_part))
        return self.sought(chats, (c.PART,), "a text part is written as text")

    def several_text_parts(self) -> Verdict:
        return self.sought((made(c.text_parts, self._plain),), (c.PART, c.SECOND_PART), "both texts are written")

    def typed_content(self) -> Verdict:
        several, one = self.several_text_parts(), self.one_text_part()
        if one.answer == "yes" and several.answer != "yes":
            return Verdict("yes", f"one text part is written, but of several: {several.reason}", one.shown)
        return several if several.answer == "yes" else one

    @property
    def _plain(self) -> Form:
        return self.form.but(parts="no")

    def image_parts(self) -> Verdict:
        return self._media("image", c.IMAGE_PARTS, c.image)

    def audio_parts(self) -> Verdict:
        return self._media("audio", c.AUDIO_PARTS, c.audio)

    def _media(self, what: str, shapes: tuple[dict[str, Any], ...], build: Callable[..., Chat]) -> Verdict:
        """Yes where a part of this kind leaves something beside the text, and no dump of it."""
        form = self._plain
        if what not in self.renders.source:
            both = made(c.media, form)
            text = self.ask(both).text
            if text is None or c.PART not in text or text == self.ask(made(c.one_text_part, form)).text:
                verdict = self.sought((both,), (c.URL,), "")
                return verdict if text is None else Verdict("no", UNMARKED, (self._look(both, "lost"),))
            shapes = shapes[:1]
        failure: Verdict | None = None
        for part in shapes:
            chat = build(form, part)
            outcome = self.ask(chat)
            plain = self.ask(made(c.one_text_part, form))
            reason = UNMARKED
            if outcome.limited:
                return Verdict("unknown", "a limit was hit", (self._look(chat, "limit"),))
            if outcome.text is None:
                reason = complaint(outcome)
            elif fate_of(outcome, c.PART) != "written":
                reason = "the text beside it is not written as text"
            elif outcome.text != (plain.text if plain.ok else None):
                if not _dumps_media(outcome.text):
                    at = _first_difference(plain.text or "", outcome.text)
                    return Verdict("yes", f"a part of type {part['type']} is marked", (self._shown_at(chat, at),))
                reason = "it is only printed raw, as the object of the request"
            if failure is None or failure.reason.startswith("fails"):
                fate = fate_of(outcome, c.PART)
                failure = Verdict("no", reason, (self._look(chat, "lost" if fate == "written" else fate),))
        assert failure is not None
        return failure

    def documents(self) -> Verdict:
        verdict = self.sought((made(c.documents, self.form),), (c.DOCUMENT,), "text of a document is written")
        if "documents" not in self.names and verdict.answer == "no" and "leaves no trace" in verdict.reason:
            return Verdict("no", "no variable for them is read", verdict.shown)
        return verdict

    # ------------------------------------------------------------------------------------------------ prefill and mask

    def assistant_prefill(self) -> Verdict:
        """Yes where the text ends with the message to be continued."""
        form = self.form
        tried = {"": made(c.prefill, form)}
        if self.path == APPLY:
            tried["with continue_final_message "] = c.continued(form)
        if "continue_final_message" in self.names:
            tried["with the variable continue_final_message "] = c.continued(form, by_variable=True)
        if any(key in self.renders.source for key in PREFIX_KEYS):
            tried["with the key prefix "] = c.prefill(form, prefix=True)
        verdict = self.sought(tried.values(), (c.ANSWER,), "")
        for how, chat in tried.items():
            text = self.ask(chat).text
            if text is not None and text.rstrip().endswith(c.ANSWER):
                reason = f"{how}the turn of a last assistant message stays open"
                return Verdict("yes", reason, (self._look(chat, "written", c.ANSWER),))
        if verdict.answer == "yes":
            return Verdict("no", "the turn of a last assistant message is closed", verdict.shown)
        return verdict

    def generation_mask(self) -> Verdict:
        """Yes where a `generation` block wrote an assistant's text."""
        chat = c.prefill(self.form)
        if GENERATION_TAG.search(self.renders.source) is None:
            return Verdict("no", "the template has no generation block", (self._look(chat, "rendered", c.ANSWER),))
        if dialect_of(self.path) != "transformers":
            return Verdict("no", "llama.cpp reads over generation blocks", (self._look(chat, "rendered", c.ANSWER),))
        template = self.renders.template("transformers")
        assert not isinstance(template, JinjarunError)
        context = {
            "messages": chat["messages"],
            "tools": None,
            "documents": None,
            "add_generation_prompt": False,
            "bos_token": self.renders.bos_token,
            "eos_token": self.renders.eos_token,
            **chat.get("variables", {}),
        }
        try:
            rendered = template.render_context(context, now=self.renders.now, generations=True)
        except JinjarunError:
            outcome = self.ask(chat)
            answer: Answer = "unknown" if outcome.limited else "no"
            return Verdict(answer, complaint(outcome), (self._look(chat, "raised"),))
        at = rendered.text.find(c.ANSWER)
        end = at + len(c.ANSWER)
        if at >= 0 and any(start <= at and end <= stop for start, stop in rendered.generations or ()):
            return Verdict("yes", "a generation block writes the answer", (self._look(chat, "written", c.ANSWER),))
        return Verdict("no", "no generation block writes the answer", (self._look(chat, "lost", c.ANSWER),))


BARE = {LLAMA_SERVER: LLAMA_RAW, APPLY: RAW}
"""A served path -> the path of the bare template behind it."""


def witness_of(renders: Renders, path: str) -> Witness:
    """The one witness of a path, so that chapters share what it found."""
    if path not in renders.witnesses:
        bare = witness_of(renders, BARE[path]) if path in BARE else None
        renders.witnesses[path] = Witness(renders, path, bare)
    witness: Witness = renders.witnesses[path]
    return witness


def _kept(outcome: Outcome, names: tuple[str, ...]) -> set[str]:
    """Which of the two canaries of reasoning are written, under any of the names."""
    kept = set()
    for which, text in (("call", c.REASONING), ("answer", c.LATER_REASONING)):
        if any(fate_of(outcome, c.reasoning_under(name, text)) == "written" for name in names):
            kept.add(which)
    return kept


def _named(variables: dict[str, Any]) -> str:
    return ", ".join(f"{name}={str(value).lower()}" for name, value in variables.items())


def _call_text(outcome: Outcome) -> str:
    """The text around the last call of an outcome, without the schemas before it."""
    text = outcome.text or ""
    at = text.rfind(c.VALUE)
    return text[max(0, at - 100) : at + 100]


def _has_object_arguments(chat: Chat) -> bool:
    return any(_arguments_are_objects(message) for message in chat["messages"])


def _arguments_are_objects(message: Message) -> bool:
    calls = message.get("tool_calls") or []
    return any(isinstance((call.get("function") or call).get("arguments"), dict) for call in calls)


def _dumps_media(text: str) -> bool:
    return re.search(r"""['"](?:image_url|image|audio|audio_url|input_audio)['"]\s*:""", text) is not None


def _first_difference(a: str, b: str) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
