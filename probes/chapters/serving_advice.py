"""How to serve a template with llama-server, vLLM, SGLang and transformers, as the other chapters of the report tell.

Nothing is rendered here and no family is known by name. A line stands for one fact of a chapter, in the words of the
engine's own options and fields; what the chapters do not tell is not said. What each engine does to a request before
its template sees it, its path in `jinjarun.serving` tells. The `stop` of the servers is compared with text from which
special tokens are missing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from jinjarun.serving.caps import preserve_reasoning_variables
from probes.chapters.tokens import SERVER, TEXT_THEN_TOKENIZE
from probes.rendering.renders import APPLY, LLAMA_SERVER, RAW, SGLANG, VLLM
from probes.report import ServingAdvice

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probes.report import (
        Answer,
        Contract,
        EngineStatus,
        Evidence,
        Observation,
        Prefix,
        Shape,
        Stop,
        TokensChapter,
        Variable,
    )

EngineName = Literal["llama-server", "vllm", "sglang", "transformers"]
Where = Literal["send", "avoid", "notes"]
Line = tuple[Where, str]

NAMES = {"llama-server": "llama-server", "vllm": "vLLM", "sglang": "SGLang", "transformers": "transformers"}
TROUBLE = {
    "raised": "fails",
    "refused": "refused with an error",
    "lost": "lost without an error",
    "dumped": "printed raw",
    "printed as a word": "printed as a word",
}
"""Outcome of a piece of evidence -> what becomes of what was sent."""
CAUSES = {
    "reasoning_dropped": "reasoning is dropped",
    "system_text_moves": "the system text moves",
    "tools_move": "the tools move",
    "history_trimmed": "earlier messages are cut",
    "last_turn_differs": "a message is written otherwise once it is not the last",
    "end_differs": "the end of the text is written otherwise",
}
"""Cause of a broken law of prefix stability -> the same in words."""
GROWTHS = {
    "within-tool-loop": "another round of a tool loop",
    "tool-loop-to-next-user": "the next user message after a tool loop",
    "next-user-turn": "the next user message",
}
TOOL_FLAGS = {
    "vllm": "--enable-auto-tool-choice, and a --tool-call-parser",
    "sglang": "a --tool-call-parser",
}
"""Engine -> what it has to be started with, so that calls in answers are found."""
KEEPING = frozenset({"preserve_reasoning", *preserve_reasoning_variables(enabled=True)})
"""Variables with which llama-server asks templates to keep reasoning."""
SET_BY_LLAMA_SERVER = KEEPING | {"enable_thinking", "datetime", "date_string"}
"""Variables to which llama-server gives values of its own."""


@dataclass(frozen=True, slots=True)
class Engine:
    """`path` is the path of the report that answers for it, `stops` its name in the chapter on stops; `kwargs` is what
    its users call the variables.

    `fits_content`: a flag decides whether it hands the template strings or parts. `fills_content`: null and missing
    content become empty before the path begins. `objects`: arguments of calls always become objects. `drops_empty`: the
    empty lists that never reach the template. `reasoning`: the only key that it reads reasoning from, None if any.
    """

    name: EngineName
    path: str
    stops: str
    kwargs: str = "chat_template_kwargs"
    fits_content: bool = False
    fills_content: bool = False
    objects: bool = False
    drops_empty: frozenset[str] = frozenset()
    reasoning: str | None = None

    def gives(self, variable: str) -> bool:
        """Whether the engine gives it a value of its own: the others pass every special token of the tokenizer."""
        return variable in SET_BY_LLAMA_SERVER if self.name == "llama-server" else variable.endswith("_token")


ENGINES = (
    Engine(
        "llama-server",
        LLAMA_SERVER,
        "llama.cpp",
        drops_empty=frozenset({"tools", "tool_calls"}),
        reasoning="reasoning_content",
    ),
    Engine(
        "vllm",
        VLLM,
        "vllm",
        fits_content=True,
        fills_content=True,
        objects=True,
        drops_empty=frozenset({"tool_calls"}),
        reasoning="reasoning",
    ),
    Engine(
        "sglang",
        SGLANG,
        "vllm",  # both stop at the ids of generation_config.json and the tokenizer's EOS
        fills_content=True,
        objects=True,
        drops_empty=frozenset({"tools"}),
        reasoning="reasoning_content",
    ),
    Engine("transformers", APPLY, "transformers", kwargs="keyword arguments of apply_chat_template"),
)


@dataclass(frozen=True, slots=True)
class Known:
    """The chapters, seen from one engine."""

    engine: Engine
    observed: Mapping[str, Observation]
    evidence: Mapping[str, Evidence]
    contract: Contract
    shape: Shape | None
    stop: Stop | None
    tokens: TokensChapter | None
    prefix: Prefix | None

    @property
    def path(self) -> str:
        """The path of the report that answers for the engine as it is to be started: where vLLM finds parts in a
        template that takes strings only, its flag makes it hand on what the bare template was asked with."""
        misread = self.engine.fits_content and self.says("string_content", self.engine.path) == "no"
        return RAW if misread else self.engine.path

    def says(self, name: str, path: str | None = None) -> Answer:
        seen = self.observed[name]
        return seen.by_path.get(path or self.path, seen.answer)

    def trouble(self, name: str, path: str | None = None) -> str:
        """What becomes of it where the answer is no."""
        path = path or self.path
        pieces = [self.evidence[key] for key in self.observed[name].evidence]
        pieces.sort(key=lambda piece: f"{piece.engine}:{piece.path}" != path)
        told = (TROUBLE[piece.outcome] for piece in pieces if piece.outcome in TROUBLE)
        return next(told, "does not come through")

    def avoided(self, name: str, what: str, rather: str = "") -> Iterator[Line]:
        if self.says(name) == "no":
            yield "avoid", f"{what}: {self.trouble(name)}{rather}"


def advice(
    *,
    engines: Sequence[EngineStatus],
    observed: Mapping[str, Observation],
    evidence: Mapping[str, Evidence],
    contract: Contract | None,
    shape: Shape | None,
    stop: Stop | None,
    tokens: TokensChapter | None,
    prefix: Prefix | None,
) -> list[ServingAdvice]:
    """The advice for each engine whose path was asked; none where no engine loads the template or the probe was a quick
    one."""
    if contract is None or not observed:
        return []
    states = {f"{engine.id}:{engine.path}": engine for engine in engines}
    return [
        _refused(engine, states[engine.path], contract)
        or _advised(Known(engine, observed, evidence, contract, shape, stop, tokens, prefix))
        for engine in ENGINES
        if engine.path in states
    ]


def _refused(engine: Engine, state: EngineStatus, contract: Contract) -> ServingAdvice | None:
    """All that is to be said where no request succeeds."""
    if state.loads and (state.rendered or contract.required_variables):
        return None
    why = "" if state.error is None else f": {state.error.message.splitlines()[0]}"
    what = "no conversation renders" if state.loads else "the template does not load"
    return ServingAdvice(
        engine=engine.name,
        flags=[],
        chat_template_kwargs={},
        content_format=None,
        stop=[],
        send=[],
        avoid=[f"this template: {what}{why}"],
        notes=[],
    )


def _advised(known: Known) -> ServingAdvice:
    lines: dict[Where, list[str]] = {"send": [], "avoid": [], "notes": []}
    for topic in TOPICS:
        for where, text in topic(known):
            lines[where].append(text)
    wanted = _content_format(known)
    flags = [] if known.engine.name != "vllm" or wanted is None else [f"--chat-template-content-format {wanted}"]
    return ServingAdvice(
        engine=known.engine.name,
        flags=flags,
        chat_template_kwargs=_defaults(known),
        content_format=wanted,
        stop=_stops(known),
        **lines,
    )


# Contents and roles


def _content_format(known: Known) -> str | None:
    """ "string" or "openai" (a list of parts), in vLLM's words; a string wherever both are taken, because templates
    take parts in fewer roles; parts where images are marked, so that the template says where they stand."""
    bare = RAW if known.engine.fits_content else None
    if bare is not None and known.says("image_parts", bare) == "yes":
        return "openai"
    if known.says("string_content", bare) == "yes":
        return "string"
    return "openai" if known.says("one_text_part", bare) == "yes" else None


def _contents(known: Known) -> Iterator[Line]:
    if known.engine.fits_content:
        if known.says("string_content", known.engine.path) == "no" and known.says("string_content", RAW) == "yes":
            trouble = known.trouble("string_content", known.engine.path)
            yield "notes", f"without this flag every content becomes a list of parts, and its text is {trouble}"
        return
    if known.says("string_content") == "no" and known.says("one_text_part") == "yes":
        yield "send", "content as a list of text parts"
        yield from known.avoided("string_content", "content as a string")
    elif known.says("one_text_part") == "no":
        yield from known.avoided("one_text_part", "content as a list of parts")
    else:
        yield from known.avoided("several_text_parts", "several text parts in a message")


def _systems(known: Known) -> Iterator[Line]:
    if known.says("system_role") == "no":
        yield from known.avoided("system_role", "system messages")
        return
    if known.observed["system_role"].answer == "no" and known.engine.name == "llama-server":
        yield "notes", "llama-server writes a system message into the message after it: the template takes none"
    second, late = known.says("second_system_message"), known.says("late_system_message")
    if second == late == "no":
        yield "send", "at most one system message, as the first message"
    elif second == "no":
        yield from known.avoided("second_system_message", "a second system message")
    else:
        yield from known.avoided("late_system_message", "a system message after the first turn")
    if known.says("system_role") == "yes":
        yield from known.avoided("developer_role", "the role developer", "; send system instead")


def _turns(known: Known) -> Iterator[Line]:
    if known.contract.alternation_required:
        yield "send", "messages of user and assistant in turn"
    else:
        yield from known.avoided("several_user_turns_in_a_row", "several user messages in a row")
    if known.contract.needs_user_turn:
        yield "send", "a user message in every request"


# Tools and calls


def _tools(known: Known) -> Iterator[Line]:
    yield from known.avoided("tools", "tools")
    call = None if known.shape is None else known.shape.tool_call
    if known.says("tool_calls") == "yes" and call is not None and known.engine.name in TOOL_FLAGS and call.open.strip():
        written = f"{_quoted(call.open)} and {_quoted(call.close)}" if call.close.strip() else _quoted(call.open)
        where = "between" if call.close.strip() else "after"
        yield "notes", f"for tool calls: {TOOL_FLAGS[known.engine.name]} for calls {where} {written}"
    if known.contract.empty_tools_list == "differs" and "tools" not in known.engine.drops_empty:
        yield "avoid", "an empty list of tools: leave the key out"


def _calls(known: Known) -> Iterator[Line]:
    if known.says("tool_calls") != "yes":
        told = known.engine.objects and known.says("tool_calls", RAW) == "yes"  # among the arguments
        if known.says("tools") == "yes" and not told:
            yield from known.avoided("tool_calls", "tool calls in the history")
        return
    if known.says("parallel_tool_calls") == "no":
        if known.engine.name != "transformers":
            yield "send", '"parallel_tool_calls": false'
        yield from known.avoided("parallel_tool_calls", "several calls in a message")
    else:
        yield from known.avoided("several_results_in_a_row", "several tool results in a row")
    if known.contract.empty_tool_calls_list == "differs" and "tool_calls" not in known.engine.drops_empty:
        yield "avoid", "an empty list of tool_calls: leave the key out"


def _arguments(known: Known) -> Iterator[Line]:
    """llama-server parses arguments or not, as its flags say; the path's own answer covers it."""
    form = known.contract.tool_arguments
    written = known.says("tool_calls", RAW if known.engine.objects else None)
    if written != "yes" or known.engine.name == "llama-server" or form.preferred == "none":
        return
    wrong = {"raises": "fails", "unsupported": "not written", "other_text": "written otherwise"}
    if known.engine.objects:
        if form.object in wrong:
            name = NAMES[known.engine.name]
            yield "avoid", f"tool calls in the history: {name} makes objects of arguments: {wrong[form.object]}"
    elif form.preferred == "object" and form.json_string in wrong:
        yield "send", "arguments of calls as an object"
        yield "avoid", f"arguments of calls as JSON text: {wrong[form.json_string]}"
    elif form.preferred == "json_string":
        yield "send", "arguments of calls as JSON text"
        yield "avoid", f"arguments of calls as an object: {wrong.get(form.object, 'written otherwise')}"


