"""What a model folder says of the model itself: its architecture, its type, the files that lie there."""

from __future__ import annotations

import os
from dataclasses import dataclass

from jinjarun.sources.files import is_file, list_names
from jinjarun.sources.json_data import CONFIG, read_json


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """`architectures` and `model_type` of config.json, empty where it does not say; `files` are names."""

    architectures: tuple[str, ...]
    model_type: str
    files: tuple[str, ...]


def read_model_files(folder: str) -> ModelFiles:
    """Raises SourceError for a config.json that is no JSON."""
    path = os.path.join(folder, "config.json")
    config = read_json(path, CONFIG, constants=True).value if is_file(path) else {}
    names = config.get("architectures") if isinstance(config, dict) else None
    kind = config.get("model_type") if isinstance(config, dict) else None
    return ModelFiles(
        tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else (),
        kind if isinstance(kind, str) else "",
        tuple(list_names(folder)),
    )
