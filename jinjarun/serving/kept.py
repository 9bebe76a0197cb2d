"""Templates and their caps, kept for the next request: a server loads a template once."""

from __future__ import annotations

from functools import lru_cache

from jinjarun.limits import Limits
from jinjarun.serving.caps import Caps, template_caps
from jinjarun.template import Template

TEMPLATES_KEPT = 64


@lru_cache(maxsize=TEMPLATES_KEPT)
def kept_template(source: str, dialect: str, limits: Limits) -> Template:
    """Raises what `Template` raises, each time anew."""
    return Template(source, dialect, limits)


@lru_cache(maxsize=TEMPLATES_KEPT)
def kept_caps(template: Template) -> Caps:
    """The caps of a template in the dialect of llama.cpp; raises what `template_caps` raises."""
    return template_caps(template)