def _beside_calls(known: Known) -> Iterator[Line]:
    if known.says("tool_calls") != "yes":
        return
    beside = "beside tool calls"
    yield from known.avoided("text_beside_calls", f"text {beside}")
    empty = known.says("empty_content_with_calls")
    yield from known.avoided("empty_content_with_calls", f"empty content {beside}")
    if known.engine.fills_content:
        return
    rather = "; send an empty string" if empty == "yes" else ""
    if known.says("null_content_with_calls") == "no":
        yield from known.avoided("null_content_with_calls", f"null content {beside}", rather)
    else:
        yield from known.avoided("missing_content_with_calls", f"missing content {beside}", rather)
        if known.engine.name == "transformers" and known.says("null_content_with_calls", RAW) == "no":
            trouble = known.trouble("null_content_with_calls", RAW)
            yield "avoid", f"null content {beside} without apply_chat_template, which drops it: {trouble}"


def _ids(known: Known) -> Iterator[Line]:
    if known.says("tool_calls") != "yes":
        return
    if known.contract.tool_call_id_length is not None:
        yield "send", f"ids of calls with exactly {known.contract.tool_call_id_length} characters"
    elif known.says("tool_call_id") == "yes":
        yield "send", "the ids of calls: they are written"
    elif known.says("tool_call_id") == "no" and known.says("several_results_in_a_row") == "yes":
        yield "send", "tool results in the order of their calls: ids are not written"
    if known.says("tool_result_name") == "yes":
        yield "send", "name in tool results: it is written"


