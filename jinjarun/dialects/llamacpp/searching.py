"""What it costs to look for one string in another."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinjarun.runtime.run import Run

_SLOW_PLACES = 2_500
"""CPython 3.10 and later look for a long string in linear time, but for texts that are shorter than this, and for up to
2,000 places where the two are about as long (stringlib/fastsearch.h)."""


def charge_search(run: Run, text: str, wanted: str, *, backwards: bool = False) -> None:
    """Pay for finding every place of `wanted` in `text`. Backwards, CPython compares the two at each place."""
    run.charge(len(text) >> 4)
    places = len(text) - len(wanted) + 1
    if places > 0:
        slow = places if backwards else min(places, _SLOW_PLACES)
        run.charge(slow * len(wanted) >> 10)
