"""The conversations that probing asks beside the set: each text in them is a canary, found again nowhere else.

A canary is plain ASCII without quotes or markup, so that it stays itself inside JSON, and unlikely enough that no
template holds it. Whether an input was written is then a matter of looking for its text.

The conversations with a name are found by `chats.conversation` too, for `--conversation NAME`; a `Form` varies them
for templates that want their input otherwise, and what comes of that has no name.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Literal

from probes.chats import messages as made_of
from probes.chats.messages import (
    REASONING_FIELDS,
    ArgumentForm,
    Beside,
    Chat,
    Message,
    Tool,
    beside_calls,
    function_of,
    in_parts,
    say,
    text_part,
)
from probes.chats.named import CHATS, PROBING, probing_named

SYSTEM = "The wren in the cellar says 48170."
SECOND_SYSTEM = "The heron in the attic says 48171."
LATE_SYSTEM = "The egret in the garden says 48172."
DEVELOPER = "The plover in the yard says 48173."
USER = "Which bird sang 48174 times?"
SECOND_USER = "Which bird slept 48175 hours?"
THIRD_USER = "Which bird flew 48176 miles?"
ANSWER = "It was the osprey of 48177."
TEXT = "Let me ask the bittern of 48178."
REASONING = "Perhaps the dunlin knows 48179."
LATER_REASONING = "Surely the avocet knows 48180."
TOOL, SECOND_TOOL = "count_wrens_48181", "count_herons_48182"
DESCRIPTION, SECOND_DESCRIPTION = "Counts every wren of 48183", "Counts every heron of 48184"
PARAMETER = "garden_48185"
PARAMETER_DESCRIPTION = "Name of the garden of 48186"
VALUE, SECOND_VALUE = "north of 48187", "south of 48188"
ID, SECOND_ID = "wrn48189A", "hrn48190B"
"""Nine letters and digits, the only length that some templates take."""
RESULT, SECOND_RESULT = "there are 48191 wrens", "there are 48192 herons"
RESULT_NAME, SECOND_RESULT_NAME = "result_of_48193", "result_of_48194"
PART, SECOND_PART = "Is the linnet of 48195 awake?", "Or the curlew of 48196?"
URL = "https://example.com/siskin-48197.png"
AUDIO = "c2lza2luNDgxOTg="
VARIABLE = "the robin of 48200"
DOCUMENT, TITLE = "The report says 48198 siskins.", "Siskins of 48199"


@dataclass(frozen=True, slots=True)
class Form:
    """How a template wants its input, where that is not the usual way.

    `parts`: contents are lists of parts, or all but those of system messages. `arguments`: of a call, as an object or
    as JSON text. `beside`: the content of a message that calls tools. `bare`: tools and calls without `type` and
    `function` around them. `lead`: every conversation begins with a system message. `offering`: tools come with every
    request. `variables`: without which nothing renders.
    """

    parts: Literal["no", "yes", "but system"] = "no"
    arguments: ArgumentForm = "object"
    beside: Beside = "empty"
    bare: bool = False
    lead: bool = False
    offering: bool = False
    variables: tuple[tuple[str, Any], ...] = ()

    def but(self, **changes: Any) -> Form:
        return replace(self, **changes) if changes else self

    def chat(self, messages: list[Message], tools: list[Tool] | None = None, **more: Any) -> Chat:
        """A request in this form; `more` are the other keys of a `Chat`."""
        if self.lead and (not messages or messages[0]["role"] != "system"):
            messages = [say("system", SYSTEM), *messages]
        chat: dict[str, Any] = {"messages": [self._message(message) for message in messages]}
        offered = tools if tools is not None or not self.offering else _tools()
        if offered is not None:
            chat["tools"] = [function_of(tool) if self.bare else tool for tool in offered]
        variables = {**dict(self.variables), **more.pop("variables", {})}
        if variables:
            more["variables"] = variables
        return {**chat, **more}  # type: ignore[typeddict-item]  # the keys of a Chat

    def _message(self, message: Message) -> Message:
        as_string = self.parts == "no" or (self.parts == "but system" and message["role"] == "system")
        return message if as_string else in_parts(message)

    def calling(self, *, calls: int = 1, **fields: Any) -> Message:
        """An assistant message with the first one or two calls."""
        message: Message = {"role": "assistant", **beside_calls(self.beside, TEXT)}
        made = [call(TOOL, VALUE, ID, self), call(SECOND_TOOL, SECOND_VALUE, SECOND_ID, self)]
        return {**message, **fields, "tool_calls": made[:calls]}


USUAL = Form()


def call(name: str, value: str, call_id: str, form: Form = USUAL) -> dict[str, Any]:
    return made_of.call(name, {PARAMETER: value}, call_id, form=form.arguments, bare=form.bare)


def result() -> Message:
    return made_of.result(RESULT, ID, RESULT_NAME)


def second_result() -> Message:
    return made_of.result(SECOND_RESULT, SECOND_ID, SECOND_RESULT_NAME)


def tool(name: str = TOOL, description: str = DESCRIPTION) -> Tool:
    parameter = {"type": "string", "description": PARAMETER_DESCRIPTION}
    return made_of.tool(name, description, {PARAMETER: parameter}, [PARAMETER])


def _tools() -> list[Tool]:
    return [tool(), tool(SECOND_TOOL, SECOND_DESCRIPTION)]


# The conversations, each with a name in the usual form


@probing_named("probe-user")
def user_only(form: Form = USUAL) -> Chat:
    """One user message."""
    return form.chat([say("user", USER)])


@probing_named("probe-system")
def system_user(form: Form = USUAL) -> Chat:
    """A system message before the user's."""
    return form.chat([say("system", SYSTEM), say("user", USER)])


