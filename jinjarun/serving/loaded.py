"""A template as llama-server b11434 has it in memory: patched, judged, assigned to a family or analysed."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from jinjarun.errors import RenderError, TemplateRaised
from jinjarun.serving import reworks
from jinjarun.serving.cache import cached_caps, cached_template
from jinjarun.serving.families import family_of
from jinjarun.serving.markers import Analysis, analyze
from jinjarun.serving.reworks import Conversation, Rework

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jinjarun.limits import Limits

CHATML = (
    "{%- for message in messages -%}\n"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}\n"
    "{%- endfor -%}\n"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"
)
"""A template that writes what the server's own one writes."""

EXAMPLE: list[dict[str, Any]] = [{"role": "user", "content": "test"}]
"""The conversation with which the server tries a template when it starts."""


class Loaded:
    """One template. Raises what `Template` raises."""

    def __init__(self, source: str, tokens: Mapping[str, str], limits: Limits) -> None:
        self.template = cached_template(source, "llama.cpp", limits)
        self.source = _as_lexed(source)
        self.family = family_of(self.source)
        self.reworks: tuple[Rework, ...] = ()
        """What was done to the source."""
        self._tokens = tokens
        self._limits = limits
        # A template that reaches a limit does so here, before a dozen renders that judge it.
        self._rendered({"messages": EXAMPLE, "enable_thinking": True, "add_generation_prompt": True})
        self.caps = cached_caps(self.template)

    @cached_property
    def analysis(self) -> Analysis:
        """What the server finds out about a template that has no family."""
        return analyze(self.source, self._try, self._limits, supports_tool_calls=self.caps.supports_tool_calls)

    @property
    def thinks(self) -> bool:
        """Whether the server takes the model for a thinking one."""
        return self.analysis.markers.thinks if self.family is None else self.family.is_thinking(self.source)

    @property
    def failure_status(self) -> int:
        """The HTTP status that the server gives to a failure of this template."""
        return 400 if self.family is None else 500

    def _try(self, variables: dict[str, Any]) -> bytes | None:
        """A render of the server's analysis: no variables but these, and failing is an answer too."""
        messages = [dict(message) for message in variables["messages"]]
        chat = Conversation(messages, [""] * len(messages))
        reworks.fit_content(chat, self.caps)
        return self._rendered({**variables, "messages": messages})

    def _rendered(self, variables: dict[str, Any]) -> bytes | None:
        try:
            return self.template.render_context({**self._tokens, **variables}, now=0).data
        except (RenderError, TemplateRaised):
            return None


def load_default(source: str, tool_use: str | None, tokens: Mapping[str, str], limits: Limits) -> Loaded:
    """The model's default template. Without one the server takes the one for tools, then its own."""
    if source in {"", "chatml"}:
        source = tool_use or ""
    assumed = () if source else (Rework("chatml-assumed", "template"),)
    patched, patches = reworks.patched_source(source or CHATML)
    loaded = Loaded(patched, tokens, limits)
    loaded.reworks = (*assumed, *(Rework(name, "template") for name in patches))
    return loaded


def _as_lexed(source: str) -> str:
    """The source in which the server looks for its families."""
    unified = source.replace("\r\n", "\n").replace("\r", "\n")
    return unified.removesuffix("\n") if source.endswith("\n") else unified
