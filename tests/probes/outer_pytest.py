"""pytest in a process of its own, with the plugin."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Whether or not this installation registers the plugin."""
    registered = any(entry.value == "probes.pytest_plugin" for entry in entry_points(group="pytest11"))
    plugin = [] if registered else ["-p", "probes.pytest_plugin"]
    command = [sys.executable, "-m", "pytest", *plugin, "-p", "no:cacheprovider", "-W", "error", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
