"""What transformers 5.24 makes of a conversation: `tokenizer.apply_chat_template(..., tokenize=False)`.

It chooses among the model's templates, drops null keys of messages, gives reasoning all its names, turns functions into
schemas, renders, and cuts the text where a final message is to be continued. Facts: tokenization_utils_base.py
(apply_chat_template, get_chat_template) and utils/chat_template_utils.py (render_jinja_template).

Stricter than transformers: data is plain JSON, so dataclasses, pydantic models, media and Conversation objects are
refused, and tuples become lists. One conversation a call.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jinjarun.errors import InputError, RenderError, SourceError, quote
from jinjarun.limits import Limits
from jinjarun.serving import reworks
from jinjarun.serving.cache import Renderer, cached_template
from jinjarun.serving.python_tools import FunctionFault, function_tool
from jinjarun.template import Rendered, Span, Template

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    Tool = dict[str, Any] | Callable[..., Any]

__all__ = ["REWORKS", "VERSION", "Applied", "Rework", "apply_chat_template", "explain_chat_template"]

VERSION = "5.24"

MESSAGES_KEPT = frozenset({"5.19", "5.20"})
"""Versions that hand messages on as they are: null keys stay, and reasoning keeps the one name that it came with."""
VERSIONS = MESSAGES_KEPT | {VERSION}
"""Versions whose difference is known, from recorded answers of vLLM (5.20.2) and SGLang (5.19.0)."""

REWORKS = {
    "template-given": "the call brings a template of its own, which replaces the model's",
    "template-named": "the call names one of the model's templates",
    "tool-use-template": "the call offers tools, and the model has a template of its own for that",
    "function-described": "a Python function becomes a JSON schema by its type hints and its docstring",
    "null-passed": "templates get tools and documents in any case, null where the call has none",
    "none-keys-dropped": "a null key of a message is left out, because templates print it or fail on it",
    "reasoning-names-filled": "templates read reasoning as reasoning_content or thinking, so it gets both names",
    "final-message-marked": "a marker is put behind the text to continue, to find where the template wrote it",
    "final-message-continued": "the prompt ends where the final message does, for the model to go on",
}
"""Name of a rework -> why transformers does it."""

REASONING = ("reasoning_content", "thinking", "reasoning")
"""Keys under which a message's reasoning is found, the first that is there winning."""

OWN_VARIABLES = ("messages", "tools", "documents", "add_generation_prompt")
NOT_CONTINUED = (
    "continue_final_message is set but the final message does not appear in the chat after applying the chat template! "
    "This can happen if the chat template deletes portions of the final message. Please verify the chat template and "
    "final message in your chat to ensure they are compatible."
)
"""What transformers says where the template does not write the message to be continued."""
MARKER = "CONTINUE_FINAL_MESSAGE_TAG "
"""Put behind the text to be continued. A template that trims the text takes the space away."""


@dataclass(frozen=True, slots=True)
class Rework(reworks.Rework):
    """A row of this module's REWORKS applied at `path`: a place in the call's data, "template" or "prompt"."""

    @property
    def why(self) -> str:
        return REWORKS[self.name]


