"""Repositories in the local cache of the Hugging Face Hub, found where its library finds them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from jinjarun.sources import open_source
from jinjarun.sources.hf_cache import cache_folder
from tests.sources.support import TEMPLATE, refused, write

if TYPE_CHECKING:
    from pathlib import Path

OLD, NEW = "a" * 40, "b" * 40
VARIABLES = ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two commits of org/name, as links to blobs; refs to both."""
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    repository = tmp_path / "models--org--name"
    write(repository, {"blobs/1": TEMPLATE, "blobs/2": "new" + TEMPLATE})
    write(repository, {"refs/main": NEW, "refs/v1": OLD, "refs/refs/pr/1": OLD + "\n", "refs/gone": "c" * 40})
    for commit, blob in ((OLD, "1"), (NEW, "2")):
        (repository / "snapshots" / commit).mkdir(parents=True)
        (repository / "snapshots" / commit / "chat_template.jinja").symlink_to(f"../../blobs/{blob}")
    return tmp_path


@pytest.mark.parametrize(
    ("target", "commit"),
    [
        ("org/name", NEW),
        ("org/name@main", NEW),
        ("org/name@v1", OLD),
        ("org/name@refs/pr/1", OLD),
        (f"org/name@{OLD}", OLD),
    ],
)
def test_revisions(cache: Path, target: str, commit: str) -> None:
    source = open_source(target)
    assert source.template() == ("new" if commit == NEW else "") + TEMPLATE
    path = str(cache / "models--org--name" / "snapshots" / commit / "chat_template.jinja")
    assert source.report() == {"kind": "hf_cache", "path": path, "key": None, "revision": commit}
    assert source.name == "org/name"


def test_as_the_library_finds_them(cache: Path) -> None:
    library = pytest.importorskip("huggingface_hub")
    for revision in ("main", "v1", OLD):
        found = library.try_to_load_from_cache("org/name", "chat_template.jinja", cache_dir=cache, revision=revision)
        assert open_source(f"org/name@{revision}").report()["path"] == found


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize(
    "target", ["org/name@gone", "org/name@none", "org/name@" + "d" * 40, "org/name@aaaa", "org/name@.", "org/name@refs"]
)
def test_unknown_revisions(target: str) -> None:
    error = refused(target)
    assert "has no revision" in error.details["reason"]
    assert "main, refs, v1" in error.details["hint"]


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize(
    "target", ["org/other", "name", "org/name@../../refs/main", "../models--org--name", "org--name"]
)
def test_unknown_repositories(target: str) -> None:
    refused(target)


@pytest.mark.usefixtures("cache")
def test_what_to_do_about_a_repository_that_is_not_there() -> None:
    error = refused("org/other@v2")
    assert error.details["hint"] == "download it first: hf download org/other"


def test_a_folder_of_that_name_comes_first(cache: Path) -> None:
    write(cache / "org" / "name", {"chat_template.jinja": "here"})
    assert open_source("org/name").template() == "here"


def test_a_file_in_the_place_of_the_organisation_does_not_hide_it(cache: Path) -> None:
    write(cache, {"org": "a file"})
    assert open_source("org/name").kind == "hf_cache"


def test_old_names_have_no_organisation(cache: Path) -> None:
    (cache / "models--org--name").rename(cache / "models--gpt2")
    assert open_source("gpt2").revision == NEW


@pytest.mark.usefixtures("cache")
def test_a_reference_that_leads_elsewhere(cache: Path) -> None:
    write(cache / "models--org--name", {"refs/main": "../../../elsewhere"})
    assert "has no revision" in refused("org/name").details["reason"]
    write(cache / "models--org--name", {"refs/main": "x" * 1_000})
    assert "is too large" in refused("org/name").details["reason"]


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "~/.cache/huggingface/hub"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/huggingface/hub"),
        ({"HF_HOME": "/h", "XDG_CACHE_HOME": "/x"}, "/h/hub"),
        ({"HF_HOME": "$XDG_CACHE_HOME/y", "XDG_CACHE_HOME": "/x"}, "/x/y/hub"),
        ({"HUGGINGFACE_HUB_CACHE": "/o", "HF_HOME": "/h"}, "/o"),
        ({"HF_HUB_CACHE": "~/c", "HUGGINGFACE_HUB_CACHE": "/o", "HF_HOME": "/h"}, "~/c"),
    ],
)
def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: str) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    assert cache_folder() == os.path.expanduser(expected)
