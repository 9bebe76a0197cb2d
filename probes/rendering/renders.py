"""The renders of one probe, each made once, and the evidence book that answers cite.

A request is a `Chat` (see `chats`). A path is what happens to it on the way: `transformers:raw` and `llama.cpp:raw` are
the bare template, the others rework the request first.
"""

from __future__ import annotations

import json
import marshal
import shlex
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from jinjarun.errors import REFUSAL_LIMIT, JinjarunError, LimitExceeded, quote
from jinjarun.limits import Allowance, Limits
from jinjarun.runtime.generation_prompt import ADD_GENERATION_PROMPT
from jinjarun.serving.cache import cached_caps, cached_template
from jinjarun.serving.caps import Caps
from jinjarun.serving.llama_server import LlamaServer
from jinjarun.serving.sglang import SglangServer
from jinjarun.serving.transformers import explain_chat_template
from jinjarun.serving.vllm import VllmServer
from jinjarun.template import Rendered, Span, Template
from probes.chats.canaries import EVERY
from probes.chats.messages import Chat, request_body, with_text_arguments
from probes.chats.named import CHATS
from probes.report import FROZEN_NOW, Evidence, Failure

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from jinjarun.serving.chat_completions.server import ChatCompletionsServer


RAW = "transformers:raw"
LLAMA_RAW = "llama.cpp:raw"
LLAMA_SERVER = "llama.cpp:llama-server"
APPLY = "transformers:apply_chat_template"
VLLM = "vllm:chat-completions"
SGLANG = "sglang:chat-completions"
PATHS = (RAW, LLAMA_RAW, LLAMA_SERVER, APPLY, VLLM, SGLANG)
BARE_PATHS = (RAW, LLAMA_RAW)
SERVERS = (LLAMA_SERVER, VLLM, SGLANG)
ENGINES = {"llama-server": LLAMA_SERVER, "transformers": APPLY, "vllm": VLLM, "sglang": SGLANG}
"""Short name of an engine, as `--as` and `--paths` have it -> its request path."""

SHORT_NAMES = {path: name for name, path in ENGINES.items()}

EXCERPT = 200
"""Code points of output that a piece of evidence quotes."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a path gave for a request: a text, or an error."""

    text: str | None
    error: JinjarunError | None
    spans: tuple[Span, ...] = ()
    cost: int = 0
    """Steps of a bare path's render."""

    @property
    def ok(self) -> bool:
        return self.error is None

    @property
    def limited(self) -> bool:
        """A limit was hit: nothing was found out."""
        return isinstance(self.error, LimitExceeded)

    @property
    def turned_away(self) -> bool:
        """The server refused the request before its template saw it, which says nothing of the template."""
        return self.error is not None and self.error.details.get("stage") in ("validation", "other")


OPENINGS = {"transformers": (True, False), "llama.cpp": (True, False, None)}
"""By dialect, what its paths have for `add_generation_prompt`: llama-server leaves it out."""
GIVES_UP_AFTER = 5
"""Renders of a dialect that hit a limit, after which no more are made: each may cost all that the limits allow."""
RENDERS_IN_ALL = 12
"""What all renders of one template may cost together, in renders that each take all steps that the limits allow."""
HANDED_KEPT = 2_000
"""Requests whose way through a server is kept, and shared by all templates."""
_HANDED: dict[Any, Any] = {}
CLOCK = "strftime_now"
"""The name by which templates read the clock."""


