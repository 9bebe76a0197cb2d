"""Ask a chat template what it can do.

All of it runs in the caller's process but for `scan`, which has workers behind walls; so does every command of
`jinjarun`. For the others there is `jinjarun.isolation.IsolatedExecutor`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinjarun import (
        Caps,
        InputError,
        JinjarunError,
        LimitExceeded,
        Limits,
        Rendered,
        RenderError,
        SandboxViolation,
        SourceError,
        Span,
        Template,
        TemplateRaised,
        TemplateSyntaxError,
        WorkerError,
        chat_template_caps,
    )
    from probes.chapters.prefix import LawResult, check_prefix_stability
    from probes.chapters.response import response_syntax
    from probes.chats.strategies import conversations, messages, tool_calls, tools
    from probes.chats.supports import Supports
    from probes.comparison.engines import Comparison, TemplateComparison, compare, compare_templates
    from probes.comparison.snapshot import Snapshot, snapshot
    from probes.fuzzer.fuzz import FuzzReport, fuzz
    from probes.linter.lint import LintResult, lint
    from probes.prober import probe
    from probes.report import ProbeReport
    from probes.results.rows import Row
    from probes.scanner.scan import scan

__all__ = [
    "Caps",
    "Comparison",
    "FuzzReport",
    "InputError",
    "JinjarunError",
    "LawResult",
    "LimitExceeded",
    "Limits",
    "LintResult",
    "ProbeReport",
    "RenderError",
    "Rendered",
    "Row",
    "SandboxViolation",
    "Snapshot",
    "SourceError",
    "Span",
    "Supports",
    "Template",
    "TemplateComparison",
    "TemplateRaised",
    "TemplateSyntaxError",
    "WorkerError",
    "chat_template_caps",
    "check_prefix_stability",
    "compare",
    "compare_templates",
    "conversations",
    "fuzz",
    "lint",
    "messages",
    "probe",
    "response_syntax",
    "scan",
    "snapshot",
    "tool_calls",
    "tools",
]

_HOMES = {
    "jinjarun": (
        *("Caps", "InputError", "JinjarunError", "LimitExceeded", "Limits", "RenderError", "Rendered"),
        *("SandboxViolation", "SourceError", "Span", "Template", "TemplateRaised", "TemplateSyntaxError"),
        *("WorkerError", "chat_template_caps"),
    ),
    "probes.chapters.prefix": ("LawResult", "check_prefix_stability"),
    "probes.chapters.response": ("response_syntax",),
    "probes.chats.strategies": ("conversations", "messages", "tool_calls", "tools"),
    "probes.chats.supports": ("Supports",),
    "probes.comparison.engines": ("Comparison", "TemplateComparison", "compare", "compare_templates"),
    "probes.comparison.snapshot": ("Snapshot", "snapshot"),
    "probes.fuzzer.fuzz": ("FuzzReport", "fuzz"),
    "probes.linter.lint": ("LintResult", "lint"),
    "probes.prober": ("probe",),
    "probes.report": ("ProbeReport",),
    "probes.results.rows": ("Row",),
    "probes.scanner.scan": ("scan",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
"""The module of each public name, imported when the name is first asked for: a command starts with what it needs."""


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
