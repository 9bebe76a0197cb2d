"""The format families of `corpus/`, and what is expected of them.

`python -m tests.families` checks every family. `python -m tests.families NAME [--template FILE]` puts a template into
the family's tokenizer_config.json if one is given, and writes what both dialects render now into its expected.json:
read the difference before you commit it.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinjarun.errors import JinjarunError, TemplateRaised
from jinjarun.serving.caps import chat_template_caps
from jinjarun.template import Template
from probes.chats.named import conversation

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
NAMES = sorted(path.name for path in CORPUS.iterdir() if path.is_dir())
WITHOUT_TEMPLATE = "base-model-without-template"
WITH_TEMPLATE = [name for name in NAMES if name != WITHOUT_TEMPLATE]
DIALECTS = ("llama.cpp", "transformers")
NOW = 1764000000
"""The clock of all expected renders: 2025-11-24 16:00:00 UTC."""


@dataclass(frozen=True)
class Family:
    """A folder of the corpus: its tokenizer_config.json and its expected.json."""

    name: str
    config: dict[str, Any]
    expected: dict[str, Any]

    @property
    def source(self) -> str:
        text: str = self.config["chat_template"]
        return text

    @property
    def tokens(self) -> dict[str, str]:
        return {key: self.config[key] or "" for key in ("bos_token", "eos_token")}

    def render(self, dialect: str, messages: list[dict[str, Any]], **options: Any) -> str:
        """A render with the family's own special tokens, unless others are given."""
        options = {**self.tokens, "now": NOW, **options}
        return template(self.source, dialect).render(messages, **options).text

    def answer(self, dialect: str, name: str) -> str | dict[str, str]:
        """What stands in expected.json for a conversation: the text, or how the render fails."""
        try:
            return self.render(dialect, **conversation(name))
        except TemplateRaised as error:
            return {"raises": error.message}
        except JinjarunError as error:
            return {"fails": type(error).__name__}


@cache
def template(source: str, dialect: str) -> Template:
    return Template(source, dialect=dialect)


def family(name: str) -> Family:
    files = (CORPUS / name / file for file in ("tokenizer_config.json", "expected.json"))
    return Family(name, *(json.loads(file.read_text(encoding="utf-8")) for file in files))


def write(path: Path, data: dict[str, Any]) -> None:
    path.write_text(json.dumps(data, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def differences(found: Family) -> list[str]:
    """What a family renders otherwise than expected, in the words of a failing test."""
    rows = []
    for name, expected in found.expected["renders"].items():
        for dialect in DIALECTS:
            got = found.answer(dialect, name)
            if got != expected:
                rows.append(f"{found.name} {name} {dialect}\n  expected {expected!r}\n  got      {got!r}")
    if found.expected["caps"] is not None:
        for flag, got in chat_template_caps(found.source).to_dict().items():
            if got != found.expected["caps"][flag]:
                rows.append(f"{found.name} {flag}: {got}")
    return rows


def rewrite(name: str, template_file: Path | None) -> None:
    """Stores a template and what it renders now, where both dialects agree on it."""
    found = family(name)
    if template_file is not None:
        found.config["chat_template"] = template_file.read_text(encoding="utf-8").removesuffix("\n")
        write(CORPUS / name / "tokenizer_config.json", found.config)
    for chat in found.expected["renders"]:
        answers = [found.answer(dialect, chat) for dialect in DIALECTS]
        if answers[0] != answers[1]:
            raise SystemExit(f"{name} {chat}: the dialects differ, so the template is not portable:\n{answers}")
        found.expected["renders"][chat] = answers[0]
    found.expected["caps"] = chat_template_caps(found.source).to_dict()
    write(CORPUS / name / "expected.json", found.expected)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.families", description="Check or rewrite format families.")
    parser.add_argument("name", nargs="?", choices=WITH_TEMPLATE, metavar="NAME", help=", ".join(WITH_TEMPLATE))
    parser.add_argument("--template", type=Path, metavar="FILE", help="store this template in the family first")
    args = parser.parse_args()
    if args.name is not None:
        rewrite(args.name, args.template)
        return 0
    rows = [row for name in WITH_TEMPLATE for row in differences(family(name))]
    print("\n".join(rows) or f"{len(WITH_TEMPLATE)} families render as expected")
    return 1 if rows else 0


if __name__ == "__main__":
    sys.exit(main())
