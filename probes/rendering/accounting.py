"""What becomes of every key of a request, and which of its messages a failing template stumbles over."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jinjarun.errors import JinjarunError, quote
from jinjarun.limits import Limits
from jinjarun.serving.cache import cached_template
from jinjarun.serving.caps import reasoning_effort_variables
from probes.rendering.variables import caller_variables

if TYPE_CHECKING:
    from collections.abc import Mapping

TRANSFORMERS = "transformers"
PROMPT = {"messages": "", "documents": "documents", "tools": "tools"}
"""Keys that become part of the prompt, and the variable by which a template reads them."""
FORM = frozenset({"add_generation_prompt", "continue_final_message", "return_assistant_tokens_mask"})
CHAT_KWARGS = "chat_template_kwargs"
EFFORTS = frozenset({"reasoning_effort", *reasoning_effort_variables("low")})
# fmt: off
GENERATION = frozenset({
    "model", "stream", "stream_options", "temperature", "top_p", "top_k", "min_p", "n", "seed", "stop", "max_tokens",
    "max_completion_tokens", "logprobs", "top_logprobs", "presence_penalty", "frequency_penalty", "repetition_penalty",
    "logit_bias", "user", "response_format", "json_schema", "grammar", "parallel_tool_calls", "reasoning_format",
    "cache_prompt", "n_predict", "metadata", "store",
})
# fmt: on
"""Keys of what is generated from a prompt, or of who asks."""
TRIED = 40
"""Messages of a failing request that are tried one by one at most."""


@dataclass(frozen=True, slots=True)
class Account:
    """What becomes of one key, at `path` in the body."""

    path: str
    what: str


def accounts(engine: str, source: str, body: Any) -> list[Account]:
    """A row for each key of the body and of its `chat_template_kwargs`; `engine` as `--as` names it."""
    if not isinstance(body, dict):
        return []
    reader = _Reader(engine, source)
    rows = []
    for key, value in body.items():
        if key == CHAT_KWARGS and isinstance(value, dict):
            rows += [Account(f"{key}.{name}", reader.variable(name)) for name in value]
        else:
            rows.append(Account(key, reader.key(key, value)))
    return rows


class _Reader:
    """One template behind one engine."""

    def __init__(self, engine: str, source: str) -> None:
        self.engine = engine
        self.source = source
        try:
            dialect = "llama.cpp" if engine == "llama-server" else TRANSFORMERS
            self.names = cached_template(source, dialect, Limits()).names
        except JinjarunError:
            self.names = frozenset()
        self.own = caller_variables(source, self.names)

    def variable(self, name: str) -> str:
        if name in self.names:
            return f"used: the template reads it{self._line(name)}"
        return f"ignored: the template reads no such variable{self._instead()}"

    def key(self, key: str, value: Any) -> str:
        if key == "tool_choice":
            return self._tool_choice(value)
        if key in PROMPT:
            name = PROMPT[key] or key
            return f"used{self._line(name)}" if name in self.names else f"ignored: the template reads no {name}"
        if key in FORM:
            return "used: says how the prompt ends"
        if key == CHAT_KWARGS:
            return "ignored: it must be an object"
        if key == "reasoning_effort":
            read = sorted(EFFORTS & self.names)
            if read:
                return f"used: the template reads {' and '.join(read)}{self._line(read[0])}"
            return f"ignored: the template reads no variable for it{self._instead()}"
        if key == "extra_body":
            return "ignored: it is an argument of OpenAI's Python client; in a request its keys stand at the top level"
        if key in ("thinking", "reasoning") and isinstance(value, dict):
            return f"ignored: other APIs have such an object, this server does not{self._instead()}"
        if key in self.own:
            where = json.dumps({CHAT_KWARGS: {key: value}})
            return f"ignored at the top level, and this template reads it: send {quote(where)}"
        if key in GENERATION:
            return "not of the prompt"
        return "ignored: not read for the prompt"

    def _tool_choice(self, value: Any) -> str:
        if value != "none":
            return "not of the prompt: it guides what may be generated"
        if self.engine == "sglang":
            return "used: the tools are left out of the prompt"
        if self.engine == "vllm":
            return (
                "the tools stay in the prompt, only the parsing of calls is off "
                "(--exclude-tools-when-tool-choice-none leaves them out)"
            )
        return "the tools stay in the prompt, only their grammar and the parsing of calls are off"

    def _line(self, name: str) -> str:
        for number, line in enumerate(self.source.splitlines(), 1):
            if name in line:
                return f", line {number}"
        return ""

    def _instead(self) -> str:
        """What the template reads instead, and where it belongs."""
        return f"; in {CHAT_KWARGS} it reads {', '.join(self.own)}" if self.own else "; it reads none of the caller"


def fault(source: str, render: Callable[[Any], object], body: Any, error: JinjarunError) -> str | None:
    """Which part of a failing request the template stumbles over, and what mends it; None where that is not found.

    `render` renders a body or raises; `error` is what it raised for this one.
    """
    if not isinstance(body, dict) or not isinstance(body.get("messages"), list) or "path" in error.details:
        return None
    messages = body["messages"]
    if not 0 < len(messages) <= TRIED or not all(isinstance(message, dict) for message in messages):
        return None

    if messages[-1].get("role") == "assistant" and body.get("continue_final_message"):
        cut = _cut(source, messages[-1].get("content"))
        if cut is not None:
            return cut

    def fails(tried: Mapping[str, Any]) -> bool:
        try:
            render(tried)
        except JinjarunError as other:
            return other.message == error.message
        return False

    end = next((end for end in range(1, len(messages)) if fails({**body, "messages": messages[:end]})), len(messages))
    at = end - 1
    asked = {**body, "messages": [*messages, {"role": "user", "content": "?"}]}
    if not any(message.get("role") == "user" for message in messages) and not fails(asked):
        return "messages: none is a user's; with one it renders"
    for where, tried in _without(body, messages, end):
        if not fails(tried):
            return where
    return f"messages[{at}]: the first message with which it fails"


def _cut(source: str, content: object) -> str | None:
    """The line of the template that cuts a text at a tag which it holds."""
    for tag in re.findall(r"<[^<>]+>|\[/?[A-Z_]+\]", content) if isinstance(content, str) else ():
        for number, line in enumerate(source.splitlines(), 1):
            if tag in line and re.search(r"\b(?:r?split|replace|r?partition)\b", line):
                return f"line {number} cuts the text of the final message at {tag}"
    return None


def _without(body: Mapping[str, Any], messages: list[Any], end: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The request up to the message at fault less one key of that message, or less one key of the body."""
    at = end - 1
    message = messages[at]
    for key, value in message.items():
        if key == "role":
            continue
        rest = {name: kept for name, kept in message.items() if name != key}
        said = f"messages[{at}].{key} is {quote(json.dumps(value, ensure_ascii=False), 60)}"
        what = "leave the key out" if value in ([], None, {}) else "without this key it renders"
        yield f"{said}: {what}", {**body, "messages": [*messages[:at], rest]}
    for key in body:
        if key != "messages":
            rest = {name: kept for name, kept in body.items() if name != key}
            yield f"{key}: without this key it renders", {**rest, "messages": messages[:end]}
