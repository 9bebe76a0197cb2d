"""Every filter, test and method over many values and arguments: what the real Jinja2 answers is the law."""

from __future__ import annotations

import re

import pytest
from jinja2 import TemplateError
from markupsafe import Markup

from jinjarun.dialects.transformers.filters import FILTERS
from jinjarun.dialects.transformers.methods import METHODS
from jinjarun.dialects.transformers.tests import TESTS
from jinjarun.limits import Limits
from jinjarun.reference import environment
from tests.dialects.transformers.engine import Engine, new_run

CONTEXT = {
    "infinite": float("inf"),
    "recs": [{"name": "x", "age": 3, "tags": ["q", "r"]}, {"name": "Y", "age": 1}, {"name": "y", "age": 2}],
    "text": "  Some text, with Ünïcode & <b>tags</b>\n\n  second line\r\nhttp://example.com/a?b=c x@example.org\t",
    "deep": {"a": {"b": [{"c": "leaf"}]}},
}

VALUES = (
    "none", "true", "false", "0", "-7", "3", "123456789012345678901234567890", "2.5", "-0.0", "infinite",
    "''", "'abc'", "'Hello wOrld-foo bar'", "'42'", "' 3.75 '", "'0x1f'", "'a,b,,c'", "'%s-%s'", "'{0} {x}'", "'ǆß'",
    "text", "'<i>&</i>'|safe", "nothing", "[]", "[3, 1, 2]", "['b', 'A', 'a', 'B']", "[1, 'x', none]",
    "[[1, 2], [3]]", "[nothing]", "recs", "deep", "{}", "{'b': 2, 'a': '1', 'C': none}", "{1: 'x', 2: 'y'}",
    "deep.items()", "deep.a.keys()", "deep.a.values()", "range(4)", "(1, 2)", "()", "[1, 2]|map('string')",
    "[1, 2, 3]|reverse", "namespace(a=1, b='2')", "cycler('a', 'b')", "joiner('-')", "'x'.upper",
    "range", "recs|groupby('age')|first", "lipsum",
)  # fmt: skip

ARGUMENTS = {
    "attr": ("'name'", "'a'", "'items'", "'append'", "'real'", "5"),
    "batch": ("2", "2, 'x'", "0", "'2'", "linecount=3, fill_with=0"),
    "center": ("", "9", "width=4", "'4'", "2.5"),
    "default": ("", "'D'", "'D', true", "default_value=[]", "boolean=true", "other=1"),
    "dictsort": ("", "true", "by='value'", "false, 'value', true", "by='x'", "reverse=1"),
    "filesizeformat": ("", "true"),
    "float": ("", "9", "default='x'"),
    "format": ("", "1", "1, 2", "'a', [1]", "x=1", "1, x=1", "none, none"),
    "groupby": ("'age'", "'name'", "'name', case_sensitive=true", "'tags', default=[]", "0", "none"),
    "indent": ("", "2", "2, true", "2, true, true", "'> '", "first=true", "-1", "2.5"),
    "int": ("", "7", "base=16", "0, 8", "default='x'", "base=99"),
    "join": ("", "', '", "d='-'", "', ', 'name'", "attribute='age'", "none", "'<'|safe"),
    "map": ("'upper'", "attribute='name'", "attribute='tags.0', default='-'", "'default', 'z'", "", "'nosuch'", "x=1"),
    "max": ("", "true", "attribute='age'", "attribute='name'", "case_sensitive=true"),
    "reject": ("", "'none'", "'gt', 1", "'nosuch'", "'in', 'abc'"),
    "rejectattr": ("'name'", "'age', 'gt', 1", "'tags'", "", "'tags', 'defined'"),
    "replace": ("'a', 'b'", "'l', 'LL', 1", "'', '-'", "1, 2", "old='b', new='<'|safe", "'a'", "'a', 'b', 'c'"),
    "round": ("", "1", "1, 'ceil'", "-1, 'floor'", "0, 'x'", "'1'", "precision=2, method='common'", "none"),
    "slice": ("2", "3, 'x'", "0", "'2'", "slices=2, fill_with=0"),
    "sort": ("", "true", "attribute='age'", "attribute='name,age'", "case_sensitive=true", "reverse='x'"),
    "sum": ("", "'age'", "attribute='age', start=10", "start=[]", "start=''", "start=0.5"),
    "tojson": ("", "indent=2", "false, '--'", "separators=(',', ':')", "sort_keys=true", "true", "indent=1.5", "x=1"),
    "trim": ("", "'a'", "chars=' \n'", "5", "none"),
    "truncate": ("", "5", "5, true", "5, true, '+', 0", "length=9, leeway=2", "1", "5, end='>>'", "none"),
    "unique": ("", "true", "attribute='name'", "attribute='age'", "case_sensitive=true"),
    "urlize": ("", "10, true", "target='_blank'", "rel='x y'", "extra_schemes=['tel:']", "extra_schemes=['!']"),
    "wordwrap": ("", "5", "5, false", "5, wrapstring='|'", "0", "'5'", "5, break_on_hyphens=false"),
    "xmlattr": ("", "false", "autospace=false"),
    "divisibleby": ("2", "num=3", "0", "'x'", ""),
    "in": ("[1, 2]", "'abc'", "seq=recs", "deep", "none", "range(9)", "nothing"),
    "sameas": ("none", "other=true"),
}
ARGUMENTS |= {"d": ARGUMENTS["default"], "min": ARGUMENTS["max"], "select": ARGUMENTS["reject"]}
ARGUMENTS |= {"selectattr": ARGUMENTS["rejectattr"]}
COMPARED = ("1", "'abc'", "[3, 1, 2]", "none", "2.5", "'b'", "nothing", "{}", "b=1", "")

