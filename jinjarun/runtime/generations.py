"""Where `{% generation %}` blocks wrote: the text of the model's turns, for a training mask."""

from __future__ import annotations


class Generations:
    """The places of one render's blocks, as transformers 5.24 finds them (chat_template_utils, AssistantTracker).

    A block starts where the text of the top level ends when the block is done, and is as long as its own text. That is
    where it stands, unless a macro, a `set`, `filter` or `call` block, a recursive loop or another generation block
    writes it: those hold their text back, so it is placed where their text will begin.

    `spans` are code points `(start, end)`, ends exclusive, in the order in which the blocks ended. `top_level` is the
    list that receives the output of the render.
    """

    __slots__ = ("_counted", "_length", "spans", "top_level")

    def __init__(self) -> None:
        self.spans: list[tuple[int, int]] = []
        self.top_level: list[str] = []
        self._counted = 0
        self._length = 0

    def note(self, text: str) -> None:
        """A block is done; its text is not written yet."""
        self._length += sum(map(len, self.top_level[self._counted :]))
        self._counted = len(self.top_level)
        self.spans.append((self._length, self._length + len(text)))
