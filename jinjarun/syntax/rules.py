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
_TARGETS = "only a name, `namespace.attribute`, or a tuple of them can be assigned"


@dataclass(frozen=True, eq=False, slots=True)
class SyntaxRules:
    """What one engine reads. Instances compare by identity: JINJA2 and LLAMA_CPP are all there are."""

    engine: str
    """As error messages name it."""
    tags: frozenset[str]
    """Words that may follow `{%`."""
    ignored_tags: frozenset[str] = frozenset()
    """Words that may follow `{%` and mean nothing."""
    unknown_tag_hints: Mapping[str, str] = field(default_factory=dict)
    without: Mapping[str, str] = field(default_factory=dict)
    """What the grammar has and this engine does not: the alias of a production or the text of a terminal -> a hint."""
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
    words_after_test: bool = True
    """After the name of a test any word but `and`, `or` and `else` is its argument: `x is string if y` fails."""

    # What is found when a node is complete
    strict_targets: bool = True
    """Only what can be assigned is read as a target; else the rest fails when it is reached."""
    ordered_arguments: bool = True
    """Positional arguments come first, `*` and `**` occur once each, and no keyword or parameter twice."""
    call_block_callee: bool = False
    """The call of a call block is of a plain name."""
    filtered_group: bool = False
    """`for x in (y if c)` filters as `for x in y if c` does."""
    compiled_to_python: bool = True
    """Refuse what Jinja2 parses but cannot compile: `break` outside of a loop, `set loop` inside of one."""


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
            "JUXTAPOSED": "",
            "parameters_end": "no comma may follow the last parameter",
            "condition_inline_if": "Jinja2 reads no inline if here; put it in parentheses",
            "iterate_inline_if": "Jinja2 reads no inline if with an else here; put it in parentheses",
            "member_target": _TARGETS,
            "item_target": _TARGETS,
            "call_target": _TARGETS,
        }
    ),
)
"""Jinja2 3.1.6 as transformers configures it: trim_blocks, lstrip_blocks, loop controls and `generation`."""

LLAMA_CPP = SyntaxRules(
    engine="llama.cpp",
    tags=frozenset(_IN_BOTH.split()),
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
            "colon": "llama.cpp reads no colon before `%}`",
            "recursive": "llama.cpp has no recursive loops",
            "filter_of_test": "put the test in parentheses before filtering it",
            "dotted_filter": "a filter's name has no dots",
            "dotted_test": "a test's name has no dots",
            "block_filter_chain": "llama.cpp applies one filter a block; nest {% filter %} blocks",
            "call_result": "put the value in parentheses before calling it",
            "inline_if_again": "put the first inline if in parentheses",
            "inline_if_again_else": "put the first inline if in parentheses",
            "iterate_if_inline_if": "put the condition in parentheses",
            "output_tuple": "write one value",
            "empty_tuple": "llama.cpp has no empty tuples; use []",
            "one_tuple": "no comma may follow the last item of a tuple",
            "tuple_end": "no comma may follow the last item of a tuple",
            "set_head_one_target": "no comma may follow the last target",
            "set_head_target_list": "no comma may follow the last target",
            "condition_tuple": "write one condition",
            "iterate_tuple": "write the items as a list",
            "iterate_tuple_if": "write the items as a list",
            "subscript_tuple": "write one index",
            "item_nothing": "an index is expected",
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
    double_braces=False,
    float_pattern=r"[0-9]+\.[0-9]+",
    integer_pattern=r"[0-9]+",
    integer_bits=64,
    signed_numbers=True,
    unicode_names=False,
    python_escapes=False,
    words_after_test=False,
    strict_targets=False,
    ordered_arguments=False,
    call_block_callee=True,
    filtered_group=True,
    compiled_to_python=False,
)
"""llama.cpp's own engine, build b11434 (common/jinja)."""
