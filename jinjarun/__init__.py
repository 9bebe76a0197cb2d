"""Run any chat template as the engines do, bounded in every resource.

All of it runs in the caller's process, where `Limits` alone stand between a template and its host. `jinjarun.isolation`
runs calls in processes with walls around them, as the command line does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinjarun.errors import (
        InputError,
        JinjarunError,
        LimitExceeded,
        RenderError,
        SandboxViolation,
        SourceError,
        TemplateRaised,
        TemplateSyntaxError,
        WorkerError,
    )
    from jinjarun.limits import Limits
    from jinjarun.serving.caps import Caps, chat_template_caps
    from jinjarun.template import Rendered, Span, Template

__all__ = [
    "Caps",
    "InputError",
    "JinjarunError",
    "LimitExceeded",
    "Limits",
    "RenderError",
    "Rendered",
    "SandboxViolation",
    "SourceError",
    "Span",
    "Template",
    "TemplateRaised",
    "TemplateSyntaxError",
    "WorkerError",
    "chat_template_caps",
]

_HOMES = {
    "errors": (
        *("InputError", "JinjarunError", "LimitExceeded", "RenderError", "SandboxViolation"),
        *("SourceError", "TemplateRaised", "TemplateSyntaxError", "WorkerError"),
    ),
    "limits": ("Limits",),
    "serving.caps": ("Caps", "chat_template_caps"),
    "template": ("Rendered", "Span", "Template"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
"""The module of each public name, imported when the name is first asked for: a command starts with what it needs."""


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
