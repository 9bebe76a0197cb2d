"""Templates and their caps, cached for the next request: a server loads a template once. And who renders them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from jinjarun.limits import Limits
from jinjarun.serving.caps import Caps, template_caps
from jinjarun.template import Rendered, Template

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

TEMPLATES_CACHED = 64


class Renderer(Protocol):
    """What renders a template's variables on a request path: `Template.render_context`, or one that keeps renders."""

    def __call__(
        self,
        template: Template,
        context: Mapping[str, Any],
        /,
        *,
        now: datetime | float | None = None,
        spans: bool = False,
        generations: bool = False,
    ) -> Rendered: ...


@lru_cache(maxsize=TEMPLATES_CACHED)
def cached_template(source: str, dialect: str, limits: Limits) -> Template:
    """Raises what `Template` raises, each time anew."""
    return Template(source, dialect, limits)


@lru_cache(maxsize=TEMPLATES_CACHED)
def cached_caps(template: Template) -> Caps:
    """The caps of a template in the dialect of llama.cpp; raises what `template_caps` raises."""
    return template_caps(template)
