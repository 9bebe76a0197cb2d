"""Functions as tools, beside the real `get_json_schema`."""

# ruff: noqa: UP007, UP045 - hints in all the spellings that people use

from __future__ import annotations

import types
from typing import Any, Literal, Optional, Union

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jinjarun.serving.python_tools import FunctionFault, function_tool
from tests.serving import tool_functions
from tests.serving.real_transformers import real_tool

PIECES = (
    "Does a thing.",
    "See Args: below",
    "",
    " ",
    "\t",
    "Args:",
    "    Args:",
    "Args: ",
    "Returns:",
    "Raises:",
    "    Raises: an error",
    "    a: first",
    "    b: second",
    "\tb: second",
    "        b: deeper",
    "    a (int): first",
    "    b (list[int], optional): second",
    "    a (f(x)): first",
    "    a:",
    "    b :  spaced",
    "a: unindented",
    "    more of it",
    "    note: not an argument",
    '    a: pick (choices: ["x", " y "])',
    "    b: pick (CHOICES: [1, null] ) ",
    "    b: (choices: 1) (choices: [2])",
    "    a: first\r",
    "    b: é – 漢",
    "Returns: at once",
    "    What comes back.",
)
docstrings = st.lists(st.sampled_from(PIECES), max_size=10).map("\n".join)

HINTS = (int, float, str, bool, type(None), list, tuple, dict, Any, tool_functions.Colour, tool_functions.Mixed, set)
hints = st.recursive(
    st.sampled_from(HINTS) | st.sampled_from([Literal["a", "b"], Literal[1, "a", True], Literal[None]]),
    lambda inner: st.one_of(
        inner.map(lambda hint: list[hint]),
        inner.map(lambda hint: dict[str, hint]),
        inner.map(lambda hint: Optional[hint]),
        st.tuples(inner, inner).map(lambda pair: tuple[pair]),
        st.lists(inner, min_size=1, max_size=3).map(lambda several: Union[tuple(several)]),
        inner.map(lambda hint: tuple[hint]),
        inner.map(lambda hint: tuple[hint, ...]),
        inner.map(lambda hint: set[hint]),
    ),
    max_leaves=5,
)


def function_with(doc: str | None, **annotations: Any) -> types.FunctionType:
    def f(a, b=1): ...

    f.__doc__ = doc
    f.__annotations__ = annotations
    return f


def ours(function: Any) -> Any:
    try:
        return function_tool(function)
    except FunctionFault:
        return None


def theirs(function: Any) -> Any:
    try:
        return real_tool(function)
    except Exception:
        return None


@pytest.mark.parametrize("function", tool_functions.GOOD)
def test_a_function_becomes_the_same_schema(function: Any) -> None:
    schema = function_tool(function)
    assert schema == real_tool(function)
    assert repr(schema) == repr(real_tool(function))


@pytest.mark.parametrize("function", tool_functions.BAD)
def test_what_transformers_refuses_is_refused(function: Any) -> None:
    with pytest.raises(FunctionFault):
        function_tool(function)
    assert theirs(function) is None


@settings(max_examples=1000, deadline=None)
@given(docstrings)
def test_docstrings_are_read_alike(doc: str) -> None:
    function = function_with(doc, a=int, b=str)
    assert repr(ours(function)) == repr(theirs(function))


@settings(max_examples=500, deadline=None)
@given(hints, hints)
def test_hints_are_read_alike(hint: Any, returned: Any) -> None:
    function = function_with("F.\n\nArgs:\n  a: A\n  b: B\nReturns:\n  R", a=hint, b=str, **{"return": returned})
    assert repr(ours(function)) == repr(theirs(function))


def test_the_schema_of_a_hint_is_not_shared() -> None:
    first, second = function_tool(tool_functions.weather), function_tool(tool_functions.weather)
    first["function"]["parameters"]["properties"]["city"]["type"] = "changed"
    assert second["function"]["parameters"]["properties"]["city"]["type"] == "string"
