"""Ask a chat template what it can do."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from probes.comparing import Comparison, TemplateComparison, compare, compare_templates
from probes.linting import LintResult, lint
from probes.prefix import LawResult, check_prefix_stability
from probes.probing import probe
from probes.report import ProbeReport
from probes.snapshot import Snapshot, snapshot

if TYPE_CHECKING:
    from probes.fuzzing import FuzzReport, fuzz
    from probes.scanning.rows import Row
    from probes.scanning.scan import scan
    from probes.strategies import conversations, messages, tool_calls, tools
    from probes.supports import Supports

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
    "FuzzReport": "fuzzing",
    "Row": "scanning.rows",
    "Supports": "supports",
    "conversations": "strategies",
    "fuzz": "fuzzing",
    "messages": "strategies",
    "scan": "scanning.scan",
    "tool_calls": "strategies",
    "tools": "strategies",
}
"""Names that are imported only when they are asked for: Hypothesis takes longer to import than the rest together."""


def __getattr__(name: str) -> Any:
    if name not in _MADE_UP:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MADE_UP[name]}"), name)
