"""The tables of the LALR parser.

Lark compiles `grammar.lark` in more than half a second, so the result is kept beside it. `write` makes it again; a
stale one is never used, and a test asks that there is none:

    python -c "from jinjarun.syntax.tables import write; write()"
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

FILE = "grammar.json"


class Tables(NamedTuple):
    """`states[i][symbol]` is the next state, or `~n` to reduce by `rules[n]`: (children, symbol, alias).

    A terminal that the grammar writes as text goes by this text, any other by its name.
    """

    digest: str
    start: int
    rules: list[tuple[int, str, str]]
    states: list[dict[str, int]]


def _read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def load() -> Tables:
    """The tables of the grammar as it is now."""
    grammar = _read("grammar.lark")
    digest = hashlib.sha256(grammar.encode()).hexdigest()
    try:
        stored = json.loads(_read(FILE))
    except (OSError, ValueError):
        return compile_grammar(grammar)
    return Tables(**stored) if stored["digest"] == digest else compile_grammar(grammar)


def compile_grammar(grammar: str) -> Tables:
    """Let Lark make the tables; a conflict in the grammar is an error."""
    from lark import Lark  # noqa: PLC0415  (a tenth of a second, needed only when the grammar has changed)
    from lark.lexer import Lexer, PatternStr  # noqa: PLC0415
    from lark.parsers.lalr_analysis import Reduce  # noqa: PLC0415

    class NoLexer(Lexer):
        def __init__(self, conf: Any) -> None:
            pass

        def lex(self, *_: Any) -> Any:
            raise NotImplementedError

    lark = Lark(grammar, parser="lalr", lexer=NoLexer, strict=False)
    table: Any = lark.parser.parser._parse_table
    text = {t.name: t.pattern.value if isinstance(t.pattern, PatternStr) else t.name for t in lark.terminals}
    rules: dict[Any, int] = {}
    numbers = {state: number for number, state in enumerate(table.states)}
    states = []
    for actions in table.states.values():
        row = {}
        for symbol, (action, argument) in actions.items():
            number = ~rules.setdefault(argument, len(rules)) if action is Reduce else numbers[argument]
            row[text.get(symbol, str(symbol))] = number
        states.append(row)
    end = numbers[table.end_states["start"]]
    states[end]["$END"] = end
    return Tables(
        hashlib.sha256(grammar.encode()).hexdigest(),
        numbers[table.start_states["start"]],
        [(len(rule.expansion), str(rule.origin.name), rule.alias or "") for rule in rules],
        states,
    )


def write() -> None:
    """Compile the grammar and keep the tables beside it."""
    tables = compile_grammar(_read("grammar.lark"))
    with open(str(resources.files(__package__).joinpath(FILE)), "w", encoding="utf-8") as file:
        json.dump(tables._asdict(), file, separators=(",", ":"))
        file.write("\n")
