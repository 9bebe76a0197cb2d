"""Where in a template something is, and how an error shows it."""

from __future__ import annotations

from bisect import bisect_left

from jinjarun.errors import TemplateSyntaxError, quote

_BEFORE, _AFTER = 60, 40
"""Characters of the line that an excerpt shows on either side of the place."""


class Source:
    """A template's text as its engine sees it, with the engine's name for messages.

    `newlines[n]` is the offset of the line feed that ends line `n`; -1 stands before the first line.
    """

    __slots__ = ("engine", "newlines", "text")

    def __init__(self, text: str, engine: str) -> None:
        self.text = text
        self.engine = engine
        self.newlines = [-1]
        find, offset = text.find, text.find("\n")
        while offset >= 0:
            self.newlines.append(offset)
            offset = find("\n", offset + 1)
        self.newlines.append(len(text) + 1)

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column, both 1-based."""
        line = bisect_left(self.newlines, offset, lo=1)
        return line, offset - self.newlines[line - 1]

    def error(self, message: str, offset: int, hint: str = "") -> TemplateSyntaxError:
        return self.error_at(message, *self.place(offset), hint)

    def error_at(self, message: str, line: int, column: int, hint: str = "") -> TemplateSyntaxError:
        return TemplateSyntaxError(message, line=line, column=column, excerpt=self.excerpt(line, column), hint=hint)

    def excerpt(self, line: int, column: int) -> str:
        """The line, or what of it is near, and a caret under the column."""
        start = self.newlines[line - 1] + 1
        content = self.text[start : self.newlines[line]]
        here = column - 1
        before = quote(content[max(0, here - _BEFORE) : here])
        if here > _BEFORE:
            before = "..." + before
        after = quote(content[here : here + _AFTER]) + ("..." if len(content) > here + _AFTER else "")
        return f"{before}{after}\n{' ' * len(before)}^"
