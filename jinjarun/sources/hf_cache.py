"""The local cache of the Hugging Face Hub: from a repository's name and a revision to the folder of one commit.

Layout (huggingface_hub 2.4, file_download.py `try_to_load_from_cache`): `models--ORG--NAME/refs/REVISION` holds a
commit, `models--ORG--NAME/snapshots/COMMIT/` its files, mostly as links. Nothing is downloaded.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from jinjarun.errors import quote
from jinjarun.sources.files import decode, failure, is_directory, is_file, list_names, read_bytes

MAIN = "main"
_REPOSITORY = re.compile(r"(?:[\w.-]{1,96}/)?[\w.-]{1,96}(?:@[\w./-]{1,200})?", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_REF_BYTES = 200


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One commit of a repository in the cache."""

    repository: str
    revision: str
    path: str


def cache_folder() -> str:
    """Where huggingface_hub 2.4 keeps models (constants.py): HF_HUB_CACHE, or the old HUGGINGFACE_HUB_CACHE, or hub/ in
    HF_HOME, which is huggingface/ in XDG_CACHE_HOME or ~/.cache."""
    home = os.environ.get("HF_HOME")
    if home is None:
        home = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.join("~", ".cache")), "huggingface")
    default = os.environ.get("HUGGINGFACE_HUB_CACHE", os.path.join(home, "hub"))
    return os.path.expanduser(os.path.expandvars(os.environ.get("HF_HUB_CACHE", default)))


def is_repository(target: str) -> bool:
    """Whether this can be `name`, `org/name` or `org/name@revision`."""
    return _REPOSITORY.fullmatch(target) is not None and ".." not in target and "--" not in target.partition("@")[0]


def find_snapshot(target: str) -> Snapshot | None:
    """The snapshot of `org/name[@revision]`, None if the repository is not in the cache.

    A revision is a branch, a tag or a full commit; without one, `main`, as the library does. `SourceError` if the
    repository is there and the revision is not.
    """
    repository, _, revision = target.partition("@")
    folder = os.path.join(cache_folder(), "models--" + repository.replace("/", "--"))
    if not is_directory(folder):
        return None
    revision = revision or MAIN
    commit = _commit(folder, revision)
    path = os.path.join(folder, "snapshots", commit)
    if _COMMIT.fullmatch(commit) and is_directory(path):
        return Snapshot(repository, commit, path)
    known = list_names(os.path.join(folder, "refs")) + list_names(os.path.join(folder, "snapshots"))
    raise failure(
        target,
        f"has no revision {quote(revision)!r} in the cache at {quote(folder)}",
        hint=f"there are {', '.join(map(quote, known[:20]))}" if known else "it has no files there",
    )


def _commit(folder: str, revision: str) -> str:
    reference = os.path.join(folder, "refs", revision)
    if not is_file(reference):
        return revision
    return decode(reference, read_bytes(reference, _REF_BYTES))[0].strip()
