"""Real templates and recorded answers, from beside the project."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared"

needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"the recordings are not beside this clone ({SHARED})")


@cache
def corpus() -> dict[str, str]:
    """Name -> source of each real template."""
    paths = sorted((SHARED / "corpus" / "templates").glob("*.jinja"))
    return {path.stem: path.read_bytes().decode() for path in paths}


@cache
def snippets() -> list[dict[str, Any]]:
    """One-line templates with the answers of both engines."""
    text = (SHARED / "golden" / "dialects.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


@cache
def llamacpp_answers() -> dict[str, list[dict[str, Any]]]:
    """Name of a real template -> what llama.cpp answered to each conversation."""
    with gzip.open(SHARED / "golden" / "templates.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return {row["template"]: [render["llamacpp"] for render in row["renders"].values()] for row in rows}


def rendered(answer: dict[str, Any]) -> bool:
    return "output" in answer or "output_hex" in answer


def failed_to_parse(answer: dict[str, Any]) -> bool:
    """Errors of a render say which node was executing, or what is not implemented."""
    error = answer.get("error") or answer.get("detail") or ""
    return bool(error) and not error.lstrip().startswith(("---", "NotImplemented"))
