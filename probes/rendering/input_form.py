"""The form in which a template takes each kind of message: found out here, once for each path, and nowhere else.

Chapters, rules, laws and generated conversations ask in this form. A usual request is tried first, and other forms only
where it fails or loses what was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from jinjarun.errors import JinjarunError
from jinjarun.serving.vllm import content_format as vllm_content_format
from probes.chats import canaries as c
from probes.chats.canaries import USUAL, Form
from probes.chats.messages import REASONING_FIELDS
from probes.chats.supports import Supports
from probes.rendering.markers import markers_in
from probes.rendering.outcomes import argument_style, fate_of, is_unknown_role
from probes.rendering.renders import APPLY, LLAMA_RAW, LLAMA_SERVER, RAW, SGLANG, VLLM, dialect_of
from probes.rendering.variables import caller_variables

if TYPE_CHECKING:
    from probes.chats.messages import ArgumentForm, Beside, Chat
    from probes.rendering.renders import Outcome, Renders

BARE = {LLAMA_SERVER: LLAMA_RAW, APPLY: RAW, VLLM: RAW, SGLANG: RAW}
"""A served path -> the path of the bare template behind it."""

PLAIN_FORMS = (
    USUAL,
    Form(parts="yes"),
    Form(lead=True),
    Form(parts="but system", lead=True),
    Form(parts="yes", lead=True),
    Form(offering=True),
)
"""Forms of a plain question, the usual one first."""

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
"""Changes that make a form one of a message with calls, the usual one first."""
TEXT_ARGUMENTS: tuple[dict[str, Any], ...] = ({"arguments": "string"},)
READABLE = frozenset({"json", "own"})
"""Styles of arguments that are what the format means; others only show that the form is not the one that is meant."""

KEEPS = re.compile(r"(?:preserv|keep|retain)\w*(?:think|reason)")
DROPS = re.compile(r"(?:clear|drop|truncate|strip|remove|skip)\w*(?:think|reason)")
KEEP_REASONING: dict[str, Any] = {
    "preserve_reasoning": True,
    "enable_thinking": True,
    "thinking": True,
}
"""Switches without which some templates write no reasoning at all; those that keep it are known by KEEPS and DROPS."""


@lru_cache(maxsize=256)
def cached_chat(build: Callable[..., Chat], form: Form, *arguments: Any) -> Chat:
    """A conversation, the same object each time: nobody changes it."""
    return build(form, *arguments)


class PathObserver:
    """One template on one path: asked, and the form in which it takes each kind of message there.

    `bare` observes the bare template behind a served path; what the path leaves as it is, is found out there.
    """

    def __init__(self, renders: Renders, path: str, bare: PathObserver | None = None) -> None:
        self.renders = renders
        self.path = path
        self.bare = bare
        self.rendered = False
        """Whether anything that was asked so far rendered."""
        self._answers: dict[int, tuple[Chat, Outcome]] = {}

    def ask(self, chat: Chat) -> Outcome:
        """What the path gives; remembered by the identity of the chat (see `cached_chat`)."""
        if id(chat) not in self._answers:
            outcome = self.renders.render(self.path, chat)
            self.rendered |= outcome.ok
            self._answers[id(chat)] = chat, outcome
        return self._answers[id(chat)][1]

    def writes(self, chat: Chat, *texts: str) -> bool:
        """Whether all texts are written, and not only inside a dump of the request."""
        return fate_of(self.ask(chat), *texts) == "written"

    @cached_property
    def names(self) -> frozenset[str]:
        """The names that the template reads."""
        template = self.renders.template(dialect_of(self.path))
        return frozenset() if isinstance(template, JinjarunError) else template.names

    @cached_property
    def variables(self) -> list[str]:
        """The names of the variables that only the caller can have set."""
        return self.bare.variables if self.bare is not None else caller_variables(self.renders.source, self.names)

    @cached_property
    def remakes_content(self) -> bool:
        """Whether the path makes every content a list of parts."""
        return self.path == VLLM and vllm_content_format(self.renders.source, limits=self.renders.limits) == "openai"

    @cached_property
    def remakes_calls(self) -> bool:
        """Whether the path hands on arguments of calls in another form than the bare template takes."""
        if self.path not in (VLLM, SGLANG) or self.bare is None:
            return False
        return self.bare.call_form is None or self.bare.call_form.arguments == "string"

    # Plain messages

    @cached_property
    def form(self) -> Form:
        """How the content of a plain message must be sent, and the variables without which nothing renders; the usual
        form where no form is found in which a question is written."""
        if self.path == APPLY and self.bare is not None:
            return self.bare.form
        for form in PLAIN_FORMS:
            if self.writes(cached_chat(c.user_only, form), c.USER):
                return form
        return self._with_variables() or USUAL

    def _with_variables(self) -> Form | None:
        """The form with the fewest variables of the caller under which a question is written."""
        if self.bare is not None:
            return self.bare.form
        chosen = [(name, c.VARIABLE) for name in self.variables]
        if not chosen or not self._writes_with(chosen):
            return None
        for variable in list(chosen):
            fewer = [other for other in chosen if other != variable]
            if self._writes_with(fewer):
                chosen = fewer
        return Form(variables=tuple(chosen))

    def _writes_with(self, variables: list[tuple[str, Any]]) -> bool:
        return self.writes(cached_chat(c.user_only, Form(variables=tuple(variables))), c.USER)

    @cached_property
    def system_form(self) -> Form:
        """The form of requests with system messages."""
        if self.form.parts == "no" or self.writes(cached_chat(c.system_user, self.form), c.SYSTEM):
            return self.form
        return self.form.but(parts="but system")

    @cached_property
    def writes_system(self) -> bool:
        """Whether the text of a system message is written, with no tools beside it."""
        form = self.system_form
        return any(self.writes(cached_chat(build, form), c.SYSTEM) for build in (c.system_user, c.roles))

    # Tools and calls

    @cached_property
    def tools_chat(self) -> Chat | None:
        """The first conversation in which the name of a tool is written that is offered; None where there is none."""
        form = self.system_form
        chats = (
            cached_chat(c.tools_without_system, form),
            cached_chat(c.tools_offered, form),
            cached_chat(c.tools_without_system, form.but(bare=True)),
        )
        return next((chat for chat in chats if c.TOOL in (self.ask(chat).text or "")), None)

    @property
    def call_forms(self) -> list[Form]:
        """The forms in which calls are tried; a served path makes all of them the usual one itself, and vLLM takes
        arguments as text only."""
        changes = CALL_FORMS if self.bare is None else TEXT_ARGUMENTS if self.path == VLLM else CALL_FORMS[:1]
        return [self.form.but(**change) for change in changes]

    @cached_property
    def _calls(self) -> tuple[Form, Chat] | None:
        """The form in which the arguments of a call are written, and the richest conversation that shows it."""
        if self.path == APPLY and self.bare is not None:
            return self.bare._calls  # the same class
        found: tuple[Form, Chat] | None = None
        for i, form in enumerate(self.call_forms):
            builds = (c.one_call,) if i else (c.calls, c.one_call)
            for chat in (cached_chat(build, form) for build in builds):
                if self.writes(chat, c.VALUE):
                    if argument_style(call_text(self.ask(chat))) in READABLE:
                        return form, chat
                    found = found or (form, chat)
        return found

    @property
    def call_form(self) -> Form | None:
        """The form of a message that calls tools; None where no arguments of a call are written."""
        return None if self._calls is None else self._calls[0]

    @property
    def call_chat(self) -> Chat | None:
        """The richest conversation that shows a call."""
        return None if self._calls is None else self._calls[1]

    @property
    def best_form(self) -> Form:
        """The form of calls, or where none is written that of plain messages."""
        return self.call_form or self.form

    @property
    def calls_text(self) -> str:
        """The prompt of `call_chat`."""
        return "" if self.call_chat is None else self.ask(self.call_chat).text or ""

    @cached_property
    def writes_name(self) -> bool:
        """Whether the function's name stands in the call: it is there where no tools are offered, or more often than
        with the tools alone."""
        if self.bare is not None:
            return self.bare.writes_name
        if self._calls is None:
            return False
        form, chat = self._calls
        opening = c.tools_offered if chat["messages"][0]["role"] == "system" else c.tools_without_system
        alone = self.ask(cached_chat(opening, form))
        text = self.calls_text
        if alone.ok:
            more = text.count(c.TOOL) > (alone.text or "").count(c.TOOL)
            return more or self.writes(self._without_tools(form), c.VALUE, c.TOOL)
        at = text.rfind(c.VALUE)
        return c.TOOL in text[max(0, at - 300) : at + 300]

    # Reasoning

    @cached_property
    def reasoning_names(self) -> tuple[str, ...]:
        """The names of reasoning fields that stand in the source: no other can be read."""
        return tuple(name for name in REASONING_FIELDS if name in self.renders.source)

    @cached_property
    def keeping(self) -> dict[str, Any]:
        """The variables of this template that may keep the reasoning of earlier turns, set to do so."""
        found = {name: value for name, value in KEEP_REASONING.items() if name in self.names}
        return found | {name: value for name, value in self.keep_switches.items() if name not in found}

    @cached_property
    def keep_switches(self) -> dict[str, Any]:
        """Those of them that say so by their names."""
        named = {name: KEEPS.search(name) is not None for name in self.variables}
        return {name: keeps for name, keeps in named.items() if keeps or DROPS.search(name)}

    @cached_property
    def reasoning_fields(self) -> list[str]:
        """The fields whose text is written, each found where those that win over it are absent."""
        left = self.reasoning_names
        found: list[str] = []
        while left:
            written = [name for name in left if self._writes_reasoning(left, name)]
            if not written:
                break
            found += written
            left = tuple(name for name in left if name not in written)
        return found

    def _writes_reasoning(self, sent: tuple[str, ...], name: str) -> bool:
        """Whether one of the fields sent is written: before a call in an open turn, or else before an answer, or else
        before a last answer."""
        form = self.best_form
        chats = [] if self.call_form is None else [cached_chat(c.reasoning_in_loop, form, sent)]
        chats += [cached_chat(c.reasoning, form, sent), c.reasoning(form, sent, **self.keeping)]
        chats.append(c.prefill(form, **c.fields_of(sent, c.REASONING)))
        return any(self.writes(chat, c.reasoning_under(name)) for chat in chats)

    @cached_property
    def reasoning_field(self) -> str | None:
        """The one field that reasoning is sent in; None where none is written."""
        return next(iter(self.reasoning_fields), None)

    # All of it as data

    @cached_property
    def supports(self) -> Supports | None:
        """What generated conversations may hold; None where not even a plain question renders."""
        form = self.form
        if form.offering or not self.ask(cached_chat(c.user_only, form)).ok:
            return None
        found = Supports(
            string_content=form.parts == "no",
            text_parts=form.parts == "no" and self._takes_parts(),
            system=self._takes(c.system_user),
            leading_system=form.lead,
            second_system=self._takes(c.second_system),
            late_system=self._takes(c.late_system),
            developer=self._takes_developer(),
            consecutive_users=self.writes(cached_chat(c.two_users, form), c.USER, c.SECOND_USER),
            assistant=self._takes(c.three_turns),
            tools=self.tools_chat is not None,
            tool_calls=False,
            parallel_calls=False,
            arguments=(),
            beside=("empty",),
            reasoning=self.reasoning_field,
            markers=markers_in(self.renders.source),
            variables=form.variables,
        )
        return self._with_calls(found) if self.call_form is not None else found

    def _takes(self, build: Callable[[Form], Chat], form: Form | None = None) -> bool:
        return self.ask(cached_chat(build, self.system_form if form is None else form)).ok

    def _without_tools(self, form: Form) -> Chat:
        """A call in a conversation that offers no tools."""
        chat = c.one_call(form)
        chat.pop("tools")
        return chat

    def _takes_developer(self) -> bool:
        """Whether a developer message is written under a role that the template knows."""
        chat = cached_chat(c.developer, self.form)
        text = self.ask(chat).text or ""
        known = not is_unknown_role(self.renders.source, text[: text.find(c.DEVELOPER)])
        return known and self.writes(chat, c.DEVELOPER)

    def _takes_parts(self) -> bool:
        """Whether a text part is written as text, and several do no worse than to be left out."""
        one, two = (self.ask(cached_chat(build, self.form)) for build in (c.one_text_part, c.text_parts))
        return fate_of(one, c.PART) == "written" and fate_of(two, c.PART) not in {"raised", "limit", "dumped"}

    def _with_calls(self, found: Supports) -> Supports:
        form = self.call_form
        assert form is not None
        forms: tuple[ArgumentForm, ...] = ("object", "string")
        contents: tuple[Beside, ...] = ("empty", "null", "missing", "text")
        return found.but(
            tool_calls=True,
            calls_only_offered=not self.writes(self._without_tools(form), c.VALUE),
            arguments=tuple(kind for kind in forms if self._takes(c.one_call, form.but(arguments=kind))),
            beside=tuple(
                beside for beside in contents if self.writes(cached_chat(c.one_call, form.but(beside=beside)), c.VALUE)
            )
            or ("empty",),
            parallel_calls=self._takes(c.parallel_calls, form),
            several_rounds=self._takes(c.two_rounds, form),
            answer_after_calls=self._takes(c.answer_after_call, form),
            bare=form.bare,
        )


def call_text(outcome: Outcome) -> str:
    """The text around the last call of an outcome, without the schemas before it."""
    text = outcome.text or ""
    at = text.rfind(c.VALUE)
    return text[max(0, at - 100) : at + 100]


def observer(renders: Renders, path: str) -> PathObserver:
    """The one observer of a path, so that all share what it found."""
    if path not in renders.observers:
        bare = observer(renders, BARE[path]) if path in BARE else None
        renders.observers[path] = PathObserver(renders, path, bare)
    found: PathObserver = renders.observers[path]
    return found


def judged_path(renders: Renders) -> str:
    """The bare path that is judged where one is enough: that on which more comes through of a question, a system text,
    tools and calls; transformers where both do alike or neither loads."""
    taken: dict[str, int] = {}
    for path in (RAW, LLAMA_RAW):
        if renders.loads(path) is None:
            on = observer(renders, path)
            asks = cached_chat(c.user_only, on.form)
            taken[path] = sum(
                (on.writes(asks, c.USER), on.writes_system, on.tools_chat is not None, on.call_form is not None)
            )
    return max(taken, key=lambda path: (taken[path], path == RAW)) if taken else RAW


def judged(renders: Renders) -> PathObserver:
    """The observer of `judged_path`."""
    return observer(renders, judged_path(renders))
