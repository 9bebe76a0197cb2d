"""What a template may spend (`Limits`) and what one render has spent so far (`Meter`)."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from jinjarun.errors import InputError, LimitExceeded

STEP_BYTES = 16
"""Bytes of a string that cost one step to make."""
MOST = 10**15
"""The largest limit: none."""
MOST_LEVELS = 10_000
"""The largest limit on a depth, which the host's own stack still holds."""
REQUEST_TEXTS = 40
REQUEST_BYTES = 400_000
"""A request whose objects hold so many texts (fields that are strings), or texts of so many bytes, has the steps that
`Limits` says; one that holds more has more."""
REQUEST_STRING_BYTES = 1_000_000
"""The same for the bytes of strings and of the output."""
MOST_GROWTH = 300
"""How many times the steps of `Limits` a request may have, however large it is: templates whose cost is quadratic need
about 200 for 1,000 tool calls."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on a template and its renders, the same on every machine and in both dialects.

    A step is a node evaluated, an item visited, or 16 bytes of a string made. Nodes of straight-line code are charged
    together when it is entered; everything is charged before it is done. Bytes are of UTF-8; a value of the input is
    64 of them besides its text. A limit is an integer up to MOST, a depth one up to MOST_LEVELS; else InputError.

    `steps`, `string_bytes` and `output_bytes` are for a small request; `for_request` says what a larger one has.
    """

    source_bytes: int = 256 * 1024
    tokens: int = 30_000
    brackets: int = 100
    steps: int = 500_000
    string_bytes: int = 4_000_000
    output_bytes: int = 4_000_000
    input_bytes: int = 16_000_000
    items: int = 100_000
    integer_bits: int = 4096
    depth: int = 500
    data_depth: int = 100
    strftime_chars: int = 64

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            most = MOST_LEVELS if field.name in {"depth", "data_depth"} else MOST
            if type(value) is not int or not 0 <= value <= most:
                raise InputError(f"{field.name} is no integer from 0 to {most:,}", path=f"limits.{field.name}")

    def for_request(self, texts: int, text_bytes: int) -> Limits:
        """These limits for a request whose objects (messages, calls, tools) hold so many texts of so many bytes.

        The steps are as many times more as it holds more texts than REQUEST_TEXTS, and more bytes than REQUEST_BYTES,
        up to MOST_GROWTH times. The bytes of strings and of the output are as many times more as it has more than
        REQUEST_STRING_BYTES. For a small request a template gets no more, whatever it does; nor does it for large
        variables that are no conversation.
        """
        steps = self.steps * texts // REQUEST_TEXTS + self.steps * text_bytes // REQUEST_BYTES
        if steps <= self.steps:  # and then there are less than REQUEST_STRING_BYTES
            return self

        def grown(allowed: int) -> int:
            return min(max(allowed * text_bytes // REQUEST_STRING_BYTES, allowed), MOST)

        return replace(
            self,
            steps=min(steps, MOST_GROWTH * self.steps, MOST),
            string_bytes=grown(self.string_bytes),
            output_bytes=grown(self.output_bytes),
        )


def limit_exceeded(
    limit: str, allowed: int, *, option: str | None = None, line: int | None = None, column: int | None = None
) -> LimitExceeded:
    """The error of a limit: whose it is, what was allowed, and by which field of `Limits` it is raised (`option`, where
    the limit itself is none)."""
    field = option or limit
    how = f"to allow more: --limit {field}=N, in Python Limits({field}=N)"
    return LimitExceeded(
        f"limit exceeded: {limit} (jinjarun allows {allowed:,}; {how})",
        line=line,
        column=column,
        limit=limit,
        allowed=allowed,
    )


def utf8_size(text: str) -> int:
    """Bytes of `text` in UTF-8 (three for a lone surrogate)."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


class Allowance:
    """Steps for several renders together. When they are used up, a render ends in LimitExceeded whose `limit` is
    `name`."""

    __slots__ = ("left", "name", "steps")

    def __init__(self, name: str, steps: int) -> None:
        self.name = name
        self.steps = self.left = steps

    def take(self, steps: int) -> None:
        self.left = max(self.left - steps, 0)


class Meter:
    """The account of one render. `steps` counts down; everything else is compared where it happens. What the render
    takes, `settle` takes off `allowance`, where there is one: of a large request, which has more steps, the share of
    them that it took."""

    __slots__ = ("allowance", "base", "depth", "granted", "limits", "steps")

    def __init__(self, limits: Limits, allowance: Allowance | None = None) -> None:
        self.limits = limits
        self.base = limits.steps
        self.allowance = allowance
        self.granted = limits.steps if allowance is None else min(limits.steps, allowance.left)
        self.steps = self.granted
        self.depth = 0

    def measured(self, texts: int, text_bytes: int) -> None:
        """The request is known: its limits hold from here on."""
        limits = self.limits.for_request(texts, text_bytes)
        if limits is self.limits:
            return
        self.limits = limits
        spent = self.spent
        self.granted = limits.steps
        if self.allowance is not None and self.base:
            self.granted = min(limits.steps, self.allowance.left * limits.steps // self.base)
        self.steps = self.granted - spent

    @property
    def spent(self) -> int:
        """Steps taken so far."""
        return self.granted - self.steps

    def settle(self) -> None:
        """The render is over."""
        self.take_off(self.spent)

    def take_off(self, steps: int) -> None:
        """Steps were taken that come off the allowance."""
        if self.allowance is not None:
            self.allowance.take(steps if self.limits.steps == self.base else steps * self.base // self.limits.steps)

    def charge(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise self.exceeded("steps")

    def string(self, size: int) -> None:
        """A string of `size` bytes is about to be made."""
        if size > self.limits.string_bytes:
            raise self.exceeded("string_bytes")
        self.steps -= size // STEP_BYTES
        if self.steps < 0:
            raise self.exceeded("steps")

    def items(self, count: int) -> None:
        """A list, object or range of `count` items is about to be made or walked."""
        if count > self.limits.items:
            raise self.exceeded("items")
        self.charge(count)

    def integer(self, value: int) -> int:
        if -(1 << 63) <= value < 1 << 63 or value.bit_length() <= self.limits.integer_bits:
            return value
        raise self.exceeded("integer_bits")

    def exceeded(self, limit: str) -> LimitExceeded:
        allowed = getattr(self.limits, limit)
        option = limit
        if limit == "steps" and self.allowance is not None and self.granted < allowed:
            limit, allowed = self.allowance.name, self.allowance.steps
        error = limit_exceeded(limit, allowed, option=option)
        error.spent = self.spent
        return error
