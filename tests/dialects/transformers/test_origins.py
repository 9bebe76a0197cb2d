"""With spans on, strings keep their origin through builtins, and mean the same."""

from __future__ import annotations

import pytest

from jinjarun.dialects.transformers import operators
from jinjarun.dialects.transformers.filters import FILTERS
from jinjarun.dialects.transformers.lookup import getattr_, getitem
from jinjarun.runtime.text import Origin, Text, join
from tests.dialects.transformers.engine import new_run

INPUT = Text.of("  Some input ", Origin(is_input=True, place="messages[0].content"))
LITERAL = Text.of("<b> ", Origin(is_input=False, place="line 1"))
BOTH = join(new_run(), (LITERAL, INPUT))


def method(name, *args):
    return lambda run, text: getattr_(run, text, name).invoke(run, *args)


def filtered(name, *args):
    return lambda run, text: FILTERS[name](run, text, *args)


KEEPING = {
    "trim": filtered("trim"),
    "upper": filtered("upper"),
    "title": filtered("title"),
    "replace": filtered("replace", "m", "n"),
    "indent": filtered("indent", 2, True),
    "string": filtered("string"),
    "truncate": filtered("truncate", 8, True),
    "reverse": filtered("reverse"),
    "center": filtered("center", 30),
    "method strip": method("strip"),
    "method lstrip": method("lstrip", " "),
    "method lower": method("lower"),
    "method replace": method("replace", "o", ""),
    "method removeprefix": method("removeprefix", " "),
    "first of split": lambda run, text: method("split")(run, text)[0],
    "slice": lambda run, text: getitem(run, text, slice(1, -1)),
    "add": lambda run, text: operators.add(run, text, text),
    "concat": lambda run, text: operators.concat(run, text, text),
    "mul": lambda run, text: operators.mul(run, text, 2),
    "join": lambda run, text: FILTERS["join"](run, [text, text]),
    "method join": lambda run, text: getattr_(run, text, "join").invoke(run, [text, text]),
}


@pytest.mark.parametrize("name", KEEPING)
@pytest.mark.parametrize("text", [INPUT, LITERAL, BOTH], ids=["input", "literal", "both"])
def test_kept(name, text):
    result = KEEPING[name](new_run(), text)
    assert result == KEEPING[name](new_run(), str(text))
    assert type(result) is Text
    assert "".join(piece for piece, _ in result.parts) == result
    if text is not BOTH:
        assert {origin for _, origin in result.parts} == {text.parts[0][1]}


def test_strip_keeps_the_parts_between():
    parts = FILTERS["trim"](
        new_run(), join(new_run(), (Text.of("  ", Origin(is_input=False, place="line 2")), BOTH))
    ).parts
    assert parts == (("<b> ", LITERAL.parts[0][1]), ("  Some input", INPUT.parts[0][1]))
