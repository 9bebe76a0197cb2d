"""Text -> tokens, in two parallel lists: what the grammar calls each, and where it stands with its value.

Whitespace control happens here, so that TEXT is what will be written; so do the limits on size, before any parsing.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from jinjarun.errors import quote
from jinjarun.limits import Limits, Meter, utf8_size
from jinjarun.syntax.escapes import c_unescape, python_unescape
from jinjarun.syntax.excerpts import Source

if TYPE_CHECKING:
    from jinjarun.syntax.rules import SyntaxRules

Token = tuple[int, int, Any]
"""Line, column (both 1-based) and value: text, or the number itself, or a string's content."""

END_OF_INPUT = "$END"

_KEYWORDS = frozenset({"and", "or", "not", "if", "else", "is", "in"})
_KEYWORDS_OF_TAGS = {
    "for": _KEYWORDS | {"recursive"},
    "import": _KEYWORDS | {"as"},
    "from": _KEYWORDS | {"as", "import"},
}
KEYWORDS = _KEYWORDS.union(*_KEYWORDS_OF_TAGS.values())
KEYWORD_PAIRS = {"not in": ("not", "in"), "ignore missing": ("NAME", "NAME"), "with context": ("NAME", "NAME")}
"""Keywords of two words, and what the words are where the grammar does not allow the pair."""

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_OPERAND_ENDS = frozenset({"NAME", "ATTRIBUTE", "FILTER", "STRING", "INTEGER", "FLOAT", ")", "]"})
_BEFORE_IS = _OPERAND_ENDS | {"}"}

(
    _PAIR,
    _NAME,
    _ATTRIBUTE,
    _FILTER,
    _STRING,
    _END,
    _CLOSE,
    _SIGNED,
    _FLOAT,
    _INTEGER,
    _OPEN_BRACKET,
    _CLOSE_BRACKET,
    _OPERATOR,
    _OTHER_NAME,
    _OTHER,
) = range(1, 16)
"""The groups of the pattern below."""
_NAMES = (_NAME, _OTHER_NAME)
_ENDS = (_END, _CLOSE)

_TOKEN = r"""{blank}*(?:
      ({pair})
    | ({name})
    | \.{blank}*({name})
    | \|{blank}*({name})
    | ('[^'\\]*(?:\\.[^'\\]*)*' | "[^"\\]*(?:\\.[^"\\]*)*")
    | (-%\}}{trimmed}* | %\}}\n? {plus})
    | (-\}}\}}{trimmed}* | \}}\}})
    | ({signed})
    | ({float})
    | ({integer})
    | ([(\[{{])
    | ([)\]}}])
    | (// | \*\* | [=!<>]= | [-+*/%~<>=.:|,;])
    | ({other})
    | (.)
)"""
_ASSIGNED = re.compile(r"\s*=(?!=)")
_ASCII_NAME = r"[A-Za-z_][A-Za-z0-9_]*+"


class _Patterns(NamedTuple):
    opening: re.Pattern[str]
    comment: re.Pattern[str]
    tag: re.Pattern[str]
    raw: re.Pattern[str]
    endraw: re.Pattern[str]
    token: re.Pattern[str]


@lru_cache(maxsize=8)
def _patterns(rules: SyntaxRules) -> _Patterns:
    signs, plus_block, plus_comment = ("[-+]?", r"| \+%\}", r"\+\#\}|") if rules.plus else ("-?", "", "")
    comment_signs = signs if rules.plus else ""
    blank, trimmed = rules.blank, rules.trimmed
    token = _TOKEN.format(
        pair=r"not\s+in(?!\w) | ignore\s+missing(?!\w) | with(?:out)?\s+context(?!\w)" if rules.keywords else "(?!)",
        blank=blank,
        trimmed=trimmed,
        plus=plus_block,
        name=_ASCII_NAME + r"(?![^\x00-\x7f])" if rules.unicode_names else _ASCII_NAME,
        float=rules.float_pattern,
        integer=rules.integer_pattern,
        signed=rf"[-+](?:{rules.float_pattern}|{rules.integer_pattern})?" if rules.signed_numbers else "(?!)",
        other=r"(?:\w|[^\x00-\x7f\s])+" if rules.unicode_names else "(?!)",
    )
    return _Patterns(
        opening=re.compile(rf"\{{([%{{\#])({signs})"),
        comment=re.compile(rf"\{{\#{comment_signs}.*?(?:{plus_comment}-\#\}}{trimmed}*|\#\}}\n?)", re.S),
        tag=re.compile(rf"{blank}*([^\W\d]\w*)"),
        raw=re.compile(r"\s*raw\s*(?:-%\}\s*|%\})"),
        endraw=re.compile(r"\{%([-+]?)\s*endraw\s*(?:\+%\}|-%\}\s*|%\}\n?)"),
        token=re.compile(token, re.S | re.X),
    )


