"""Ask a chat template what it can do."""

from probes.probing import probe
from probes.report import ProbeReport

__all__ = ["ProbeReport", "probe"]