@probing_named("probe-system-only")
def system_only(form: Form = USUAL) -> Chat:
    """A system message and nothing else."""
    return form.chat([say("system", SYSTEM)])


@probing_named("probe-roles")
def roles(form: Form = USUAL) -> Chat:
    """Two system messages, two users in a row, a late system message: what many templates take all at once."""
    start = [say("system", SYSTEM), say("system", SECOND_SYSTEM), say("user", USER), say("user", SECOND_USER)]
    return form.chat([*start, say("assistant", ANSWER), say("system", LATE_SYSTEM), say("user", THIRD_USER)])


@probing_named("probe-second-system")
def second_system(form: Form = USUAL) -> Chat:
    """A second system message after the first."""
    return form.chat([say("system", SYSTEM), say("system", SECOND_SYSTEM), say("user", USER)])


@probing_named("probe-late-system")
def late_system(form: Form = USUAL) -> Chat:
    """A system message in the middle."""
    messages = [say("user", USER), say("assistant", ANSWER), say("system", LATE_SYSTEM), say("user", SECOND_USER)]
    return form.chat(messages)


@probing_named("probe-two-users")
def two_users(form: Form = USUAL) -> Chat:
    """Two user messages in a row."""
    return form.chat([say("user", USER), say("user", SECOND_USER)])


@probing_named("probe-two-systems")
def two_systems(form: Form = USUAL) -> Chat:
    """A system message at the start and one in the middle."""
    messages = [say("system", SYSTEM), say("user", USER), say("assistant", ANSWER), say("system", LATE_SYSTEM)]
    return form.chat([*messages, say("user", SECOND_USER)])


@probing_named("probe-developer")
def developer(form: Form = USUAL) -> Chat:
    """A developer message before the user's."""
    return form.chat([say("developer", DEVELOPER), say("user", USER)])


@probing_named("probe-tools")
def tools_offered(form: Form = USUAL) -> Chat:
    """Two tools beside a system message."""
    return form.chat([say("system", SYSTEM), say("user", USER)], _tools())


@probing_named("probe-tools-no-system")
def tools_without_system(form: Form = USUAL) -> Chat:
    """Two tools and no system message."""
    return form.chat([say("user", USER)], _tools())


@probing_named("probe-calls")
def calls(form: Form = USUAL) -> Chat:
    """Two calls in one message, their results, the answer and a next question, with a system message and tools."""
    rounds = [form.calling(calls=2), result(), second_result(), say("assistant", ANSWER), say("user", SECOND_USER)]
    return form.chat([say("system", SYSTEM), say("user", USER), *rounds], _tools())


@probing_named("probe-call")
def one_call(form: Form = USUAL) -> Chat:
    """One call and its result."""
    return form.chat([say("user", USER), form.calling(), result()], _tools())


