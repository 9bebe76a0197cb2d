"""`jinjarun rules`: which rules there are, and what each says."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from jinjarun.errors import nearest
from probes.commands import Command
from probes.commands.options import Usage
from probes.commands.output import CLEAN, print_json, write

if TYPE_CHECKING:
    import argparse


def add_options(added: argparse.ArgumentParser) -> None:
    added.add_argument("code", metavar="CODE", nargs="?", help="one rule, by its code or name: all that is to be said")


def run(args: argparse.Namespace) -> int:
    from probes.reporters.text import rule_text, rules_text
    from probes.rules import rules

    known = rules()
    if args.code is None:
        rows = [
            {"code": rule.code, "name": rule.name, "severity": rule.severity, "needs": rule.needs}
            | {"preview": rule.preview, "summary": rule.summary}
            for rule in known.values()
        ]
        print_json(rows) if args.json else write(rules_text(known.values()))
        return CLEAN
    rule = next((one for one in known.values() if args.code in {one.code, one.code.lower(), one.name}), None)
    if rule is None:
        names = [word for one in known.values() for word in (one.code, one.name)]
        raise Usage(f"no rule is called {args.code}{nearest(args.code, names)}; all are listed by: jinjarun rules")
    fields = {field.name: getattr(rule, field.name) for field in dataclasses.fields(rule) if field.name != "check"}
    print_json(fields) if args.json else write(rule_text(rule))
    return CLEAN


COMMAND = Command("list the rules, or print the documentation of one", run, add_options, 0, bounded=False)