def tokenize(text: str, rules: SyntaxRules, limits: Limits) -> tuple[Source, list[str], list[Token]]:
    """The source as the engine sees it, and the kinds and the tokens of it, ended by END_OF_INPUT."""
    if utf8_size(text) > limits.source_bytes:
        raise Meter(limits).exceeded("source_bytes")
    last = text[-1:]
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if last and last in rules.last_newline:
        text = text[:-1]
    lexer = _Lexer(Source(text, rules.engine), rules, limits)
    lexer.read()
    return lexer.source, lexer.kinds, lexer.tokens


class _Lexer:
    def __init__(self, source: Source, rules: SyntaxRules, limits: Limits) -> None:
        self.source = source
        self.rules = rules
        self.limits = limits
        self.patterns = _patterns(rules)
        self.kinds: list[str] = []
        self.tokens: list[Token] = []

    def read(self) -> None:
        text, rules, patterns = self.source.text, self.rules, self.patterns
        position = 0
        while True:
            opening = patterns.opening.search(text, position)
            if opening is None:
                self.add_text(text[position:], position)
                break
            start, after = opening.span()
            kind, sign = opening.groups()
            self.add_text(self.trim(position, start, kind, sign), position)
            if kind == "#":
                comment = patterns.comment.match(text, start)
                if comment is None:
                    if after == len(text) and rules.open_at_the_end:
                        break
                    self.fail("this comment is not closed", start, "end it with `#}`")
                position = comment.end()
                continue
            if sign and rules.second_dash_ignored and text.startswith("-", after):
                after += 1
            if kind == "{":
                self.add("{{", start, "{{")
                position = self.read_tag(after, "{{", start)
                continue
            tag = patterns.tag.match(text, after)
            word = tag[1] if tag else ""
            if word in rules.tags:
                if word == "raw" and (raw := patterns.raw.match(text, after)):
                    position = self.read_raw(raw.end(), start)
                    continue
                self.add("{% " + word, start, word)
                position = self.read_tag(tag.end(), word, start)  # type: ignore[union-attr]
            else:
                self.unknown_tag(word, start)
        self.add(END_OF_INPUT, len(text), "")
        self.check_count(len(text))

    def add(self, kind: str, offset: int, value: str) -> None:
        self.kinds.append(kind)
        self.tokens.append((*self.source.place(offset), value))

    def add_text(self, value: str, offset: int) -> None:
        if value:
            self.add("TEXT", offset, value)

    def check_count(self, offset: int) -> None:
        if len(self.kinds) > self.limits.tokens:
            self.exceed("tokens", offset)

    def exceed(self, limit: str, offset: int) -> NoReturn:
        error = Meter(self.limits).exceeded(limit)
        error.line, error.column = self.source.place(offset)
        raise error

    def fail(self, message: str, offset: int, hint: str = "") -> NoReturn:
        raise self.source.error(message, offset, hint)

    def trim(self, start: int, end: int, kind: str, sign: str) -> str:
        """The text before a tag, without what `-` or lstrip_blocks takes from its end."""
        text, rules = self.source.text, self.rules
        data = text[start:end]
        line = data.rfind("\n") + 1
        if (
            rules.loses_first_character
            and start == 0
            and kind != "{"
            and line < 2
            and data[:1].isascii()
            and not data[1:].strip(rules.blanks)
        ):
            return ""
        if sign == "-":
            return data.rstrip(rules.trimmed_characters)
        if (
            kind != "{"
            and sign != "+"
            and (line or start == 0 or text[start - 1] == "\n")
            and not data[line:].strip(rules.blanks)
        ):
            return data[:line]
        return data

    def read_raw(self, start: int, opened: int) -> int:
        text = self.source.text
        end = self.patterns.endraw.search(text, start)
        if end is None:
            if start == len(text):
                return start
            self.fail("this raw block is not closed", opened, "end it with `{% endraw %}`")
        self.add_text(self.trim(start, end.start(), "%", end[1]), start)
        return end.end()

    def unknown_tag(self, word: str, offset: int) -> NoReturn:
        if word:
            hint = self.rules.unknown_tag_hints.get(word) or f"{self.source.engine} has no such tag"
            self.fail(f"unknown tag `{quote(word)}`", offset, hint)
        self.fail("a tag's name is expected after `{%`", offset)

    def read_tag(self, start: int, tag: str, opened: int) -> int:
        """Read the tokens of a tag, up to where the text after it begins."""
        source, rules = self.source, self.rules
        text, newlines = source.text, source.newlines
        add_kind, add_token, kinds = self.kinds.append, self.tokens.append, self.kinds
        keywords = _KEYWORDS_OF_TAGS.get(tag, _KEYWORDS) if rules.keywords else ()
        brackets: list[tuple[str, int]] = []
        line = source.place(start)[0]
        scan = self.patterns.token.finditer
        restart = start
        while restart >= 0:
            matches, restart = scan(text, restart), -1
            for match in matches:
                group = match.lastindex
                assert group is not None
                offset = match.start(group)
                value: Any = match[group]
                while offset > newlines[line]:
                    line += 1
                if group in _NAMES:
                    if group == _OTHER_NAME and not value.isidentifier():
                        self.fail(f"unexpected character in a name: `{quote(value)}`", offset)
                    kind = "NAME"
                    if value in keywords:
                        kind = self.keyword(value, offset, match.end())
                    elif group == _OTHER_NAME and kinds[-1] in (".", "|"):
                        kinds[-1] = "ATTRIBUTE" if kinds[-1] == "." else "FILTER"
                        self.tokens[-1] = (*self.tokens[-1][:2], value)
                        continue
                elif group == _ATTRIBUTE:
                    kind = "ATTRIBUTE"
                elif group == _STRING:
                    kind = "STRING"
                    value = value[1:-1]
                    if "\\" in value:
                        value = self.unescape(value, offset)
                elif group == _OPERATOR:
                    kind = value
                elif group == _OPEN_BRACKET:
                    kind = "SIGNATURE" if kinds[-1] == "{% call" and value == "(" and rules.keywords else value
                    brackets.append((_CLOSING[value], offset))
                    if len(brackets) > self.limits.brackets:
                        self.exceed("brackets", offset)
                    if value == "{" and not rules.double_braces and text.startswith(("{", "%"), offset + 1):
                        self.fail("a tag opens inside of a tag", offset, "put a space between the braces")
                elif group == _CLOSE_BRACKET:
                    kind = value
                    if not brackets:
                        self.fail(f"`{value}` closes nothing", offset)
                    expected, bracket = brackets.pop()
                    if value != expected:
                        self.fail(f"`{value}` where `{expected}` is expected", offset, self.opened_at(bracket))
                elif group == _FILTER:
                    kind = "FILTER"
                elif group in _ENDS:
                    if brackets and value == "}}" and brackets[-1][0] == "}":
                        brackets.pop()
                        kind = value = "}"
                        restart = offset + 1
                    else:
                        kind = "%}" if group == _END else "}}"
                        if brackets:
                            expected, bracket = brackets[-1]
                            self.fail(f"`{expected}` expected before the tag ends", offset, self.opened_at(bracket))
                        if (kind == "}}") != (tag == "{{") and tag not in rules.ignored_tags:
                            self.fail(f"`{kind}` does not end this tag", offset, self.opened_at(opened))
                        add_kind(kind)
                        add_token((line, offset - newlines[line - 1], kind))
                        self.check_count(offset)
                        return match.end()
                elif group == _INTEGER:
                    kind = "INTEGER"
                    value = self.integer(value, offset)
                elif group == _FLOAT:
                    kind = "FLOAT"
                    value = self.float(value, offset)
                elif group == _PAIR:
                    kind = "with context" if value[0] == "w" else "not in" if value[0] == "n" else "ignore missing"
                    if kind == "not in" and self.names_test():
                        add_kind("NAME")
                        add_token((line, offset - newlines[line - 1], "not"))
                        kind = value = "in"
                elif group == _SIGNED:
                    number = value[1:]
                    before = kinds[-1]
                    operator = before in _OPERAND_ENDS or before.startswith("{% ")
                    if operator or not number:
                        add_kind(value[0] if operator else "SIGN")
                        add_token((line, offset - newlines[line - 1], value[0]))
                        if not number:
                            continue
                        value = number
                    kind = "FLOAT" if "." in number else "INTEGER"
                    value = self.float(value, offset) if kind == "FLOAT" else self.integer(value, offset)
                else:
                    self.fail(*self.unexpected(value, offset))
                add_kind(kind)
                add_token((line, offset - newlines[line - 1], value))
                if restart >= 0:
                    break
        return self.fail("this tag is not closed", opened, f"end it with `{'}}' if tag == '{{' else '%}'}`")

    def opened_at(self, offset: int) -> str:
        line, column = self.source.place(offset)
        return f"`{self.source.text[offset : offset + 2].strip()}` was opened in line {line}, column {column}"

    def keyword(self, word: str, offset: int, end: int) -> str:
        """The kind of a word that may be a keyword."""
        if word == "not" and _ASSIGNED.match(self.source.text, end):
            return "NAME"
        kinds = self.kinds
        after_is = kinds[-2:] == ["is", "not"] or (word != "not" and kinds[-1] == "is")
        if after_is and kinds[-3 if kinds[-1] == "not" else -2] in _BEFORE_IS:
            return "NAME"
        if word not in ("and", "or", "else") and self.names_test():
            if word == "is":
                self.fail("tests cannot be chained", offset, "join them with `and`")
            return "NAME"
        return word

    def names_test(self) -> bool:
        """The tokens so far end with the name of a test."""
        kinds = self.kinds
        at = len(kinds) - 1
        while kinds[at] == "ATTRIBUTE":
            at -= 1
        return kinds[at] == "NAME" and (kinds[at - 1] == "is" or kinds[at - 2 : at] == ["is", "not"])

    def unexpected(self, character: str, offset: int) -> tuple[str, int, str]:
        if character in "'\"":
            return "this string is not closed", offset, f"end it with {character}"
        hints = {"&": "write `and`", "!": "write `not`", "?": "write `a if test else b`", "|": "write `or`"}
        return f"unexpected character `{quote(character)}`", offset, hints.get(character, "")

    def integer(self, digits: str, offset: int) -> int:
        bits = self.rules.integer_bits or self.limits.integer_bits
        try:
            if self.rules.integer_bits:
                value = int(digits) if len(digits) <= bits else 1 << bits
            else:
                value = int(digits.replace("_", ""), 0) if len(digits) < bits + 64 else 1 << bits
        except ValueError:  # more digits than Python converts
            value = 1 << bits
        if self.rules.integer_bits:
            if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
                self.fail("this integer is out of range", offset, f"{self.source.engine} has {bits} bits for it")
        elif value.bit_length() > bits:
            self.exceed("integer_bits", offset)
        return value

    def float(self, digits: str, offset: int) -> float:
        value = float(digits.replace("_", ""))
        if not digits.isascii():
            self.fail("a number has ASCII digits", offset)
        if self.rules.integer_bits and value in (float("inf"), float("-inf")):
            self.fail("this number is out of range", offset)
        return value

    def unescape(self, text: str, offset: int) -> str:
        try:
            return python_unescape(text) if self.rules.python_escapes else c_unescape(text)
        except ValueError as error:
            self.fail(str(error), offset, "write a backslash as `\\\\`")
