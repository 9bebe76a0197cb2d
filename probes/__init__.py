"""Ask a chat template what it can do."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from probes.chapters.prefix import LawResult, check_prefix_stability
from probes.comparison.engines import Comparison, TemplateComparison, compare, compare_templates
from probes.comparison.snapshot import Snapshot, snapshot
from probes.linter.lint import LintResult, lint
from probes.prober import probe
from probes.report import ProbeReport

if TYPE_CHECKING:
    from probes.chats.strategies import conversations, messages, tool_calls, tools
    from probes.chats.supports import Supports
    from probes.fuzzer.fuzz import FuzzReport, fuzz
    from probes.results.rows import Row
    from probes.scanner.scan import scan

__all__ = [
    "Comparison",
    "FuzzReport",
    "LawResult",
    "LintResult",
    "ProbeReport",
    "Row",
    "Snapshot",
    "Supports",
    "TemplateComparison",
    "check_prefix_stability",
    "compare",
    "compare_templates",
    "conversations",
    "fuzz",
    "lint",
    "messages",
    "probe",
    "scan",
    "snapshot",
    "tool_calls",
    "tools",
]

_MADE_UP = {
    "FuzzReport": "fuzzer.fuzz",
    "Row": "results.rows",
    "Supports": "chats.supports",
    "conversations": "chats.strategies",
    "fuzz": "fuzzer.fuzz",
    "messages": "chats.strategies",
    "scan": "scanner.scan",
    "tool_calls": "chats.strategies",
    "tools": "chats.strategies",
}
"""Names that are imported only when they are asked for: Hypothesis takes longer to import than the rest together."""


def __getattr__(name: str) -> Any:
    if name not in _MADE_UP:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MADE_UP[name]}"), name)
