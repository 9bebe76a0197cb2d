"""Laws that every conversation must keep, each with the codes of the rules that speak of its defects.

A new law is a function of a `Case` that yields `Violation`s, and a row in the `LAWS` of its module.
"""

from __future__ import annotations

from probes.laws import blocks, bounds, calls, growth, layout, optional, parts, rows, silence, texts, turns
from probes.laws.case import Case
from probes.laws.law import Law, Violation
from probes.laws.subject import Subject

_MODULES = (bounds, growth, texts, parts, turns, layout, calls, silence, optional, blocks, rows)
LAWS: dict[str, Law] = {law.name: law for module in _MODULES for law in module.LAWS}
"""Every law by its name, in the order in which they are reported."""

EXAMPLES = 100
"""Conversations that `fuzz` generates for a template unless told otherwise."""
DATABASE = ".hypothesis/jinjarun"
"""The folder where its command keeps what was found."""

__all__ = ["DATABASE", "EXAMPLES", "LAWS", "Case", "Law", "Subject", "Violation"]
