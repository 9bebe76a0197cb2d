"""What differs between the reports of two templates, and what that means for who serves the newer one.

A change is "broken" where something worked with the older template and was seen not to work with the newer one: a
prompt became an error or lost the text of a message, a yes became a no, a law is no longer kept, a rule finds an error
that was not there. It is "improved" where the opposite was seen. All else is "changed": which of two texts is right,
only the training tells.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from probes.comparison.snapshot import answer_text, prompt_changes
from probes.laws.prompt import forms_of
from probes.rendering.renders import PATHS
from probes.report import Model

if TYPE_CHECKING:
    from probes.chats.messages import Chat, Message
    from probes.comparison.snapshot import Prompt
    from probes.report import Finding, Law, Observation, ProbeReport

Impact = Literal["broken", "changed", "improved"]
IMPACTS: tuple[Impact, ...] = ("broken", "changed", "improved")
Chapter = Literal["engines", "caps", "observed", "contract", "shape", "stop", "prefix", "findings", "prompts", "laws"]

POLICIES = frozenset({"preserve_reasoning", "tool_call_id", "tool_result_name"})
"""Observations in which formats differ by intent: neither answer is the better one."""
FAILING = frozenset({"raises", "dropped", "printed_raw", "printed_as_word", "unsupported", "never_stops"})
"""Words of the contract and of stops for what does not work."""
WORKING = frozenset({"yes", "native", "same_text", "other_text", "renders", "stops"})
"""Words of the same for what works; those that are neither say nothing."""
SEEN_BY_PATH = ("content.", "roles.system", "roles.developer", "alternation_required")
"""Fields of the contract that `observed` answers by path."""
SEVERITIES = ("info", "warning", "error")
MARKUP = re.compile(r"</?think>|\[/?THINK\]|<\|")


class MadeUp(Model):
    """The smallest made-up conversation that shows a change, as a request body, and how many of how many show it."""

    request: dict[str, Any]
    count: int
    of: int


class TemplateChange(Model):
    """One thing that differs.

    `name` is the field of the report's chapter, the law, the rule's code or the conversation; `old` and `new` are its
    values in words, null for none. Of a prompt, `paths` are those on which both sides are these, `at` is the code point
    of the first difference, null where one side is an error, and the sides are quoted from a little before it.
    `made_up` is null for what the conversation set shows.
    """

    impact: Impact
    chapter: Chapter
    name: str
    old: str | None
    new: str | None
    paths: list[str]
    at: int | None
    made_up: MadeUp | None = None


def report_changes(old: ProbeReport, new: ProbeReport) -> Iterator[TemplateChange]:
    """Chapter by chapter; a chapter that one of the reports lacks is not compared."""
    yield from _engines(old, new)
    yield from _fields("caps", old.caps.flags, new.caps.flags)
    yield from _observed(old, new)
    if old.contract is not None and new.contract is not None:
        yield from _contract(old.contract.model_dump(mode="json"), new.contract.model_dump(mode="json"))
    if old.shape is not None and new.shape is not None:
        yield from _fields("shape", flat(old.shape.model_dump(mode="json")), flat(new.shape.model_dump(mode="json")))
    if old.stop is not None and new.stop is not None:
        yield from _fields("stop", {"written": old.stop.written}, {"written": new.stop.written})
        yield from _fields("stop", old.stop.by_engine, new.stop.by_engine)
    if old.prefix is not None and new.prefix is not None:
        yield from _laws(old.prefix.laws, new.prefix.laws)
    yield from _findings(old, new)


def changed_prompts(
    reports: Sequence[ProbeReport], prompts: Sequence[Mapping[str, list[Prompt]]], chats: Mapping[str, Chat]
) -> Iterator[TemplateChange]:
    """The prompts of `chats` that differ on the paths that load both templates; the others are told by their engine
    alone."""
    read = {path for path in PATHS if all(path in _loading(report) for report in reports)}
    for change in prompt_changes(*prompts):
        paths: list[str] = [path for path in change.paths if path in read]
        if paths:
            old, new = (_prompt_of(side[change.name], paths[0]) for side in prompts)
            made = _change(
                "prompts", change.name, (change.old, change.new), _prompt_impact(chats[change.name], old, new)
            )
            yield made.model_copy(update={"paths": paths, "at": change.at})


def _prompt_of(prompts: Sequence[Prompt], path: str) -> Prompt:
    return next(prompt for prompt in prompts if path in prompt.paths)


def _prompt_impact(chat: Chat, old: Prompt, new: Prompt) -> Impact:
    """Broken where a prompt became an error or lost the text of a message; improved where the template failed and now
    writes every text. A refusal in its own words that is gone is no improvement by itself; a limit is no verdict."""
    texts = _texts(chat["messages"])
    if any((side.error or "").startswith("LimitExceeded") for side in (old, new)):
        return "changed"
    if old.error is not None:
        improved = new.error is None and not old.error.startswith("TemplateRaised") and _written(texts, new) == texts
        return "improved" if improved else "changed"
    return "broken" if new.error is not None or not _written(texts, old) <= _written(texts, new) else "changed"


def _texts(messages: Sequence[Message]) -> set[str]:
    """What the messages say, without space around it; not what looks like reasoning or like markers of a format, which
    templates may have reason to leave out or to escape."""
    found: set[str] = set()
    for message in messages:
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"text": content or ""}]
        found |= {part["text"].strip() for part in parts}
        found |= {call["function"]["name"] for call in message.get("tool_calls", [])}
    return {text for text in found if text and not MARKUP.search(text)}


def _written(texts: set[str], prompt: Prompt) -> set[str]:
    """Those that stand in the prompt, as they are or inside a JSON string."""
    shown = prompt.shown
    return {text for text in texts if any(form in shown for form in forms_of(text))}


def _change(
    chapter: Chapter, name: str, sides: tuple[str | None, str | None], impact: Impact = "changed"
) -> TemplateChange:
    return TemplateChange(impact=impact, chapter=chapter, name=name, old=sides[0], new=sides[1], paths=[], at=None)


def _loading(report: ProbeReport) -> set[str]:
    return {f"{engine.id}:{engine.path}" for engine in report.engines if engine.loads}


def _engines(old: ProbeReport, new: ProbeReport) -> Iterator[TemplateChange]:
    before, after = _loading(old), _loading(new)
    for path in PATHS:
        if (path in before) != (path in after):
            words = ("loads", "does not load it") if path in before else ("does not load it", "loads")
            yield _change("engines", path, words, "broken" if path in before else "improved")


# Capabilities


def _observed(old: ProbeReport, new: ProbeReport) -> Iterator[TemplateChange]:
    for name in (name for name in old.observed if name in new.observed):
        before, after = old.observed[name], new.observed[name]
        words = answer_text(before), answer_text(after)
        if words[0] != words[1]:
            yield _change("observed", name, words, "changed" if name in POLICIES else _by_path(before, after))


def _by_path(old: Observation, new: Observation) -> Impact:
    """Broken where any path lost it, improved where some gained it and none lost it."""
    pairs = {(old.by_path.get(path, old.answer), new.by_path.get(path, new.answer)) for path in PATHS}
    return "broken" if ("yes", "no") in pairs else "improved" if ("no", "yes") in pairs else "changed"


def _contract(old: dict[str, Any], new: dict[str, Any]) -> Iterator[TemplateChange]:
    for side in (old, new):
        side["variables"] = {variable["name"]: _variable(variable) for variable in side["variables"]}
        side["raises"] = sorted({raised["message"] for raised in side["raises"]})
    before, after = ({k: v for k, v in flat(side).items() if not k.startswith(SEEN_BY_PATH)} for side in (old, new))
    for change in _fields("contract", before, after):
        impact = change.impact
        if change.name == "required_variables":
            more = set(new["required_variables"]) - set(old["required_variables"])
            impact = "broken" if more else "improved"
        elif change.name == "tool_call_id_length":
            impact = "broken" if new["tool_call_id_length"] is not None else "improved"
        yield change.model_copy(update={"impact": impact})


def _variable(variable: Mapping[str, Any]) -> str:
    return f"{variable['kind']}, absent: {variable['when_absent']}; {variable['effect']}"


def _fields(chapter: Chapter, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> Iterator[TemplateChange]:
    """The fields whose values differ, in the order of the older report."""
    old, new = old or {}, new or {}
    for name in dict.fromkeys([*old, *new]):
        before, after = old.get(name), new.get(name)
        if before != after or type(before) is not type(after):
            yield _change(chapter, name, (_word(before), _word(after)), _word_impact(before, after))


def _word_impact(old: Any, new: Any) -> Impact:
    if not (isinstance(old, str) and isinstance(new, str)):
        return "changed"
    if old in WORKING and new in FAILING:
        return "broken"
    return "improved" if old in FAILING and new in WORKING else "changed"


def _word(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested objects as one, keys joined by dots; a missing object has no keys."""
    found: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, dict):
            found |= flat(item, f"{prefix}{key}.")
        elif item is not None:
            found[f"{prefix}{key}"] = item
    return found


