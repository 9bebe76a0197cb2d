"""What a path gives for a request, and the call of transformers in which both paths end."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from jinjarun.errors import InputError, RenderError
from jinjarun.serving.chat_completions.reworks import ReworkRow, ServerRework
from jinjarun.serving.transformers import Applied, explain_chat_template
from jinjarun.template import Span

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from jinjarun.limits import Limits
    from jinjarun.serving.cache import Renderer
    from jinjarun.serving.chat_completions.contents import ContentFormat
    from jinjarun.serving.chat_completions.reworks import Changes
    from jinjarun.template import Rendered

CALL_PARAMETERS = frozenset(
    {
        *("conversation", "tools", "documents", "chat_template", "add_generation_prompt", "continue_final_message"),
        *("tokenize", "padding", "truncation", "max_length", "return_tensors", "return_dict"),
        *("return_assistant_tokens_mask", "tokenizer_kwargs"),
    }
)
"""Parameters of transformers' `apply_chat_template`: as variables of a request they never reach the template."""

_NUMBERED = re.compile(r"^messages\[(\d+)\]")

NO_VARIABLES = CALL_PARAMETERS | {"messages"}

TRANSFORMERS_SOURCE = "transformers, tokenization_utils_base.py"

NO_MESSAGES = "Cannot apply chat template to an empty conversation. Provide at least one message."
CONTINUES_AND_OPENS = (
    "continue_final_message and add_generation_prompt are not compatible. Use continue_final_message when you want the "
    "model to continue the final message, and add_generation_prompt when you want to add a header that will prompt it "
    "to start a new assistant message instead."
)
MASK_NEEDS_DICT = (
    "`return_assistant_tokens_mask==True` requires `return_dict==True`. Set `return_dict=True` or "
    "`return_assistant_tokens_mask=False`."
)


@dataclass(frozen=True, slots=True)
class PromptAnswer:
    """A prompt and how it came about.

    `content_format` is the one that the messages were made for; `reworks` are rows of the server's table;
    `context` the messages and variables that the template saw; `rendered` its own text, of which the prompt is a part.
    """

    prompt: str
    server: str
    version: str
    content_format: ContentFormat
    reworks: tuple[ServerRework, ...]
    template: str | None
    context: dict[str, Any]
    rendered: Rendered
    spans: tuple[Span, ...]

    @classmethod
    def of(
        cls,
        applied: Applied,
        *,
        server: str,
        version: str,
        content_format: ContentFormat,
        changes: Changes,
        context: dict[str, Any],
        numbers: Sequence[int],
        appended: str = "",
    ) -> PromptAnswer:
        """The prompt that transformers made, with `appended`, which the server writes after it; what transformers
        changed goes behind the server's changes. `numbers` are those that the messages had in the body."""
        own = [
            ServerRework(rework.name, rework.path, ReworkRow(rework.why, TRANSFORMERS_SOURCE))
            for rework in applied.reworks
        ]
        return cls(
            applied.text + appended,
            server,
            version,
            content_format,
            (*changes.found, *own),
            applied.template,
            context,
            applied.rendered,
            _spans(applied, numbers, appended),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON: what `--explain` lists."""
        return {
            "server": self.server,
            "version": self.version,
            "prompt": self.prompt,
            "template": self.template,
            "content_format": self.content_format,
            "reworks": [rework.to_dict() for rework in self.reworks],
        }


@dataclass(frozen=True, slots=True)
class TransformersCall:
    """A call of `tokenizer.apply_chat_template`, all but the messages, tools and variables of a request."""

    source: str | Mapping[str, str]
    special_tokens: Mapping[str, str | None]
    version: str
    now: datetime | float | None
    limits: Limits
    spans: bool
    render: Renderer

    def apply(
        self, messages: list[dict[str, Any]], tools: Any, *, opens: Any, continues: Any, variables: dict[str, Any]
    ) -> Applied:
        """Raises as `explain_chat_template` does, with transformers' own text for a wrong call."""
        if variables.get("return_assistant_tokens_mask"):
            raise InputError(MASK_NEEDS_DICT, path="chat_template_kwargs.return_assistant_tokens_mask")
        if not messages:
            raise InputError(NO_MESSAGES, path="messages")
        if continues and opens:
            raise InputError(CONTINUES_AND_OPENS, path="continue_final_message")
        render = _messages_twice if "messages" in variables else self.render
        return explain_chat_template(
            self.source,
            messages,
            tools=tools,
            documents=variables.get("documents"),
            add_generation_prompt=opens,
            continue_final_message=continues or False,
            special_tokens=self.special_tokens,
            variables={name: value for name, value in variables.items() if name not in NO_VARIABLES},
            now=self.now,
            limits=self.limits,
            spans=self.spans,
            render=render,
            version=self.version,
        )


def _spans(applied: Applied, numbers: Sequence[int], appended: str) -> tuple[Span, ...]:
    """The origins of the prompt, messages by their numbers in the body; what is appended is the message behind them."""
    if not applied.spans:
        return ()

    def in_body(found: re.Match[str]) -> str:
        number = int(found[1])
        return f"messages[{numbers[number] if number < len(numbers) else number}]"

    spans = [replace(span, origin=_NUMBERED.sub(in_body, span.origin)) for span in applied.spans]
    if appended:
        start = len(applied.text)
        spans.append(Span(start, start + len(appended), appended, True, f"messages[{len(numbers)}].content"))
    return tuple(spans)


def _messages_twice(*_: Any, **__: Any) -> Rendered:
    """The render of a call whose variables have messages of their own; the template is loaded before."""
    raise given_twice("messages", "jinja2.environment.Template.render()")


def given_twice(keyword: str, function: str) -> RenderError:
    """What Python says of a keyword that a call has twice."""
    message = f"{function} got multiple values for keyword argument '{keyword}'"
    return RenderError(message, kind="TypeError", keyword=keyword)
