"""The rules, one module each, found by their code. A new rule is a new module that defines `RULE`."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING

from probes.chapters.stop import has_data
from probes.report import Finding, NotEvaluated
from probes.rules.base import CODE, HARM, Rule, finding, severity_of
from probes.rules.view import Facts, Hit

if TYPE_CHECKING:
    from collections.abc import Collection

_ORDER = {"error": 0, "warning": 1, "info": 2}


@cache
def rules() -> dict[str, Rule]:
    """Every rule by its code, in the order of the codes."""
    found: dict[str, Rule] = {}
    for module in pkgutil.iter_modules(__path__):
        if CODE.match(module.name.partition("_")[0].upper()):
            rule: Rule = importlib.import_module(f"{__name__}.{module.name}").RULE
            if rule.code in found:
                raise ValueError(f"two rules have the code {rule.code}")
            found[rule.code] = rule
    return dict(sorted(found.items()))


def selected(
    select: Collection[str] = (), ignore: Collection[str] = (), *, preview: bool = False
) -> tuple[dict[str, Rule], list[str]]:
    """The rules whose code or name begins as one of `select` says (all where it is empty) and none of `ignore`; and
    those words that fit no rule."""
    known = rules()

    def fits(rule: Rule, word: str) -> bool:
        return rule.code.startswith(word.upper()) or rule.name == word

    unknown = [word for word in [*select, *ignore] if not any(fits(rule, word) for rule in known.values())]
    chosen = {
        code: rule
        for code, rule in known.items()
        if (preview or not rule.preview)
        and (not select or any(fits(rule, word) for word in select))
        and not any(fits(rule, word) for word in ignore)
    }
    return chosen, unknown


def run_rules(
    facts: Facts, sha256: str, chosen: dict[str, Rule] | None = None
) -> tuple[list[Finding], list[NotEvaluated]]:
    """The findings, by severity and harm, one a cause; and the rules that could not be judged, with the reason."""
    hits: list[tuple[Rule, Hit]] = []
    missing: list[NotEvaluated] = []
    for rule in (rules() if chosen is None else chosen).values():
        why = _cannot_run(rule, facts)
        if why is None:
            hits += [(rule, hit) for hit in rule.check(facts)]
        else:
            missing.append(why)
    hits.sort(key=lambda pair: (_ORDER[severity_of(*pair)], HARM.index(pair[0].code), pair[1].line or 0))
    findings: list[Finding] = []
    led: set[str] = set()
    for rule, hit in hits:
        if hit.cause is not None and hit.cause in led:
            continue
        also: list[str] = []
        if hit.cause is not None:
            led.add(hit.cause)
            also = sorted({other.code for other, one in hits if one.cause == hit.cause and other.code != rule.code})
        findings.append(finding(rule, hit, sha256, f"g{len(findings) + 1}", also))
    return findings, missing


def _cannot_run(rule: Rule, facts: Facts) -> NotEvaluated | None:
    what = f"rule {rule.code}"
    if rule.needs == "renders" and not any(engine.loads for engine in facts.engines):
        return NotEvaluated(what=what, why="the template loads in no engine", how="repair its syntax first")
    if rule.needs == "tokens" and not (facts.tokens is not None and has_data(facts.tokens)):
        return NotEvaluated(
            what=what, why="needs token data", how="probe a model folder, a tokenizer_config.json or a GGUF file"
        )
    if rule.beside == "upstream":
        if facts.upstream is not None:
            return None
        return NotEvaluated(what=what, why="needs an upstream repository", how="--upstream TEMPLATE")
    files = facts.files
    if rule.needs == "files" and (files is None or (rule.beside == "folder" and not files.readings)):
        return NotEvaluated(what=what, why="needs the files beside the template", how="probe the model folder")
    return None


__all__ = ["Facts", "Hit", "Rule", "rules", "run_rules", "selected"]
