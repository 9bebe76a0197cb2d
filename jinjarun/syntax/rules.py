"""How two engines read the same grammar differently: everything that a dialect says about syntax, as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_IN_BOTH = "if elif else endif for endfor set endset macro endmacro call endcall filter endfilter break continue"
_IN_JINJA2 = (
    "with endwith block endblock autoescape endautoescape generation endgeneration "
    "print raw include import from extends"
)
_DIGITS = r"\d++(?:_\d++)*+"


@dataclass(frozen=True, eq=False, slots=True)
class SyntaxRules:
    """What one engine reads. Instances compare by identity: JINJA2 and LLAMA_CPP are all there are."""

    engine: str
    """As error messages name it."""
    tags: frozenset[str]
    """Words that may follow `{%`."""
    ignored_tags: frozenset[str] = frozenset()
    """Those of them that mean nothing, whatever ends them."""
    unknown_tag_hints: Mapping[str, str] = field(default_factory=dict)
    without: Mapping[str, str] = field(default_factory=dict)
    """What this engine does not read where it is likely to be written: a token, or a production of the grammar by its
    alias -> a hint."""
    constants: Mapping[str, bool | None] = field(default_factory=dict)
    """Names that are literals, and so can never be assigned."""

    # Text
    blank: str = r"\s"
    """White space between tokens, as a regular expression."""
    trimmed: str = r"\s"
    """White space that `-` removes beside a tag, as a regular expression."""
    blanks: str | None = None
    """White space that lstrip_blocks removes; None for all that Python calls so."""
    trimmed_characters: str | None = None
    """`trimmed` as characters."""
    plus: bool = True
    """`{%+` and `+%}` suspend lstrip_blocks and trim_blocks."""
    second_dash_ignored: bool = False
    """`{{--x` reads as `{{-x`."""
    loses_first_character: bool = False
    """A single character before the blanks before the template's first tag is dropped with them."""
    last_newline: str = "\r\n"
    """Characters of which one (or a pair `\\r\\n`) is dropped at the very end."""
    open_at_the_end: bool = True
    """A comment or raw block that opens in the last characters needs no end."""

    # Tokens
    keywords: bool = True
    """By where it stands, a word is a keyword, and grammar.lark reads what comes of it; else all words are names, and
    descent.py reads them."""
    double_braces: bool = True
    """`{{` inside of a tag is a brace, twice."""
    float_pattern: str = rf"(?<!\.){_DIGITS}(?:(?:\.{_DIGITS})?[eE][+\-]?{_DIGITS}|\.{_DIGITS})"
    integer_pattern: str = r"0[bB](?:_?[01])++|0[oO](?:_?[0-7])++|0[xX](?:_?[\da-fA-F])++|[1-9](?:_?\d)*+|0(?:_?0)*+"
    integer_bits: int | None = None
    """Size of an integer; None where `Limits.integer_bits` is the only bound."""
    signed_numbers: bool = False
    """The token before `-` or `+` decides what it is: an operator after a word (keywords too), a number, a string, `)`
    or `]`; else a sign, which belongs to the digits directly after it."""
    unicode_names: bool = True
    python_escapes: bool = True
    """Escapes in strings are Python's; else the few of C, and any other is an error."""


JINJA2 = SyntaxRules(
    engine="Jinja2",
    tags=frozenset(f"{_IN_BOTH} {_IN_JINJA2}".split()),
    constants=MappingProxyType(
        {"true": True, "True": True, "false": False, "False": False, "none": None, "None": None}
    ),
    unknown_tag_hints=MappingProxyType(
        {
            "do": "transformers does not enable `do`; use {% set _ = ... %} or a namespace",
            "trans": "transformers does not enable the i18n extension",
            "debug": "transformers does not enable the debug extension",
            "endraw": "there is no open {% raw %}",
            "elseif": "the tag is `elif`",
            "elsif": "the tag is `elif`",
            "while": "Jinja2 has no while; use {% for %} over a range, with {% break %}",
        }
    ),
    without=MappingProxyType(
        {
            "parameters_end": "no comma may follow the last parameter",
            "condition_inline_if": "Jinja2 reads no inline if here; put it in parentheses",
            "iterate_inline_if": "Jinja2 reads no inline if with an else here; put it in parentheses",
        }
    ),
)
"""Jinja2 3.1.6 as transformers configures it: trim_blocks, lstrip_blocks, loop controls and `generation`."""

LLAMA_CPP = SyntaxRules(
    engine="llama.cpp",
    tags=frozenset([*_IN_BOTH.split(), "generation", "endgeneration"]),
    ignored_tags=frozenset({"generation", "endgeneration"}),
    unknown_tag_hints=MappingProxyType(
        {
            "raw": "llama.cpp has no raw blocks; write {{ '{{' }} for literal braces",
            "endraw": "llama.cpp has no raw blocks; write {{ '{{' }} for literal braces",
            "with": "llama.cpp has no `with`; use {% set %}",
            "block": "llama.cpp has no template inheritance; remove the tag and keep its body",
            "include": "llama.cpp cannot load other templates; copy the text here",
            "import": "llama.cpp cannot load other templates; copy the macros here",
            "from": "llama.cpp cannot load other templates; copy the macros here",
            "extends": "llama.cpp cannot load other templates; copy the text here",
            "autoescape": "llama.cpp never escapes; remove the tag",
            "print": "use {{ ... }}",
            "do": "llama.cpp has no `do`; use {% set _ = ... %}",
            "trans": "llama.cpp has no translations",
            "elseif": "the tag is `elif`",
            "elsif": "the tag is `elif`",
            "while": "there is no while; use {% for %} over a range, with {% break %}",
        }
    ),
    without=MappingProxyType(
        {
            "//": "llama.cpp has no `//`; use (a / b)|int",
            "**": "llama.cpp has no `**`; multiply instead",
            ":": "llama.cpp reads no colon before `%}`",
            ",": "write one value, one condition, or a list",
            "ATTRIBUTE": "names of filters and tests have no dots",
        }
    ),
    blank=r"[ \t\n\v\f\r]",
    trimmed=r"[ \t\n]",
    blanks=" \t\n\v\f\r",
    trimmed_characters=" \t\n",
    plus=False,
    second_dash_ignored=True,
    loses_first_character=True,
    last_newline="\n",
    open_at_the_end=False,
    keywords=False,
    double_braces=False,
    float_pattern=r"[0-9]+\.[0-9]+",
    integer_pattern=r"[0-9]+",
    integer_bits=64,
    signed_numbers=True,
    unicode_names=False,
    python_escapes=False,
)
"""llama.cpp's own engine, build b11434 (common/jinja)."""
