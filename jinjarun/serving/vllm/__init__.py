"""vLLM 0.33.0's `POST /v1/chat/completions`, as far as the prompt: `request`, `reworks`, `errors`, `server`.

What is not covered: models with eyes or ears, models that it does not serve by a Jinja template
(`serving.other_renderers`), and sampling parameters of a request.
"""

from __future__ import annotations

from jinjarun.serving.vllm.errors import REFUSALS
from jinjarun.serving.vllm.reworks import REWORKS
from jinjarun.serving.vllm.server import TRANSFORMERS, VERSION, VllmOptions, VllmServer, apply_template, content_format

__all__ = [
    "REFUSALS",
    "REWORKS",
    "TRANSFORMERS",
    "VERSION",
    "VllmOptions",
    "VllmServer",
    "apply_template",
    "content_format",
]