# Reasoning and variables


def _reasoning(known: Known) -> Iterator[Line]:
    thinking = None if known.shape is None else known.shape.reasoning
    if thinking is None:
        return
    opening, close = thinking.open.strip(), thinking.close.strip()
    if known.shape is not None and known.shape.generation_prompt is not None and close:
        starts = known.shape.generation_prompt.starts_in_reasoning
        if known.engine.name in ("vllm", "sglang") and opening:
            yield "notes", f"a --reasoning-parser for reasoning between {_quoted(opening)} and {_quoted(close)}"
        if known.engine.name == "transformers" and starts:
            yield "notes", f"the prompt ends inside reasoning: the generated text has its end {_quoted(close)} only"
    keeps = known.says("preserve_reasoning") == "yes" or thinking.history == "kept"
    in_loop = thinking.history in {"kept_after_last_user", "kept_in_tool_turn"}
    sent = _reasoning_key(known)
    if sent is not None and (keeps or in_loop):
        whose = "of earlier answers" if keeps else "before tool calls, while the turn goes on"
        yield "send", f"the reasoning {whose}, as {sent}"
    if thinking.history == "dropped" and not keeps:
        yield "notes", "reasoning of earlier answers is not written: it need not be sent"
    asked = KEEPING & set(thinking.switches) if known.engine.name == "llama-server" else frozenset()
    left = [name for name in thinking.switches if name not in asked]
    if asked:
        yield "notes", f"llama-server itself sets {_listed(sorted(asked))}, to keep earlier reasoning"
    if left:
        yield "notes", f"{_listed(left)} decide{'s'[len(left) > 1 :]} whether earlier reasoning is kept"


