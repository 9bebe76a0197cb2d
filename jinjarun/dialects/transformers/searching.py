"""What it costs to find a string in another, in the worst case.

CPython (Objects/stringlib/fastsearch.h, 3.10 to 3.14) compares at each place from the start of what it seeks: as many
steps as both lengths multiplied. Forwards and in long texts it prepares what it seeks and takes as many as the lengths
added, but not where few places are left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinjarun.runtime.run import Run

_COMPARED_A_STEP = 128
"""Characters that are compared one by one in a step."""
_PASSED_A_STEP = 16
"""Characters of a text that is read through in a step."""
_END = 32
"""Characters of a long string that are sought first: most texts do not hold even these."""
_SHORT_TEXT, _SHORT_SOUGHT, _TINY_SOUGHT = 30_000, 100, 6
"""A text that is as short, and a string that is, are compared without preparation."""
_SMALL_TEXT = 2_500
_PLACES_LEFT = 2_000
"""Nor is anything prepared for so few places."""


def pay_for_search(run: Run, text: str, sought: Any, *, backwards: bool = False) -> None:
    """All places of `sought` in `text` are about to be found."""
    run.charge(len(text) // _PASSED_A_STEP)
    if not isinstance(sought, str) or len(sought) < 2:
        return
    size, length = len(text), len(sought)
    places = size - length + 1
    if places < 1:
        return
    if length > _END and places > 1:
        run.charge(places * _END // _COMPARED_A_STEP)
        if (sought[-_END:] if backwards else sought[:_END]) not in text:
            return  # so each place is left after as many
    plain = backwards or size < _SMALL_TEXT or (length < _SHORT_SOUGHT and size < _SHORT_TEXT) or length < _TINY_SOUGHT
    run.charge((places if plain else min(places, _PLACES_LEFT)) * length // _COMPARED_A_STEP)
    if not plain:
        run.charge(size // _PASSED_A_STEP)
