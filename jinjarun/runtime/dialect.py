"""What a dialect fills in. The compiler and the runtime know nothing else of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from jinjarun.runtime.macro import CALL_STEPS, Macro

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from jinjarun.runtime.run import Run
    from jinjarun.runtime.scope import Env
    from jinjarun.syntax.rules import SyntaxRules


class Dialect(ABC):
    """How one engine reads and runs templates. Values are Python objects; which ones, the dialect says."""

    name: ClassVar[str]
    version: ClassVar[str]
    syntax: ClassVar[SyntaxRules]

    # Scopes
    lexical_macros: ClassVar[bool]
    """A macro sees the variables where it was defined (Jinja2), not those where it is called (llama.cpp)."""
    scoped_blocks: ClassVar[bool]
    """`set` inside a set, filter, else or generation block, or in one iteration, ends with it (Jinja2)."""
    lazy_loops: ClassVar[bool]
    """The condition of a loop is asked as the loop goes on (Jinja2), not for all items before it starts (llama.cpp)."""
    nested_loops: ClassVar[int]
    """Loops that may stand inside one another in one template or macro."""
    filter_blocks_write_strings: ClassVar[bool]
    """What the filters of a filter block give must be a string (Jinja2); llama.cpp prints anything."""
    partial_output: ClassVar[bool]
    """What an `if` wrote before a `break` inside it stays (Jinja2); llama.cpp loses it with the statement."""

    macro_type: ClassVar[type[Macro]] = Macro
    """What macros and callers are as values."""
    caller_name: ClassVar[str | None] = None
    """What the body of a call block is called."""

    # Expressions
    part_by_part: ClassVar[frozenset[str]] = frozenset()
    """Builtins that change each part of a joined string by itself: a template that names one is run with the parts of
    its strings known."""
    concat_first: ClassVar[bool]
    """`~` binds tighter than `+` and `-` (Jinja2); else the three are one level."""
    chained_comparisons: ClassVar[bool]
    """`a < b < c` compares neighbours (Jinja2); else it compares `a < b` with `c`."""
    arguments_first: ClassVar[bool]
    """Arguments are evaluated before what is called with them (llama.cpp), but in call blocks."""
    ordered_keywords: ClassVar[bool]
    """Keyword arguments stay among the others, as values of their own (llama.cpp)."""

    binary: ClassVar[Mapping[str, Callable[[Run, Any, Any], Any]]]
    """`+ - * / // % ** ~ == != < <= > >= in` and `not in`."""
    unary: ClassVar[Mapping[str, Callable[[Run, Any], Any]]]
    """`-` and `+`; `not` is the truth of the value as Python sees it."""
    undefined_type: ClassVar[type]
    dict_methods: ClassVar[frozenset[str]]
    """Names that after a dot on a dict are not its keys."""

    @abstractmethod
    def globals(self) -> dict[str, Any]:
        """The variables that are there without a caller; called once a render."""

    @abstractmethod
    def adopt(self, context: Mapping[str, Any], run: Run, *, spans: bool) -> dict[str, Any]:
        """The caller's data as values of the dialect, copied; raises InputError with a path for what is not JSON."""

    @abstractmethod
    def literal(self, text: str) -> str:
        """A string of the template as the dialect keeps strings."""

    @abstractmethod
    def undefined(self, name: str) -> Any:
        """The value of a variable that is not there: undefined, or a function of the engine."""

    @abstractmethod
    def missing_else(self) -> Any:
        """The value of an inline `if` without an `else` that was not taken."""

    @abstractmethod
    def text(self, run: Run, value: Any) -> str:
        """What `{{ value }}` writes; `value` is not a str."""

    @abstractmethod
    def encode(self, text: str) -> bytes:
        """A string of the dialect in UTF-8."""

    @abstractmethod
    def attribute(self, run: Run, value: Any, name: str) -> Any:
        """`value.name`."""

    @abstractmethod
    def item(self, run: Run, value: Any, key: Any) -> Any:
        """`value[key]`."""

    @abstractmethod
    def slice(self, run: Run, value: Any, bounds: tuple[Any, Any, Any], *, constant: bool) -> Any:
        """`value[start:stop:step]`; `...` stands for a bound that was not written. `constant`: in an output that names
        no variable, which Jinja2 works out while compiling."""

    @abstractmethod
    def call(self, env: Env, callee: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """`callee(*args, **kwargs)`, called where the variables are `env`."""

    @abstractmethod
    def bind(self, macro: Macro, env: Env, calling: Env, args: list[Any], kwargs: dict[str, Any]) -> None:
        """Set the parameters of `macro` in `env`, the scope of its body; `calling` are the variables at the call."""

    def special_values(self, varargs: list[Any], kwargs: dict[str, Any], caller: Any) -> dict[str, Any]:
        """What "varargs", "kwargs" and "caller" are in a function that reads them; llama.cpp knows no such names."""
        return {}

    @abstractmethod
    def name_blocks(self, env: Env, blocks: Mapping[str, Macro]) -> None:
        """Set `self`, which the template reads, where the dialect knows it: by it all `blocks` can be called."""

    @abstractmethod
    def set_attribute(self, run: Run, value: Any, name: str, new: Any) -> None:
        """`{% set value.name = new %}`."""

    @abstractmethod
    def make_dict(self, run: Run, pairs: list[tuple[Any, Any]]) -> Any:
        """`{key: value, ...}`."""

    @abstractmethod
    def iterate(self, run: Run, value: Any, *, unpacked: bool) -> Iterable[Any]:
        """The items that `for` visits; `unpacked` where it has several targets."""

    @abstractmethod
    def unpack(self, run: Run, value: Any, count: int) -> list[Any]:
        """The items of `value` for `count` targets."""

    @abstractmethod
    def loop(self, run: Run, items: Iterable[Any], recurse: Callable[..., Any] | None, depth: int) -> Iterator[Any]:
        """Pairs of an item and the variable `loop` in its iteration."""

    @abstractmethod
    def methods(self, name: str) -> Mapping[type, Callable[..., Any]]:
        """By type of receiver, what `receiver.name(...)` calls as `(run, receiver, *args, **kwargs)`."""

    @abstractmethod
    def filter(self, name: str, *, called: bool = False) -> Callable[..., Any] | None:
        """What `value | name(...)` calls as `(run, value, *args, **kwargs)`; None where no filter has that name.
        `called`: there are parentheses after the name."""

    @abstractmethod
    def test(self, name: str) -> Callable[..., Any] | None:
        """What `value is name(...)` calls as `(run, value, *args, **kwargs)`; None where no test has that name."""

    def not_given(self, parameter: str) -> Any:
        """What a parameter is that has no default and was not given; None where the call fails (llama.cpp)."""
        return None

    def call_macro(self, macro: Macro, calling: Env, args: list[Any], kwargs: dict[str, Any]) -> str:
        """The text of one call of `macro` from where the variables are `calling`."""
        run = calling.run
        run.depth += macro.height
        if run.depth > run.limits.depth:
            raise run.exceeded("depth")
        run.charge(CALL_STEPS + macro.cost)
        env = (calling if macro.env is None else macro.env).child(macro.masked)
        self.bind(macro, env, calling, args, kwargs)
        out = env.capture()
        macro.body(env)
        run.depth -= macro.height
        return macro.finish(env, out)

    def contents(self, value: Any) -> Iterable[Any] | None:
        """What `value` holds; None where it is no data, so that looking at it may change it."""
        if isinstance(value, self.undefined_type):
            return ()
        if type(value) is dict:
            return [*value, *value.values()]
        return value if type(value) is list or type(value) is tuple else None

    def keyword(self, name: str, value: Any) -> Any:
        """A keyword argument as a value of its own; called only with `ordered_keywords`."""
        raise NotImplementedError
