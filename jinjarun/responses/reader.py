"""Reading an answer, in pieces as they come.

The reader is written as if all text were there. Where it needs more it yields, and goes on when there is some: so a
text in pieces is read by the same steps as a whole one. Nothing is said before it is sure, so what was said only grows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from jinjarun.responses.message import Problem
from jinjarun.responses.values import json_value, relaxed_value, typed, types_of

if TYPE_CHECKING:
    from jinjarun.responses.parts import (
        Calls,
        JsonArguments,
        JsonCall,
        PiecesCall,
        TaggedArguments,
        Value,
        Written,
    )

Need = Generator[None, None, Any]
"""A reader that yields when it needs more text."""

NAME = re.compile(r"[\w@$][\w.\-/:@$]{0,255}")
IN_NAME = re.compile(r"[\w.\-/:@$]")
DIGITS = re.compile(r"\d{1,9}")
CALL_ID = re.compile(r"[\w.\-:]{1,256}")
BARE = re.compile(r"[^\s,)}\]]+")
PLAIN_JSON = re.compile(r"[\s\w+\-.,:]*")
IN_STRING = re.compile(r'[^"\\]*')
CDATA = ("<![CDATA[", "]]>")
"""What XML writes around a text whose characters are not escaped."""
MOST_WASTED = 4_000_000
"""Code points that calls which turn out to be none may have cost; after that, nothing is tried as a call."""
LEADS: tuple[str, ...] = ("arguments", "parameters")
"""Keys under which models write arguments when they mix formats up."""


def chunks(text: str) -> tuple[str, ...]:
    """A text of the syntax without its white space, which does not matter inside of calls."""
    return tuple(text.split())


def leading_space(text: str) -> str:
    return text[: len(text) - len(text.lstrip())]


def trailing_space(text: str) -> str:
    return text[len(text.rstrip()) :]


@dataclass(frozen=True)
class Compiled:
    """What reading needs of a syntax, worked out once."""

    syntax: Written

    @cached_property
    def call_start(self) -> tuple[str, ...]:
        calls = self.syntax.calls
        if calls is None:
            return ()
        return chunks(calls.section.open) or chunks(calls.open) or self._first_piece

    @cached_property
    def _first_piece(self) -> tuple[str, ...]:
        call = self.syntax.calls.call if self.syntax.calls is not None else None
        if call is None or call.style != "pieces" or not call.pieces:
            return ()
        return chunks(call.pieces[0].text)

    @cached_property
    def starts(self) -> tuple[str, ...]:
        """The texts at which a call may begin in the middle of content."""
        calls = self.syntax.calls
        if calls is None:
            return ()
        inside = chunks(calls.open) or self._first_piece
        found = [start[0] for start in (self.call_start, inside) if start]
        return tuple(dict.fromkeys(found))

    @cached_property
    def exits(self) -> tuple[tuple[str, ...], ...]:
        """What ends content that has an opening text of its own."""
        content = self.syntax.content
        found = [chunks(content.close), chunks(content.before_calls)]
        return tuple(dict.fromkeys(exit for exit in found if exit))


class Reader:
    """One answer. `say` is told of every part as soon as it is sure: a kind and its text or call."""

    def __init__(
        self,
        compiled: Compiled,
        *,
        prefix: str,
        tools: dict[str, dict[str, Any]],
        strict: bool,
        say: Callable[[str, Any], None],
    ) -> None:
        self.compiled = compiled
        self.syntax = compiled.syntax
        self.tools = tools
        self.strict = strict
        self.say = say
        self.text = ""
        """What is not yet dropped of the text."""
        self.dropped = 0
        """How many code points were dropped before it."""
        self.final = False
        self.problems: list[Problem] = []
        self.complete = True
        self.cut = False
        """Whether what closes the calls was missing at the end."""
        self.wasted = 0
        self.furthest = 0
        self.then: tuple[tuple[str, ...], ...] = ()
        """Of a section that is open: what may follow a call."""
        self.called = False
        self.said_content = False
        """Whether content was said since the last call."""
        self.at = 0
        self.prefix = prefix or self.syntax.generation_prompt
        self.state = self._state(self.prefix)

    # Where it starts

    def _state(self, prefix: str) -> str:
        """Whether the prompt leaves reasoning or content open."""
        turn = self._turn(prefix)
        reasoning, content = self.syntax.reasoning, self.syntax.content
        if reasoning is not None and (opening := reasoning.open.strip()):
            at = turn.rfind(opening)
            if at >= 0 and not ((close := reasoning.close.strip()) and turn.find(close, at + len(opening)) >= 0):
                return "reasoning"
        if (opening := content.open.strip()) and opening in turn:
            return "content"
        return "start"

    def _turn(self, prefix: str) -> str:
        """What the prompt holds of the turn that is answered."""
        header = self.syntax.header.strip()
        if header and (at := prefix.rfind(header)) >= 0:
            return prefix[at + len(header) :]
        reasoning = self.syntax.reasoning
        opening = reasoning.open.strip() if reasoning is not None else ""
        return opening if opening and prefix.rstrip().endswith(opening) else ""

    # Primitives

    def _more(self, size: int) -> Need:
        """Waits until `size` code points are there."""
        while len(self.text) < size and not self.final:
            yield

    def _space(self, at: int) -> Need:
        while True:
            while at < len(self.text) and self.text[at].isspace():
                at += 1
            if at < len(self.text) or self.final:
                return at
            yield

    def _chunks(self, at: int, wanted: tuple[str, ...], *, cut: bool = False) -> Need:
        """The end of `wanted` at `at`, white space between its parts; -1 where something else stands there. `cut`: the
        text may end before it does."""
        for chunk in wanted:
            at = yield from self._space(at)
            while not self.text.startswith(chunk, at):
                rest = self.text[at : at + len(chunk)]
                if not chunk.startswith(rest) or (self.final and not cut):
                    return -1
                if self.final:
                    self.cut = True
                    return len(self.text)
                yield
            at += len(chunk)
        self.furthest = max(self.furthest, self.dropped + at)
        return at

    def _matched(self, at: int, pattern: re.Pattern[str]) -> Need:
        """A match at `at` that more text cannot make longer; None where there is none."""
        while True:
            found = pattern.match(self.text, at)
            if self.final or (found is not None and found.end() < len(self.text)):
                return found
            if found is None and at < len(self.text):
                return None
            yield

    def _problem(self, at: int, message: str) -> None:
        self.problems.append(Problem(self.dropped + at, message))

    def _emit(self, kind: str, text: str) -> None:
        if text:
            self.said_content |= kind == "content"
            self.say(kind, text)

    def _drop(self, at: int) -> None:
        """Forgets the text before `at`, which is read."""
        self.text = self.text[at:]
        self.dropped += at
        self.at = 0

    def _skip(self, at: int, expected: str) -> Need:
        """Past as much of the white space `expected` as stands at `at`."""
        for char in expected:
            yield from self._more(at + 1)
            if not self.text.startswith(char, at):
                break
            at += 1
        return at

    @property
    def _tagged_calls(self) -> bool:
        """Whether arguments stand one by one: without what closes the call nobody knows that all are there."""
        calls = self.syntax.calls
        return calls is not None and calls.call.style == "pieces" and calls.call.arguments.style == "tagged"

    # The whole answer

    def run(self) -> Need:
        reasoning, content = self.syntax.reasoning, self.syntax.content
        if self.state == "reasoning":
            assert reasoning is not None
            self.at = yield from self._skip(0, self._unprompted(trailing_space(reasoning.open)))
            yield from self._reasoning()
        elif self.state == "start":
            yield from self._opening()
        inside = self.state == "content"
        fresh = self.state == "start" and self.at == 0 and self.dropped == 0
        if fresh and content.open and not content.open.strip():
            usual = self.prefix.endswith(self.syntax.generation_prompt)
            due = content.open if usual else self._unprompted(content.open)
            self.at = yield from self._skip(self.at, due)
        yield from self._body(inside=inside)

    def _unprompted(self, space: str) -> str:
        """White space that is due at the start of an answer, without what the prompt has of it already."""
        for size in range(len(space), 0, -1):
            if self.prefix.endswith(space[:size]):
                return space[size:]
        return space

    def _opening(self) -> Need:
        """Reasoning that the answer opens itself, or a lone end of it."""
        reasoning = self.syntax.reasoning
        if reasoning is None:
            return
        opening, closing = chunks(reasoning.open), chunks(reasoning.close)
        if opening and (end := (yield from self._chunks(0, opening))) >= 0:
            self.at = yield from self._skip(end, trailing_space(reasoning.open))
            yield from self._reasoning()
        elif closing and (end := (yield from self._chunks(0, closing))) >= 0:
            self.at = yield from self._skip(end, trailing_space(reasoning.close))

    def _reasoning(self) -> Need:
        """Reasoning up to what closes it."""
        assert self.syntax.reasoning is not None
        region = self.syntax.reasoning
        closing, before = chunks(region.close), leading_space(region.close)
        ends = self.syntax.ends
        start = scan = self.at
        kind = "unsure" if self.state == "reasoning" and region.unclosed == "content" else "reasoning_content"
        while True:
            found = yield from self._find(scan, (*closing[:1], *ends), len(before), kind, start)
            start = self.at
            if found < 0 and kind == "unsure":
                return
            if found < 0:
                self._emit("reasoning_content", self.text[start:])
                self.complete = False
                self._problem(len(self.text), "the reasoning is never closed")
                self.at = len(self.text)
                return
            end = yield from self._chunks(found, closing)
            if end < 0 and kind != "unsure" and any(self.text.startswith(text, found) for text in ends):
                end = found
            if end >= 0:
                break
            scan = found + 1
        self._emit("reasoning_content", _less(self.text[start:found], before))
        if end == found:
            self.complete = False
            self._problem(found, "the reasoning is never closed")
        self.at = yield from self._skip(end, trailing_space(region.close))
        if header := chunks(self.syntax.header):
            again = yield from self._chunks(self.at, header)
            if again >= 0:
                self.at = yield from self._skip(again, trailing_space(self.syntax.header))

    def _find(self, scan: int, wanted: tuple[str, ...], space: int, kind: str, start: int) -> Need:
        """Where the first of `wanted` stands; -1 at the end of the text. What is sure of the text from `start` on is
        said, except for up to `space` white space that may belong to what comes."""
        self.at = start
        while True:
            places = [at for text in wanted if (at := self.text.find(text, scan)) >= 0]
            sure = min(places) if places else None
            held = self._held(scan, wanted)
            if sure is not None and sure <= held:
                return sure
            if self.final:
                return -1
            end = held
            while end > self.at and held - end < space and self.text[end - 1].isspace():
                end -= 1
            if self._may_say(kind, self.at, end):
                self._emit(kind, self.text[self.at : end])
                self._drop(end)
                scan = held - end
            else:
                scan = held
            yield

    def _held(self, scan: int, wanted: tuple[str, ...]) -> int:
        """From where on the text may be the beginning of one of `wanted`."""
        text, size = self.text, len(self.text)
        if self.final:
            return size
        longest = max(map(len, wanted), default=1)
        for at in range(max(scan, size - longest + 1), size):
            tail = text[at:]
            if any(one.startswith(tail) for one in wanted):
                return at
        return size

    def _may_say(self, kind: str, start: int, end: int) -> bool:
        """White space at the start of content, or after a call, is no content if nothing or a call follows."""
        if end <= start or kind == "unsure":
            return False
        if kind != "content" or self.said_content:
            return True
        return not self.text[start:end].isspace()

    # Content and calls

    def _body(self, *, inside: bool) -> Need:
        content, compiled = self.syntax.content, self.compiled
        opening = chunks(content.open)
        space_end = leading_space(content.close) if not content.close.strip() else ""
        space_call = leading_space(content.before_calls)
        ends = self.syntax.ends
        scan = self.at
        if not inside and self.syntax.calls is not None:
            yield from self._first_calls()
            scan = self.at
        while True:
            if inside:
                wanted = tuple(exit[0] for exit in compiled.exits) or compiled.starts
            else:
                wanted = (*opening[:1], *compiled.starts)
            wanted = (*wanted, *ends)
            hold = max(len(space_end), len(space_call), *(len(leading_space(text)) for text in (content.close, "")))
            found = yield from self._find(scan, wanted, hold, "content", self.at)
            if found < 0:
                self._close(self.text[self.at :], space_end)
                return
            start = self.at
            before = self.text[start:found]
            if (end := self._ended(found)) is not None:
                self._close(before, space_end)
                yield from self._rest(end)
                return
            if inside and compiled.exits:
                end = yield from self._exit(found)
                if end >= 0:
                    self._emit("content", before)
                    inside, self.at = False, end
                    if self.syntax.calls is not None:
                        yield from self._first_calls()
                    scan = self.at
                    continue
            elif not inside and opening and (opened := (yield from self._chunks(found, opening))) >= 0:
                if self.said_content or not before.isspace():
                    self._emit("content", before)
                self.at = scan = yield from self._skip(opened, trailing_space(content.open))
                inside = True
                continue
            else:
                made = yield from self._calls(found, partial(self._before, start, found, space_call))
                if made >= 0:
                    inside, self.at, scan = False, made, made
                    continue
                start = self.at
            scan = found + 1

    def _before(self, start: int, found: int, space: str) -> None:
        """Says the content before a call."""
        text = _less(self.text[start:found], space)
        if self.said_content or not text.isspace():
            self._emit("content", text)

    def _exit(self, found: int) -> Need:
        best: int = -1
        for wanted in self.compiled.exits:
            best = max(best, (yield from self._chunks(found, wanted, cut=True)))
        return best

    def _ended(self, found: int) -> int | None:
        lengths = [len(text) for text in self.syntax.ends if self.text.startswith(text, found)]
        return found + max(lengths) if lengths else None

    def _close(self, text: str, space: str) -> None:
        text = _less(text, space)
        if self.said_content or not (self.called and text.isspace()):
            self._emit("content", text)
        self.at = len(self.text)

    def _rest(self, at: int) -> Need:
        """What stands after the end of the answer."""
        while True:
            at = yield from self._space(at)
            yield from self._more(at + max(map(len, self.syntax.ends), default=0))
            again = self._ended(at)
            if again is None:
                break
            at = again
        while not self.final:
            yield
        self.at = at
        if at < len(self.text):
            self._problem(at, f"{len(self.text) - at} code points after the end of the answer are left out")

    def _first_calls(self) -> Need:
        """Calls right here, in a syntax in which nothing marks the beginning of one, or one that begins here only."""
        start = self.at
        made = yield from self._calls(start, lambda: None)
        if made >= 0:
            self.at = made

    def _calls(self, found: int, before: Callable[[], None]) -> Need:
        """Reads calls from `found` on and says them, after `before`. Their end; -1 where there is none."""
        calls = self.syntax.calls
        assert calls is not None
        if self.wasted > MOST_WASTED:
            return -1
        self.furthest = self.dropped + found
        section = chunks(calls.section.open)
        at, opened = found, False
        if section:
            at = yield from self._chunks(found, section)
            opened = at >= 0
            at = found if at < 0 else at
        between = chunks(calls.between)
        follow = (chunks(calls.section.close), between or chunks(calls.open))
        self.then = tuple(text for text in follow if text) if opened and chunks(calls.close) else ()
        last, said = -1, False
        while True:
            call = yield from self._call(at, calls)
            if call is None:
                break
            made, last = call
            if not said:
                before()
                said = True
            self.called, self.said_content = True, False
            for one in made:
                self.say("call", one)
            at = last
            if between:
                at = yield from self._chunks(last, between)
                if at < 0:
                    break
            elif not opened:
                break
        if last < 0:
            self.wasted += max(0, self.furthest - self.dropped - found)
            if self.compiled.starts and self.text.startswith(self.compiled.starts, found):
                self._problem(found, "this begins like a call, but is none: it stays content")
                self.complete &= not self.final or self.furthest < self.dropped + len(self.text)
            self.cut = False
            return -1
        if self.cut and self._tagged_calls:
            self.complete = False
            self._problem(len(self.text), "the call is not closed: arguments may be missing")
        if opened and (closing := chunks(calls.section.close)):
            end = yield from self._chunks(last, closing, cut=True)
            if end < 0:
                self._problem(last, "the calls are not closed")
            last = max(last, end)
        return last

    def _call(self, at: int, calls: Calls) -> Need:
        """The calls of one opening and where they end; None where there is none."""
        at = yield from self._chunks(at, chunks(calls.open))
        if at < 0:
            return None
        after = chunks(calls.close)
        if calls.call.style == "json":
            found = yield from self._json_calls(at, calls.call)
        else:
            found = yield from self._pieces(at, calls.call, after)
        if found is None:
            return None
        made, end = found
        if after:
            end = yield from self._chunks(end, after, cut=True)
            if end < 0 or (self.cut and self._tagged_calls and not made[0]["function"]["arguments"]):
                return None
        return made, end

    # JSON

    def _json_end(self, at: int) -> Need:
        """The end of the JSON object or list at `at`; -1 where there is none."""
        yield from self._more(at + 1)
        if self.text[at : at + 1] not in ("{", "["):
            return -1
        depth = 0
        while True:
            space = PLAIN_JSON.match(self.text, at)
            assert space is not None
            at = space.end()
            if at >= len(self.text):
                if self.final:
                    self.furthest = max(self.furthest, self.dropped + at)
                    return -1
                yield
                continue
            char = self.text[at]
            at += 1
            if char in "[{":
                depth += 1
            elif char in "]}":
                depth -= 1
                if depth == 0:
                    self.furthest = max(self.furthest, self.dropped + at)
                    return at
            elif char == '"':
                at = yield from self._string_end(at)
                if at < 0:
                    return -1
            else:
                self.furthest = max(self.furthest, self.dropped + at)
                return -1

    def _string_end(self, at: int) -> Need:
        while True:
            found = IN_STRING.match(self.text, at)
            assert found is not None
            at = found.end()
            if at + 1 > len(self.text) or (self.text[at] == "\\" and at + 2 > len(self.text)):
                if self.final:
                    self.furthest = max(self.furthest, self.dropped + len(self.text))
                    return -1
                yield
                continue
            if self.text[at] == '"':
                return at + 1
            at += 2

    def _json_calls(self, at: int, call: JsonCall) -> Need:
        at = yield from self._space(at)
        end = yield from self._json_end(at)
        if end < 0:
            return None
        try:
            value = json_value(self.text[at:end])
        except (ValueError, RecursionError):
            return None
        items = value if isinstance(value, list) else [value]
        if not items or (self.strict and isinstance(value, list) != call.listed):
            return None
        made = [self._json_call(item, call) for item in items]
        return None if None in made else (made, end)

    def _json_call(self, item: Any, call: JsonCall) -> dict[str, Any] | None:
        if not isinstance(item, dict):
            return None
        if call.name is None:
            if len(item) != 1:
                return None
            name, arguments = next(iter(item.items()))
        else:
            name = _under(item, call.name)
            arguments = _under(item, call.arguments)
            if arguments is None and not self.strict:
                arguments = next((item[key] for key in LEADS if item.get(key) is not None), None)
                if arguments is None and name in self.tools:
                    arguments = {}
        call_id = _under(item, call.id) if call.id is not None else None
        return self._made(name, arguments, call_id)

    def _made(self, name: Any, arguments: Any, call_id: Any = None) -> dict[str, Any] | None:
        if isinstance(arguments, str):
            try:
                arguments = json_value(arguments) if arguments.strip() else {}
            except (ValueError, RecursionError):
                return None
        if not isinstance(name, str) or not name or not isinstance(arguments, dict):
            return None
        marked = self.compiled.starts or self.syntax.channels is not None
        if self.tools and name not in self.tools and (self.strict or not marked):
            return None
        made: dict[str, Any] = {"type": "function", "function": {"name": name, "arguments": arguments}}
        if isinstance(call_id, str | int) and call_id != "":
            made = {"id": str(call_id), **made}
        return made

    # Pieces

    def _pieces(self, at: int, call: PiecesCall, after: tuple[str, ...]) -> Need:
        """A call as texts and slots."""
        name = call_id = arguments = None
        texts = [chunks(piece.text) for piece in call.pieces]
        for index, piece in enumerate(call.pieces):
            following = next((text for text in texts[index + 1 :] if text), after)
            if piece.slot is None:
                at = yield from self._chunks(at, texts[index], cut=arguments is not None)
                if at < 0:
                    return None
                continue
            at = yield from self._space(at)
            if piece.slot == "arguments":
                if call.arguments.style == "json":
                    found = yield from self._json_arguments(at, call.arguments)
                else:
                    found = yield from self._tagged(at, call.arguments, name, following)
                if found is None:
                    return None
                arguments, at = found
                continue
            word = yield from self._word(at, piece.slot, following)
            if word is None:
                return None
            text, at = word
            if piece.slot == "name":
                if name is not None and name != text:
                    return None
                name = text
            elif piece.slot == "id":
                call_id = text
        made = self._made(name, arguments, call_id)
        return None if made is None else ([made], at)

    def _word(self, at: int, slot: str, following: tuple[str, ...]) -> Need:
        """A name, an id or an index: up to what follows it."""
        found = yield from self._matched(at, DIGITS if slot == "index" else NAME if slot == "name" else CALL_ID)
        if found is None:
            return None
        text = found.group()
        if following and IN_NAME.match(following[0]) and (cut := text.rfind(following[0])) > 0:
            text = text[:cut]
        return text, at + len(text)

    def _json_arguments(self, at: int, form: JsonArguments) -> Need:
        if form.escaped:
            return (yield from self._escaped(at))
        if form.string_mark:
            return (yield from self._marked(at, form.string_mark))
        yield from self._more(at + 1)
        if self.text.startswith('"', at):
            inner = yield from self._escaped(at + 1)
            return None if inner is None else (inner[0], inner[1] + 1)
        end = yield from self._json_end(at)
        if end < 0:
            return None
        try:
            return json_value(self.text[at:end]), end
        except (ValueError, RecursionError):
            return None

    def _escaped(self, at: int) -> Need:
        end = yield from self._string_end(at)
        if end < 0:
            return None
        try:
            return json_value(json_value(f'"{self.text[at:end]}')), end - 1
        except (ValueError, RecursionError, TypeError):
            return None

    def _marked(self, at: int, mark: str) -> Need:
        """An object whose strings stand between marks."""
        yield from self._more(at + 1)
        if not self.text.startswith("{", at):
            return None
        start, depth = at, 0
        step = re.compile(rf"[{{}}\[\]]|{re.escape(mark)}")
        while True:
            found = step.search(self.text, at)
            if found is None:
                if self.final:
                    return None
                at = max(at, len(self.text) - len(mark) + 1)
                yield
                continue
            at = found.end()
            if found.group() == mark:
                while (end := self.text.find(mark, at)) < 0:
                    if self.final:
                        self.furthest = max(self.furthest, self.dropped + len(self.text))
                        return None
                    yield
                at = end + len(mark)
                continue
            depth += 1 if found.group() in "[{" else -1
            if depth == 0:
                break
        self.furthest = max(self.furthest, self.dropped + at)
        try:
            return relaxed_value(self.text[start:at], mark), at
        except ValueError:
            return None

    # Arguments one by one

    def _tagged(self, at: int, form: TaggedArguments, name: Any, following: tuple[str, ...]) -> Need:
        found: dict[str, Any] = {}
        properties = self.tools.get(name) if isinstance(name, str) else None
        opening, between = chunks(form.open), chunks(form.between)
        while True:
            start = at
            if found and between:
                at = yield from self._chunks(at, between)
                if at < 0:
                    return found, start
            if opening or not found:
                at = yield from self._chunks(at, opening)
                if at < 0:
                    return found, start
            at = yield from self._space(at)
            argument = yield from self._argument(at, form, properties, following)
            if argument is None:
                return found, start
            key, found[key], at = argument

    def _argument(self, at: int, form: TaggedArguments, properties: Any, following: tuple[str, ...]) -> Need:
        opens = tuple(dict.fromkeys(chunks(value.open) for value in form.values))
        word = yield from self._word(at, "name", next((text for text in opens if text), ()))
        if word is None:
            return None
        key, at = word
        for value in sorted(form.values, key=lambda value: -len(value.open)):
            end = yield from self._chunks(at, chunks(value.open))
            if end < 0:
                continue
            types = types_of(properties.get(key)) if isinstance(properties, dict) else frozenset()
            close = "".join(key if piece.slot == "key" else piece.text for piece in value.close)
            read = yield from self._value(end, value, close, types, (form, following))
            if read is None:
                continue
            return key, *read
        return None

    def _value(
        self,
        at: int,
        value: Value,
        close: str,
        types: frozenset[str],
        after: tuple[TaggedArguments, tuple[str, ...]],
    ) -> Need:
        """The value at `at` and the end of what closes it."""
        if value.kinds == ("string",):
            types = frozenset({"string"})
        elif not types and "string" not in value.kinds:
            types = frozenset(value.kinds)
        if not close.strip() and value.open.strip()[-1:] not in ("'", '"'):
            read = yield from self._bare(at)
            if read is None:
                return None
            text, end = read
            return typed(text, types), end
        at = yield from self._skip(at, trailing_space(value.open))
        ended = yield from self._value_end(at, chunks(close), *after)
        if ended is None:
            return None
        text = _less(self.text[at : ended[0]], leading_space(close))
        return self._decoded(text, value, types), ended[1]

    def _decoded(self, text: str, value: Value, types: frozenset[str]) -> Any:
        if text.startswith(CDATA[0]) and text.endswith(CDATA[1]):
            text = text[len(CDATA[0]) : -len(CDATA[1])]
        if value.encoding != "raw":
            try:
                return json_value(text) if value.encoding == "json" else relaxed_value(text)
            except (ValueError, RecursionError):
                return text
        return typed(text, types)

    def _bare(self, at: int) -> Need:
        """A value that nothing closes: a word, a quoted text, a list or an object."""
        yield from self._more(at + 1)
        if self.text[at : at + 1] in ("{", "["):
            end = yield from self._bracket_end(at)
            return None if end < 0 else (self.text[at:end], end)
        found = yield from self._matched(at, BARE)
        return None if found is None else (found.group(), found.end())

    def _bracket_end(self, at: int) -> Need:
        """The end of a bracket of JSON or Python, whose strings have either kind of quotes."""
        depth, quote = 0, ""
        while True:
            if at >= len(self.text):
                if self.final:
                    return -1
                yield
                continue
            char = self.text[at]
            at += 1
            if quote:
                if char == "\\":
                    at += 1
                elif char == quote:
                    quote = ""
            elif char in "\"'":
                quote = char
            elif char in "[{(":
                depth += 1
            elif char in "]})":
                depth -= 1
                if depth == 0:
                    return at

    def _value_end(self, at: int, closing: tuple[str, ...], form: TaggedArguments, following: tuple[str, ...]) -> Need:
        """Where a value ends and where what closes it does: at the first close that an argument or the end of the call
        follows, for a value may quote what closes it."""
        scan = at
        while True:
            found = self.text.find(closing[0], scan)
            if found < 0:
                if self.final:
                    self.furthest = max(self.furthest, self.dropped + len(self.text))
                    return None
                scan = max(scan, len(self.text) - len(closing[0]) + 1)
                yield
                continue
            end = yield from self._chunks(found, closing)
            if end >= 0 and (yield from self._continues(end, form, following)):
                return found, end
            scan = found + 1

    def _continues(self, at: int, form: TaggedArguments, following: tuple[str, ...]) -> Need:
        """Whether another argument or the end of the call stands at `at`."""
        if (end := (yield from self._chunks(at, following, cut=True))) >= 0:
            for text in self.then:
                if (yield from self._chunks(end, text, cut=True)) >= 0:
                    return True
            if not self.then:
                return True
        after = (*chunks(form.between), *chunks(form.open))
        end = yield from self._chunks(at, after)
        if end < 0 or not after:
            return False
        if chunks(form.open):
            return True
        end = yield from self._space(end)
        opens = [text for value in form.values if (text := chunks(value.open))]
        word = yield from self._word(end, "name", opens[0] if opens else ())
        if word is None:
            return False
        for text in opens:
            if (yield from self._chunks(word[1], text)) >= 0:
                return True
        return not opens


def _under(item: dict[str, Any], keys: str) -> Any:
    """What stands under keys joined by dots."""
    value: Any = item
    for key in keys.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def _less(text: str, space: str) -> str:
    """`text` without as much of the white space `space` as it ends with."""
    size = 0
    while size < min(len(space), len(text)) and space[len(space) - 1 - size] == text[len(text) - 1 - size]:
        size += 1
    return text[: len(text) - size]