class Renders:
    """One template on every path.

    Outcomes are kept by path and request, and renders by what the template reads: paths that hand on the same variables
    share one. `count` and `steps_max` tell the cost. A dialect that hits limits again and again is not asked any more:
    it gives the last LimitExceeded for everything else. Nor does a template get more steps in all than `allowance` has.
    """

    def __init__(
        self,
        source: str,
        *,
        bos_token: str = "",
        eos_token: str = "",
        limits: Limits | None = None,
        now: datetime | float | None = None,
        paths: Collection[str] = PATHS,
    ) -> None:
        self.paths = tuple(path for path in PATHS if path in paths or path in BARE_PATHS)
        """The paths that are asked, in the order of PATHS: the bare ones always, because all else rests on them."""
        self.source = source
        self.bos_token = bos_token
        self.eos_token = eos_token
        self.limits = limits if limits is not None else Limits()
        self.now: datetime | float = FROZEN_NOW if now is None else now
        self.allowance = Allowance("steps_in_all", RENDERS_IN_ALL * self.limits.steps)
        self.count = 0
        self.steps_max = 0
        self.reached: dict[str, bytes] = {}
        """By dialect, a byte for each branch of the template: 1 where a render on a bare path went."""
        self.observers: dict[str, Any] = {}
        """What `input_form.observer` keeps, by path: nobody else reads it."""
        self._outcomes: dict[tuple[str, bytes, object], Outcome] = {}
        self._rendered: dict[tuple[Template, bytes, bool | None], Rendered | JinjarunError] = {}
        self._limited: dict[str, list[LimitExceeded]] = {"transformers": [], "llama.cpp": []}
        self._conversations: dict[tuple[str, str], Outcome] = {}
        self._templates: dict[str, Template | JinjarunError] = {}

    def template(self, dialect: str) -> Template | JinjarunError:
        """The template as this dialect reads it, or why it does not."""
        if dialect not in self._templates:
            try:
                self._templates[dialect] = cached_template(self.source, dialect, self.limits)
            except JinjarunError as error:
                self._templates[dialect] = without_frames(error)
        return self._templates[dialect]

    @cached_property
    def caps(self) -> Caps | JinjarunError:
        """llama.cpp's nine flags, or why it has none."""
        template = self.template("llama.cpp")
        if isinstance(template, JinjarunError):
            return template
        try:
            return cached_caps(template)
        except JinjarunError as error:
            return error

    def loads(self, path: str) -> JinjarunError | None:
        template = self.template(dialect_of(path))
        return template if isinstance(template, JinjarunError) else None

    def render(self, path: str, chat: Chat, *, now: datetime | float | None = None) -> Outcome:
        """What `path` gives for `chat`; `now` where the question is about the clock."""
        key = (path, key_of(chat), now)
        if key not in self._outcomes:
            self._outcomes[key] = self._render(path, chat, self.now if now is None else now, spans=False)
        return self._outcomes[key]

    def conversation(self, path: str, name: str) -> Outcome:
        """What `path` gives for the conversation of the set that has this name."""
        if (path, name) not in self._conversations:
            self._conversations[path, name] = self.render(path, CHATS[name]())
        return self._conversations[path, name]

    def named(self, path: str) -> dict[str, Outcome]:
        """What was rendered on `path` so far, by the names of the conversations, where they have one."""
        found = {
            _names().get(chat): outcome
            for (at, chat, now), outcome in self._outcomes.items()
            if at == path and now is None
        }
        return {name: outcome for name, outcome in found.items() if name is not None}

    def spans(self, path: str, chat: Chat) -> Outcome:
        """The same with the origin of every character; raw paths only."""
        key = (path + "+spans", key_of(chat), None)
        if key not in self._outcomes:
            self._outcomes[key] = self._render(path, chat, self.now, spans=True)
        return self._outcomes[key]

    def render_once(
        self, path: str, chat: Chat, *, now: datetime | float | None = None, spans: bool = False
    ) -> Outcome:
        """What a bare path gives for a chat that will not be asked again: nothing of it is kept or counted."""
        template = self.template(dialect_of(path))
        if isinstance(template, JinjarunError):
            return Outcome(None, template)
        try:
            rendered = template.render_context(
                self._context(template, chat),
                now=self.now if now is None else now,
                spans=spans,
                allowance=self.allowance,
            )
        except JinjarunError as error:
            return Outcome(None, error)
        return Outcome(rendered.text, None, rendered.spans, rendered.cost)

    def _context(self, template: Template, chat: Chat) -> dict[str, Any]:
        """What a bare template is given for a chat."""
        return template.context_of(
            chat["messages"],
            tools=chat.get("tools"),
            add_generation_prompt=chat.get("add_generation_prompt", True),
            bos_token=self.bos_token,
            eos_token=self.eos_token,
            variables=chat.get("variables"),
        )

    def allow(self, renders: int) -> None:
        """So many renders more may be made, each with all steps that the limits allow."""
        more = renders * self.limits.steps
        self.allowance.steps += more
        self.allowance.left += more

    def _render(self, path: str, chat: Chat, now: datetime | float, *, spans: bool) -> Outcome:
        template = self.template(dialect_of(path))
        if isinstance(template, JinjarunError):
            return Outcome(None, template)
        try:
            if path in (RAW, LLAMA_RAW):
                rendered = self.rendered(template, self._context(template, chat), now=now, spans=spans)
                self._account(template, rendered)
                return Outcome(rendered.text, None, rendered.spans, rendered.cost)
            return Outcome(self._served(path, chat, now), None)
        except JinjarunError as error:
            return Outcome(None, without_frames(error))

    def _served(self, path: str, chat: Chat, now: datetime | float) -> str:
        if path == LLAMA_SERVER:
            return self._llama_server.apply(request_body(chat), now=now)
        if path in self._servers:
            return self._completed(path, chat, now)
        return explain_chat_template(
            self.source,
            chat["messages"],
            tools=chat.get("tools"),
            add_generation_prompt=chat.get("add_generation_prompt", True),
            continue_final_message=chat.get("continue_final_message", False),
            special_tokens={"bos_token": self.bos_token, "eos_token": self.eos_token},
            variables=chat.get("variables"),
            now=now,
            limits=self.limits,
            render=self.rendered,
        ).text

    def rendered(
        self,
        template: Template,
        context: Mapping[str, Any],
        *,
        now: datetime | float | None = None,
        spans: bool = False,
        generations: bool = False,
        gives_up: bool = True,
    ) -> Rendered:
        """`template.render_context`, once for all contexts in which the template reads the same. `gives_up`: a limit
        that is hit counts among those after which the dialect is not asked any more."""
        limited = self._limited[template.dialect]
        if len(limited) >= GIVES_UP_AFTER:
            raise without_frames(limited[-1])
        if spans or generations:
            self.count += 1
            return template.render_context(
                context, now=now, spans=spans, generations=generations, allowance=self.allowance
            )
        names = template.names
        opens = (
            context[ADD_GENERATION_PROMPT]
            if ADD_GENERATION_PROMPT in names and isinstance(context.get(ADD_GENERATION_PROMPT), bool)
            else None
        )
        read = [
            (name, context[name])
            for name in sorted(names & context.keys())
            if name != ADD_GENERATION_PROMPT or opens is None
        ]
        asked = (template, key_of([read, str(now) if CLOCK in names else None]))
        found = self._rendered.get((*asked, opens))
        if found is None:
            self.count += 1
            answers = _openings(template, context, opens, now, self.allowance)
            found = answers[opens]
            self._rendered |= {
                (*asked, value): answer
                for value, answer in answers.items()
                if value == opens or not isinstance(answer, LimitExceeded)
            }
            if gives_up and isinstance(found, LimitExceeded):
                limited.append(found)
        if isinstance(found, JinjarunError):
            raise without_frames(found)
        return found

    @cached_property
    def _llama_server(self) -> LlamaServer:
        """Raises what the server says where it does not start with the template."""
        return LlamaServer(
            self.source,
            bos_token=self.bos_token,
            eos_token=self.eos_token,
            limits=self.limits,
            render=self.rendered,
        )

    def _completed(self, path: str, chat: Chat, now: datetime | float) -> str:
        """The prompt of a server of chat completions. What it hands over is made once for all templates that are alike
        to it: the conversations of a probe are always the same."""
        server = self._servers[path]
        key = path, server.reads, self.limits, key_of(chat)
        handed = _HANDED.get(key)
        if handed is None:
            try:
                handed = server.hand_over(request_body(chat))
            except JinjarunError as error:
                handed = without_frames(error)
            if len(_HANDED) >= HANDED_KEPT:
                _HANDED.clear()
            if not isinstance(handed, LimitExceeded):
                _HANDED[key] = handed
        if isinstance(handed, JinjarunError):
            raise without_frames(handed)
        return server.rendered(handed, now=now, spans=False).prompt

    @cached_property
    def _servers(self) -> dict[str, ChatCompletionsServer[Any, Any]]:
        """The servers of chat completions by their paths, set up for tools. Their limits do not count: the bare
        template is asked the same, and SGLang renders twice what fails."""
        tokens = {"bos_token": self.bos_token, "eos_token": self.eos_token}
        render = partial(self.rendered, gives_up=False)
        return {
            path: server(self.source, special_tokens=tokens, limits=self.limits, render=render, advises=False)
            for path, server in ((VLLM, VllmServer), (SGLANG, SglangServer))
        }

    def _account(self, template: Template, rendered: Rendered) -> None:
        self.steps_max = max(self.steps_max, rendered.cost)
        reached = self.reached.get(template.dialect, b"")
        union = int.from_bytes(reached, "little") | int.from_bytes(rendered.reached, "little")
        self.reached[template.dialect] = union.to_bytes(len(rendered.reached), "little")


