from __future__ import annotations

from typing import TYPE_CHECKING

from jinjarun import sources
from jinjarun.sources import open_source
from tests.sources.support import TEMPLATE, refused, write

if TYPE_CHECKING:
    from pathlib import Path


def test_a_family_of_the_corpus(tmp_path: Path) -> None:
    write(tmp_path, {"chatml/tokenizer_config.json": {"chat_template": TEMPLATE}, "README.md": "x"})
    source = open_source("family:chatml", corpus=tmp_path)
    assert source.template() == TEMPLATE
    path = str(tmp_path / "chatml" / "tokenizer_config.json")
    assert source.report() == {"kind": "family", "path": path, "key": "chat_template", "revision": None}
    assert source.name == "chatml"


def test_no_such_family(tmp_path: Path) -> None:
    write(tmp_path, {"chatml/tokenizer_config.json": {}, "zephyr/tokenizer_config.json": {}, "README.md": "x"})
    assert refused("family:other", corpus=tmp_path).details["hint"] == "there are chatml, zephyr"
    for name in ("README.md", "..", "", "../x", "chatml/.."):
        assert "is no family" in refused(f"family:{name}", corpus=tmp_path).details["reason"]
    assert "without the corpus" in refused("family:chatml").details["reason"]


def test_public_names() -> None:
    assert all(getattr(sources, name) is not None for name in sources.__all__)
