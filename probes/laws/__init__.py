"""Laws that every conversation must keep, each with the codes of the rules that speak of its defects.

A new law is a function of a `Case` that yields `Violation`s, and a row in the `LAWS` of its module.
"""

from __future__ import annotations

from probes.laws import bounds, calls, growth, texts, turns
from probes.laws.case import Case
from probes.laws.law import Law, Violation
from probes.laws.subject import Subject

LAWS: dict[str, Law] = {law.name: law for law in (*bounds.LAWS, *growth.LAWS, *texts.LAWS, *turns.LAWS, *calls.LAWS)}
"""Every law by its name, in the order in which they are reported."""

EXAMPLES = 100
"""Conversations that `fuzz` generates for a template unless told otherwise."""
DATABASE = ".hypothesis/jinjarun"
"""The folder where its command keeps what was found."""

__all__ = ["DATABASE", "EXAMPLES", "LAWS", "Case", "Law", "Subject", "Violation"]
