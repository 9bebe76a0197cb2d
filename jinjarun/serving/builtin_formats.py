"""The chat formats that are compiled into llama.cpp, and what `--chat-template NAME` makes of their names.

With `--jinja`, which is llama-server's default, a name is no name: every one but "chatml" becomes a template that
writes the name itself. With `--no-jinja` a name chooses a format; templates are not run at all, and tools are refused.
Facts: src/llama-chat.cpp and common/chat.cpp (common_chat_templates_apply_legacy) of build b11434, and its recorded
output for each format.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jinjarun.errors import InputError, SourceError, quote
from jinjarun.limits import Limits
from jinjarun.serving.requests import parse_request
from jinjarun.serving.schemas import SchemaFault, check_schema
from jinjarun.template import Rendered, Template

if TYPE_CHECKING:
    from jinjarun.serving.requests import Message

CHATML = "chatml"

NAMES = (
    *("bailing", "bailing-think", "bailing2", "chatglm3", "chatglm4", "chatml", "command-r", "deepseek"),
    *("deepseek-ocr", "deepseek2", "deepseek3", "exaone-moe", "exaone3", "exaone4", "falcon3", "gemma"),
    *("gigachat", "glmedge", "gpt-oss", "granite", "granite-4.0", "granite-4.1", "grok-2", "hunyuan-dense"),
    *("hunyuan-moe", "hunyuan-vl", "kimi-k2", "llama2", "llama2-sys", "llama2-sys-bos", "llama2-sys-strip"),
    *("llama3", "llama4", "megrez", "minicpm", "mistral-v1", "mistral-v3", "mistral-v3-tekken", "mistral-v7"),
    *("mistral-v7-tekken", "monarch", "openchat", "orion", "pangu-embedded", "phi3", "phi4", "rwkv-world"),
    *("seed_oss", "smolvlm", "solar-open", "vicuna", "vicuna-orca", "yandex", "zephyr"),
)
"""Every name that llama-server knows."""


def _turns(before: str, between: str, after: str, *, opening: str | None = None, trims: str = "") -> str:
    """A template that writes every message as: before, role, between, content, after. `opening` opens the model's turn
    where that is not the start of such a message; `trims` is a condition on `message` under which content is."""
    content = f"{{{{ message.content | trim if {trims} else message.content }}}}" if trims else "{{ message.content }}"
    opened = f"{before}assistant{between}" if opening is None else opening
    return (
        f"{{% for message in messages %}}{before}{{{{ message.role }}}}{between}{content}{after}{{% endfor %}}"
        f"{{% if add_generation_prompt %}}{opened}{{% endif %}}"
    )


GEMMA = """\
{%- set held = namespace(system='') -%}
{%- for message in messages -%}
  {%- if message.role == 'system' -%}
    {%- set held.system = held.system + message.content | trim -%}
  {%- else -%}
    {{- '<start_of_turn>' + ('model' if message.role == 'assistant' else message.role) + '\\n' -}}
    {%- if held.system and message.role != 'assistant' -%}
      {{- held.system + '\\n\\n' -}}
      {%- set held.system = '' -%}
    {%- endif -%}
    {{- message.content | trim + '<end_of_turn>\\n' -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<start_of_turn>model\\n' -}}{%- endif -%}
"""

_LINE = "\n{{ '' }}"
"""A line break that a tag cannot swallow: llama.cpp takes away the one behind a block."""

FORMATS = {
    "chatml": _turns("<|im_start|>", _LINE, f"<|im_end|>{_LINE}"),
    "falcon3": _turns("<|", f"|>{_LINE}", _LINE),
    "gemma": GEMMA,
    "gpt-oss": _turns(
        "<|start|>",
        "<|message|>",
        "{{ '<|return|>' if message.role == 'assistant' else '<|end|>' }}",
        opening="<|start|>assistant",
    ),
    "llama3": _turns("<|start_header_id|>", f"<|end_header_id|>\n{_LINE}", "<|eot_id|>", trims="true"),
    "llama4": _turns("<|header_start|>", f"<|header_end|>\n{_LINE}", "<|eot|>", trims="true"),
    "phi3": _turns("<|", f"|>{_LINE}", f"<|end|>{_LINE}"),
    "phi4": _turns("<|im_start|>", "<|im_sep|>", "<|im_end|>"),
    "seed_oss": _turns("<seed:bos>", _LINE, "<seed:eos>", trims="message.role == 'assistant'"),
    "solar-open": _turns("<|begin|>", "<|content|>", "<|end|>", opening="<|begin|>assistant"),
    "zephyr": _turns("<|", f"|>{_LINE}", f"<|endoftext|>{_LINE}"),
}
"""The formats that are available here -> a template of ours that writes what llama.cpp's code writes."""


def misread_name(text: str) -> str | None:
    """Why a `--chat-template` for the Jinja engine is hardly what was meant, or None where it is."""
    if text == CHATML or "{" in text or "\n" in text:
        return None
    what = f"with --jinja, {quote(text)!r} is no name but a template that writes {quote(text)!r}"
    if text in NAMES:
        return f"{what}; the format of this name needs --no-jinja, a model's own template --chat-template-file"
    near = difflib.get_close_matches(text.lower(), NAMES, 1)
    meant = f"; did you mean --no-jinja and {near[0]!r}" if near else ""
    return f"{what}{meant}; a file is given by --chat-template-file"


@dataclass(frozen=True, slots=True)
class FormatAnswer:
    """A prompt that a compiled format writes. `rendered` is our template's."""

    prompt: str
    data: bytes
    rendered: Rendered


class FormatServer:
    """A llama-server that was started with `--no-jinja --chat-template NAME`.

    Raises SourceError for a name that llama-server does not know, and for a format that is not available here.
    """

    def __init__(self, name: str, *, limits: Limits | None = None) -> None:
        if name not in FORMATS:
            raise _unavailable(name)
        self.name = name
        self.limits = limits if limits is not None else Limits()
        self._template = Template(FORMATS[name], "llama.cpp", self.limits)

    def apply(self, body: Any) -> str:
        """The prompt. Raises JinjarunError with the server's HTTP `status` where the server answers with an error."""
        return self.answer(body).prompt

    def answer(self, body: Any, *, spans: bool = False) -> FormatAnswer:
        fields = body if isinstance(body, dict) else {}
        tools, choice = fields.get("tools"), fields.get("tool_choice")
        if isinstance(tools, list) and tools:
            raise InputError("tools need --jinja", path="tools", status=500)
        if isinstance(choice, str) and choice != "auto":
            raise InputError("tool_choice needs --jinja", path="tool_choice", status=500)
        request = parse_request(body, {}, self.limits)
        messages = [{"role": message.role, "content": _joined(message)} for message in request.messages]
        rendered = self._template.render(messages, add_generation_prompt=request.add_generation_prompt, spans=spans)
        if request.has_schema:
            try:
                check_schema(request.json_schema, self.limits)
            except SchemaFault as fault:
                message = f"json_schema cannot become a grammar: {quote(str(fault))}"
                raise InputError(message, path="json_schema", status=500) from None
        if request.late_fault is not None:
            raise request.late_fault
        return FormatAnswer(rendered.text, rendered.data, rendered)


def _joined(message: Message) -> str:
    text = message.content
    for part in message.parts:
        text += f"\n{part}" if text else part
    return text


def _unavailable(name: str) -> SourceError:
    available = ", ".join(FORMATS)
    if name in NAMES:
        reason = f"the format {name!r} is compiled into llama.cpp and not available here"
        hint = f"available are {available}"
    else:
        reason = f"llama-server knows no format {quote(name)!r}, and with --no-jinja it runs no templates"
        near = difflib.get_close_matches(name.lower(), NAMES, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"available are {available}"
    return SourceError(f"{reason}; {hint}", path=name, reason=reason, hint=hint)
