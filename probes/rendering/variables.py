"""Which variables a template takes from the caller."""

from __future__ import annotations

import re
from collections.abc import Iterator
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


QUESTION = re.compile(r"\bis\s+(?:not\s+)?(?:defined|undefined|none)\b|\|\s*(?:default|d)\b")
"""What follows a name that is asked about before it is trusted."""
LAST_NAME = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\s*$")
STRING = r"""(?:'([^'\n]*)'|"([^"\n]*)")"""
AFTER = re.compile(rf"(?:\s*\|\s*\w+)*\s*(?:[!=]=\s*{STRING}|(?:not\s+)?in\s*[\[(]([^\])]*)[\])])")
BEFORE = re.compile(rf"{STRING}\s*[!=]=\s*$")
NUMBER_AFTER = re.compile(r"(?:\s*\|\s*\w+)*\s*(?:[!=]=|<=?|>=?)\s*-?\d")
STRINGS = re.compile(STRING)
WORD_PART = re.compile(r"[\w.]")
REACH = 60
"""Characters before a place that are looked at."""


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
    guarded = _guarded(source)
    return sorted(name for name in names - STANDARD if name not in own or name in guarded)


@lru_cache(maxsize=8)
def _guarded(source: str) -> frozenset[str]:
    names = (LAST_NAME.search(source, max(0, at.start() - REACH), at.start()) for at in QUESTION.finditer(source))
    return frozenset(name[1] for name in names if name is not None)


def compared_strings(source: str, name: str) -> list[str]:
    """The strings that the template compares the variable with, in the order of the source."""
    found: dict[str, None] = {}
    for start, end in _places(source, name):
        before, after = BEFORE.search(source, max(0, start - REACH), start), AFTER.match(source, end)
        if before is not None:
            found[before[1] or before[2] or ""] = None
        if after is not None and after[3] is not None:
            found |= dict.fromkeys(a or b for a, b in STRINGS.findall(after[3]))
        elif after is not None:
            found[after[1] or after[2] or ""] = None
    return list(found)


def is_compared_with_numbers(source: str, name: str) -> bool:
    return any(NUMBER_AFTER.match(source, end) for _, end in _places(source, name))


def _places(source: str, name: str) -> Iterator[tuple[int, int]]:
    """Where the name stands as a word of its own."""
    at = source.find(name)
    while at >= 0:
        end = at + len(name)
        if not WORD_PART.match(source, end) and not (at and WORD_PART.match(source, at - 1)):
            yield at, end
        at = source.find(name, end)
