"""Small cases that a person can read and add to: one file each in `tests/inputs`.

A file is a context as JSON, a line `---`, the template, and for each dialect a line `--- NAME` and what is written, or
`--- NAME error` and a part of the message. `--- both` stands for the two. The last line break of a part is not of it.
Of transformers, the installed Jinja2 is asked as well; what is said of llama.cpp was seen in its engine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jinjarun import JinjarunError, Template
from jinjarun.reference import Reference

FILES = sorted((Path(__file__).parent / "inputs").glob("*.txt"))
BOTH = ("llama.cpp", "transformers")


@dataclass(frozen=True)
class Input:
    """`expected` has for each dialect whether it fails, and the text or a part of the message."""

    context: dict[str, Any]
    template: str
    expected: dict[str, tuple[bool, str]]


def read(path: Path) -> Input:
    context, template, *rest = re.split(r"^(---.*)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[::2]
    heads = re.findall(r"^---(.*)\n", path.read_text(encoding="utf-8"), re.MULTILINE)[1:]
    expected = {}
    for head, text in zip(heads, rest, strict=True):
        name, *error = head.split()
        for dialect in BOTH if name == "both" else (name,):
            expected[dialect] = (error == ["error"], text.removesuffix("\n"))
    return Input(json.loads(context), template.removesuffix("\n"), expected)


def check(render: Callable[[Input], str], given: Input, dialect: str) -> None:
    fails, text = given.expected[dialect]
    if not fails:
        assert render(given) == text
        return
    with pytest.raises(JinjarunError) as failed:
        render(given)
    assert text in str(failed.value)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("dialect", BOTH)
def test_inputs(dialect: str, path: Path) -> None:
    given = read(path)
    assert given.expected, "no dialect is expected to write anything"
    if dialect in given.expected:
        check(lambda given: Template(given.template, dialect).render_context(given.context, now=0).text, given, dialect)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_jinja2_agrees(path: Path) -> None:
    given = read(path)
    if "transformers" in given.expected:
        check(lambda given: Reference(given.template).render_context(given.context, now=0), given, "transformers")
