"""Where the templates are that a command is to look at; nothing is read, so this imports little."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from jinjarun.errors import SourceError
from jinjarun.sources import FAMILY, SCHEMES, STDIN
from jinjarun.sources.files import boundary, require_inside
from jinjarun.sources.hf_cache import cache_folder, is_repository
from probes.chats.corpus import corpus_folder

TEMPLATE_ENDING = ".jinja"
CONFIG = "tokenizer_config.json"


def find_targets(target: str) -> list[str]:
    """The target itself, or for a folder that is no model: the template files and model folders below it, sorted.

    `SourceError` where one of the files is a link that leads out of the folder.
    """
    if not os.path.isdir(target) or _is_model(os.listdir(target)):
        return [target]
    found = sorted(_below(target))
    if not found:
        raise SourceError(f"{target}: holds no template, and no folder of a model", path=target)
    return found


def files_of(target: str) -> list[str]:
    """Files and folders that a target is read from: itself, and for a repository in the Hugging Face cache, or a folder
    of one, all of that repository, because links lead there. None for a server and standard input."""
    if target.startswith(FAMILY):
        return [str(corpus_folder())]
    if target.startswith(SCHEMES) or target == STDIN:
        return []
    if os.path.lexists(target):
        return [target, boundary(target)] if os.path.isdir(target) else [target]
    if not is_repository(target):
        return []
    repository = target.partition("@")[0].replace("/", "--")
    return [os.path.join(cache_folder(), f"models--{repository}")]


def _is_model(names: Sequence[str]) -> bool:
    return CONFIG in names or "chat_template.jinja" in names or "chat_template.json" in names


def _below(root: str) -> Iterator[str]:
    inside = boundary(root)
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if _is_model(names):
            folders.clear()
            yield folder
        else:
            for path in (os.path.join(folder, name) for name in names if name.endswith(TEMPLATE_ENDING)):
                require_inside(path, inside)
                yield path
