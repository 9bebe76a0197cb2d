"""`Template`: the one door to the interpreter."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from jinjarun.dialects import dialect_named
from jinjarun.errors import InputError, JinjarunError
from jinjarun.limits import Allowance, Limits
from jinjarun.runtime.clock import resolve_now
from jinjarun.runtime.compiler import Program, compile_template
from jinjarun.runtime.generation_prompt import ADD_GENERATION_PROMPT, is_plain_data
from jinjarun.runtime.generations import Generations
from jinjarun.runtime.run import Run
from jinjarun.runtime.scope import Env
from jinjarun.runtime.stack import run_with_room
from jinjarun.runtime.text import parts_of
from jinjarun.syntax.parser import parse
from jinjarun.syntax.search import names_any

if TYPE_CHECKING:
    from datetime import datetime

    from jinjarun.runtime.text import Origin
    from jinjarun.runtime.trace import Trace
    from jinjarun.syntax.nodes import Node

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the output with one origin: code points `start` to `end` of the text.

    `origin` is "line 12" of the template, or a path into the input such as "messages[1].content".
    """

    start: int
    end: int
    text: str
    is_input: bool
    origin: str


@dataclass(frozen=True, slots=True)
class Rendered:
    """What a render gave.

    `text` is str, with U+FFFD for bytes that are not UTF-8 (llama.cpp slices bytes); `data` the bytes themselves.
    `spans` cover the text in order without gaps; empty unless asked for. `cost` is the number of steps taken, `reached`
    a byte for each of the template's branches. `generations` are the places `(start, end)` of `{% generation %}` blocks
    (see `runtime.generations`), None unless asked for.
    """

    text: str
    data: bytes
    spans: tuple[Span, ...]
    cost: int
    reached: bytes
    generations: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True, slots=True)
class Traced:
    """A render with a trace: the context as it was adopted, whose objects the trace knows; the text, or the error where
    it failed. `context` is empty once this is gone: the template may have made it hold itself."""

    context: dict[str, Any]
    text: str | None
    error: JinjarunError | None
    run: Run

    def __del__(self) -> None:
        self.run.release()