def _reasoning_key(known: Known) -> str | None:
    """Where the client puts reasoning so that the template finds it; None where that is not known."""
    fields = known.contract.reasoning_input.fields
    given = {
        "llama-server": ("reasoning_content",),
        "vllm": ("reasoning", "reasoning_content"),
        "sglang": ("reasoning_content",),
        "transformers": ("reasoning_content", "thinking"),
    }[known.engine.name]
    read = [name for name in fields if name in given]
    if read:
        return known.engine.reasoning or read[0]
    if fields and known.engine.name == "transformers":
        return fields[0]
    if not fields and known.contract.reasoning_input.inline_tags_in_content == "recognised" and known.shape is not None:
        tags = known.shape.reasoning
        if tags is not None and tags.open.strip() and tags.close.strip():
            return f"content between {_quoted(tags.open)} and {_quoted(tags.close)}"
    return None


def _variables(known: Known) -> Iterator[Line]:
    required = [name for name in known.contract.required_variables if not known.engine.gives(name)]
    if required:
        yield "send", f"{_listed(required)} in {known.engine.kwargs}: nothing renders without"
    for variable in known.contract.variables:
        if known.engine.name == "llama-server" and variable.name == "enable_thinking":
            if variable.kind == "boolean":
                yield "avoid", "enable_thinking as a string: llama-server refuses it"
        elif variable.kind == "boolean" and variable.note is not None:
            yield "avoid", f"{variable.name} as a string: {variable.note.removeprefix('the string ')}"


