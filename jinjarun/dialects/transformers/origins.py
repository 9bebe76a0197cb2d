"""Origins of strings through builtins: with spans on, a string rebuilt from another keeps where it came from."""

from __future__ import annotations

from typing import Any

from jinjarun.runtime.text import Text, derived


def rebuilt(result: Any, source: Any) -> Any:
    """`result`, a string or strings made from `source`."""
    if type(source) is not Text:
        return result
    if type(result) is str:
        return derived(result, source)
    if type(result) in (list, tuple):
        return type(result)(rebuilt(item, source) for item in result)
    return result
