"""The filters of Jinja2 3.1.6, with transformers' `tojson`, by name: `(run, value, ...)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jinjarun.dialects.transformers.filters import data, markup, numbers, ordering, sequences, text
from jinjarun.dialects.transformers.filters.higher_order import mapping, selecting
from jinjarun.dialects.transformers.tests import TESTS

FILTERS: dict[str, Callable[..., Any]] = {
    "abs": numbers.absolute,
    "attr": sequences.attr,
    "batch": sequences.batch,
    "capitalize": text.capitalize,
    "center": text.center,
    "count": sequences.length,
    "d": sequences.default,
    "default": sequences.default,
    "dictsort": ordering.dictsort,
    "e": markup.escape,
    "escape": markup.escape,
    "filesizeformat": numbers.filesizeformat,
    "first": sequences.first,
    "float": numbers.float_,
    "forceescape": markup.forceescape,
    "format": text.format_,
    "groupby": ordering.groupby,
    "indent": text.indent,
    "int": numbers.int_,
    "items": sequences.items,
    "join": text.join_,
    "last": sequences.last,
    "length": sequences.length,
    "list": sequences.list_,
    "lower": text.lower,
    "max": ordering.maximum,
    "min": ordering.minimum,
    "pprint": data.pprint_,
    "random": sequences.random,
    "reject": selecting(TESTS, keep=False, by_attribute=False),
    "rejectattr": selecting(TESTS, keep=False, by_attribute=True),
    "replace": text.replace,
    "reverse": sequences.reverse,
    "round": numbers.round_,
    "safe": markup.safe,
    "select": selecting(TESTS, keep=True, by_attribute=False),
    "selectattr": selecting(TESTS, keep=True, by_attribute=True),
    "slice": sequences.slice_,
    "sort": ordering.sort,
    "string": text.string,
    "striptags": markup.striptags,
    "sum": sequences.sum_,
    "title": text.title,
    "tojson": data.tojson,
    "trim": text.trim,
    "truncate": text.truncate,
    "unique": ordering.unique,
    "upper": text.upper,
    "urlencode": markup.urlencode,
    "urlize": markup.urlize,
    "wordcount": text.wordcount,
    "wordwrap": text.wordwrap,
    "xmlattr": markup.xmlattr,
}
FILTERS["map"] = mapping(FILTERS)
