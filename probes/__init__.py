"""Ask a chat template what it can do."""

from probes.comparing import Comparison, compare
from probes.probing import probe
from probes.report import ProbeReport

__all__ = ["Comparison", "ProbeReport", "compare", "probe"]