@dataclass(frozen=True, slots=True)
class Applied:
    """A prompt and how it came about.

    `template`: which of the model's templates was taken, None where the call brought one. `assistant_spans`: the places
    `(start, end)` of `{% generation %}` blocks in code points of the text, ends exclusive, in the order in which the
    blocks ended, as transformers has them before it maps them to tokens; None unless asked for. `rendered` is the
    template's own text, of which `text` is the beginning.
    """

    text: str
    template: str | None
    reworks: tuple[Rework, ...]
    assistant_spans: tuple[tuple[int, int], ...] | None
    rendered: Rendered

    @property
    def spans(self) -> tuple[Span, ...]:
        """The origins of the text; empty unless asked for."""
        end = len(self.text)
        cut = (span for span in self.rendered.spans if span.start < end)
        return tuple(
            span
            if span.end <= end
            else Span(span.start, end, span.text[: end - span.start], span.is_input, span.origin)
            for span in cut
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON: what `--explain` lists."""
        return {
            "version": VERSION,
            "prompt": self.text,
            "template": self.template,
            "assistant_spans": None if self.assistant_spans is None else [list(span) for span in self.assistant_spans],
            "reworks": [rework.to_dict() for rework in self.reworks],
        }


def apply_chat_template(
    source: str | Mapping[str, str],
    messages: Sequence[dict[str, Any]],
    *,
    tools: Sequence[Tool] | None = None,
    documents: Sequence[dict[str, Any]] | None = None,
    chat_template: str | None = None,
    add_generation_prompt: bool = False,
    continue_final_message: bool | str = False,
    bos_token: str | None = None,
    eos_token: str | None = None,
    now: datetime | float | None = None,
    limits: Limits | None = None,
    **variables: Any,
) -> str:
    """The prompt that transformers 5.24 writes for a conversation.

    `source` is the model's template, or its templates by name. `bos_token` and `eos_token` are None where the tokenizer
    has none, and then undefined in the template; its other special tokens (`pad_token`, `image_token`, ...) are given
    by their names like any variable. See `explain_chat_template` for the rest.
    """
    return explain_chat_template(
        source,
        messages,
        tools=tools,
        documents=documents,
        chat_template=chat_template,
        add_generation_prompt=add_generation_prompt,
        continue_final_message=continue_final_message,
        special_tokens={"bos_token": bos_token, "eos_token": eos_token},
        variables=variables,
        now=now,
        limits=limits,
    ).text


def explain_chat_template(
    source: str | Mapping[str, str],
    messages: Sequence[dict[str, Any]],
    *,
    tools: Sequence[Tool] | None = None,
    documents: Sequence[dict[str, Any]] | None = None,
    chat_template: str | None = None,
    add_generation_prompt: bool = False,
    continue_final_message: bool | str = False,
    return_assistant_tokens_mask: bool = False,
    special_tokens: Mapping[str, str | None] | None = None,
    variables: Mapping[str, Any] | None = None,
    now: datetime | float | None = None,
    limits: Limits | None = None,
    spans: bool = False,
    render: Renderer = Template.render_context,
    version: str = VERSION,
) -> Applied:
    """The prompt that transformers 5.24, or another of VERSIONS, writes for a conversation, and what it changed.

    `tools` are JSON schemas, passed as they are, or Python functions with type hints and a Google docstring.
    `chat_template` is the name of one of several templates, or else the text of another one. `continue_final_message`
    ends the prompt inside the last message's content, or inside the key that it names (`reasoning_content`).
    `return_assistant_tokens_mask` asks for `assistant_spans`, `spans` for `spans`. `special_tokens` go by names such as
    `bos_token`, None where the tokenizer has none; `variables` come after them and win. `now` is an aware datetime, a
    naive one (the wall clock), a Unix timestamp (read as UTC) or None for this moment. `render` renders the template.

    Raises InputError with `path` for data that transformers refuses or that is not plain JSON, SourceError where there
    are several templates and none is the default, RenderError where the template does not write the final message as
    it is, and whatever the template fails with.
    """
    check_version(version)
    call = _Call([], keeps_messages=version in MESSAGES_KEPT)
    name, text = call.choose(source, chat_template, has_tools=tools is not None)
    chat = call.read_messages(messages)
    if continue_final_message and add_generation_prompt:
        raise InputError(
            "continue_final_message and add_generation_prompt exclude each other", path="continue_final_message"
        )
    if continue_final_message and return_assistant_tokens_mask:
        raise InputError(
            "continue_final_message and return_assistant_tokens_mask exclude each other", path="continue_final_message"
        )
    context: dict[str, Any] = {
        **{token: text for token, text in (special_tokens or {}).items() if text is not None},
        **call.read_variables(variables),
        "messages": chat,
        "tools": call.read_tools(tools),
        "documents": call.read_documents(documents),
        "add_generation_prompt": add_generation_prompt,
    }
    continued = None
    if continue_final_message:
        continued = call.mark_final_message(
            chat, continue_final_message if isinstance(continue_final_message, str) else "content", text
        )
    template = cached_template(text, "transformers", limits if limits is not None else Limits())
    rendered = render(template, context, now=now, spans=spans, generations=return_assistant_tokens_mask)
    prompt = rendered.text if continued is None else call.cut(rendered.text, continued)
    return Applied(prompt, name, tuple(call.reworks), rendered.generations, rendered)


def check_version(version: str) -> None:
    """Raises InputError for a version of transformers that is not one of VERSIONS."""
    if version not in VERSIONS:
        known = ", ".join(sorted(VERSIONS))
        raise InputError(f"transformers {quote(version)} is not known here; known are {known}", path="transformers")


@dataclass(frozen=True, slots=True)
class _Call:
    """The steps of one call, in the order of transformers; each notes what it changed."""

    reworks: list[Rework]
    keeps_messages: bool

    def note(self, name: str, path: str) -> None:
        self.reworks.append(Rework(name, path))

    def choose(self, source: str | Mapping[str, str], wanted: str | None, *, has_tools: bool) -> tuple[str | None, str]:
        """Name and text of the template. No tools but an empty list of them counts as tools here."""
        if wanted is not None and not isinstance(wanted, str):
            raise InputError(f"chat_template is a str, not {type(wanted).__name__}", path="chat_template")
        templates = source if isinstance(source, Mapping) else {"default": source}
        if wanted is not None:
            if not isinstance(source, Mapping) or wanted not in source:
                self.note("template-given", "template")
                return None, wanted
            self.note("template-named", "template")
            name = wanted
        elif has_tools and "tool_use" in templates:
            self.note("tool-use-template", "template")
            name = "tool_use"
        elif "default" in templates:
            name = "default"
        else:
            names = ", ".join(quote(name) for name in sorted(map(str, templates))) or "none"
            raise SourceError(
                f"no template is called default and the call names none; there are: {names}",
                path="source",
                reason="has no default template",
            )
        text = templates[name]
        if not isinstance(text, str):
            raise InputError(f"a template is a str, not {type(text).__name__}", path="source")
        return name, text

    def read_messages(self, messages: Any) -> list[dict[str, Any]]:
        """New messages, without null keys, reasoning under all its names."""
        if not isinstance(messages, (list, tuple)):
            raise InputError(f"messages must be a list, not {type(messages).__name__}", path="messages")
        if not messages:
            raise InputError("messages must not be empty", path="messages")
        return [self.read_message(message, f"messages[{i}]") for i, message in enumerate(messages)]

    def read_message(self, message: Any, path: str) -> dict[str, Any]:
        if isinstance(message, (list, tuple)) or hasattr(message, "messages"):
            raise InputError(f"{path} is a conversation of its own: call once for each", path=path)
        if not isinstance(message, dict):
            raise InputError(f"{path} must be an object, not {type(message).__name__}", path=path)
        if self.keeps_messages:
            return dict(message)
        read = {}
        for key, value in message.items():
            if value is None:
                self.note("none-keys-dropped", f"{path}.{key}")
            else:
                read[key] = value
        reasoning = next((read[key] for key in REASONING if key in read), None)
        if reasoning is None:
            return read
        for key in REASONING[:2]:
            if key not in read:
                self.note("reasoning-names-filled", f"{path}.{key}")
        return {"thinking": reasoning, **read, "reasoning_content": reasoning}

    def read_variables(self, variables: Mapping[str, Any] | None) -> dict[str, Any]:
        if variables is None:
            return {}
        if not isinstance(variables, Mapping):
            raise InputError(f"variables are an object, not {type(variables).__name__}", path="variables")
        read = dict(variables)
        for name in OWN_VARIABLES:
            if name in read:
                raise InputError(f"{name} is a parameter of its own and no variable", path=name)
        return read

    def read_tools(self, tools: Any) -> list[dict[str, Any]] | None:
        if tools is None:
            self.note("null-passed", "tools")
            return None
        if not isinstance(tools, (list, tuple)):
            raise InputError(f"tools must be a list, not {type(tools).__name__}", path="tools")
        return [self.read_tool(tool, f"tools[{i}]") for i, tool in enumerate(tools)]

    def read_tool(self, tool: Any, path: str) -> dict[str, Any]:
        if isinstance(tool, dict):
            return tool
        if not inspect.isfunction(tool) and not inspect.ismethod(tool):
            raise InputError(f"{path} must be a JSON schema or a function, not {type(tool).__name__}", path=path)
        try:
            schema = function_tool(tool)
        except FunctionFault as fault:
            raise InputError(f"{path} cannot become a JSON schema: {fault}", path=path) from None
        self.note("function-described", path)
        return schema

    def read_documents(self, documents: Any) -> list[dict[str, Any]] | None:
        if documents is None:
            self.note("null-passed", "documents")
            return None
        if not isinstance(documents, (list, tuple)):
            raise InputError(f"documents must be a list, not {type(documents).__name__}", path="documents")
        for i, document in enumerate(documents):
            if not isinstance(document, dict):
                path = f"documents[{i}]"
                raise InputError(f"{path} must be an object, not {type(document).__name__}", path=path)
        return list(documents)

    def mark_final_message(self, chat: list[dict[str, Any]], key: str, source: str) -> str:
        """Puts the marker behind the text under `key` of the last message and gives that text.

        Reasoning is marked under all of its names that hold the same: nobody knows which one the template reads.
        """
        final, path = chat[-1], f"messages[{len(chat) - 1}].{key}"
        value = final.get(key)
        if value is None:
            raise InputError(f"there is no {path} to continue", path=path)
        keys = [key]
        if key in REASONING:
            keys = [other for other in REASONING if _same(final.get(other), value)]
        if not any(other in source for other in keys):
            said = f'continue_final_message is set to "{key}" but this is not an accepted field in the chat_template'
            raise InputError(
                f"the template does not read {key}, so {path} cannot be continued", path=path, engine_text=said
            )
        if isinstance(value, (list, tuple)):
            text, value = _mark_last_text(value, path)
        elif isinstance(value, str):
            text, value = value, value + MARKER
        else:
            raise InputError(f"{path} is no text to continue, but {type(value).__name__}", path=path)
        for other in keys:
            final[other] = value
        self.note("final-message-marked", path)
        return text

    def cut(self, text: str, continued: str) -> str:
        """The rendered text up to the marker; without the space before it, if the template trimmed the message."""
        at = text.rfind(MARKER.rstrip())
        if at < 0 or continued.strip() not in text:
            raise RenderError(
                "the template does not write the final message as it is, so it cannot be continued",
                status=400,
                engine_text=NOT_CONTINUED,
            )
        self.note("final-message-continued", "prompt")
        return text[:at] if text.startswith(MARKER, at) else text[:at].rstrip()


def _same(value: Any, other: Any) -> bool:
    return value is other or (isinstance(value, str) and value == other)


def _mark_last_text(parts: Sequence[Any], path: str) -> tuple[str, list[Any]]:
    """The last text among content parts, and the parts with the marker behind it."""
    for i in reversed(range(len(parts))):
        part, place = parts[i], f"{path}[{i}]"
        if not isinstance(part, (dict, list, tuple, str)):
            raise InputError(f"{place} must be an object, not {type(part).__name__}", path=place)
        if "text" not in part:
            continue
        if not isinstance(part, dict) or not isinstance(part["text"], str):
            raise InputError(f"{place} has no text to continue", path=place)
        return part["text"], [*parts[:i], {**part, "text": part["text"] + MARKER}, *parts[i + 1 :]]
    raise InputError(f"{path} has no text part to continue", path=path)
