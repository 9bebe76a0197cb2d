"""The report as data: what `probe` answers, and the JSON that every reporter writes.

Every key is always there; null means that it does not apply, "unknown" that it could not be judged, and then
`not_evaluated` says why. Offsets and sizes are Unicode code points unless a key says bytes; lines are 1-based. Nothing
depends on the terminal, the locale or the clock: the same input gives the same bytes.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticSerializationError

SCHEMA_VERSION = "1.0"
RULE_SET = "2026.1"
FROZEN_CLOCK = "2025-11-24T00:00:00Z"
FROZEN_NOW = 1763942400
"""The moment of FROZEN_CLOCK as a Unix timestamp: the `now` of every render of a probe unless the caller gives one."""

Answer = Literal["yes", "no", "unknown"]
Severity = Literal["error", "warning", "info"]
Path = Literal[
    "transformers:raw",
    "llama.cpp:raw",
    "llama.cpp:llama-server",
    "transformers:apply_chat_template",
    "vllm:chat-completions",
    "sglang:chat-completions",
]


class Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def json_text(self, *, indent: int | None = None, exclude_none: bool = False) -> str:
        """This as JSON. UTF-8 has no lone surrogates (a file's name may hold some): where there are any, all that is
        not ASCII is written as JSON's escapes."""
        try:
            return self.model_dump_json(indent=indent, exclude_none=exclude_none)
        except PydanticSerializationError:
            separators = (",", ":") if indent is None else None
            return json.dumps(self.model_dump(exclude_none=exclude_none), indent=indent, separators=separators)


class ToolInfo(Model):
    """What made the report."""

    name: str
    version: str
    conversation_set: str
    rule_set: str
    frozen_clock: str


class TemplateSource(Model):
    """Where the template was found: a kind of source, its path, the key inside it, a revision."""

    kind: str
    path: str | None = None
    key: str | None = None
    revision: str | None = None


class Family(Model):
    """The known format whose shape the template has."""

    name: str
    match: Literal["shape", "text"]
    superseded_by: str | None = None


class TemplateInfo(Model):
    name: str | None
    variant: str
    sha256: str
    bytes: int
    lines: int
    source: TemplateSource | None
    family: Family | None


class Failure(Model):
    """An error as a report keeps it."""

    type: str
    message: str
    line: int | None = None
    column: int | None = None


class EngineStatus(Model):
    """How one engine on one path fares with the synthetic conversations: `rendered` of `of`."""

    id: Literal["transformers", "llama.cpp", "vllm", "sglang"]
    version: str
    path: Literal["raw", "llama-server", "apply_chat_template", "chat-completions"]
    loads: bool
    rendered: int
    of: int
    error: Failure | None


class CapsChapter(Model):
    """llama.cpp's own nine flags; null where llama.cpp does not load the template, and then `error` says why."""

    engine: str
    version: str
    error: Failure | None
    flags: dict[str, bool] | None


class Observation(Model):
    """Our own answer to one question; `by_path` holds only paths that answer otherwise."""

    answer: Answer
    by_path: dict[str, Answer] = Field(default_factory=dict)
    reason: str
    evidence: list[str] = Field(default_factory=list)
    differs_from_caps: str | None = None


class Variable(Model):
    """A variable of the caller that the template reads, and what it does."""

    name: str
    kind: Literal["boolean", "string", "number", "object", "unknown"]
    when_absent: str
    tested: list[Any] = Field(default_factory=list)
    effect: str
    note: str | None = None


class Raise(Model):
    """A message of the template's own, and the input that triggers it."""

    message: str
    line: int | None
    triggered_by: str | None


class ReasoningInput(Model):
    fields: list[str]
    inline_tags_in_content: Literal["recognised", "plain_text", "unknown"]


class ToolArguments(Model):
    """What each form of tool-call arguments gives: `native`, `same_text`, `other_text`, `raises` or `unsupported`."""

    object: str
    json_string: str
    preferred: Literal["object", "json_string", "either", "none"]


class Contract(Model):
    """What the template accepts."""

    roles: dict[str, str]
    alternation_required: bool | None
    needs_user_turn: bool | None
    empty_conversation: dict[str, str]
    content: dict[str, str]
    tool_arguments: ToolArguments
    tool_call_id_length: int | None
    empty_tools_list: Literal["same_as_absent", "differs", "unknown"]
    empty_tool_calls_list: Literal["same_as_absent", "differs", "unknown"]
    reasoning_input: ReasoningInput
    variables: list[Variable]
    required_variables: list[str]
    raises: list[Raise]


class Bos(Model):
    """How often the template writes the BOS token, and where first."""

    written: int
    at: int | None


class Turn(Model):
    """The text around one role's turn; `between` two tool results, `rendered_as` where another role's turn is used."""

    open: str
    close: str
    trims_content: bool | None = None
    between: str | None = None
    rendered_as: str | None = None


class GenerationVariant(Model):
    kwargs: dict[str, Any]
    text: str
    starts_in_reasoning: bool


class GenerationPrompt(Model):
    text: str
    equals_suffix_difference: bool
    starts_in_reasoning: bool
    variants: list[GenerationVariant]


class EndOfTurn(Model):
    text: str | None
    after_plain_answer: bool | None
    after_tool_calls: bool | None


class SystemShape(Model):
    placement: str
    default_text: str | None
    header_without_system: bool
    with_tools: str | None


class ToolsShape(Model):
    placement: str
    encoding: str
    open: str
    close: str


class ToolCallShape(Model):
    style: str
    open: str
    between: str | None
    close: str
    name_key: str | None
    arguments_key: str | None
    arguments_encoding: str
    id_written: bool


class ReasoningShape(Model):
    open: str
    close: str
    history: str
    switches: list[str]
    empty_block_written: str | None


class Clock(Model):
    """Where today's date stands in the prompt."""

    at: int
    resolution: Literal["day", "hour", "minute", "second"]
    pinned_by: str | None
    line: int | None


class Shape(Model):
    """What the template writes, found from differences between renders."""

    bos: Bos
    turns: dict[str, Turn]
    generation_prompt: GenerationPrompt | None
    end_of_turn: EndOfTurn
    system: SystemShape | None
    tools: ToolsShape | None
    tool_call: ToolCallShape | None
    reasoning: ReasoningShape | None
    channels: list[str]
    recipients: list[str]
    clock: Clock | None


class Declared(Model):
    """Stop tokens as the files declare them."""

    eos_token: str | None
    generation_config: list[str] | None
    llama_cpp_eog: list[str] | None


class Stop(Model):
    """Whether generation can stop: what ends an assistant turn, against each engine's stop set."""

    written: list[str]
    declared: Declared
    by_engine: dict[str, Literal["stops", "never_stops", "unknown"]]
    client_should_set: list[str]


class TokensChapter(Model):
    available: bool
    not_in_vocabulary: list[str]
    not_single_token: list[str]
    double_bos: dict[str, bool | None]


class Law(Model):
    """One law of prefix stability: `shared` of the `of` code points (or tokens) of the shorter prompt are kept.
    `remedy`: variables with which a broken law holds; None where none are known."""

    law: str
    holds: bool | None
    shared: int | None
    of: int | None
    unit: Literal["code_points", "tokens"]
    cause: str | None
    line: int | None
    remedy: dict[str, Any] | None = None
    evidence: list[str] = Field(default_factory=list)


class ToolLoop(Model):
    """What a loop of 20 rounds with tools computes again because the prompt changed before its end."""

    recomputed: int | None
    unit: Literal["code_points", "tokens"]


class Prefix(Model):
    laws: list[Law]
    tool_loop_20_rounds: ToolLoop


class Coverage(Model):
    """Branches of the template that the conversations reached."""

    branches: int
    reached: int
    lines_never_reached: list[int]
    reached_by_rules_only: list[int]


class Finding(Model):
    """A rule that hit. `fingerprint` is stable over runs: code, start of the template's hash, line."""

    code: str
    name: str
    severity: Severity
    engines: list[str]
    not_on: list[str]
    message: str
    line: int | None
    column: int | None
    group: str
    also: list[str]
    evidence: list[str]
    suggestion: str
    fingerprint: str


class Evidence(Model):
    """One render that an answer rests on, with the command that repeats it."""

    conversation: str
    engine: str
    path: str
    outcome: str
    excerpt: str
    span: tuple[int, int] | None
    line: int | None
    repeat: str


class NotEvaluated(Model):
    what: str
    why: str
    how: str | None


class Difference(Model):
    """A conversation that the two dialects render differently: code point of the first difference, both sides."""

    conversation: str
    at: int | None
    transformers: str
    llama_cpp: str
    line: int | None


class Cost(Model):
    """What the probe took: renders made, the most steps that one took."""

    renders: int
    steps_max: int
    isolation: str


class ServingAdvice(Model):
    """How to serve the template with one engine.

    `flags` are for the server's command line. `chat_template_kwargs`: the variables that may be set, at the values that
    the template takes without them. `content_format`: "string" or "openai" (a list of parts), what the template is to
    be given. `stop`: texts that the engine does not know, or is not known to know, as ends of a turn. `send` and
    `avoid` are for who writes requests, `notes` for who runs the server.
    """

    engine: Literal["llama-server", "vllm", "sglang", "transformers"]
    flags: list[str]
    chat_template_kwargs: dict[str, Any]
    content_format: str | None
    stop: list[str]
    send: list[str]
    avoid: list[str]
    notes: list[str]


class ServerDifference(Model):
    """A conversation that a server answers otherwise than the path that this project implements.

    `at` is the first code point at which two prompts part, null where one of them is an error; `server` and `ours`
    quote both sides from a little before it, or the errors.
    """

    conversation: str
    at: int | None
    server: str
    ours: str


class ServerCheck(Model):
    """A running server beside the path `llama.cpp:llama-server` of this project.

    `version` is the build that is implemented, `build` the one that the server says it is. `caps` are the flags that
    differ, as (server's, ours). `adds_bos`, `adds_eos`: what its tokenizer adds, found out from its prompts.
    `days_apart`: how far its date is from the one it was asked with. `note` says what may explain differences.
    """

    url: str
    build: str
    version: str
    equal: bool
    asked: int
    adds_bos: bool
    adds_eos: bool
    days_apart: int
    caps: dict[str, tuple[bool | None, bool | None]]
    differences: list[ServerDifference]
    note: str | None


class ProbeReport(Model):
    """The whole report; `to_json` is its published form."""

    schema_version: str = SCHEMA_VERSION
    status: Literal["complete", "partial", "invalid", "not_evaluated"]
    tool: ToolInfo
    template: TemplateInfo
    engines: list[EngineStatus]
    caps: CapsChapter
    observed: dict[str, Observation]
    contract: Contract | None
    shape: Shape | None
    stop: Stop | None
    tokens: TokensChapter | None
    prefix: Prefix | None
    coverage: Coverage | None
    differences: list[Difference]
    findings: list[Finding]
    serving: list[ServingAdvice]
    evidence: dict[str, Evidence]
    not_evaluated: list[NotEvaluated]
    cost: Cost
    server: ServerCheck | None = None

    def to_json(self, *, indent: int | None = 2) -> str:
        return self.json_text(indent=indent)


def report_schema() -> dict[str, Any]:
    """The JSON Schema of a report."""
    return ProbeReport.model_json_schema()
