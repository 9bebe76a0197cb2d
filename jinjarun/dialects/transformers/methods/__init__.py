"""What a template may call behind a dot, by type of the receiver: `(run, receiver, ...)`.

A type also has the methods of the types that it derives from. What is in neither table does not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jinjarun.dialects.transformers.loop import Loop
from jinjarun.dialects.transformers.markup import Markup
from jinjarun.dialects.transformers.measure import ItemsView, KeysView
from jinjarun.dialects.transformers.methods import containers, numbers, objects, strings
from jinjarun.dialects.transformers.values import Cycler

METHODS: dict[type, dict[str, Callable[..., Any]]] = {
    str: strings.STR,
    Markup: strings.MARKUP,
    int: numbers.INT,
    float: numbers.FLOAT,
    list: containers.LIST,
    tuple: containers.TUPLE,
    dict: containers.DICT,
    KeysView: containers.VIEW,
    ItemsView: containers.VIEW,
    range: containers.RANGE,
    Loop: objects.LOOP,
    Cycler: objects.CYCLER,
}

MUTATORS: dict[type, frozenset[str]] = {
    list: frozenset({"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"}),
    dict: frozenset({"clear", "pop", "popitem", "setdefault", "update"}),
}
"""Methods that would change their receiver: the sandbox gives an undefined value that refuses to be used."""
