"""Ask a chat template what it can do."""

from probes.comparing import Comparison, compare
from probes.linting import LintResult, lint
from probes.prefix import LawResult, check_prefix_stability
from probes.probing import probe
from probes.report import ProbeReport

__all__ = ["Comparison", "LawResult", "LintResult", "ProbeReport", "check_prefix_stability", "compare", "lint", "probe"]
