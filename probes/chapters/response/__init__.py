"""How the answers of a model are written: the syntax to read them by, derived from what the template writes of them,
and what of it cannot be read back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jinjarun.errors import InputError
from probes.chapters.response.checks import Check, checks
from probes.chapters.response.deriving import derived
from probes.chapters.shape.requests import Requests
from probes.rendering.input_form import judged, judged_path
from probes.rendering.renders import Renders

if TYPE_CHECKING:
    from jinjarun.limits import Limits
    from jinjarun.responses import ResponseSyntax

SAID = {
    "edges": "white space at its edges is not kept",
    "same text": "cannot be told from another message",
    "begins like reasoning": "begins with a marker of reasoning, and is taken for it",
    "misread": "is not read back, though nothing else is known to be written so",
}


@dataclass(frozen=True, slots=True)
class Response:
    """The syntax of a template's answers, and messages of each kind, written and read back."""

    syntax: ResponseSyntax
    checks: tuple[Check, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"syntax": self.syntax.model_dump(mode="json"), "checks": [check.to_dict() for check in self.checks]}

    def lines(self) -> list[str]:
        """The same for people."""
        parts = self.syntax.model_dump(mode="json", exclude_defaults=True)
        told = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in parts.items()]
        read = sum(check.verdict == "read" for check in self.checks)
        told += ["", f"{read} of {len(self.checks)} kinds of messages are read back as they were"]
        for check in self.checks:
            if check.verdict != "read":
                told.append(f"- {check.kind}: {SAID[check.verdict]}")
                told += [f"    text   {check.text!r}", f"    meant  {check.meant!r}", f"    read   {check.other!r}"]
        return told


def response(template_text: str, *, bos_token: str = "", eos_token: str = "", limits: Limits | None = None) -> Response:
    """The syntax of a template's answers, and what of them cannot be read back."""
    ask = _requests(template_text, bos_token=bos_token, eos_token=eos_token, limits=limits)
    syntax = derived(ask)
    return Response(syntax, tuple(checks(ask, syntax)))


def response_syntax(
    template_text: str, *, bos_token: str = "", eos_token: str = "", limits: Limits | None = None
) -> ResponseSyntax:
    """The syntax of the answers that belong to a template, found from differences of what it renders.

    `template_text` is always the template itself, never a path. A template that does not parse raises its error.
    """
    return derived(_requests(template_text, bos_token=bos_token, eos_token=eos_token, limits=limits))


def _requests(template_text: str, *, bos_token: str, eos_token: str, limits: Limits | None) -> Requests:
    if not isinstance(template_text, str):
        raise InputError(f"a template is a str, not {type(template_text).__name__}", path="template_text")
    renders = Renders(template_text, bos_token=bos_token, eos_token=eos_token, limits=limits)
    error = renders.loads(judged_path(renders))
    if error is not None:
        raise error
    return Requests(judged(renders))
