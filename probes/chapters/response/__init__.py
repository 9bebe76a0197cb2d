"""How the answers of a model are written: the syntax to read them by, derived from what the template writes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinjarun.errors import InputError, JinjarunError
from probes.chapters.response.deriving import derived
from probes.chapters.shape.requests import Requests
from probes.rendering.input_form import judged, judged_path
from probes.rendering.renders import Renders

if TYPE_CHECKING:
    from jinjarun.limits import Limits
    from jinjarun.responses import ResponseSyntax


def response_syntax(
    template_text: str, *, bos_token: str = "", eos_token: str = "", limits: Limits | None = None
) -> ResponseSyntax:
    """The syntax of the answers that belong to a template, found from differences of what it renders.

    `template_text` is always the template itself, never a path. A template that does not parse raises its error.
    """
    if not isinstance(template_text, str):
        raise InputError(f"a template is a str, not {type(template_text).__name__}", path="template_text")
    renders = Renders(template_text, bos_token=bos_token, eos_token=eos_token, limits=limits)
    error: JinjarunError | None = renders.loads(judged_path(renders))
    if error is not None:
        raise error
    return derived(Requests(judged(renders)))