def key_of(data: Any) -> bytes:
    """Plain JSON as a key: the same for equal data whose objects have their keys in the same order."""
    return marshal.dumps(data, 2)  # from version 3 on, the bytes tell which strings are the same object


def _openings(
    template: Template,
    context: Mapping[str, Any],
    opens: bool | None,
    now: datetime | float | None,
    allowance: Allowance,
) -> dict[bool | None, Rendered | JinjarunError]:
    """What a context gives, and where that costs next to nothing, what it gives with the other values that paths have
    for `add_generation_prompt`."""
    if template.generation_prompt_is_last and (opens is not None or ADD_GENERATION_PROMPT not in context):
        values = {opens, *OPENINGS[template.dialect]}
        return template.render_generation_prompts(context, values, now=now, allowance=allowance)
    try:
        return {opens: template.render_context(context, now=now, allowance=allowance)}
    except JinjarunError as error:
        return {opens: without_frames(error)}


def without_frames(error: JinjarunError) -> JinjarunError:
    """The same error to keep: its traceback would hold all that the template had made until it failed."""
    return error.answered_with(error.status)


def dialect_of(path: str) -> str:
    """The dialect in which the path renders: vLLM and SGLang run Jinja2 as transformers does."""
    engine = path.partition(":")[0]
    return "llama.cpp" if engine == "llama.cpp" else "transformers"