class Template:
    """A chat template as one engine reads it.

    `dialect` is "llama.cpp" (build b11434) or "transformers" (5.24, on Jinja2 3.1.6). Parsing happens here and raises
    TemplateSyntaxError or LimitExceeded. A Template may be rendered from many threads.
    """

    def __init__(self, source: str, dialect: str = "llama.cpp", limits: Limits | None = None) -> None:
        if not isinstance(source, str):
            raise InputError(f"a template is a str, not {type(source).__name__}", path="source")
        self.source = source
        self.limits = limits if limits is not None else Limits()
        self._dialect = dialect_named(dialect)
        self._tree = self._guarded(lambda: parse(source, self._dialect.syntax, self.limits))
        self._by_part = names_any(self._tree, self._dialect.part_by_part)
        self._program = self._guarded(lambda: self._compile(traced=self._by_part))
        self._traced: Program | None = self._program if self._by_part else None

    @property
    def dialect(self) -> str:
        return self._dialect.name

    @property
    def tree(self) -> Node:
        """The syntax tree."""
        return self._tree

    @property
    def branches(self) -> list[tuple[int, str]]:
        """Line and kind ("if", "elif", "else", "for", "for-else") of each branch, in the order of `reached`."""
        return list(self._program.branches)

    @property
    def names(self) -> frozenset[str]:
        """Every variable name that the template reads anywhere, its own included."""
        return self._program.names

    def render(
        self,
        messages: list[dict[str, Any]],
        *,
        tools: list[dict[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        bos_token: str = "",
        eos_token: str = "",
        variables: Mapping[str, Any] | None = None,
        now: datetime | float | None = None,
        spans: bool = False,
    ) -> Rendered:
        """The text of a conversation as the bare template writes it; see `serving` for what servers do around it.

        `messages` and `tools` have the shape of OpenAI's chat API. As the engines do, `tools` is null in transformers
        and absent in llama.cpp where there are none. `variables` are added last. `now` is an aware datetime, a naive
        one (the wall clock), a Unix timestamp (read as UTC) or None for this moment.
        """
        context = self.context_of(
            messages,
            tools=tools,
            add_generation_prompt=add_generation_prompt,
            bos_token=bos_token,
            eos_token=eos_token,
            variables=variables,
        )
        return self.render_context(context, now=now, spans=spans)

    def context_of(
        self,
        messages: list[dict[str, Any]],
        *,
        tools: list[dict[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        bos_token: str = "",
        eos_token: str = "",
        variables: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The variables that `render` gives the template for a conversation."""
        check_conversation(messages, tools)
        context: dict[str, Any] = {
            "messages": messages,
            "add_generation_prompt": add_generation_prompt,
            "bos_token": bos_token,
            "eos_token": eos_token,
        }
        if self.dialect == "transformers":
            context |= {"tools": tools, "documents": None}
        elif tools:
            context["tools"] = tools
        if variables is not None:
            if not isinstance(variables, Mapping):
                raise InputError(f"variables are an object, not {type(variables).__name__}", path="variables")
            context |= variables
        return context

    def render_context(
        self,
        context: Mapping[str, Any],
        *,
        now: datetime | float | None = None,
        spans: bool = False,
        generations: bool = False,
        allowance: Allowance | None = None,
    ) -> Rendered:
        """The text for exactly these variables, nothing added. `generations` is of transformers: llama.cpp has none.
        Where there is an `allowance`, the steps come off it."""
        _check_context(context)
        run = self._run_of(now, allowance=allowance)
        traced = spans or generations or self._by_part
        if generations:
            run.generations = Generations()

        def render() -> Rendered:
            try:
                adopted = self._dialect.adopt(context, run, spans=traced)
                out = self._run(adopted, run, self._traced_program() if traced else self._program)
                return self._rendered(out, run, spans=spans)
            finally:
                run.settle()
                run.release()

        return self._guarded(render)

    @property
    def generation_prompt_is_last(self) -> bool:
        """Whether the last statement alone reads `add_generation_prompt`, and changes nothing."""
        return self._program.prompt_reads is not None

    def render_generation_prompts(
        self,
        context: Mapping[str, Any],
        values: Iterable[bool | None],
        *,
        now: datetime | float | None = None,
        allowance: Allowance | None = None,
    ) -> dict[bool | None, Rendered | JinjarunError]:
        """What `render_context` gives, or raises, with each of `values` for `add_generation_prompt` (None: without it).

        All but the last statement is rendered once where `generation_prompt_is_last`, and what that reads is plain
        data: an iterator would be another after the first answer.
        """
        _check_context(context)
        moment, asked = resolve_now(now), list(values)
        found = self._render_prompts(context, asked, moment, allowance)
        if found is not None:
            return found
        found = {}
        for value in asked:
            variables = {**context, ADD_GENERATION_PROMPT: value}
            if value is None:
                del variables[ADD_GENERATION_PROMPT]
            try:
                found[value] = self.render_context(variables, now=moment, allowance=allowance)
            except JinjarunError as error:
                found[value] = error.with_traceback(None)
        return found

    def _render_prompts(
        self, context: Mapping[str, Any], values: list[bool | None], now: datetime, allowance: Allowance | None
    ) -> dict[bool | None, Rendered | JinjarunError] | None:
        """The answers with the history rendered once, or None where that might not be what separate renders give."""
        program, dialect = self._program, self._dialect
        if program.prompt_reads is None:
            return None
        reads = program.prompt_reads
        run = self._run_of(now, allowance=allowance)
        *history, prompt = program.statements

        def begin() -> Env:
            adopted = dialect.adopt({**context, ADD_GENERATION_PROMPT: True}, run, spans=self._by_part)
            env = self._started(adopted, run, program)
            _run_all(history, env)
            return env

        def finish(env: Env, value: bool | None) -> Rendered:
            env[ADD_GENERATION_PROMPT] = dialect.undefined(ADD_GENERATION_PROMPT) if value is None else value
            prompt(env)
            return self._rendered(env.out, run, spans=False)

        found: dict[bool | None, Rendered | JinjarunError] = {}
        try:
            env = self._guarded(begin)
            if not is_plain_data([env[name] for name in reads], dialect):
                return None
            written, steps, depth, reached = len(env.out), run.steps, run.depth, bytes(run.reached)
            for value in values:
                del env.out[written:]
                run.steps, run.depth, run.reached[:] = steps, depth, reached
                try:
                    found[value] = self._guarded(partial(finish, env, value))
                except JinjarunError as error:
                    found[value] = error.with_traceback(None)
                run.take_off(steps - run.steps)
            run.steps = steps
        except InputError:
            return None
        except JinjarunError as error:
            return dict.fromkeys(values, error.with_traceback(None))
        finally:
            run.settle()
            run.release()
        return found

    def trace_context(
        self,
        context: Mapping[str, Any],
        trace: Trace,
        *,
        now: datetime | float | None = None,
        allowance: Allowance | None = None,
    ) -> Traced:
        """A render that fills `trace`; raises only what is wrong with the context."""
        run = self._run_of(now, trace, allowance)
        adopted = self._guarded(lambda: self._dialect.adopt(context, run, spans=True))

        def render() -> str:
            return self._rendered(self._run(adopted, run, self._traced_program()), run, spans=False).text

        try:
            return Traced(adopted, self._guarded(render), None, run)
        except JinjarunError as error:
            return Traced(adopted, None, error.with_traceback(None), run)
        finally:
            run.settle()

    def _run_of(
        self, now: datetime | float | None, trace: Trace | None = None, allowance: Allowance | None = None
    ) -> Run:
        branches = len(self._program.branches)
        return Run(self.limits, resolve_now(now), self._dialect.undefined, branches, trace=trace, allowance=allowance)

    def _traced_program(self) -> Program:
        if self._traced is None:
            self._traced = self._compile(traced=True)
        return self._traced

    def _compile(self, *, traced: bool) -> Program:
        return compile_template(self._tree, self._dialect, self.limits, traced=traced)

    def _guarded(self, work: Callable[[], T]) -> T:
        return run_with_room(self.limits, work)

    def _run(self, adopted: dict[str, Any], run: Run, program: Program) -> list[str]:
        env = self._started(adopted, run, program)
        _run_all(program.statements, env)
        return env.out

    def _started(self, adopted: dict[str, Any], run: Run, program: Program) -> Env:
        """The variables of a render before its first statement, which is charged for."""
        env = Env(self._dialect.globals())
        env.update(adopted)
        if ADD_GENERATION_PROMPT not in env:  # so that what scopes cost does not depend on it
            env[ADD_GENERATION_PROMPT] = self._dialect.undefined(ADD_GENERATION_PROMPT)
        env.run = run
        if "self" in program.names:
            self._dialect.name_blocks(env, program.blocks)
            run.hold(env)
        run.root = env
        run.depth = program.height
        for name in program.masked:
            env.pop(name, None)
        out = env.capture()
        if run.generations is not None:
            run.generations.top_level = out
        run.charge(program.cost)
        return env

    def _rendered(self, out: list[str], run: Run, *, spans: bool) -> Rendered:
        size = sum(map(len, out))
        if size > run.limits.output_bytes:
            raise run.exceeded("output_bytes")
        run.charge(size // 16)
        joined = "".join(out)
        data = self._dialect.encode(joined)
        if len(data) > run.limits.output_bytes:
            raise run.exceeded("output_bytes")
        text = joined if len(data) == size and joined.isascii() else data.decode("utf-8", "replace")
        found = self._spans(out) if spans else ()
        places = None if run.generations is None else tuple(run.generations.spans)
        return Rendered(text, data, found, run.spent, bytes(run.reached), places)

    def _spans(self, out: list[str]) -> tuple[Span, ...]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        stretches: list[tuple[Origin, list[str]]] = []
        parts = [part for text in out for part in parts_of(text)]
        cut = False  # the piece before ended inside a character
        for i, (piece, origin) in enumerate(parts, 1):
            if cut or not piece.isascii():
                piece = decoder.decode(self._dialect.encode(piece), final=i == len(parts))
                cut = bool(decoder.getstate()[0])
            if piece and stretches and stretches[-1][0] == origin:
                stretches[-1][1].append(piece)
            elif piece:
                stretches.append((origin, [piece]))
        spans: list[Span] = []
        start = 0
        for origin, texts in stretches:
            text = "".join(texts)
            end = start + len(text)
            spans.append(Span(start, end, text, origin.is_input, origin.place))
            start = end
        return tuple(spans)


def _run_all(statements: Sequence[Callable[[Env], Any]], env: Env) -> None:
    for statement in statements:
        statement(env)


def _check_context(context: Any) -> None:
    if not isinstance(context, Mapping):
        raise InputError(f"a context is a mapping, not {type(context).__name__}", path="context")


def check_conversation(messages: Any, tools: Any) -> None:
    """Raises InputError unless `messages` is a list of objects and `tools` a list or None."""
    if not isinstance(messages, (list, tuple)):
        raise InputError(f"messages must be a list, not {type(messages).__name__}", path="messages")
    for i, message in enumerate(messages):
        if not isinstance(message, dict):
            raise InputError(f"messages[{i}] must be an object, not {type(message).__name__}", path=f"messages[{i}]")
    if tools is not None and not isinstance(tools, (list, tuple)):
        raise InputError(f"tools must be a list, not {type(tools).__name__}", path="tools")
