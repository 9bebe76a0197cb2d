"""How the answers of a model are written, as data: what a template writes of a message, and so what a model writes.

Texts hold their white space as the template writes it. A reader needs their other characters; white space is taken off
the ends of content and reasoning where it stands as written, and elsewhere does not matter.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

Encoding = Literal["raw", "json", "python"]
Kind = Literal["string", "number", "boolean", "null", "array", "object"]
KINDS: tuple[Kind, ...] = ("string", "number", "boolean", "null", "array", "object")


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Region(Part):
    """A text between `open` and `close`; either may be empty or white space alone."""

    open: str = ""
    close: str = ""


class Reasoning(Region):
    """What the model thinks. `unclosed`: what a text is that the prompt opened as reasoning and that never ends: some
    templates write answers without reasoning so. Nothing of such a text is sure before its end."""

    unclosed: Literal["reasoning", "content"] = "reasoning"


class Content(Region):
    """The text for the user. `before_calls` stands for `close` where calls follow."""

    before_calls: str = ""


class Piece(Part):
    """A part of a call: a text that is always the same, or a slot.

    `name` is the function's, `id` the call's, `index` a number that counts calls, `arguments` all arguments, `key` the
    name of an argument in what closes its value.
    """

    text: str = ""
    slot: Literal["name", "id", "index", "arguments", "key"] | None = None


class JsonArguments(Part):
    """Arguments as one JSON object. `escaped`: inside a JSON string, without the quotes around it. `string_mark`: what
    stands for the quotes of a string, whose text is then not escaped, as are keys not quoted."""

    style: Literal["json"] = "json"
    escaped: bool = False
    string_mark: str = ""


class Value(Part):
    """How values of some kinds are written: after the key comes `open`, then the value in `encoding`, then `close`.

    A `raw` value of another kind than `string` is written as JSON or Python prints it.
    """

    kinds: tuple[Kind, ...] = KINDS
    open: str = ""
    close: tuple[Piece, ...] = ()
    encoding: Encoding = "raw"


class TaggedArguments(Part):
    """Arguments one by one: `open`, key, value; `between` stands between two of them.

    `nested`: objects and lists are written as further arguments, the items of a list under this key.
    """

    style: Literal["tagged"] = "tagged"
    open: str
    between: str = ""
    values: tuple[Value, ...]
    nested: str | None = None


class JsonCall(Part):
    """A call as a JSON object. `name`, `arguments` and `id` are the keys that lead to them, joined by dots; without
    `name` the function's name is itself the only key. `listed`: one list holds all calls of a message."""

    style: Literal["json"] = "json"
    name: str | None = "name"
    arguments: str = "arguments"
    id: str | None = None
    listed: bool = False


class PiecesCall(Part):
    """A call as texts and slots in their order."""

    style: Literal["pieces"] = "pieces"
    pieces: tuple[Piece, ...]
    arguments: JsonArguments | TaggedArguments


class Calls(Part):
    """How calls are written: `section.open`, then each call between `open` and `close`, `between` two of them, and
    `section.close`. What closes may be missing at the end of an answer, where the engine stops."""

    section: Region = Region()
    open: str = ""
    between: str = ""
    close: str = ""
    call: JsonCall | PiecesCall


class Channels(Part):
    """Messages with a header, as Harmony has them: the reader takes each message for itself, whatever the order of the
    words in its header. `start` begins one, `message` ends its header, `ends` end its text. A word after `channel` in
    `reasoning` makes it reasoning; a word after `recipient` makes it a call of that function."""

    start: str
    channel: str
    message: str
    ends: tuple[str, ...]
    reasoning: tuple[str, ...]
    recipient: str


class Written(Part):
    """All parts of a syntax; `ResponseSyntax` says what they are."""

    version: Literal[1] = 1
    generation_prompt: str = ""
    header: str = ""
    reasoning: Reasoning | None = None
    content: Content = Content()
    calls: Calls | None = None
    channels: Channels | None = None
    ends: tuple[str, ...] = ()