@probing_named("probe-system-in-tool-loop")
def system_in_loop(form: Form = USUAL) -> Chat:
    """One call and its result, with a system message at the start."""
    return form.chat([say("system", SYSTEM), say("user", USER), form.calling(), result()], _tools())


@probing_named("probe-two-rounds")
def two_rounds(form: Form = USUAL) -> Chat:
    """Two rounds of a call and its result in one turn."""
    later = {**form.calling(calls=2)}
    later["tool_calls"] = later["tool_calls"][1:]
    return form.chat([say("user", USER), form.calling(), result(), later, second_result()], _tools())


@probing_named("probe-answer-after-call")
def answer_after_call(form: Form = USUAL) -> Chat:
    """A call, its result, the answer made of it, and a next question."""
    rounds = [form.calling(), result(), say("assistant", ANSWER), say("user", SECOND_USER)]
    return form.chat([say("user", USER), *rounds], _tools())


@probing_named("probe-call-string-arguments")
def one_call_with_text_arguments() -> Chat:
    """One call whose arguments are JSON text."""
    return one_call(Form(arguments="string"))


@probing_named("probe-call-null-content")
def one_call_with_null() -> Chat:
    """One call in a message whose content is null."""
    return one_call(Form(beside="null"))


@probing_named("probe-call-missing-content")
def one_call_without_content() -> Chat:
    """One call in a message that has no content."""
    return one_call(Form(beside="missing"))


@probing_named("probe-call-with-text")
def one_call_with_text() -> Chat:
    """One call in a message that also says something."""
    return one_call(Form(beside="text"))


@probing_named("probe-parallel-calls")
def parallel_calls(form: Form = USUAL) -> Chat:
    """Two calls in one message, and their results."""
    return form.chat([say("user", USER), form.calling(calls=2), result(), second_result()], _tools())


@probing_named("probe-two-results")
def two_results(form: Form = USUAL) -> Chat:
    """Two results in a row after one call."""
    return form.chat([say("user", USER), form.calling(), result(), second_result()], _tools())


def fields_of(names: tuple[str, ...], text: str) -> dict[str, Any]:
    """The same reasoning under each of `names`, told apart by the name before it."""
    return {name: reasoning_under(name, text) for name in names}


def reasoning_under(name: str, text: str = REASONING) -> str:
    return f"({name}) {text}"


@probing_named("probe-reasoning")
def reasoning(form: Form = USUAL, names: tuple[str, ...] = ("reasoning_content",), **variables: Any) -> Chat:
    """An earlier answer with reasoning, and a next question."""
    answer = say("assistant", ANSWER, **fields_of(names, REASONING))
    return form.chat([say("user", USER), answer, say("user", SECOND_USER)], variables=variables)


@probing_named("probe-reasoning-in-tool-loop")
def reasoning_in_loop(form: Form = USUAL, names: tuple[str, ...] = ("reasoning_content",)) -> Chat:
    """Reasoning before a call, while the turn still goes on."""
    return form.chat([say("user", USER), form.calling(**fields_of(names, REASONING)), result()], _tools())


@probing_named("probe-reasoning-with-calls")
def reasoning_with_calls(form: Form = USUAL, names: tuple[str, ...] = ("reasoning_content",), **variables: Any) -> Chat:
    """An earlier turn that reasoned before its call and before its answer, and a next question."""
    called = form.calling(**fields_of(names, REASONING))
    answer = say("assistant", ANSWER, **fields_of(names, LATER_REASONING))
    messages = [say("user", USER), called, result(), answer, say("user", SECOND_USER)]
    return form.chat(messages, _tools(), variables=variables)


@probing_named("probe-inline-reasoning")
def inline_reasoning(form: Form = USUAL, opening: str = "<think>", closing: str = "</think>") -> Chat:
    """An earlier answer with its reasoning inside its text, between tags."""
    answer = say("assistant", f"{opening}{REASONING}{closing}{ANSWER}")
    return form.chat([say("user", USER), answer, say("user", SECOND_USER)])


@probing_named("probe-effort-low")
def effort_low(form: Form = USUAL) -> Chat:
    """Little reasoning asked for."""
    return effort(form, "low")


@probing_named("probe-effort-high")
def effort_high(form: Form = USUAL) -> Chat:
    """Much reasoning asked for."""
    return effort(form, "high")


