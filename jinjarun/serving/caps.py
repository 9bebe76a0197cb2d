"""llama.cpp's nine `chat_template_caps`, by its method: conversations are rendered with usage statistics on, and what
the template did with their values decides (common/jinja/caps.cpp, build b11434). Quirks are kept: the answers are
those of llama-server's `/props`, right or wrong; `probes` judges for itself.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from jinjarun.errors import LimitExceeded, RenderError
from jinjarun.limits import Allowance
from jinjarun.runtime.trace import Trace
from jinjarun.template import Template

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinjarun.limits import Limits

BUILD = "b11434"


@dataclass(frozen=True, slots=True)
class Caps:
    """What llama.cpp believes that a template supports."""

    supports_object_arguments: bool
    supports_parallel_tool_calls: bool
    supports_preserve_reasoning: bool
    supports_reasoning_effort: bool
    supports_string_content: bool
    supports_system_role: bool
    supports_tool_calls: bool
    supports_tools: bool
    supports_typed_content: bool

    def to_dict(self) -> dict[str, bool]:
        """The object that `/props` has under `chat_template_caps`, keys in alphabetical order."""
        return asdict(self)


def preserve_reasoning_variables(enabled: bool) -> dict[str, bool]:
    """The variables by which known templates keep reasoning in the history, all set together."""
    return {
        "preserve_thinking": enabled,
        "clear_thinking": not enabled,
        "truncate_history_thinking": not enabled,
        "drop_thinking": not enabled,
    }


def reasoning_effort_variables(effort: str) -> dict[str, str]:
    return {"reasoning_effort": effort, "reasoning_strength": effort}


def chat_template_caps(source: str, limits: Limits | None = None) -> Caps:
    """Raises JinjarunError where llama.cpp fails to load the template too, and LimitExceeded where a render hit a
    limit: then nothing is known."""
    return template_caps(Template(source, "llama.cpp", limits))


class UsageRender:
    """One render with statistics; its steps come off `allowance` where there is one."""

    def __init__(
        self,
        template: Template,
        messages: list[Any],
        tools: list[Any],
        variables: dict[str, Any],
        allowance: Allowance | None = None,
    ) -> None:
        context = {
            "messages": messages,
            "tools": tools,
            "bos_token": "",
            "eos_token": "",
            "add_generation_prompt": True,
            **variables,
        }
        self.trace = Trace()
        self.traced = template.trace_context(context, self.trace, now=0, allowance=allowance)
        self.error = self.traced.error
        if isinstance(self.error, LimitExceeded):
            raise self.error.answered_with(self.error.status)  # a copy: its traceback holds this object
        self.text = self.traced.text or ""
        self.succeeded = self.error is None

    def value(self, *path: Any) -> Any:
        value: Any = self.traced.context
        for key in path:
            try:
                value = value[key]
            except (LookupError, TypeError):
                raise RenderError(f"the template took away what llama.cpp looks into for {key!r}") from None
        return value

    def used(self, *path: Any) -> bool:
        return self.trace.was_used(self.value(*path))

    def as_array(self, *path: Any) -> bool:
        value = self.value(*path)
        return self.trace.had(value, "selectattr") or self.trace.had(value, "array_access")


MARKER = "STRING_MARKER"
REASONING = "<REASONING_CONTENT_PLACEHOLDER>"
USER = {"role": "user", "content": "User message"}
TOOLS = [
    {
        "name": "tool",
        "type": "function",
        "function": {
            "name": "tool1",
            "description": "Tool description",
            "parameters": {
                "type": "object",
                "properties": {"arg": {"type": "string", "description": "Arg description"}},
                "required": ["arg"],
            },
        },
    }
]
OBJECT_ARGUMENTS = {"arg": "value"}
STRING_ARGUMENTS = '{"arg": "value"}'


def tool_conversation(arguments: Any, calls: int) -> list[dict[str, Any]]:
    return [
        USER,
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "id": f"call0000{i + 1}",
                    "type": "function",
                    "function": {"name": "tool1", "arguments": arguments},
                }
                for i in range(calls)
            ],
        },
        {"role": "tool", "content": "Tool response", "tool_call_id": "call00001"},
        {"role": "assistant", "content": "The tool response was 'tool response'"},
        USER,
    ]


def template_caps(template: Template) -> Caps:
    """The caps of a template that was loaded in the dialect of llama.cpp. All its renders together may take the steps
    of one: on real templates they take up to 19,000."""
    allowance = Allowance("caps_steps", template.limits.steps)

    def render(
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None = None,
        variables: dict[str, Any] | None = None,
    ) -> UsageRender:
        return UsageRender(template, messages, tools or [], variables or {}, allowance)

    string_content, typed_content = _content(render)
    system = render([{"role": "system", "content": "System message"}, USER])
    tools, tool_calls, object_arguments = _tools(render)

    arguments = OBJECT_ARGUMENTS if object_arguments else STRING_ARGUMENTS
    parallel = render(tool_conversation(arguments, 2), TOOLS)
    second_call = ("messages", 1, "tool_calls", 1, "function")

    answer = {"role": "assistant", "content": "Assistant message"}
    reasoning = render(
        [
            USER,
            {**answer, "reasoning_content": REASONING},
            USER,
            {**answer, "reasoning_content": "Reasoning content"},
            USER,
        ],
        variables={"enable_thinking": True, **preserve_reasoning_variables(enabled=True)},
    )
    effort = render([USER], variables={"enable_thinking": True, **reasoning_effort_variables("low")})
    effort_used = effort.used("reasoning_effort") or effort.used("reasoning_strength")
    return Caps(
        supports_object_arguments=object_arguments,
        supports_parallel_tool_calls=parallel.succeeded and parallel.used(*second_call),
        supports_preserve_reasoning=REASONING in reasoning.text,
        supports_reasoning_effort=effort_used,
        supports_string_content=string_content,
        supports_system_role=system.used("messages", 0, "content"),
        supports_tool_calls=tool_calls,
        supports_tools=tools,
        supports_typed_content=typed_content,
    )


def _content(render: Callable[..., UsageRender]) -> tuple[bool, bool]:
    """Whether content may be a string, and whether it may be a list of parts."""
    content = ("messages", 0, "content")
    string = render([{"role": "user", "content": MARKER}])
    typed: bool = string.as_array(*content)
    as_string = string.succeeded and not (typed and MARKER not in string.text)
    if string.trace.had(string.value(*content), "test_is_string"):
        parts = render([{"role": "user", "content": []}])
        typed = typed or (parts.succeeded and parts.as_array(*content))
    return as_string, typed


def _tools(render: Callable[..., UsageRender]) -> tuple[bool, bool, bool]:
    """Whether tools, and calls, and arguments as an object are supported."""
    name = ("tools", 0, "function", "name")
    calls = ("messages", 1, "tool_calls")
    tools = tool_calls = True
    with_object = render(tool_conversation(OBJECT_ARGUMENTS, 1), TOOLS)
    if with_object.succeeded:
        tools = with_object.used(*name)
        tool_calls = with_object.used(*calls)
        if tool_calls and with_object.used(*calls, 0, "function", "arguments", "arg"):
            return tools, tool_calls, True
    with_string = render(tool_conversation(STRING_ARGUMENTS, 1), TOOLS)
    if not with_string.succeeded:
        return False, False, False
    return tools and with_string.used(*name), tool_calls and with_string.used(*calls), False
