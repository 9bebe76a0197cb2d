"""Whether SGLang 0.5.23 sets `low_effort` for a template: whether the rule that does so is the first that applies.

Facts: parser/template_detection.py, the rules on the mode of reasoning, of which the first to match counts.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from jinjarun.serving.cache import TEMPLATES_CACHED
from jinjarun.serving.chat_completions.contents import tree_of
from jinjarun.syntax.nodes import Const, Filter, Name
from jinjarun.syntax.search import find_all

if TYPE_CHECKING:
    from jinjarun.limits import Limits

OWN_MARKERS = ("low_effort", "truncate_history_thinking")
EARLIER_MARKERS = (
    ("<ifm|think>", "<ifm|think_fast>", "reasoning_effort"),
    ("<|channel|>",),
    ("reasoning_effort", "[THINK]"),
    ("reasoning_effort", "reasoning_mode_token", "no_think"),
)
"""Texts by which earlier rules know a template, all of a row together."""
ALWAYS_THINKS = re.compile(r"<\|im_start\|>assistant\\n<think>\\n")
GLM_MARKERS = ("[gMASK]<sop>", "Reasoning Effort:", "<tool_call>", "<arg_key>", "<arg_value>")
OFF_BY_DEFAULT = re.compile(
    r"{%\s*if\s+not\s+enable_thinking\s+is\s+defined\s*%}.*?{%\s*set\s+enable_thinking\s*=\s*[fF]alse\s*%}", re.DOTALL
)


@lru_cache(maxsize=TEMPLATES_CACHED)
def sets_low_effort(source: str, limits: Limits) -> bool:
    def has(*texts: str) -> bool:
        return all(text in source for text in texts)

    if not has(*OWN_MARKERS) or any(has(*texts) for texts in EARLIER_MARKERS):
        return False
    if ALWAYS_THINKS.search(source) and "thinking" not in source:
        return False
    if has(*GLM_MARKERS) and "enable_thinking" not in source:
        return False
    return OFF_BY_DEFAULT.search(source) is None and not _defaults_to_off(source, limits)


def _defaults_to_off(source: str, limits: Limits) -> bool:
    """Whether `enable_thinking | default(false)` stands in the template."""
    tree = tree_of(source, limits)
    return tree is not None and any(
        isinstance(default.value, Name)
        and default.value.name == "enable_thinking"
        and bool(default.arguments)
        and isinstance(default.arguments[0].value, Const)
        and default.arguments[0].value.value is False
        for default in find_all(tree, Filter)
        if default.name in ("default", "d")
    )
