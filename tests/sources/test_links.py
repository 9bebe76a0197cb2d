"""A model cannot bring in files that are not its own, and nothing in a folder makes reading wait."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from jinjarun.errors import SourceError
from jinjarun.sources import open_source
from jinjarun.sources.files import boundary, read_bytes
from tests.sources.support import TEMPLATE, refused, write

CONFIG = "tokenizer_config.json"
READ = [
    *("chat_template.jinja", "additional_chat_templates/a.jinja", CONFIG, "chat_template.json"),
    *("processor_config.json", "tokenizer.json", "special_tokens_map.json", "added_tokens.json"),
    *("generation_config.json", "config.json"),
]


def folder_with(tmp_path: Path, name: str) -> Path:
    """A model folder in which `name` is still to be made."""
    folder = write(tmp_path / "model", {"README.md": ""})
    (folder / name).parent.mkdir(exist_ok=True)
    return folder


def good(name: str) -> str:
    return "{}" if name.endswith(".json") else TEMPLATE


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("relative", [False, True])
def test_links_that_leave_the_folder(tmp_path: Path, name: str, relative: bool) -> None:
    outside = write(tmp_path, {"secret": good(name)}) / "secret"
    folder = folder_with(tmp_path, name)
    link = folder / name
    link.symlink_to(os.path.relpath(outside, link.parent) if relative else outside)
    error = refused(folder)
    assert error.details["path"] == str(link)
    assert "leads out of" in error.details["reason"]
    assert error.details["hint"]


@pytest.mark.parametrize("name", READ)
def test_links_that_stay_in_the_folder(tmp_path: Path, name: str) -> None:
    folder = folder_with(tmp_path, name)
    write(folder, {"deep/real": good(name)})
    (folder / "deep" / "second").symlink_to("real")
    (folder / name).symlink_to(folder / "deep" / "second")
    open_source(folder)


def test_a_chain_that_leaves_and_comes_back(tmp_path: Path) -> None:
    """Where the file lies counts, not the way to it."""
    folder = write(tmp_path / "model", {"real.txt": TEMPLATE})
    (tmp_path / "outside").symlink_to(folder / "real.txt")
    (folder / "chat_template.jinja").symlink_to("../outside")
    assert open_source(folder).template() == TEMPLATE


def test_a_chain_that_leaves_at_its_end(tmp_path: Path) -> None:
    write(tmp_path, {"secret": TEMPLATE})
    folder = write(tmp_path / "model", {})
    folder.mkdir(exist_ok=True)
    (folder / "a").symlink_to("../secret")
    (folder / "b").symlink_to("a")
    (folder / "chat_template.jinja").symlink_to("b")
    assert "leads out of" in refused(folder).details["reason"]


def test_a_folder_inside_that_is_a_link(tmp_path: Path) -> None:
    write(tmp_path, {"elsewhere/a.jinja": TEMPLATE})
    folder = write(tmp_path / "model", {"chat_template.jinja": TEMPLATE})
    (folder / "additional_chat_templates").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    error = refused(folder)
    assert error.details["path"] == str(folder / "additional_chat_templates")


def test_a_neighbour_whose_name_begins_alike(tmp_path: Path) -> None:
    write(tmp_path, {"model-secrets/x": TEMPLATE})
    folder = folder_with(tmp_path, "chat_template.jinja")
    (folder / "chat_template.jinja").symlink_to("../model-secrets/x")
    assert "leads out of" in refused(folder).details["reason"]


def test_gguf_files_of_a_folder(tmp_path: Path) -> None:
    write(tmp_path, {"secret": b"GGUF"})
    folder = write(tmp_path / "model", {"m-00002-of-00002.gguf": b""})
    (folder / "m-00001-of-00002.gguf").symlink_to("../secret")
    assert "leads out of" in refused(folder).details["reason"]


def test_links_that_the_user_names(tmp_path: Path) -> None:
    """To a folder, to a file, and to a folder above."""
    write(tmp_path, {"real/model/chat_template.jinja": TEMPLATE})
    (tmp_path / "folder").symlink_to("real/model", target_is_directory=True)
    (tmp_path / "file.jinja").symlink_to("real/model/chat_template.jinja")
    (tmp_path / "above").symlink_to("real", target_is_directory=True)
    for target in ("folder", "file.jinja", "above/model", "above/model/chat_template.jinja"):
        assert open_source(tmp_path / target).template() == TEMPLATE


def test_a_file_that_was_found_in_a_folder(tmp_path: Path) -> None:
    write(tmp_path, {"secret.jinja": TEMPLATE, CONFIG: {"chat_template": "x"}})
    folder = write(tmp_path / "found", {"real.jinja": TEMPLATE})
    (folder / "a.jinja").symlink_to("../secret.jinja")
    (folder / CONFIG).symlink_to(f"../{CONFIG}")
    (folder / "a.gguf").symlink_to("../secret.jinja")
    (folder / "plain").symlink_to("../secret.jinja")
    assert open_source(folder / "real.jinja", inside=boundary(str(folder))).template() == TEMPLATE
    for name in ("a.jinja", CONFIG, "a.gguf", "plain"):
        assert "leads out of" in refused(folder / name, inside=boundary(str(folder))).details["reason"]


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no /proc here")
@pytest.mark.parametrize("secret", ["/proc/self/environ", "/proc/self/cmdline", "/proc/self/maps"])
def test_files_of_the_kernel_are_never_read(tmp_path: Path, secret: str) -> None:
    folder = write(tmp_path / "model", {})
    folder.mkdir(exist_ok=True)
    link = folder / "chat_template.jinja"
    link.symlink_to(secret)
    refused(folder)
    assert "file of the kernel" in refused(link).details["reason"]
    assert "file of the kernel" in refused(secret).details["reason"]
    link.unlink()
    (folder / "proc").symlink_to("/proc/self", target_is_directory=True)
    assert "file of the kernel" in refused(folder / "proc" / os.path.basename(secret)).details["reason"]


def test_the_snapshots_of_the_cache(tmp_path: Path) -> None:
    """Their files are links into the repository's folder. Another repository's are not theirs."""
    snapshot = tmp_path / "models--org--name" / "snapshots" / ("a" * 40)
    write(tmp_path, {"models--org--name/blobs/1": TEMPLATE, "models--org--other/blobs/1": "other"})
    snapshot.mkdir(parents=True)
    link = snapshot / "chat_template.jinja"
    link.symlink_to("../../blobs/1")
    assert boundary(str(snapshot)) == os.path.realpath(tmp_path / "models--org--name")
    assert open_source(snapshot).template() == TEMPLATE
    link.unlink()
    link.symlink_to("../../../models--org--other/blobs/1")
    assert "leads out of" in refused(snapshot).details["reason"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("name", READ)
def test_pipes_sockets_and_devices_in_a_folder(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_with(tmp_path, name)
    place = folder / name
    os.mkfifo(place)
    assert refused(folder).details["reason"] == "is a named pipe, not a file"
    place.unlink()
    monkeypatch.chdir(place.parent)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(place.name)
        assert refused(folder).details["reason"] == "is a socket, not a file"
    place.unlink()
    os.mkfifo(folder / "pipe")
    place.symlink_to(folder / "pipe")
    assert refused(folder).details["reason"] == "is a named pipe, not a file"
    place.unlink()
    place.symlink_to("/dev/zero")
    assert refused(folder).details["path"] == str(place)


@pytest.mark.parametrize("proc", [True, False])
def test_a_link_that_changes_while_it_is_opened(tmp_path: Path, proc: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was opened is asked where it lies, so that a name that was good a moment before does not help."""
    write(tmp_path, {"secret": "secret", "model/chat_template.jinja": TEMPLATE})
    path = tmp_path / "model" / "chat_template.jinja"
    real_open, real_readlink = os.open, os.readlink

    def swapped(name: str, flags: int) -> int:
        path.unlink()
        path.symlink_to("../secret")
        opened = real_open(name, flags)
        path.unlink()
        path.write_text(TEMPLATE)
        return opened

    def readlink(name: str, **options: object) -> str:
        if not proc and name.startswith("/proc/self/fd/"):
            raise FileNotFoundError
        return real_readlink(name, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", swapped)
    monkeypatch.setattr(os, "readlink", readlink)
    with pytest.raises(SourceError, match="leads out of" if proc else "changed while it was opened"):
        read_bytes(str(path), 100, boundary(str(tmp_path / "model")))
