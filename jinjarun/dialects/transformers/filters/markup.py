"""Filters about HTML and URLs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from jinja2 import Undefined
from jinja2.exceptions import FilterArgumentError
from jinja2.utils import url_quote
from jinja2.utils import urlize as link_urls
from markupsafe import Markup
from markupsafe import escape as escape_html

from jinjarun.dialects.transformers.iteration import collect, refuse
from jinjarun.dialects.transformers.measure import soft_text, to_text
from jinjarun.dialects.transformers.methods import strings
from jinjarun.dialects.transformers.operators import markup_size
from jinjarun.limits import utf8_size

if TYPE_CHECKING:
    from jinjarun.runtime.run import Run

_NOT_IN_ATTRIBUTE_NAMES = re.compile(r"[ \t\n\r\f\v/>=]")
_SCHEME = re.compile(r"[\w.+-]{2,}:/{0,2}")
_PAIR_STEPS = 4
"""Steps to write a key with its value, besides those of their characters."""
_LINK_STEPS = 4
"""Steps a character of text in which links are looked for."""


def escape(run: Run, value: Any, /) -> Markup:
    text = soft_text(run, value)
    run.string(markup_size(text))
    return escape_html(text)


def forceescape(run: Run, value: Any, /) -> Markup:
    return escape(run, to_text(run, value))


def safe(run: Run, value: Any, /) -> Markup:
    text = soft_text(run, value)
    run.string(utf8_size(text))
    return Markup(text)


def striptags(run: Run, value: Any, /) -> str:
    return strings.striptags(run, safe(run, to_text(run, value)))


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
        if _NOT_IN_ATTRIBUTE_NAMES.search(key) is not None:
            raise ValueError(f"invalid character in attribute name: {key!r}")
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
    text = value if isinstance(value, bytes) else to_text(run, value)
    run.string(3 * (len(text) if isinstance(text, bytes) else utf8_size(text)))
    return url_quote(text, for_qs=for_qs)


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
    relations = {*(rel or "").split(), "noopener", *(["nofollow"] if nofollow else [])}
    schemes = [] if extra_schemes is None else collect(run, extra_schemes)
    for scheme in schemes:
        if _SCHEME.fullmatch(scheme) is None:
            raise FilterArgumentError(f"{scheme!r} is not a valid URI scheme prefix.")
    text = soft_text(run, value)
    run.charge(_LINK_STEPS * len(text))
    words = text.split()
    # A long word may be searched again from each of its characters.
    longest = max(map(len, words), default=0)
    attributes = markup_size(" ".join(relations)) + (markup_size(target) if isinstance(target, str) else 0)
    count = len(words) + 1
    run.charge(count * (8 + len(schemes)) + (longest * longest >> 7))
    run.string(3 * markup_size(text) + count * (attributes + 40 if "." in text or ":" in text or "@" in text else 0))
    return link_urls(
        text,
        trim_url_limit=trim_url_limit,
        rel=" ".join(sorted(relations)),
        target=target,
        extra_schemes=schemes,
    )
