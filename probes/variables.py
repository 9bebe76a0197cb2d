"""Which variables a template takes from the caller."""

from __future__ import annotations

import re

STANDARD = frozenset(
    {
        "messages",
        "tools",
        "documents",
        "add_generation_prompt",
        "bos_token",
        "eos_token",
        "raise_exception",
        "strftime_now",
        "namespace",
        "range",
        "dict",
        "lipsum",
        "cycler",
        "joiner",
        "loop",
        "self",
        "super",
        "caller",
        "varargs",
        "kwargs",
        "true",
        "false",
        "none",
        "True",
        "False",
        "None",
    }
)
"""What every engine gives to a template, and what the language itself defines."""

ASSIGNED = re.compile(
    r"""\{%[-+]?\s*(?:
        set\s+(?P<set>[\w\s,()]+?)\s*(?:=|\||[-+]?%\})
      | for\s+(?P<for>[\w\s,()]+?)\s+in\b
      | macro\s+(?P<macro>\w+)\s*\((?P<parameters>[^%]*?)\)\s*[-+]?%\}
      | call\s*\((?P<call>[^)]*)\)
      | with\s+(?P<with>[^%]*)
    )""",
    re.VERBOSE,
)
WORD = re.compile(r"[A-Za-z_]\w*")
PARAMETER = re.compile(r"(?:^|,)\s*([A-Za-z_]\w*)")


def assigned_names(source: str) -> set[str]:
    """The names that the template gives a value itself: by `set`, `for`, `with`, and as macros and their parameters."""
    names: set[str] = set()
    for found in ASSIGNED.finditer(source):
        for group in ("set", "for", "macro"):
            names.update(WORD.findall(found[group] or ""))
        for group in ("parameters", "call", "with"):
            names.update(PARAMETER.findall(found[group] or ""))
    return names


def caller_variables(source: str, names: frozenset[str]) -> list[str]:
    """The variables among `names` (all that the template reads) that only the caller can have set, sorted; a name that
    the template sets too counts where it asks whether it is defined, or gives it a default, first."""
    own = assigned_names(source)
    return sorted(name for name in names - STANDARD if name not in own or _is_guarded(source, name))


def _is_guarded(source: str, name: str) -> bool:
    guard = rf"(?<![\w.]){name}\s*(?:is\s+(?:not\s+)?(?:defined|undefined|none)\b|\|\s*(?:default|d)\b)"
    return re.search(guard, source) is not None
