"""Which form of content SGLang 0.5.23 finds in a template, and whether the template looks up tool results by id.

Facts: parser/jinja_template_utils.py (detect_jinja_template_content_format, jinja_template_may_reorder_tool_results).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jinjarun.serving.cache import TEMPLATES_CACHED
from jinjarun.serving.chat_completions.contents import ContentFormat, reads_key, tree_of
from jinjarun.syntax.nodes import Call, Const, Filter, For, GetAttr, GetItem
from jinjarun.syntax.search import find_all, walk

if TYPE_CHECKING:
    from jinjarun.limits import Limits

MEDIA_WORDS = ("image", "audio", "video", "vision")
"""A template with one of these anywhere in its text, be it in a comment, is taken for one of parts."""
MESSAGE_NAMES = frozenset({"message", "msg", "m"})
"""What the variable of a loop over messages has to be called for its content to be found."""
ATTRIBUTE_FILTERS = frozenset({"groupby", "map", "rejectattr", "selectattr", "sort"})
RESULT_KEY = "tool_call_id"


@lru_cache(maxsize=TEMPLATES_CACHED)
def detect_content_format(source: str, limits: Limits) -> ContentFormat:
    """ "string" also where the template does not load. Raises LimitExceeded."""
    if any(word in source for word in MEDIA_WORDS):
        return "openai"
    tree = tree_of(source, limits)
    if tree is None:
        return "string"
    loops = find_all(tree, For)
    return "openai" if any(reads_key(loop.iterable, MESSAGE_NAMES, "content") for loop in loops) else "string"


@lru_cache(maxsize=TEMPLATES_CACHED)
def may_reorder_tool_results(source: str, limits: Limits) -> bool:
    """Whether the template reads `tool_call_id`: then the server puts results with media in the order of the calls."""
    tree = tree_of(source, limits)
    return tree is not None and any(map(_reads_result_key, walk(tree)))


def _reads_result_key(node: Any) -> bool:
    if isinstance(node, GetAttr):
        return node.name == RESULT_KEY
    if isinstance(node, GetItem):
        return _is_result_key(node.index)
    if isinstance(node, Call):
        looked_up = isinstance(node.callee, GetAttr) and node.callee.name == "get"
        return looked_up and bool(node.arguments) and _names_result_key(node.arguments[0], "positional")
    if isinstance(node, Filter) and node.name in ATTRIBUTE_FILTERS and node.arguments:
        named = (one for one in node.arguments if one.kind == "keyword" and one.name == "attribute")
        return _names_result_key(node.arguments[0], "positional") or any(_is_result_key(one.value) for one in named)
    return False


def _names_result_key(argument: Any, kind: str) -> bool:
    return argument.kind == kind and _is_result_key(argument.value)


def _is_result_key(node: Any) -> bool:
    return isinstance(node, Const) and node.value == RESULT_KEY
