"""The dialect of llama.cpp's own Jinja engine (common/jinja), build b11434."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinjarun.dialects.adopting import Adopter
from jinjarun.dialects.llamacpp.arguments import ARRAY
from jinjarun.dialects.llamacpp.containers import ARRAYS, OBJECTS
from jinjarun.dialects.llamacpp.functions import CONSTANTS, FUNCTIONS
from jinjarun.dialects.llamacpp.operators import BINARY, UNARY
from jinjarun.dialects.llamacpp.scalars import BOOLEAN, FLOAT, INTEGER, NONE, UNDEFINED_VALUE
from jinjarun.dialects.llamacpp.strings import STRING
from jinjarun.dialects.llamacpp.tests import TESTS
from jinjarun.dialects.llamacpp.values import (
    NO_MEMBER,
    UNDEFINED,
    Function,
    Keyword,
    Loop,
    TruthlessMacro,
    Undefined,
    as_int,
    as_string,
    check_key,
    from_text,
    is_hashable,
    to_bytes,
    type_name,
    wrap,
)
from jinjarun.errors import RenderError, quote
from jinjarun.runtime.dialect import Dialect
from jinjarun.runtime.text import Text, join
from jinjarun.syntax.rules import LLAMA_CPP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from jinjarun.runtime.macro import Macro
    from jinjarun.runtime.run import Run
    from jinjarun.runtime.scope import Env

BUILTINS: dict[type, dict[str, Callable[..., Any]]] = {
    str: STRING,
    Text: STRING,
    list: ARRAYS,
    tuple: ARRAYS,
    dict: OBJECTS,
    Loop: {},
    int: INTEGER,
    float: FLOAT,
    bool: BOOLEAN,
    type(None): NONE,
    Undefined: UNDEFINED_VALUE,
}
"""By type of value, what may follow a dot or a pipe. Functions have nothing."""

_COPIES_A_STEP, _PAIRS_A_STEP = 16, 2
"""Items of a list, and pairs of an object, that are set aside for a loop in one step."""

ALIASES = {"count": "length", "d": "default", "e": "escape", "trim": "strip"}
COERCED = frozenset({"capitalize", "lower", "replace", "strip", "title", "upper", "wordcount"})
"""Filters that, written without parentheses, first make a string of what is not one."""


def find_builtin(run: Run, value: Any, name: str) -> Callable[..., Any] | None:
    """The builtin `name` of `value`; that it was looked for counts as use."""
    if run.trace is not None:
        run.trace.operate(value, name)
    table = BUILTINS.get(type(value))
    if table is None:
        raise RenderError(f"{type_name(value)} has no builtins")
    return table.get(name)


class LlamaCpp(Dialect):
    name = "llama.cpp"
    version = "b11434"
    syntax = LLAMA_CPP

    lexical_macros = False
    scoped_blocks = False
    lazy_loops = False
    nested_loops = 1_000
    filter_blocks_write_strings = False
    partial_output = False
    macro_type = TruthlessMacro
    caller_name = "caller"
    part_by_part = frozenset({"capitalize", "title"})
    concat_first = False
    chained_comparisons = False
    arguments_first = True
    ordered_keywords = True

    binary = BINARY
    unary = UNARY
    undefined_type = Undefined
    dict_methods = frozenset(OBJECTS)

    def globals(self) -> dict[str, Any]:
        return dict(CONSTANTS)

    def adopt(self, context: Mapping[str, Any], run: Run, *, spans: bool) -> dict[str, Any]:
        return Adopter(run, string=from_text, integer=_json_integer, spans=spans).context(context)

    def literal(self, text: str) -> str:
        return from_text(text)

    def undefined(self, name: str) -> Any:
        return FUNCTIONS[name] if name in FUNCTIONS else Undefined(name)

    def missing_else(self) -> Undefined:
        return UNDEFINED

    def text(self, run: Run, value: Any) -> str:
        if isinstance(value, ARRAY):
            pieces: list[str] = []
            self._gather(run, value, pieces, 1)
            run.string(sum(map(len, pieces)))
            return join(run, pieces) if any(type(piece) is Text for piece in pieces) else "".join(pieces)
        return as_string(run, value) if isinstance(value, (str, int, float)) else ""

    def _gather(self, run: Run, value: Any, pieces: list[str], depth: int) -> None:
        run.charge(2)
        if depth > run.limits.data_depth:
            raise run.exceeded("data_depth")
        if isinstance(value, ARRAY):
            for item in value:
                self._gather(run, item, pieces, depth + 1)
        elif isinstance(value, (str, int, float)):
            pieces.append(as_string(run, value))

    def encode(self, text: str) -> bytes:
        return to_bytes(text)

    def attribute(self, run: Run, value: Any, name: str) -> Any:
        builtin = find_builtin(run, value, name)
        if builtin is not None:
            return Function(name, builtin, (value,))
        return self._member(run, value, from_text(name))

    def item(self, run: Run, value: Any, key: Any) -> Any:
        if isinstance(key, Undefined):
            return NO_MEMBER
        if not is_hashable(run, key):
            raise RenderError(f"Type: {type_name(key)} is not allowed as object key")
        return self._member(run, value, key)

    def _member(self, run: Run, value: Any, key: Any) -> Any:
        if isinstance(value, Undefined):
            return NO_MEMBER
        result: Any = NO_MEMBER
        if isinstance(value, dict):
            result = value.get(check_key(run, key, len(value)), NO_MEMBER)
            if isinstance(result, Undefined):
                result = self._bound(run, value, as_string(run, key))
        elif isinstance(value, (str, *ARRAY)):
            if isinstance(key, int):
                at = int(key)
                if at < 0 and not isinstance(value, str):
                    at += len(value)
                if 0 <= at < len(value):
                    result = value[at]
            elif isinstance(key, str):
                result = self._bound(run, value, key)
        elif isinstance(key, str):
            result = self._bound(run, value, key)
        else:
            raise RenderError(f"Cannot access property with non-string: got {type_name(key)}")
        if run.trace is not None:
            run.trace.use(result)
            run.trace.use(key)
            as_index = isinstance(key, int) and not isinstance(value, dict)
            run.trace.operate(value, "array_access" if as_index else "object_access")
        return result

    def _bound(self, run: Run, value: Any, name: str) -> Any:
        builtin = find_builtin(run, value, name)
        return Undefined(name) if builtin is None else Function(name, builtin, (value,))

    def slice(self, run: Run, value: Any, bounds: tuple[Any, Any, Any], *, constant: bool) -> Any:
        start, stop, step = bounds
        size = len(value) if isinstance(value, (str, *ARRAY)) else 0
        step = 1 if step is ... else step
        backwards = as_int(step) < 0 if start is ... or stop is ... else False
        if start is ...:
            start = size - 1 if backwards else 0
        if stop is ...:
            stop = -1 if backwards else size
        function = find_builtin(run, value, "slice")
        if function is None:
            raise RenderError(f"{type_name(value)} cannot be sliced")
        return function(run, value, start, stop, step)

    def call(self, env: Env, callee: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if type(callee) is Function:
            return callee.function(env.run, *callee.this, *args)
        if type(callee) is TruthlessMacro:
            return self.call_macro(callee, env, args, kwargs)
        raise RenderError(f"Callee is not a function: got {type_name(callee)}")

    def bind(self, macro: Macro, env: Env, calling: Env, args: list[Any], kwargs: dict[str, Any]) -> None:
        named = {arg.name: arg.value for arg in reversed(args) if type(arg) is Keyword}
        for i, name in enumerate(macro.parameters):
            if i < len(args):
                value = named.get(name, UNDEFINED)
                if isinstance(value, Undefined) and type(args[i]) is not Keyword:
                    value = args[i]
            elif name in macro.defaults:
                value = macro.defaults[name](calling)
            else:
                raise RenderError(f"Not enough arguments provided to {macro.name}")
            env[name] = value

    def name_blocks(self, env: Env, blocks: Mapping[str, Macro]) -> None:
        pass

    def set_attribute(self, run: Run, value: Any, name: str, new: Any) -> None:
        if not isinstance(value, dict):
            raise RenderError("Cannot assign to member of non-object")
        if len(value) >= run.limits.items:
            raise run.exceeded("items")
        value[from_text(name)] = new

    def make_dict(self, run: Run, pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for key, value in pairs:
            result[check_key(run, key, len(result))] = value
        return result

    def iterate(self, run: Run, value: Any, *, unpacked: bool) -> Iterable[Any]:
        if run.trace is not None:
            run.trace.operate(value, "array_access")
        if isinstance(value, Undefined):
            return ()
        if isinstance(value, dict):
            if run.trace is not None:
                run.trace.operate(value, "object_access")
            run.charge(len(value) // (_PAIRS_A_STEP if unpacked else _COPIES_A_STEP))
            return list(value.items()) if unpacked else list(value)
        if isinstance(value, ARRAY):
            run.charge(len(value) // _COPIES_A_STEP)
            return list(value)
        raise RenderError(f"Expected iterable or object type in for loop: got {type_name(value)}")

    def unpack(self, run: Run, value: Any, count: int) -> list[Any]:
        if not isinstance(value, ARRAY):
            raise RenderError(f"Cannot unpack non-iterable type: {type_name(value)}")
        if len(value) != count:
            raise RenderError(f"Too {'few' if len(value) < count else 'many'} items to unpack")
        run.charge(count)
        return list(value)

    def loop(
        self, run: Run, items: Iterable[Any], recurse: Callable[..., Any] | None, depth: int
    ) -> Iterator[tuple[Any, Loop]]:
        all_items = list(items)
        size = len(all_items)
        for i, item in enumerate(all_items):
            yield (
                item,
                Loop(
                    index=i + 1,
                    index0=i,
                    revindex=size - i,
                    revindex0=size - i - 1,
                    first=i == 0,
                    last=i == size - 1,
                    length=size,
                    previtem=all_items[i - 1] if i else Undefined("previtem"),
                    nextitem=all_items[i + 1] if i < size - 1 else Undefined("nextitem"),
                ),
            )

    def methods(self, name: str) -> Mapping[type, Callable[..., Any]]:
        return {kind: table[name] for kind, table in BUILTINS.items() if name in table}

    def filter(self, name: str, *, called: bool = False) -> Callable[..., Any] | None:
        wanted = ALIASES.get(name, name)
        coerced = wanted in COERCED and not called

        def apply(run: Run, value: Any, *args: Any) -> Any:
            if coerced and not isinstance(value, (str, Undefined)):
                value = as_string(run, value)
            builtin = find_builtin(run, value, wanted)
            if builtin is None:
                raise RenderError(f"Unknown (built-in) filter {quote(wanted)!r} for type {type_name(value)}")
            return builtin(run, value, *args)

        return apply

    def test(self, name: str) -> Callable[..., Any] | None:
        test = TESTS.get(name)
        if test is None:
            return _unknown_test(name)
        found = test

        def apply(run: Run, value: Any, *args: Any) -> Any:
            if run.trace is not None:
                run.trace.operate(value, f"test_is_{name}")
            return found(run, value, *args)

        return apply

    def keyword(self, name: str, value: Any) -> Keyword:
        return Keyword(from_text(name), value)


def _unknown_test(name: str) -> Callable[..., Any]:
    def apply(_run: Run, *_: Any) -> Any:
        raise RenderError(f"Unknown test {quote(name)!r}")

    return apply


def _json_integer(value: int) -> int | float:
    """As nlohmann's JSON reads it: 64 bits with or without sign, else a double."""
    return wrap(value) if -(1 << 63) <= value < 1 << 64 else float(value)


DIALECT = LlamaCpp()
