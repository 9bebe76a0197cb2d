"""`compare`: one request on every path, side by side; or two templates, and what the newer one does otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from probes.comparison.reports import IMPACTS, Impact, TemplateChange, changed_prompts, report_changes
from probes.comparison.snapshot import conversation_set, prompts_of
from probes.prober import CONTEXT, first_difference, probe
from probes.rendering.renders import APPLY, LLAMA_SERVER, PATHS, Renders, failure
from probes.report import Failure, Model

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from jinjarun.limits import Limits
    from jinjarun.sources import TokenData
    from probes.chats.messages import Chat
    from probes.rules import Rule

AS_SENT = (LLAMA_SERVER, APPLY)
"""Beside the bare ones, the paths of made-up conversations. vLLM and SGLang remake what is sent, so that the smallest
conversation there would be another one."""
EXAMPLES = 30
"""Conversations that are made up for two templates unless told otherwise."""


class PathAnswer(Model):
    """What one path gives: a text, or an error."""

    path: str
    text: str | None
    error: Failure | None


class Parting(Model):
    """Where two paths part: the code point, and both sides from a little before it."""

    paths: tuple[str, str]
    at: int
    left: str
    right: str


class Comparison(Model):
    """`agree` if every path gives the same text, or every one fails. `groups` are the paths that give the same."""

    agree: bool
    answers: list[PathAnswer]
    groups: list[list[str]]
    partings: list[Parting]


def compare(
    template: str,
    messages: list[dict[str, Any]],
    *,
    tools: list[dict[str, Any]] | None = None,
    add_generation_prompt: bool = True,
    continue_final_message: bool = False,
    variables: Mapping[str, Any] | None = None,
    bos_token: str = "",
    eos_token: str = "",
    now: datetime | float | None = None,
    limits: Limits | None = None,
    paths: Collection[str] = PATHS,
) -> Comparison:
    """The request on all paths, or on the bare ones and some others (`paths`); the bare ones have no
    `continue_final_message`. Never raises because of the template: an error is an answer."""
    chat: Chat = {"messages": messages, "add_generation_prompt": add_generation_prompt}
    if tools is not None:
        chat["tools"] = tools
    if continue_final_message:
        chat["continue_final_message"] = True
    if variables:
        chat["variables"] = dict(variables)
    renders = Renders(template, bos_token=bos_token, eos_token=eos_token, limits=limits, now=now, paths=paths)
    answers = []
    for path in renders.paths:
        outcome = renders.render(path, chat)
        error = None if outcome.error is None else failure(outcome.error)
        answers.append(PathAnswer(path=path, text=outcome.text, error=error))
    by_text: dict[str | None, list[str]] = {}
    for answer in answers:
        by_text.setdefault(answer.text, []).append(answer.path)
    return Comparison(
        agree=len(by_text) == 1,
        answers=answers,
        groups=list(by_text.values()),
        partings=_partings([answer for answer in answers if answer.text is not None]),
    )


def _partings(answers: list[PathAnswer]) -> list[Parting]:
    """The first answer against each other that differs from it."""
    found: list[Parting] = []
    for other in answers[1:]:
        first, second = answers[0].text or "", other.text or ""
        if first == second:
            continue
        at = first_difference(first, second) or 0
        start = max(0, at - CONTEXT)
        found.append(
            Parting(
                paths=(answers[0].path, other.path),
                at=at,
                left=first[start : at + CONTEXT],
                right=second[start : at + CONTEXT],
            )
        )
    return found


class TemplateComparison(Model):
    """`outcome` is the gravest impact of all changes, "same" where there is none."""

    outcome: Literal["same", "improved", "changed", "broken"]
    old: str
    new: str
    old_sha256: str
    new_sha256: str
    changes: list[TemplateChange]

    def of(self, impact: Impact) -> list[TemplateChange]:
        return [change for change in self.changes if change.impact == impact]


def compare_templates(
    old: str,
    new: str,
    *,
    old_name: str = "old",
    new_name: str = "new",
    old_tokens: TokenData | None = None,
    new_tokens: TokenData | None = None,
    now: datetime | float | None = None,
    limits: Limits | None = None,
    rules: dict[str, Rule] | None = None,
    max_examples: int = EXAMPLES,
    seed: int = 0,
) -> TemplateComparison:
    """What the template `new` does otherwise than `old`: capabilities, contract, shape, stops, prefix laws, findings,
    and the prompts of the conversation set on all paths; then the laws of `fuzz` and the prompts of `max_examples`
    conversations that are made up for `old` (0: none), others with another `seed`.

    The tokens are those of the models that the templates come with. `rules` are those to run, by default all that are
    not in preview. Never raises because of a template: one that does not parse renders nothing.
    """
    sides = ((old, old_name, old_tokens), (new, new_name, new_tokens))
    reports = [
        probe(text, name=name, tokens=tokens, now=now, limits=limits, rules=rules) for text, name, tokens in sides
    ]
    renders = [Renders(text, **_texts(tokens), now=now, limits=limits) for text, _, tokens in sides]
    chats = conversation_set()
    prompts = [prompts_of(side, chats) for side in renders]
    changes = [*report_changes(*reports), *changed_prompts(reports, prompts, chats)]
    if max_examples:
        from probes.comparison.generated import made_up_changes  # noqa: PLC0415  # Hypothesis takes long to import

        asked = [Renders(text, **_texts(tokens), now=now, limits=limits, paths=AS_SENT) for text, _, tokens in sides]
        changes += made_up_changes(reports, asked, changes, max_examples=max_examples, seed=seed)
    changes.sort(key=lambda change: IMPACTS.index(change.impact))
    return TemplateComparison(
        outcome=changes[0].impact if changes else "same",
        old=old_name,
        new=new_name,
        old_sha256=reports[0].template.sha256,
        new_sha256=reports[1].template.sha256,
        changes=changes,
    )


def _texts(tokens: TokenData | None) -> dict[str, str]:
    """BOS and EOS as `Renders` takes them."""
    named = {"bos_token": tokens and tokens.bos, "eos_token": tokens and tokens.eos}
    return {name: (token and token.text) or "" for name, token in named.items()}
