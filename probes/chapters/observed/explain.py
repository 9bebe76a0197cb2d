"""Why llama.cpp's nine flags and what a template writes disagree.

llama.cpp asks with one conversation a flag and mostly looks at which values the template read, not at the text. To say
what went wrong its conversation is rendered again, only where there is a disagreement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from jinjarun.errors import JinjarunError, quote
from jinjarun.serving import caps
from jinjarun.serving.caps import UsageRender
from jinjarun.template import Template
from probes.rendering.renders import LLAMA_RAW, Renders
from probes.report import Answer


class Judged(Protocol):
    """What was found on a path."""

    @property
    def answer(self) -> Answer: ...
    @property
    def reason(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Case:
    """A flag that bare llama.cpp does not live up to, or exceeds; `found` is what was found there."""

    template: Template
    flag: bool
    found: Judged

    def look(self, messages: list[Any], variables: dict[str, Any] | None = None) -> UsageRender:
        return UsageRender(self.template, messages, [], variables or {})

    def calls(self, arguments: Any, calls: int = 1) -> UsageRender:
        return UsageRender(self.template, caps.tool_conversation(arguments, calls), caps.TOOLS, {})


def why_caps_differ(
    renders: Renders, explain: Callable[[Case], str], flag: bool, verdicts: Mapping[str, Judged], main: str
) -> str | None:
    """Why a flag is not what was found on the main path and on bare llama.cpp; None where it is. `explain` is the
    question's own."""
    expected = "yes" if flag else "no"
    ours: Judged = verdicts[main]
    bare: Judged = verdicts[LLAMA_RAW]
    if ours.answer == "unknown" or (ours.answer == expected and bare.answer in {expected, "unknown"}):
        return None
    if bare.answer == "unknown":
        return f"on bare llama.cpp {bare.reason}"
    if bare.answer == expected:
        return f"the flag is right of bare llama.cpp ({bare.reason}), and the engines differ ({main}: {ours.reason})"
    template = renders.template("llama.cpp")
    assert not isinstance(template, JinjarunError), "there are flags only of a template that loads"
    return explain(Case(template, flag, bare))


def _fails(look: UsageRender) -> str:
    assert look.error is not None
    line = "" if look.error.line is None else f" (line {look.error.line})"
    return f"llama.cpp's own conversation fails: {quote(look.error.message)[:120]}{line}"


def string_content(case: Case) -> str:
    look = case.look([{"role": "user", "content": caps.MARKER}])
    if case.flag:
        if caps.MARKER in look.text:
            return f"llama.cpp's own text is written, but not every text: {case.found.reason}"
        return "llama.cpp asks that a string does not fail, and not whether its text is written"
    if not look.succeeded:
        return _fails(look)
    return "llama.cpp's own text is not written, and the template reads the content as a list"


def typed_content(case: Case) -> str:
    content = ("messages", 0, "content")
    if case.flag:
        return (
            "llama.cpp asks whether the template indexes, loops over or selects from the content, and not what becomes "
            f"of the parts: {case.found.reason}"
        )
    look = case.look([{"role": "user", "content": caps.MARKER}])
    if not look.trace.had(look.value(*content), "test_is_string"):
        return (
            "llama.cpp sends a string, and tries a list only where the template tests `is string` on the message's own "
            "content; this one tells the two apart in another way"
        )
    parts = case.look([{"role": "user", "content": []}])
    if not parts.succeeded:
        return f"llama.cpp tries an empty list, and that fails: {_fails(parts).partition(': ')[2]}"
    return "llama.cpp tries an empty list, and the template does not loop over that"


def system_role(case: Case) -> str:
    if case.flag:
        return (
            "llama.cpp asks whether the content of a system message is read, without tools, and not whether it is "
            f"written, nor whether the render fails; here: {case.found.reason}"
        )
    look = case.look([{"role": "system", "content": "System message"}, caps.USER])
    return "in llama.cpp's own conversation it is not read" if look.succeeded else _fails(look)


def tools(case: Case) -> str:
    return _of_calls(
        case, "the name of the tool is read", "in llama.cpp's own conversation the tool's name is not read"
    )


def tool_calls(case: Case) -> str:
    return _of_calls(case, "the calls are read", "in llama.cpp's own conversation the calls are not read")


def object_arguments(case: Case) -> str:
    unread = "in llama.cpp's own conversation the arguments are not read one by one"
    return _of_calls(case, "the arguments are read", unread)


def _of_calls(case: Case, read: str, unread: str) -> str:
    """Tools, calls and object arguments hang together: they are judged by the same two conversations."""
    if case.flag:
        return f"llama.cpp asks whether {read}, and not what is written of it: {case.found.reason}"
    with_object, with_string = case.calls(caps.OBJECT_ARGUMENTS), case.calls(caps.STRING_ARGUMENTS)
    if not with_string.succeeded:
        denied = "and with arguments as text that denies tools, calls and objects at once"
        return f"{_fails(with_string)}, {denied}"
    if not with_object.succeeded:
        return _fails(with_object)
    return f"{unread}: its content beside a call is an empty text, and a result, an answer and a question follow"


def parallel_tool_calls(case: Case) -> str:
    if case.flag:
        return f"llama.cpp asks whether the second call is read, and not what is written of it: {case.found.reason}"
    looks = [case.calls(arguments, 2) for arguments in (caps.OBJECT_ARGUMENTS, caps.STRING_ARGUMENTS)]
    failed = next((look for look in looks if not look.succeeded), None)
    if failed is not None:
        return _fails(failed)
    return "in llama.cpp's own conversation the second call is not read: its content beside the calls is an empty text"


def preserve_reasoning(case: Case) -> str:
    if case.flag:
        return f"llama.cpp asks about a plain answer, with all switches that it knows: {case.found.reason}"
    answer = {"role": "assistant", "content": "Assistant message"}
    first, second = ({**answer, "reasoning_content": text} for text in (caps.REASONING, "Reasoning content"))
    switches = caps.preserve_reasoning_variables(enabled=True)
    look = case.look([caps.USER, first, caps.USER, second, caps.USER], {"enable_thinking": True, **switches})
    if not look.succeeded:
        return _fails(look)
    return (
        "llama.cpp sends the field reasoning_content of plain answers, with the switches that it knows, and there the "
        f"reasoning is not written; here {case.found.reason}"
    )


def reasoning_effort(case: Case) -> str:
    if case.flag:
        return f"llama.cpp asks whether the variable is read: {case.found.reason}"
    look = case.look([caps.USER], {"enable_thinking": True, **caps.reasoning_effort_variables("low")})
    return "in llama.cpp's own conversation the variable is not read" if look.succeeded else _fails(look)
