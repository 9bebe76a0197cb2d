"""A template under one rule, with the token data or the upstream template that the rule needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinjarun.sources import open_source
from probes.linter.lint import LintResult, lint
from tests.probes.token_files import CHATML, SPECIAL, model_folder, opened

if TYPE_CHECKING:
    from pathlib import Path

    from jinjarun.sources import Source, TokenData
    from probes.rules import Rule

TOKENS: dict[str, dict[str, Any]] = {
    "ST201": {"eos": "<|endoftext|>", "stops": SPECIAL.index("<|endoftext|>")},
    "ST202": {"eos": "<|im_end|>"},
    "ST203": {"bos": "<s>", "eos": "</s>", "prepends": "<s>"},
    "ST204": {"eos": "</s>"},
}
"""What the model folder of each rule that needs token data says."""


def token_data(rule: Rule, folder: Path) -> TokenData | None:
    """The tokens that the rule needs, None where it needs none."""
    return opened(model_folder(folder, CHATML, **TOKENS[rule.code]))[1] if rule.needs == "tokens" else None


def model_files(rule: Rule, template: str, folder: Path) -> Source | None:
    """A folder for the rule that compares its places: another template in the configuration beside its example. One
    for the rule on folders without a template, with its example or none."""
    if rule.code == "PK303":
        return open_source(model_folder(folder, template or None))
    if rule.code != "PK302":
        return None
    other = rule.repaired if template == rule.triggers else template
    return open_source(model_folder(folder, template, chat_template=other))


def linted(rule: Rule, template: str, folder: Path) -> LintResult:
    """The template under this rule alone, in preview or not."""
    return lint(
        template,
        select=[rule.code],
        preview=True,
        tokens=token_data(rule, folder),
        files=model_files(rule, template, folder),
        upstream=rule.repaired if rule.code == "PK301" else None,
        name="t.jinja",
    )
