"""The dialect of transformers 5.24: Jinja2 3.1.6 in its immutable sandbox, as `chat_template_utils` sets it up.

Values are Python's own, as in Jinja2; what Jinja2 compiles, the runtime interprets with every cost charged.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from jinjarun.dialects.adopting import Adopter
from jinjarun.dialects.transformers import operators
from jinjarun.dialects.transformers.filters import FILTERS
from jinjarun.dialects.transformers.globals import GLOBALS
from jinjarun.dialects.transformers.iteration import collect
from jinjarun.dialects.transformers.lookup import getattr_, getitem, set_attribute, subscript
from jinjarun.dialects.transformers.loop import Loop
from jinjarun.dialects.transformers.measure import pay_for_key, to_text
from jinjarun.dialects.transformers.methods import METHODS
from jinjarun.dialects.transformers.tests import TESTS
from jinjarun.dialects.transformers.undefined import Undefined
from jinjarun.dialects.transformers.values import Blocks, Invocable, Namespace
from jinjarun.errors import QUOTE_LIMIT, quote
from jinjarun.runtime.dialect import Dialect
from jinjarun.runtime.macro import Macro
from jinjarun.runtime.text import Text
from jinjarun.syntax.rules import JINJA2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from jinjarun.runtime.run import Run
    from jinjarun.runtime.scope import Env


class Transformers(Dialect):
    name = "transformers"
    version = "5.24"
    syntax = JINJA2

    lexical_macros = True
    scoped_blocks = True
    lazy_loops = True
    nested_loops = 20
    filter_blocks_write_strings = True
    partial_output = True
    concat_first = True
    chained_comparisons = True
    arguments_first = False
    ordered_keywords = False

    binary = operators.BINARY
    unary = operators.UNARY
    undefined_type = Undefined
    dict_methods = frozenset(dir(dict))

    def globals(self) -> dict[str, Any]:
        return dict(GLOBALS)

    def adopt(self, context: Mapping[str, Any], run: Run, *, spans: bool) -> dict[str, Any]:
        return Adopter(run, string=str, integer=int, spans=spans).context(context)

    def literal(self, text: str) -> str:
        return text

    def undefined(self, name: str) -> Undefined:
        return Undefined(name=name)

    def missing_else(self) -> Undefined:
        return Undefined("the inline if-expression evaluated to false and no else section was defined.")

    def text(self, run: Run, value: Any) -> str:
        return to_text(run, value)

    def encode(self, text: str) -> bytes:
        return text.encode("utf-8", "replace")

    def attribute(self, run: Run, value: Any, name: str) -> Any:
        return getattr_(run, value, name)

    def item(self, run: Run, value: Any, key: Any) -> Any:
        return getitem(run, value, key)

    def slice(self, run: Run, value: Any, bounds: tuple[Any, Any, Any], *, constant: bool) -> Any:
        key = slice(*[None if bound is ... else bound for bound in bounds])
        return getitem(run, value, key) if constant else subscript(run, value, key)

    def call(self, env: Env, callee: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if isinstance(callee, Invocable):
            return callee.invoke(env.run, *args, **kwargs)
        if type(callee) is Macro:
            return self.call_macro(callee, env, args, kwargs)
        if isinstance(callee, (Loop, Undefined)):
            return callee(*args, **kwargs)
        raise TypeError(f"{type(callee).__name__!r} object is not callable")

    def bind(self, macro: Macro, env: Env, calling: Env, args: list[Any], kwargs: dict[str, Any]) -> None:
        parameters = macro.parameters
        if len(args) > len(parameters) and "varargs" not in macro.special:
            raise TypeError(f"{quote(repr(macro))} takes not more than {len(parameters)} argument(s)")
        missing = []
        for i, parameter in enumerate(parameters):
            if i < len(args):
                env[parameter] = args[i]
            elif parameter in kwargs:
                env[parameter] = kwargs.pop(parameter)
            else:
                env.pop(parameter, None)
                missing.append(parameter)
        reads_caller = "caller" in macro.special and "caller" not in parameters
        caller = kwargs.pop("caller", None) if reads_caller else None
        special = self.special_values(args[len(parameters) :], kwargs, caller)
        if reads_caller:
            env["caller"] = special["caller"]
        if "kwargs" in macro.special:
            env["kwargs"] = kwargs
        elif kwargs:
            raise TypeError(f"{quote(repr(macro))} takes no keyword argument {quote(next(iter(kwargs)))!r}")
        if "varargs" in macro.special:
            env["varargs"] = special["varargs"]
        for parameter in missing:
            env[parameter] = macro.defaults[parameter](env)

    def special_values(self, varargs: list[Any], kwargs: dict[str, Any], caller: Any) -> dict[str, Any]:
        missing = Undefined("No caller defined", name="caller")
        return {"varargs": tuple(varargs), "kwargs": kwargs, "caller": caller or missing}

    def not_given(self, parameter: str) -> Undefined:
        return Undefined(f"parameter {parameter[:QUOTE_LIMIT]!r} was not provided", name=parameter)

    def name_blocks(self, env: Env, blocks: Mapping[str, Macro]) -> None:
        env["self"] = Blocks({name: block.defined_in(env) for name, block in blocks.items()})

    def set_attribute(self, run: Run, value: Any, name: str, new: Any) -> None:
        set_attribute(value, name, new)

    def contents(self, value: Any) -> Iterable[Any] | None:
        return super().contents(value.attrs if type(value) is Namespace else value)

    def make_dict(self, run: Run, pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for key, value in pairs:
            pay_for_key(run, key, len(result))
            result[key] = value
        return result

    def iterate(self, run: Run, value: Any, *, unpacked: bool) -> Iterable[Any]:
        if not isinstance(value, Iterable):
            raise TypeError(f"{type(value).__name__!r} object is not iterable")
        return value

    def unpack(self, run: Run, value: Any, count: int) -> list[Any]:
        items = collect(run, value)
        if len(items) != count:
            many = len(items) > count
            raise ValueError(f"{'too many' if many else 'not enough'} values to unpack (expected {count})")
        return items

    def loop(
        self, run: Run, items: Iterable[Any], recurse: Callable[..., Any] | None, depth: int
    ) -> Iterator[tuple[Any, Any]]:
        loop = Loop(items, recurse, depth)
        run.watch(loop)
        return loop

    def methods(self, name: str) -> Mapping[type, Callable[..., Any]]:
        table = {kind: methods[name] for kind, methods in METHODS.items() if name in methods}
        if str in table:
            table[Text] = table[str]
        return table

    def filter(self, name: str, *, called: bool = False) -> Callable[..., Any] | None:
        return FILTERS.get(name)

    def test(self, name: str) -> Callable[..., Any] | None:
        return TESTS.get(name)


DIALECT = Transformers()