METHOD_ARGUMENTS = {
    "center": ("9", "9, '*'", "'9'", "width=9"),
    "count": ("'a'", "1", "'b', 1, 3", ""),
    "endswith": ("'c'", "('c', 'x')", "1", "'b', 0, 2"),
    "expandtabs": ("", "4", "tabsize=2", "-1"),
    "find": ("'b'", "'b', 1", "''", "1", "sub='b'"),
    "format": ("", "1, 2", "'a', x=[1]", "x=recs", "nothing, x=none", "recs, x='<'|safe"),
    "format_map": ("{'x': 1}", "{}", "recs", "deep"),
    "fromhex": ("'0x1.8p3'", "'x'", "1"),
    "fromkeys": ("'ab'", "[1, 2], 3", "5", "[[]]"),
    "get": ("'a'", "'z'", "'z', 1", "[]", "", "1", "'b', default=1"),
    "index": ("'b'", "1", "2, 1", "'A', 0, 9", "none", ""),
    "isdisjoint": ("['b']", "[]", "5", "[[]]", "deep"),
    "join": ("['x', 'y']", "recs", "[1]", "'xyz'", "[]", "deep", "5", "['<', '<'|safe]"),
    "maketrans": ("'ab', 'xy'", "{'a': 'b'}", "'a', 'bc'", "'a', 'b', 'c'"),
    "partition": ("' '", "','", "''", "1"),
    "removeprefix": ("'a'", "'He'", "1", ""),
    "replace": ("'a', 'b'", "'l', 'LL', 1", "'', '-'", "1, 2", "'a'", "'<', '<'", "'b', 'a', -1"),
    "split": ("", "' '", "','", "',', 1", "sep='b'", "none, 1", "''", "maxsplit=1", "1"),
    "splitlines": ("", "true", "keepends=true"),
    "strip": ("", "' a'", "none", "1", "chars='a'"),
    "translate": ("{97: 'XY', 98: none}", "{}"),
    "zfill": ("9", "'9'", ""),
    "changed": ("1",),
    "cycle": ("1",),
}
METHOD_ARGUMENTS |= dict.fromkeys(("ljust", "rjust"), METHOD_ARGUMENTS["center"])
METHOD_ARGUMENTS |= dict.fromkeys(("lstrip", "rstrip"), METHOD_ARGUMENTS["strip"])
METHOD_ARGUMENTS |= dict.fromkeys(("rfind", "rindex"), METHOD_ARGUMENTS["find"])
METHOD_ARGUMENTS |= {"startswith": METHOD_ARGUMENTS["endswith"], "rsplit": METHOD_ARGUMENTS["split"]}
METHOD_ARGUMENTS |= {"rpartition": METHOD_ARGUMENTS["partition"], "removesuffix": METHOD_ARGUMENTS["removeprefix"]}

TEXT_FILTERS = (
    "capitalize center e escape forceescape format indent join lower pprint replace safe string striptags title tojson"
    " trim truncate upper urlencode urlize wordcount wordwrap"
)
"""Filters of the value's text, which for these values holds an address in Jinja2."""
ADDRESSED = frozenset({"[1, 2]|map('string')", "[1, 2, 3]|reverse", "cycler('a', 'b')", "joiner('-')", "'x'.upper"})
ADDRESSED |= {"range", "lipsum"}