def _defaults(known: Known) -> dict[str, Any]:
    """The variables that can be set, at the values that the template takes without them."""
    own = [variable for variable in known.contract.variables if not known.engine.gives(variable.name)]
    found = {variable.name: _default(variable) for variable in own}
    return {name: value for name, value in found.items() if value is not None}


def _default(variable: Variable) -> Any:
    _, same, value = variable.when_absent.partition("same as ")
    if not same:
        return None
    if value in {"true", "false"}:
        return value == "true"
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return None


# Stops, BOS, clock and cache


def _stops(known: Known) -> list[str]:
    stop = known.stop
    return [] if stop is None or stop.by_engine.get(known.engine.stops) == "stops" else stop.client_should_set


def _ends(known: Known) -> Iterator[Line]:
    if not _stops(known):
        return
    if known.stop is not None and known.stop.by_engine.get(known.engine.stops) == "never_stops":
        yield "notes", "generation does not end by itself at the end of a turn"
    if known.engine.name in ("vllm", "sglang"):
        yield "notes", "stop does not see special tokens: send their ids as stop_token_ids"
    elif known.engine.name == "llama-server":
        yield "notes", "stop does not see control tokens unless the server runs with --special"
    else:
        yield "notes", "generate takes stop as stop_strings, beside the tokenizer"


def _bos(known: Known) -> Iterator[Line]:
    doubled = {} if known.tokens is None else known.tokens.double_bos
    if known.engine.name == "llama-server" and doubled.get(SERVER):
        yield "notes", "two BOS tokens stand at the start of the prompt"
    writes = known.shape is not None and known.shape.bos.written > 0
    if known.engine.name == "transformers" and writes and doubled.get(TEXT_THEN_TOKENIZE) is not False:
        yield "send", "add_special_tokens=False to the tokenizer of a rendered prompt: BOS is written already"


def _clock(known: Known) -> Iterator[Line]:
    clock = None if known.shape is None else known.shape.clock
    if clock is not None:
        pin = "" if clock.pinned_by is None else f"; a fixed {clock.pinned_by} in {known.engine.kwargs} prevents it"
        yield "notes", f"the date in the prompt ends cached prefixes every {clock.resolution}{pin}"


def _cache(known: Known) -> Iterator[Line]:
    laws = {} if known.prefix is None else {law.law: law for law in known.prefix.laws}
    told: set[str | None] = set()
    for name, what in GROWTHS.items():
        law = laws.get(name)
        if law is None or law.holds is not False or law.cause not in CAUSES or law.cause in told:
            continue
        asks_to_keep = known.engine.name == "llama-server" and known.says("preserve_reasoning") == "yes"
        if asks_to_keep and law.cause == "reasoning_dropped":
            continue
        told.add(law.cause)
        yield "notes", f"{what} changes the text before it, where cached prefixes end: {CAUSES[law.cause]}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names)


def _quoted(text: str) -> str:
    return repr(text.strip())


TOPICS: tuple[Callable[[Known], Iterator[Line]], ...] = (
    _contents,
    _systems,
    _turns,
    _variables,
    _tools,
    _calls,
    _arguments,
    _beside_calls,
    _ids,
    _reasoning,
    _ends,
    _bos,
    _clock,
    _cache,
)
"""In the order of the lines of an advice."""
