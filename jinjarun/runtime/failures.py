"""From what Python raises inside a builtin to an error of the tree, with its place in the template."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinjarun.errors import JinjarunError, LimitExceeded, RenderError, quote

if TYPE_CHECKING:
    from jinjarun.syntax.nodes import Node


def located(error: Exception, node: Node) -> JinjarunError:
    """`error` as one of the tree that says where it happened; the innermost place wins."""
    located = converted(error)
    if located.line is None:
        located.line, located.column = node.line, node.column
    return located


def converted(error: Exception) -> JinjarunError:
    if isinstance(error, JinjarunError):
        return error
    if isinstance(error, RecursionError):
        return LimitExceeded("the host's stack was too small for this template", limit="depth", allowed=0)
    if isinstance(error, MemoryError):
        return LimitExceeded("the host had no memory for this template", limit="string_bytes", allowed=0)
    kind = type(error).__name__
    reason = quote(str(error))
    return RenderError(reason if kind == "UndefinedError" else f"{kind}: {reason}", kind=kind)
