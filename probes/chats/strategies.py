"""Hypothesis strategies of conversations as clients send them: valid by construction, steered by what a template takes.

    from hypothesis import given
    from probes import conversations

    @given(conversations())
    def test_my_client(chat):
        ...  # chat["messages"], and where there are some chat["tools"]

Roles alternate, every call has its result with a matching id, and texts are unlike each other, so that each can be
looked for in a prompt. Conversations shrink to few messages with plain texts. A conversation is first drawn as a *plan*
(how many exchanges, which rounds of calls, which trouble in which text) and then written out, so that taking something
away from the plan leaves a valid conversation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from probes.chats import messages as made_of
from probes.chats.messages import ArgumentForm, Beside, beside_calls, function_of, in_parts
from probes.chats.supports import Supports

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from probes.chats.messages import Chat, Message, Tool

MOST_EXCHANGES = 3
MARKUP = ("<b>", "&", "&amp;", "a < b > c", "<!-- -->", "None", "True", "null", "#", "```", "---")
SPACE = (" ", "\n", "\n\n", "\t", "  \n ")
JSON_LIKE = ('{"a": "b"}', "[1, 2", '"', "\\", "\\n", '{"name": "f", "arguments": {}}', "'", '\\"')
UNICODE = ("é", "日本語", "🙂", "👩‍🚀", "ß", "e\u0301", "\u2028", "\u00a0", "\u200b", "שלום", "İ", "𝒳")
THINKING_LIKE = ("<think>", "</think>", "<think>\nhm\n</think>\n\n", "[THINK]", "<|channel|>analysis")
JINJA_LIKE = ("{{ messages }}", "{% endfor %}", "{# no #}", "{{", "%}", "%s", "{0}")
LONG = ("long " * 120, "x" * 700)
EMPTY_IN = 8
"""How many of the troubled texts are empty."""
NAMES = ("find_file", "run_tests", "add", "get_weather", "zip_all", "Ask-User")
KEYS: tuple[tuple[str, ...], ...] = ((), ("path",), ("zone", "area"), ("limit",), ("kind", "path", "area"), ("zone",))
SCHEMAS: tuple[dict[str, Any], ...] = (
    {},
    {"path": {"type": "string"}},
    {"path": {"type": "string", "description": "Says where."}},
    {"zone": {"type": "string"}, "area": {"type": "integer", "default": 10}},
    {"kinds": {"type": "array", "items": {"type": "string", "enum": ["py", "md"]}, "description": 'a < b & "c"'}},
    {"deep": {"type": "object", "properties": {"zone": {"type": "number"}}, "required": ["zone"]}},
    {"kind": {"type": ["string", "null"]}, "area": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
    {"path": {"type": "string", "description": "Où — 日本語?\n'Here'"}},
)
"""Parameters of tools."""


@dataclass(frozen=True, slots=True)
class Said:
    """A text of the plan: what stands before and after its plain words; `empty` for no text at all."""

    before: str = ""
    after: str = ""
    empty: bool = False
    parts: int = 0

    def text(self, words: str) -> str:
        return "" if self.empty else f"{self.before}{words}{self.after}"


@dataclass(frozen=True, slots=True)
class Call:
    tool: int
    arguments: dict[str, Any]
    result: Said


@dataclass(frozen=True, slots=True)
class Round:
    """A message that calls tools, and the results in the order of `shift` (0: that of the calls)."""

    calls: list[Call]
    beside: Beside
    said: Said
    thought: Said | None
    shift: int


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a user says, what the assistant does about it, and what it answers."""

    system: Said | None
    asked: list[Said]
    rounds: list[Round]
    answer: Said
    thought: Said | None


@dataclass(slots=True)
class Plan:
    systems: list[Said]
    developer: bool
    exchanges: list[Exchange]
    ended: bool
    arguments: ArgumentForm = "object"
    tools: list[Tool] = field(default_factory=list)
    offered: bool = False


def _troubles(markers: tuple[str, ...]) -> list[str]:
    """Texts that are likely to be mishandled, the easiest to read first."""
    own = [*markers, "".join(markers[:2]), "\n".join(markers[-2:])] if markers else []
    return [*SPACE, *SPACE, *MARKUP, *own, *own, *JSON_LIKE, *UNICODE, *THINKING_LIKE, *JINJA_LIKE, *LONG]


