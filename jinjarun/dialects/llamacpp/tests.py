"""llama.cpp's tests, asked by `is`, by `select` and its kin, and callable as `test_is_NAME`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinjarun.dialects.llamacpp.arguments import count, position, types
from jinjarun.dialects.llamacpp.operators import is_member
from jinjarun.dialects.llamacpp.shared import not_implemented
from jinjarun.dialects.llamacpp.values import Undefined, as_int, lower, ordered, type_name, upper
from jinjarun.errors import RenderError

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinjarun.runtime.run import Run


def _of_type(*names: str) -> Callable[..., bool]:
    def test(_run: Run, *args: Any) -> bool:
        return type_name(position(args, 0)) in names

    return test


def _comparing(op: str) -> Callable[..., bool]:
    def test(run: Run, *args: Any) -> bool:
        count(args, 2, 2)
        return ordered(run, args[0], args[1], op)

    return test


def _defined(_run: Run, *args: Any) -> bool:
    return not isinstance(position(args, 0), Undefined)


def _odd(_run: Run, *args: Any) -> bool:
    types(args, int)
    return bool(args[0] % 2)


def _even(_run: Run, *args: Any) -> bool:
    types(args, int)
    return bool(args[0] % 2 == 0)


def _divisible(_run: Run, *args: Any) -> bool:
    types(args, int, int)
    if args[1] == 0:
        raise RenderError("division by zero ends the process in llama.cpp")
    return bool(args[0] % as_int(args[1]) == 0)


def _truth(wanted: bool) -> Callable[..., bool]:
    def test(_run: Run, *args: Any) -> bool:
        return position(args, 0) is wanted

    return test


def _lower(run: Run, *args: Any) -> bool:
    types(args, str)
    run.charge(len(args[0]) >> 4)
    return str.__eq__(lower(args[0]), args[0])


def _upper(run: Run, *args: Any) -> bool:
    types(args, str)
    run.charge(len(args[0]) >> 4)
    return str.__eq__(upper(args[0]), args[0])


def _in(run: Run, *args: Any) -> bool:
    count(args, 2)
    return is_member(run, args[0], args[1])


def _test(run: Run, *args: Any) -> bool:
    types(args, str)
    run.charge(len(args[0]) >> 6)
    return args[0] in TESTS


def _sameas(_run: Run, *args: Any) -> bool:
    count(args, 2)
    left, right = args[0], args[1]
    if isinstance(left, Undefined) or isinstance(right, Undefined):
        return False
    if type(left) is int and type(right) is int:
        return left == right and -5 <= left <= 256
    if isinstance(left, (str, float)) or isinstance(right, (str, float)):
        # Every string and every float is an object of its own there, so only one value can be the same as itself.
        return left is right and not isinstance(left, float)
    return left is right


def _absent(name: str) -> Callable[..., bool]:
    def test(_run: Run, *_: Any) -> bool:
        not_implemented(f"the test {name}")

    return test


TESTS: dict[str, Callable[..., Any]] = {
    "boolean": _of_type("Boolean"),
    "callable": _of_type("Function"),
    "defined": _defined,
    "divisibleby": _divisible,
    "eq": _comparing("eq"),
    "equalto": _comparing("eq"),
    "escaped": _absent("escaped"),
    "even": _even,
    "false": _truth(False),
    "filter": _absent("filter"),
    "float": _of_type("Float"),
    "ge": _comparing("ge"),
    "greaterthan": _comparing("gt"),
    "gt": _comparing("gt"),
    "in": _in,
    "integer": _of_type("Integer"),
    "iterable": _of_type("Object", "Array", "Tuple", "String", "Undefined"),
    "lessthan": _comparing("lt"),
    "lower": _lower,
    "lt": _comparing("lt"),
    "mapping": _of_type("Object"),
    "ne": _comparing("ne"),
    "none": _of_type("None"),
    "number": _of_type("Integer", "Float"),
    "odd": _odd,
    "sameas": _sameas,
    "sequence": _of_type("Object", "Array", "Tuple", "String", "Undefined"),
    "string": _of_type("String"),
    "test": _test,
    "true": _truth(True),
    "undefined": _of_type("Undefined"),
    "upper": _upper,
}
