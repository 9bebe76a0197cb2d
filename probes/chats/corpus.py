"""Where the format families are: templates and tokenizer configs written for this project, a folder each."""

from __future__ import annotations

from pathlib import Path


def corpus_folder() -> Path:
    """The folder of `family:NAME`: inside an installed package, or beside it in a clone."""
    package = Path(__file__).parents[1]
    installed = package / "corpus"
    return installed if installed.is_dir() else package.parent / "corpus"
