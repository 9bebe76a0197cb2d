"""Run any chat template as the engines do, bounded in every resource."""

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