class Side:
    """One of the two engines; a value is made anew for each use, for some are spent by it."""

    def __init__(self, environment):
        self.environment = environment
        self.values = {text: environment.compile_expression(text, undefined_to_none=False) for text in VALUES}

    def template(self, source):
        """The compiled template, None where it does not compile."""
        try:
            return self.environment.from_string(source)
        except TemplateError:
            return None

    def answer(self, template, value):
        """The text without addresses, None where it fails."""
        if template is None:
            return None
        try:
            return re.sub(r" at 0x[0-9a-f]+", "", template.render(CONTEXT, v=self.values[value](**CONTEXT)))
        except Exception:
            return None


@pytest.fixture(scope="module")
def sides():
    generous = Limits(steps=10**9)
    return Side(Engine(new_run(generous))), Side(environment())


def differences(sides, sources, values=VALUES):
    """Of all sources over all values, those where the two do not answer alike: (source, value, ours, Jinja2's)."""
    found = []
    for source in sources:
        ours, theirs = (side.template(source) for side in sides)
        for value in values:
            answers = sides[0].answer(ours, value), sides[1].answer(theirs, value)
            if answers[0] != answers[1]:
                found.append((source, value, *answers))
    return found


@pytest.mark.parametrize("name", sorted(FILTERS.keys() - {"random"}))
def test_filter(sides, name):
    sources = [
        form % (name, arguments)
        for arguments in ARGUMENTS.get(name, ("", "1", "x=1"))
        for form in ("{{ v|%s(%s) }}", "{{ v|%s(%s)|list }}", "{{ v|%s(%s) is mapping }}")
    ]
    values = [value for value in VALUES if name not in TEXT_FILTERS.split() or value not in ADDRESSED]
    assert differences(sides, sources, values) == []


@pytest.mark.parametrize("name", sorted(filter(str.isalpha, TESTS)))
def test_test(sides, name):
    compared = name in {"eq", "equalto", "ne", "lt", "lessthan", "le", "gt", "greaterthan", "ge"}
    calls = ARGUMENTS.get(name, COMPARED if compared else ("", "1"))
    assert differences(sides, [f"{{{{ v is {name}({arguments}) }}}}" for arguments in calls]) == []


REFUSED = {"encode", "from_bytes", "to_bytes"}
"""Methods about bytes, which the dialect does not offer."""
METHOD_NAMES = sorted({name for methods in METHODS.values() for name in methods} - REFUSED | {"format", "format_map"})


@pytest.mark.parametrize("name", METHOD_NAMES)
def test_method(sides, name):
    calls = METHOD_ARGUMENTS.get(name, ("", "1"))
    sources = [f"{{{{ v.{name}({arguments}) }}}}" for arguments in calls] + [f"{{{{ v.{name} is callable }}}}"]
    assert differences(sides, sources) == []


@pytest.mark.parametrize("key", ["'a'", "'items'", "0", "-1", "1.0", "true", "none", "[]", "'0'", "nothing", "(1, 2)"])
def test_item(sides, key):
    item = f"v[{key}]"
    asked = [f"{{{{ {item} is defined }}}}", f"{{{{ {item} is callable }}}}", f"{{{{ [{item}] == [3] }}}}"]
    assert differences(sides, asked) == []
    values = [value for value in VALUES if value not in ADDRESSED]
    assert differences(sides, [f"{{% if {item} is not callable %}}{{{{ {item} }}}}{{% endif %}}"], values) == []


def public_names():
    """Every public attribute that a value of the language has in Python."""
    values = [None, True, 3, 2.5, "", Markup(""), [], (), {}, {}.keys(), {}.items(), range(2)]
    return sorted({name for value in values for name in dir(value) if not name.startswith("_")} | {"grouper", "next"})


@pytest.mark.parametrize("name", public_names())
def test_attribute(sides, name):
    """The same names exist; what ours leaves out, it leaves out on purpose."""
    rows = differences(sides, [f"{{{{ v.{name} is defined }}}}"])
    assert [(value, name) for _, value, *_ in rows if (value, name) not in left_out(name)] == []


def left_out(name):
    """Methods without a use in templates: of Markup, of sets, what only Python code could use."""
    values = {
        "mapping": ["deep.items()", "deep.a.keys()", "deep.a.values()"],
        "escape": ["'<i>&</i>'|safe"],
    }
    return [(value, name) for value in values.get(name, [])]