def effort(form: Form, value: str) -> Chat:
    """One user message, with the effort under both of its names."""
    return form.chat([say("user", USER)], variables={"reasoning_effort": value, "reasoning_strength": value})


def parts(*content: dict[str, Any], form: Form = USUAL) -> Chat:
    return form.chat([{"role": "user", "content": list(content)}])


@probing_named("probe-text-part")
def one_text_part(form: Form = USUAL) -> Chat:
    """Content as a list with one text part."""
    return parts(text_part(PART), form=form)


@probing_named("probe-text-parts")
def text_parts(form: Form = USUAL) -> Chat:
    """Content as a list with two text parts."""
    return parts(text_part(PART), text_part(SECOND_PART), form=form)


IMAGE_PARTS: tuple[dict[str, Any], ...] = (
    {"type": "image", "image": URL},
    {"type": "image_url", "image_url": {"url": URL}},
)
AUDIO_PARTS: tuple[dict[str, Any], ...] = (
    {"type": "audio", "audio": URL},
    {"type": "input_audio", "input_audio": {"data": AUDIO, "format": "wav"}},
    {"type": "audio_url", "audio_url": {"url": URL}},
)


@probing_named("probe-image")
def image(form: Form = USUAL, part: dict[str, Any] = IMAGE_PARTS[0]) -> Chat:
    """A text part and an image."""
    return parts(text_part(PART), dict(part), form=form)


@probing_named("probe-image-url")
def image_url() -> Chat:
    """A text part and an image as the OpenAI API sends it."""
    return image(part=IMAGE_PARTS[1])


@probing_named("probe-audio")
def audio(form: Form = USUAL, part: dict[str, Any] = AUDIO_PARTS[0]) -> Chat:
    """A text part and a sound."""
    return parts(text_part(PART), dict(part), form=form)


@probing_named("probe-media")
def media(form: Form = USUAL) -> Chat:
    """A text part, an image and a sound."""
    return parts(text_part(PART), dict(IMAGE_PARTS[0]), dict(AUDIO_PARTS[0]), form=form)


@probing_named("probe-documents")
def documents(form: Form = USUAL) -> Chat:
    """One document as transformers hands them over."""
    document = {"doc_id": 1, "title": TITLE, "text": DOCUMENT}
    return form.chat([say("user", USER)], variables={"documents": [document]})


@probing_named("probe-prefill")
def prefill(form: Form = USUAL, **fields: Any) -> Chat:
    """An assistant message to be continued, with `fields` beside its text."""
    return form.chat([say("user", USER), say("assistant", ANSWER, **fields)], add_generation_prompt=False)


def continued(form: Form = USUAL, *, by_variable: bool = False) -> Chat:
    """The same, where the request says so: by its own key, or by a variable of that name."""
    chat = prefill(form)
    if by_variable:
        return {**chat, "variables": chat.get("variables", {}) | {"continue_final_message": True}}
    return {**chat, "continue_final_message": True}


@probing_named("probe-three-turns")
def three_turns(form: Form = USUAL, **fields: Any) -> Chat:
    """An answer, with `fields` beside its text, and a next question."""
    return form.chat([say("user", USER), say("assistant", ANSWER, **fields), say("user", SECOND_USER)])


@probing_named("probe-empty-calls")
def empty_calls(form: Form = USUAL) -> Chat:
    """An answer with an empty list of calls, and a next question."""
    return three_turns(form, tool_calls=[])


@probing_named("probe-null-answer")
def null_answer(form: Form = USUAL) -> Chat:
    """An answer whose content is null, and a next question."""
    return form.chat([say("user", USER), {"role": "assistant", "content": None}, say("user", SECOND_USER)])


@probing_named("probe-missing-answer")
def missing_answer(form: Form = USUAL) -> Chat:
    """An answer without content, and a next question."""
    return form.chat([say("user", USER), {"role": "assistant"}, say("user", SECOND_USER)])


@probing_named("probe-empty-tools")
def empty_tools(form: Form = USUAL) -> Chat:
    """One user message with an empty list of tools."""
    return form.chat([say("user", USER)], [])


# What no client should send, to see what a template says to it


@probing_named("malformed-role")
def unknown_role(form: Form = USUAL) -> Chat:
    """A role that no format has, before the user's message."""
    return form.chat([say("narrator", ANSWER), say("user", USER)])