class _Drawn:
    """The strategies that plans of one `Supports` are drawn from, made once, as making takes longer than drawing."""

    def __init__(self, supports: Supports) -> None:
        self.supports = supports
        some = _troubles(supports.markers)
        around = [
            said for text in some for said in (Said(after=text), Said(before=text), Said(before=text, after=text))
        ]
        free = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=5)
        self.said = st.one_of(
            st.sampled_from([*[Said()] * (len(around) // 2), *around]),
            st.sampled_from([Said(), *around, *[Said(empty=True)] * EMPTY_IN]),
            st.builds(Said, after=free),
        )
        in_parts = [Said(), *(Said(before=text, after=text, parts=n) for n in (1, 2) for text in ("", *some))]
        self.asked = st.one_of(self.said, st.sampled_from(in_parts)) if supports.text_parts else self.said
        flat = [*some, *(f"north {text} pole" for text in some), 7, -1, 0.5, True, False, None, 2**40, ""]
        nested = [[], ["b", "a"], [1, {"zone": None}], {"zone": "a", "area": [True]}, {}, {"a": {"b": {"c": "d\n"}}}]
        self.value = st.sampled_from(["a", *flat, *nested, *[{"zone": text} for text in some]])
        self.tool = st.integers(0, len(NAMES) - 1)
        self.keys = st.sampled_from(KEYS)
        self.properties = st.sampled_from(SCHEMAS)
        self.beside = st.sampled_from(supports.beside or ("empty",))
        self.arguments = st.sampled_from(supports.arguments or ("object",))
        self.shift = st.sampled_from([0, 0, 0, 1])
        self.flag = st.booleans()
        self.usually = st.sampled_from([True, True, True, False])
        self.exchanges = st.lists(self.exchange(), min_size=1, max_size=MOST_EXCHANGES if supports.assistant else 1)
        least = 1 if supports.leading_system else 0
        most = 2 if supports.second_system else 1 if supports.system else 0
        self.systems = st.lists(self.said, min_size=least, max_size=max(least, most))

    def thought(self) -> SearchStrategy[Said | None]:
        return st.none() if self.supports.reasoning is None else st.none() | self.said

    def call(self) -> SearchStrategy[Call]:
        @st.composite
        def build(draw: st.DrawFn) -> Call:
            arguments = {key: draw(self.value) for key in draw(self.keys)}
            return Call(draw(self.tool), arguments, draw(self.said))

        return build()

    def round(self) -> SearchStrategy[Round]:
        calls = st.lists(self.call(), min_size=1, max_size=3 if self.supports.parallel_calls else 1)
        return st.builds(Round, calls, self.beside, self.said, self.thought(), self.shift)

    def exchange(self) -> SearchStrategy[Exchange]:
        late = st.none() | self.said if self.supports.late_system else st.none()
        asked = st.lists(self.asked, min_size=1, max_size=2 if self.supports.consecutive_users else 1)
        most = 0 if not self.supports.tool_calls else 2 if self.supports.several_rounds else 1
        rounds = st.lists(self.round(), max_size=most) if most else st.just([])
        return st.builds(Exchange, late, asked, rounds, self.said, self.thought())

    def tools(self, draw: st.DrawFn, least: int, most: int) -> list[Tool]:
        made = []
        for name in NAMES[: draw(st.integers(least, most))]:
            properties = draw(self.properties)
            required = list(properties) if draw(self.flag) else None
            description = draw(self.said).text(f"What {name} is for.")
            made.append(made_of.tool(name, description, properties, required, bare=self.supports.bare))
        return made

    def plan(self, draw: st.DrawFn) -> Plan:
        supports = self.supports
        plan = Plan(systems=draw(self.systems), developer=False, exchanges=draw(self.exchanges), ended=False)
        if supports.developer and plan.systems and not supports.leading_system:
            plan.developer = draw(self.flag)
        if supports.assistant:
            plan.ended = draw(self.flag)
        calls = any(exchange.rounds for exchange in plan.exchanges)
        if calls:
            plan.arguments = draw(self.arguments)
        if calls or (supports.tools and draw(self.flag)):
            plan.tools = self.tools(draw, 1, 3)
            plan.offered = supports.calls_only_offered or not calls or draw(self.usually)
        return plan


@cache
def _drawn(supports: Supports) -> _Drawn:
    return _Drawn(supports)


@st.composite
def tools(draw: st.DrawFn, supports: Supports | None = None, *, min_size: int = 1, max_size: int = 3) -> list[Tool]:
    """Tools as OpenAI's API describes them, each with another name; six at most."""
    return _drawn(supports or Supports()).tools(draw, min_size, max_size)


@st.composite
def tool_calls(
    draw: st.DrawFn, supports: Supports | None = None, *, offered: list[Tool] | None = None, max_size: int = 3
) -> list[dict[str, Any]]:
    """The `tool_calls` of a message, of the tools that are `offered`."""
    supports = supports or Supports()
    drawn = _drawn(supports)
    names = [function_of(made)["name"] for made in offered] if offered else list(NAMES)
    planned = draw(st.lists(drawn.call(), min_size=1, max_size=max_size if supports.parallel_calls else 1))
    form = draw(drawn.arguments)
    return [_written(call, number, names, form, supports) for number, call in enumerate(planned, 1)]


def _written(call: Call, number: int, names: list[str], form: ArgumentForm, supports: Supports) -> dict[str, Any]:
    name = names[call.tool % len(names)]
    return made_of.call(name, call.arguments, call_id(number), form=form, bare=supports.bare)


def call_id(number: int) -> str:
    """An id of nine characters, the only length that some templates take."""
    return f"call{number:05}"


@dataclass(slots=True)
class _Writer:
    """Writes a plan out. Every text has a number of its own in its plain words."""

    supports: Supports
    plan: Plan
    messages: list[Message] = field(default_factory=list)
    calls: int = 0
    texts: int = 0

    def words(self, said: Said) -> str:
        self.texts += 1
        return said.text(f"Text {self.texts}.")

    def say(self, role: str, said: Said, **fields: Any) -> None:
        message = made_of.say(role, self.words(said), **fields)
        if not self.supports.string_content or (said.parts and role == "user"):
            message = in_parts(message)
        if said.parts == 2 and role == "user" and message["content"]:
            message["content"].append({"type": "text", "text": self.words(Said())})
        self.messages.append(message)

    def thinking(self, thought: Said | None) -> dict[str, Any]:
        name = self.supports.reasoning
        return {} if thought is None or name is None else {name: self.words(thought)}

    def write(self) -> list[Message]:
        for number, said in enumerate(self.plan.systems):
            self.say("developer" if self.plan.developer and number == 0 else "system", said)
        last = len(self.plan.exchanges) - 1
        for number, exchange in enumerate(self.plan.exchanges):
            if exchange.system is not None and number:
                self.say("system", exchange.system)
            for said in exchange.asked:
                self.say("user", said)
            for made in exchange.rounds:
                self.round(made)
            open_end = number == last and not self.plan.ended
            if not open_end and (not exchange.rounds or self.supports.answer_after_calls):
                self.say("assistant", exchange.answer, **self.thinking(exchange.thought))
        return self.messages

    def round(self, made: Round) -> None:
        names = [function_of(tool)["name"] for tool in self.plan.tools] or list(NAMES)
        message: Message = {"role": "assistant"}
        message |= beside_calls(made.beside, self.words(made.said) if made.beside == "text" else "")
        if not self.supports.string_content:
            message = in_parts(message)
        message |= self.thinking(made.thought)
        written, results = [], []
        for call in made.calls:
            self.calls += 1
            written.append(_written(call, self.calls, names, self.plan.arguments, self.supports))
            name = names[call.tool % len(names)]
            results.append(made_of.result(self.words(call.result), call_id(self.calls), name))
        message["tool_calls"] = written
        shift = made.shift % len(results)
        ordered = results[shift:] + results[:shift]
        self.messages += [message, *(ordered if self.supports.string_content else map(in_parts, ordered))]


def _write(plan: Plan, supports: Supports) -> Chat:
    chat: dict[str, Any] = {"messages": _Writer(supports, plan).write()}
    if plan.offered and plan.tools:
        chat["tools"] = plan.tools
    if chat["messages"][-1]["role"] == "assistant":
        chat["add_generation_prompt"] = False
    if supports.variables:
        chat["variables"] = dict(supports.variables)
    return chat  # type: ignore[return-value]  # the keys of a Chat


@st.composite
def conversations(draw: st.DrawFn, supports: Supports | None = None) -> Chat:
    """Whole requests: `messages`, and where they matter `tools`, `add_generation_prompt` and `variables`.

    They end with a user's message, with results of calls, or with an answer (and then ask for no generation prompt).
    """
    supports = supports or Supports()
    return _write(_drawn(supports).plan(draw), supports)


def messages(supports: Supports | None = None) -> SearchStrategy[list[Message]]:
    """The messages of `conversations` alone."""
    return conversations(supports).map(lambda chat: chat["messages"])


__all__ = ["Supports", "conversations", "messages", "tool_calls", "tools"]
