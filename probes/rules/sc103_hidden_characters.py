"""The source holds characters that nobody sees, or letters that look like others.

What it does: looks for characters that turn the direction of text or have no width, and for Cyrillic or Greek letters
in the middle of a Latin word.

Why it is bad: what a reader approves is not what an engine runs. A marker with a Cyrillic letter is no token, a
comparison with a hidden character in it is never true, or true only for those who know.

Example: `{% if m.role == 'sуstem' %}`, whose second letter is Cyrillic.

Use instead: the plain characters; where one is meant, its escape, which a reader sees: `'\\u200b'`.

References: CVE-2021-42574 ("Trojan Source"); the full-width bars of DeepSeek's markers are visible and not reported.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from probes.rules.base import Rule
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.rules.view import Facts

HIDDEN = re.compile(r"[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069]|(?<!\A)\ufeff")
LATIN, OTHER = "A-Za-z", "\u0370-\u03ff\u0400-\u04ff"
MIXED = re.compile(rf"(?<![\\{LATIN}{OTHER}])(?:[{LATIN}]+[{OTHER}]+|[{OTHER}]+[{LATIN}]+)")
"""A word that begins in one script and goes on in another; `\\n` before a word is no letter of it."""


def check(facts: Facts) -> list[Hit]:
    source = facts.source
    places = [*HIDDEN.finditer(source), *MIXED.finditer(source)]
    if not places:
        return []
    found = places[0]
    strange = next(character for character in found[0] if not character.isascii())
    name = unicodedata.name(strange, "a character without a name")
    kind = "in a Latin word" if MIXED.fullmatch(found[0]) else "hidden"
    line = source.count("\n", 0, found.start()) + 1
    column = found.start() - source.rfind("\n", 0, found.start())
    message = f"U+{ord(strange):04X} {name}, {kind}; {len(places)} such place{'s' if len(places) != 1 else ''}"
    engines = [path for path in facts.renders.paths if facts.renders.loads(path) is None]
    return [Hit(message=message, engines=engines, line=line, column=column, cause="hidden characters")]


RULE = Rule(
    code="SC103",
    name="hidden-characters",
    severity="warning",
    summary="Bidirectional, zero-width or look-alike characters in literals or markers.",
    suggestion="write the plain character, or an escape that a reader sees",
    check=check,
    triggers="{% for m in messages %}<|\u200b{{ m.role }}|>{{ m.content }}{% endfor %}",
    repaired="{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}",
    healthy="{% for m in messages %}<｜{{ m.role }}｜>{{ m.content }}<｜end▁of▁sentence｜>{% endfor %}Привет, 你好 🙂",
    documentation=__doc__,
)