@probing_named("malformed-late-role")
def late_unknown_role(form: Form = USUAL) -> Chat:
    """A role that no format has, after the user's message."""
    return form.chat([say("user", USER), say("narrator", ANSWER), say("user", SECOND_USER)])


@probing_named("malformed-assistant-first")
def assistant_first(form: Form = USUAL) -> Chat:
    """The assistant opens the conversation."""
    return form.chat([say("assistant", ANSWER), say("user", USER)])


@probing_named("malformed-two-answers")
def two_answers(form: Form = USUAL) -> Chat:
    """Two answers in a row."""
    return form.chat([say("user", USER), say("assistant", ANSWER), say("assistant", TEXT), say("user", SECOND_USER)])


@probing_named("malformed-result-first")
def result_first(form: Form = USUAL) -> Chat:
    """A tool's result that nobody asked for, and nothing else."""
    return form.chat([result()])


@probing_named("malformed-result-after-user")
def result_after_user(form: Form = USUAL) -> Chat:
    """A tool's result without a call."""
    return form.chat([say("user", USER), result()], _tools())


@probing_named("malformed-number-content")
def number_content(form: Form = USUAL) -> Chat:
    """Content that is a number."""
    return form.chat([{"role": "user", "content": 48174}])


@probing_named("malformed-part")
def unknown_part(form: Form = USUAL) -> Chat:
    """A content part of an unknown type."""
    return parts({"type": "smell", "smell": PART}, form=form)


@probing_named("malformed-system-image")
def system_image(form: Form = USUAL) -> Chat:
    """An image in a system message."""
    return form.chat([{"role": "system", "content": [text_part(SYSTEM), dict(IMAGE_PARTS[0])]}, say("user", USER)])


@probing_named("malformed-assistant-image")
def assistant_image(form: Form = USUAL) -> Chat:
    """An image in an answer."""
    answer = {"role": "assistant", "content": [text_part(ANSWER), dict(IMAGE_PARTS[0])]}
    return form.chat([say("user", USER), answer, say("user", SECOND_USER)])


@probing_named("malformed-call-id")
def long_call_id(form: Form = USUAL) -> Chat:
    """A call and its result with an id of 24 characters."""
    return with_call_id(one_call(form), "call_wren_heron_48189_ab")


@probing_named("malformed-result-id")
def long_result_id(form: Form = USUAL) -> Chat:
    """A result with an id of 24 characters."""
    chat = one_call(form)
    chat["messages"][-1]["tool_call_id"] = "call_wren_heron_48189_ab"
    return chat


@probing_named("malformed-no-call-id")
def no_call_id(form: Form = USUAL) -> Chat:
    """A call and its result without an id."""
    chat = one_call(form)
    for message in chat["messages"]:
        message.pop("tool_call_id", None)
        for made in message.get("tool_calls", []):
            made.pop("id", None)
    return chat


@probing_named("malformed-more-results")
def more_results(form: Form = USUAL) -> Chat:
    """Two calls and one result, and then the answer."""
    return form.chat([say("user", USER), form.calling(calls=2), result(), say("assistant", ANSWER)], _tools())


@probing_named("malformed-channel-markers")
def channel_markers(form: Form = USUAL) -> Chat:
    """An answer that brings the markers of its reasoning along."""
    answer = "<|channel|>analysis<|message|>" + ANSWER
    return form.chat([say("user", USER), say("assistant", answer, thinking=REASONING), say("user", SECOND_USER)])


@probing_named("malformed-text-and-thinking")
def text_and_thinking(form: Form = USUAL) -> Chat:
    """A message with a call, a text and reasoning at once."""
    called = form.but(beside="text").calling(**fields_of(REASONING_FIELDS, REASONING))
    return form.chat([say("user", USER), called, result()], _tools())


@probing_named("malformed-effort")
def unknown_effort(form: Form = USUAL) -> Chat:
    """An effort that no template knows."""
    return effort(form, "48200 birds")


MALFORMED = {name: build for name, build in PROBING.items() if name.startswith("malformed-")}
"""The conversations that provoke a template's own refusals."""

EVERY = CHATS | PROBING
"""Every conversation that has a name, those of the set first."""


def with_call_id(chat: Chat, call_id: str) -> Chat:
    """The same chat with another id for its first call."""
    changed: Chat = json.loads(json.dumps(chat).replace(ID, call_id))
    return changed
