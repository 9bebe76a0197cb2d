"""Laws that every conversation must keep, each with the codes of the rules that speak of its defects.

A new law is a function of a `Case` that yields `Break`s, and a row in the `LAWS` of its module.
"""

from __future__ import annotations

from probes.laws import bounds, calls, growth, texts, turns
from probes.laws.base import CODES, Break, Case, Law, Subject

LAWS: dict[str, Law] = {law.name: law for law in (*bounds.LAWS, *growth.LAWS, *texts.LAWS, *turns.LAWS, *calls.LAWS)}
"""Every law by its name, in the order in which they are reported."""

EXAMPLES = 100
"""Conversations that `fuzz` makes up for a template unless told otherwise."""
DATABASE = ".hypothesis/jinjarun"
"""The folder where its command keeps what was found."""

__all__ = ["CODES", "DATABASE", "EXAMPLES", "LAWS", "Break", "Case", "Law", "Subject"]
