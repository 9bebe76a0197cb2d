"""What looks like a marker of a format, in prompts and in templates."""

from __future__ import annotations

import re

MARKER = re.compile(r"<[^<>\s][^<>\n]{0,80}>|\[/?[A-Z][A-Z0-9_ ]{1,40}\]|\{\{ [a-z_]+ \}\}|```[a-z]*")
"""A marker: in angle or square brackets, a fence, or a special token without a value."""
CONTROL_SHAPES = (
    r"<\|[^\s<>|]{1,60}\|?>"  # <|im_end|>, <|tool_call>
    r"|<[^\s<>|]{1,60}\|>"  # <turn|>
    r"|<｜[^\s<>]{1,60}｜>"  # DeepSeek
    r"|\[\|[^\s\[\]|]{1,60}\|\]"  # EXAONE
    r"|[\[\]](?=[a-z!]*~)[a-z~!]{2,5}[\[\]]"  # MiniMax: [e~[, ]~b]
)
TAG_SHAPES = r"</?[A-Za-z][\w.:=-]{0,60}>|\[/?[A-Z][A-Z_]{1,40}\]"
"""Shapes of markers that nobody writes as ordinary text, and of tags."""
ANY_MARKER = re.compile(f"{CONTROL_SHAPES}|{TAG_SHAPES}")
MOST_MARKERS = 12
"""Markers of a template that generated texts are made of."""
JINJA = re.compile(r"\{[{%#]|[}%#]\}")


def markers_in(source: str) -> tuple[str, ...]:
    """What looks like a marker in the template's text, in the order in which it comes first."""
    found = (marker for marker in MARKER.findall(source) if not JINJA.search(marker))
    return tuple(dict.fromkeys(marker for marker in found if "'" not in marker and '"' not in marker))[:MOST_MARKERS]
