"""SGLang 0.5.23's `POST /v1/chat/completions`, as far as the prompt: `request`, `reworks`, `errors`, `server`.

What is not covered: what a model with eyes or ears makes of media behind the template, models that it does not serve by
a Jinja template (`serving.other_renderers`), and sampling parameters of a request.
"""

from __future__ import annotations

from jinjarun.serving.sglang.errors import REFUSALS
from jinjarun.serving.sglang.reworks import REWORKS
from jinjarun.serving.sglang.server import (
    TRANSFORMERS,
    VERSION,
    SglangOptions,
    SglangServer,
    apply_template,
    content_format,
)

__all__ = [
    "REFUSALS",
    "REWORKS",
    "TRANSFORMERS",
    "VERSION",
    "SglangOptions",
    "SglangServer",
    "apply_template",
    "content_format",
]
