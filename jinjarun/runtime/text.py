"""Strings that know their origin.

With spans on, every string of a render that stems from an input or from a literal is a `Text`: a str that also holds
the pieces it was made of and where each came from. A plain str met there was computed (a number printed, JSON written).
`is_input` follows llama.cpp's rules for the parts of its strings (common/jinja/string.cpp): joining keeps the parts,
case and trimming work part by part, and what rebuilds a string (replace, split, indent, slices) yields one part, which
counts as input only if all of the source did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from jinjarun.runtime.run import Run


class Origin(NamedTuple):
    """Where a piece of text stems from: `place` is "line 12" of the template, or a path as "messages[1].content"."""

    is_input: bool
    place: str


COMPUTED = Origin(is_input=False, place="")
"""Of text that no literal and no input holds as it stands."""


class Text(str):
    """A str made of `parts`, each a piece and its Origin; the pieces joined are the string."""

    __slots__ = ("_origin", "parts")
    parts: tuple[tuple[str, Origin], ...]
    _origin: Origin

    @classmethod
    def of(cls, text: str, origin: Origin) -> Text:
        self = cls(text)
        self.parts = ((text, origin),)
        return self

    @classmethod
    def joined(cls, parts: Iterable[tuple[str, Origin]]) -> Text:
        kept = tuple(parts)
        self = cls("".join([piece for piece, _ in kept]))
        self.parts = kept
        return self

    @property
    def origin(self) -> Origin:
        """Of a string rebuilt from this one: an input's only if all parts are."""
        try:
            return self._origin
        except AttributeError:
            first = self.parts[0][1] if self.parts else Origin(is_input=True, place="")
            self._origin = next((origin for _, origin in self.parts if not origin.is_input), first)
            return self._origin


Text.__name__, Text.__module__ = "str", "builtins"  # as messages of Python and Jinja2 about a value name its type


def parts_of(text: str) -> tuple[tuple[str, Origin], ...]:
    return text.parts if type(text) is Text else ((str(text), COMPUTED),)


def join(run: Run, texts: Sequence[str]) -> Text:
    """The texts one after the other, all parts kept; a text of several costs a step for each further one."""
    parts: list[tuple[str, Origin]] = []
    for text in texts:
        more = parts_of(text)
        if len(more) > 1:
            run.charge(len(more) - 1)
        parts += more
    made = Text("".join(texts))
    made.parts = tuple(parts)
    return made


def repeat(run: Run, text: str, times: int) -> str:
    """`text * times`, all parts kept, a step each."""
    if type(text) is not Text or not text:
        return text * times
    run.charge(len(text.parts) * max(times, 0))
    return Text.joined(text.parts * times)


def map_parts(run: Run, function: Callable[[str], str], text: str) -> str:
    """`function` on each part by itself, as llama.cpp changes case; on a plain str just `function(text)`."""
    if type(text) is not Text:
        return function(text)
    run.charge(len(text.parts))
    return Text.joined((function(piece), origin) for piece, origin in text.parts)


def strip_parts(run: Run, text: str, chars: str, *, left: bool, right: bool) -> str:
    """`text` without leading and trailing `chars`, part by part from the ends."""
    if type(text) is not Text:
        if left and right:
            return text.strip(chars)
        return text.lstrip(chars) if left else text.rstrip(chars)
    run.charge(len(text.parts))
    parts = list(text.parts[::-1])
    while left and parts:
        piece, origin = parts[-1]
        piece = piece.lstrip(chars)
        if piece:
            parts[-1] = (piece, origin)
            break
        del parts[-1]
    parts.reverse()
    while right and parts:
        piece, origin = parts[-1]
        piece = piece.rstrip(chars)
        if piece:
            parts[-1] = (piece, origin)
            break
        del parts[-1]
    return Text.joined(parts)


def derived(result: str, source: str) -> str:
    """`result`, rebuilt from `source`: one part, input only if all of the source was."""
    return Text.of(result, source.origin) if type(source) is Text else result
