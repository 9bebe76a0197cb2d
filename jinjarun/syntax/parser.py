"""Text -> tree. Jinja2's tokens drive the LALR tables; where a production ends, the Builder makes its node. Those of
llama.cpp are read by `Descent`."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NoReturn

from jinjarun.syntax import nodes, tables
from jinjarun.syntax.builder import Builder
from jinjarun.syntax.descent import Descent
from jinjarun.syntax.lexer import KEYWORD_PAIRS, KEYWORDS, Token, tokenize

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinjarun.limits import Limits
    from jinjarun.syntax.expressions import Kids
    from jinjarun.syntax.rules import SyntaxRules

    Action = tuple[int, Callable[["Builder", Kids], Any] | None, str]
    State = dict[str, Any]
    """Symbol -> the next State, or the Action that reduces."""


def parse(source: str, rules: SyntaxRules, limits: Limits) -> nodes.Template:
    """Read a template as one engine does. Raises TemplateSyntaxError and LimitExceeded, nothing else."""
    text, kinds, tokens = tokenize(source, rules, limits)
    if not rules.keywords:
        return nodes.Template(1, 1, Descent(text, kinds, tokens, rules, limits).template())
    builder = Builder(text, rules, limits)
    body = _run(_automaton(rules), kinds, tokens, builder)
    builder.finish()
    return nodes.Template(1, 1, body)


@lru_cache(maxsize=8)
def _automaton(rules: SyntaxRules) -> State:
    """The start state; the tables as dictionaries that hold each other, with what the dialect refuses taken out."""
    compiled = tables.load()
    actions = [_action(size, symbol, alias, rules) for size, symbol, alias in compiled.rules]
    refused = rules.without.keys() - {symbol for _, symbol, _ in compiled.rules}
    states: list[State] = [{} for _ in compiled.states]
    for state, row in zip(states, compiled.states, strict=True):
        for symbol, number in row.items():
            if symbol not in refused:
                state[symbol] = states[number] if number >= 0 else actions[~number]
    return states[compiled.start]


def _action(size: int, symbol: str, alias: str, rules: SyntaxRules) -> Action:
    refused = rules.without.get(alias or symbol)
    if refused is not None:
        return size, partial(_refuse, hint=refused), symbol
    if not alias:
        assert size == 1, f"{symbol} needs an alias"
        return size, None, symbol
    build: Callable[[Builder, Kids], Any] = getattr(Builder, alias)
    return size, build, symbol


def _run(state: State, kinds: list[str], tokens: list[Token], builder: Builder) -> list[nodes.Stmt]:
    states: list[State] = [state]
    values: list[Any] = []
    push_state, push_value = states.append, values.append
    for kind, token in zip(kinds, tokens, strict=True):
        later: tuple[str, Token] | None = None
        while True:
            action = state.get(kind)
            if action.__class__ is dict:
                push_state(action)
                push_value(token)
                state = action
                if later is None:
                    break
                (kind, token), later = later, None
                continue
            if action is None:
                if kind in KEYWORDS:
                    kind = "NAME"
                    continue
                if kind in KEYWORD_PAIRS:
                    (first, second), words = KEYWORD_PAIRS[kind], token[2].split()
                    kind, token, later = first, (*token[:2], words[0]), (second, (*token[:2], words[1]))
                    continue
                action = _only_action(state)
                if action is None:
                    builder.unexpected(kind, token, values[-1] if values else None)
            size, build, symbol = action
            if build is not None:
                first_kid = len(values) - size
                kids = values[first_kid:]
                del values[first_kid:]
                push_value(build(builder, kids))
            del states[len(states) - size :]
            # A production that only passes its child on changes nothing but the state.
            base = states[-1]
            state = base[symbol]
            action = state.get(kind)
            while action.__class__ is tuple and action[1] is None:
                state = base[action[2]]
                action = state.get(kind)
            push_state(state)
    body: list[nodes.Stmt] = values[0]
    return body


def _only_action(state: State) -> Action | None:
    """The reduction that is all that can be done here: done before an error, it lets the error know what is open."""
    first, *others = state.values()
    return first if type(first) is tuple and all(action is first for action in others) else None


def _refuse(builder: Builder, kids: Kids, hint: str) -> NoReturn:
    line, column = _place(kids) or (1, 1)
    builder.fail(f"{builder.rules.engine} does not read this", line, column, hint)


def _place(kids: Any) -> tuple[int, int] | None:
    """Where a production begins, from the first of its children that knows."""
    for kid in kids:
        if type(kid) is list or type(kid) is tuple:
            place = (kid[0], kid[1]) if kid and type(kid[0]) is int else _place(kid)
            if place:
                return place
        elif isinstance(kid, nodes.Node):
            return kid.line, kid.column
    return None
