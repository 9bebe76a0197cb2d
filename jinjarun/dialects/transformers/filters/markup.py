"""Filters about HTML and URLs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from jinja2.exceptions import FilterArgumentError
from jinja2.utils import url_quote
from jinja2.utils import urlize as link_urls

from jinjarun.dialects.transformers.iteration import collect, refuse
from jinjarun.dialects.transformers.markup import Markup, escaped, markup_size, stripped_of_tags
from jinjarun.dialects.transformers.measure import soft_text, to_text
from jinjarun.dialects.transformers.undefined import Undefined, cut
from jinjarun.limits import utf8_size

if TYPE_CHECKING:
    from jinjarun.runtime.run import Run

_NOT_IN_ATTRIBUTE_NAMES = re.compile(r"[ \t\n\r\f\v/>=]")
_SCHEME = re.compile(r"[\w.+-]{2,}:/{0,2}")
_PAIR_STEPS = 8
"""Steps to write a key with its value, besides those of their characters."""
_LINK_STEPS, _WORD_STEPS = 4, 16
"""Steps for a character, and for a word, of text in which links are looked for."""
_PAIRS_A_STEP = 32
"""Pairs of a word's characters that are tried in a step."""
_READ_A_STEP = 16


def escape(run: Run, value: Any, /) -> Markup:
    text = soft_text(run, value)
    run.string(markup_size(text))
    return escaped(text)


def forceescape(run: Run, value: Any, /) -> Markup:
    return escape(run, to_text(run, value))


def safe(run: Run, value: Any, /) -> Markup:
    text = soft_text(run, value)
    run.string(utf8_size(text))
    return Markup(text)


def striptags(run: Run, value: Any, /) -> str:
    return stripped_of_tags(run, to_text(run, value))


def xmlattr(run: Run, value: Any, /, autospace: Any = True) -> str:
    """` key="value"` for each item that is neither none nor undefined."""
    if not isinstance(value, dict):
        refuse(value, "an object")
    run.items(len(value))
    run.charge(_PAIR_STEPS * len(value))
    written = []
    for key, item in value.items():
        if item is None or isinstance(item, Undefined):
            continue
        if not isinstance(key, str):
            raise TypeError(f"an attribute name is a string, not {type(key).__name__}")
        run.charge(len(key) // _READ_A_STEP)
        if _NOT_IN_ATTRIBUTE_NAMES.search(key) is not None:
            raise ValueError(f"invalid character in attribute name: {cut(key)!r}")
        written.append(f'{escape(run, key)}="{escape(run, item)}"')
    text = " ".join(written)
    run.string(utf8_size(text))
    return " " + text if autospace and text else text


def urlencode(run: Run, value: Any, /) -> str:
    """A string percent-encoded, or pairs (an object's items) as a query string."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return _quoted(run, value, for_qs=False)
    pairs = collect(run, value.items() if isinstance(value, dict) else value)
    run.charge(_PAIR_STEPS * len(pairs))
    written = []
    for pair in pairs:
        key, item = collect(run, pair)
        written.append(f"{_quoted(run, key, for_qs=True)}={_quoted(run, item, for_qs=True)}")
    text = "&".join(written)
    run.string(len(text))
    return text


def _quoted(run: Run, value: Any, *, for_qs: bool) -> str:
    text = to_text(run, value)
    size = utf8_size(text)
    run.charge(size)
    run.string(3 * size)
    return url_quote(str(text), for_qs=for_qs)


def urlize(  # noqa: PLR0917 - its parameters are Jinja2's own
    run: Run,
    value: Any,
    /,
    trim_url_limit: Any = None,
    nofollow: Any = False,
    target: Any = None,
    rel: Any = None,
    extra_schemes: Any = None,
) -> str:
    """URLs and mail addresses in the text as HTML links."""
    relations = {"noopener", *(["nofollow"] if nofollow else [])}
    if rel:
        if not isinstance(rel, str):
            refuse(rel, "a string")
        run.charge(len(rel))
        relations.update(rel.split())
    schemes = [] if extra_schemes is None else collect(run, extra_schemes)
    for scheme in schemes:
        if not isinstance(scheme, str):
            refuse(scheme, "a string")
        run.charge(1 + len(scheme) // _READ_A_STEP)
        if _SCHEME.fullmatch(scheme) is None:
            raise FilterArgumentError(f"{cut(scheme)!r} is not a valid URI scheme prefix.")
    text = soft_text(run, value)
    run.charge(_LINK_STEPS * len(text))
    grown = markup_size(text)
    run.string(grown)
    html = str(escaped(text))
    words = html.split()
    # What trails a word is sought from each of its characters.
    run.charge(sum(len(word) ** 2 for word in words) // _PAIRS_A_STEP)
    attributes = markup_size(" ".join(relations)) + (markup_size(target) if isinstance(target, str) else 0)
    count = len(words) + 1
    run.charge(count * (_WORD_STEPS + sum(1 + len(scheme) // _READ_A_STEP for scheme in schemes)))
    links = sum(any(map(word.__contains__, ".:@")) for word in words)
    run.string(3 * grown + links * (attributes + 40))
    return link_urls(
        Markup(html),
        trim_url_limit=trim_url_limit,
        rel=" ".join(sorted(relations)),
        target=target,
        extra_schemes=schemes,
    )