# Laws and rules


def _laws(old: Sequence[Law], new: Sequence[Law]) -> Iterator[TemplateChange]:
    before, after = ({law.law: law for law in laws} for laws in (old, new))
    for name in (name for name in before if name in after):
        words = _law(before[name]), _law(after[name])
        if words[0] != words[1]:
            yield _change("prefix", name, words, law_impact(before[name].holds, after[name].holds))


def law_impact(old: bool | None, new: bool | None) -> Impact:
    """Broken where it was kept and is so no more, improved where it was broken and is kept now."""
    return "broken" if (old, new) == (True, False) else "improved" if (old, new) == (False, True) else "changed"


def _law(law: Law) -> str:
    return "not evaluated" if law.holds is None else "holds" if law.holds else f"broken: {law.cause}"


def _findings(old: ProbeReport, new: ProbeReport) -> Iterator[TemplateChange]:
    """By rule: its gravest finding on each side. A rule that one side could not judge proves nothing."""
    reports = old, new
    gravest = [_gravest(report.findings) for report in reports]
    unjudged = [{missing.what.removeprefix("rule ") for missing in report.not_evaluated} for report in reports]
    for code in sorted(gravest[0].keys() | gravest[1].keys()):
        found = [findings.get(code) for findings in gravest]
        words = [
            f"{one.severity}: {one.message}" if one is not None else "not evaluated" if code in missing else None
            for one, missing in zip(found, unjudged, strict=True)
        ]
        if words[0] != words[1]:
            name = next(f"{code} {one.name}" for one in found if one is not None)
            grave = [SEVERITIES.index(one.severity) if one is not None else 0 for one in found]
            judged = "not evaluated" not in words
            impact: Impact = "changed"
            if judged and grave[0] < grave[1] and found[1] is not None and found[1].severity == "error":
                impact = "broken"
            elif judged and grave[1] < grave[0]:
                impact = "improved"
            yield _change("findings", name, (words[0], words[1]), impact)


def _gravest(findings: Sequence[Finding]) -> dict[str, Finding]:
    found: dict[str, Finding] = {}
    for finding in findings:
        known = found.get(finding.code)
        if known is None or SEVERITIES.index(finding.severity) > SEVERITIES.index(known.severity):
            found[finding.code] = finding
    return found
