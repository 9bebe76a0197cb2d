"""Which inputs a render used, and how, by llama.cpp's rules for usage statistics (common/jinja/runtime.cpp).

A value is known by its identity: with tracing on, every string of the input is an object of its own (see `text`), as
every value of llama.cpp is. `array_access` and `object_access` stand for indexing and iteration; other operations are
the names of the filters, methods, attributes and tests (`test_is_NAME`) that were tried on the value.
"""

from __future__ import annotations

from typing import Any


class Trace:
    __slots__ = ("operations", "used")

    def __init__(self) -> None:
        self.used: set[int] = set()
        self.operations: dict[int, set[str]] = {}

    def use(self, value: Any) -> None:
        self.used.add(id(value))

    def operate(self, value: Any, operation: str) -> None:
        """`value` was used, by `operation`."""
        self.used.add(id(value))
        self.operations.setdefault(id(value), set()).add(operation)

    def use_deeply(self, value: Any) -> None:
        """`value` and all inside it was used: it was written out whole."""
        waiting, seen = [value], set()
        while waiting:
            item = waiting.pop()
            if id(item) in seen:
                continue
            seen.add(id(item))
            if isinstance(item, dict):
                waiting += [*item, *item.values()]
            elif isinstance(item, (list, tuple)):
                waiting += item
        self.used |= seen

    def was_used(self, value: Any) -> bool:
        return id(value) in self.used

    def had(self, value: Any, operation: str) -> bool:
        return operation in self.operations.get(id(value), ())
