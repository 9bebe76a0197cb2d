"""Which variables a template takes from the caller."""

from __future__ import annotations

import re
from functools import lru_cache

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


GUARDED = re.compile(
    r"""(?<![\w.])([A-Za-z_]\w*)\s*(?:is\s+(?:not\s+)?(?:defined|undefined|none)\b|\|\s*(?:default|d)\b)"""
)
"""A name asked about before it is trusted."""
STRING = r"""(?:'([^'\n]*)'|"([^"\n]*)")"""
COMPARED = (
    re.compile(rf"(?<![\w.])([A-Za-z_]\w*)(?:\s*\|\s*\w+)*\s*[!=]=\s*{STRING}"),
    re.compile(rf"{STRING}\s*[!=]=\s*([A-Za-z_]\w*)(?![\w.(\[])"),
)
LISTED = re.compile(r"(?<![\w.])([A-Za-z_]\w*)(?:\s*\|\s*\w+)*\s+(?:not\s+)?in\s*[\[(]([^\])]*)[\])]")
STRINGS = re.compile(STRING)


@lru_cache(maxsize=8)
def assigned_names(source: str) -> frozenset[str]:
    """The names that the template gives a value itself: by `set`, `for`, `with`, and as macros and their parameters."""
    names: set[str] = set()
    for found in ASSIGNED.finditer(source):
        group = found.lastgroup
        if group in {"set", "for", "macro"}:
            names.update(WORD.findall(found[group]))
        elif group is not None:
            names.update(PARAMETER.findall(found[group]))
            names.update(WORD.findall(found["macro"] or ""))
    return frozenset(names)


def caller_variables(source: str, names: frozenset[str]) -> list[str]:
    """The variables among `names` (all that the template reads) that only the caller can have set, sorted; a name that
    the template sets too counts where it asks whether it is defined, or gives it a default."""
    own = assigned_names(source)
    guarded = set(GUARDED.findall(source))
    return sorted(name for name in names - STANDARD if name not in own or name in guarded)


@lru_cache(maxsize=8)
def compared_strings(source: str) -> dict[str, list[str]]:
    """Name -> the strings that the template compares it with."""
    found: dict[str, dict[str, None]] = {}
    for name, single, double in COMPARED[0].findall(source):
        found.setdefault(name, {})[single or double] = None
    for single, double, name in COMPARED[1].findall(source):
        found.setdefault(name, {})[single or double] = None
    for name, listed in LISTED.findall(source):
        found.setdefault(name, {}).update(dict.fromkeys(a or b for a, b in STRINGS.findall(listed)))
    return {name: list(strings) for name, strings in found.items()}