def as_sent(path: str, chat: Chat) -> Chat:
    """The chat as a client of the path sends it: to vLLM arguments of calls go as text, for it refuses objects."""
    return with_text_arguments(chat) if path == VLLM else chat


def failure(error: JinjarunError) -> Failure:
    return Failure(type=type(error).__name__, message=error.message, line=error.line, column=error.column)


class EvidenceBook:
    """Evidence in the order in which it was cited; the same render and outcome is one entry."""

    def __init__(self, name: str | None) -> None:
        self.name = name or "TEMPLATE"
        self.entries: dict[str, Evidence] = {}
        self._ids: dict[Evidence, str] = {}

    def cite(
        self,
        chat: Chat,
        path: str,
        outcome: str,
        *,
        excerpt: str = "",
        span: tuple[int, int] | None = None,
        line: int | None = None,
        conversation: str | None = None,
        repeat: str | None = None,
        now: datetime | None = None,
    ) -> str:
        """The id of a piece of evidence. `conversation` is its name in `EVERY` where it has one; a request without a
        name is repeated from its JSON. `now`: where it was made at another time than the frozen one."""
        engine, _, way = path.partition(":")
        name = conversation if conversation is not None else name_of(chat)
        command = repeat if repeat is not None else self._command(chat, name, path, now)
        evidence = Evidence(
            conversation=name or "unnamed",
            engine=engine,
            path=way,
            outcome=outcome,
            excerpt=quote(excerpt, REFUSAL_LIMIT) if outcome == "refused" else quote(excerpt)[: EXCERPT + 40],
            span=span,
            line=line,
            repeat=command,
        )
        if evidence not in self._ids:
            self._ids[evidence] = f"e{len(self.entries) + 1}"
            self.entries[self._ids[evidence]] = evidence
        return self._ids[evidence]

    def _command(self, chat: Chat, name: str | None, path: str, now: datetime | None) -> str:
        words = ["jinjarun", "render", self.name]
        if now is not None:
            words += ["--now", now.isoformat()]
        bare = path not in SHORT_NAMES
        words += ["--dialect", dialect_of(path)] if bare else ["--as", SHORT_NAMES[path]]
        if name is not None:
            return shlex.join([*words, "--conversation", name])
        body = shlex.quote(json.dumps(request_body(chat), ensure_ascii=False))
        option = "--messages" if bare else "--request"
        return f"printf %s {body} | {shlex.join([*words, option, '-'])}"


def name_of(chat: Chat) -> str | None:
    """The name of exactly this conversation, in the set or among those of probing."""
    return _names().get(key_of(chat))


_NAMES: dict[bytes, str] = {}


def _names() -> Mapping[bytes, str]:
    if not _NAMES:
        _NAMES.update({key_of(build()): name for name, build in reversed(EVERY.items())})
    return _NAMES
