"""An engine refuses the source of the template.

What it does: reads the source as each engine does and gives line, column and the engine's own reason where one of them
refuses it.

Why it is bad: no request is answered. A server does not start, or starts with a template of its own in place of this
one, and then the model's answers are merely worse than they should be.

Example: `{% if message.role == 'user' %}` without its `{% endif %}`; a tag that is no tag of Jinja.

Use instead: what both engines read; `jinjarun render` shows the place with a caret.

References: the lexer and parser of Jinja2 3.1.6; common/jinja of llama.cpp, which refuses some of what Jinja2 reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinjarun.errors import JinjarunError, TemplateSyntaxError, quote
from jinjarun.sources.not_a_template import not_a_template
from probes.rendering.renders import dialect_of
from probes.rules.base import Rule
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.rules.view import Facts

DIALECTS = ("transformers", "llama.cpp")


def check(facts: Facts) -> list[Hit]:
    if not_a_template(facts.source) is not None:
        return []
    refusals: dict[str, JinjarunError] = {}
    for dialect in DIALECTS:
        found = facts.renders.template(dialect)
        if isinstance(found, TemplateSyntaxError):
            refusals[dialect] = found
    if not refusals:
        return []
    first = next(iter(refusals.values()))
    hint = first.details.get("hint")
    return [
        Hit(
            message=f"{' and '.join(refusals)} cannot read it: {quote(first.message)}",
            engines=[path for dialect in refusals for path in facts.renders.paths if dialect_of(path) == dialect],
            line=first.line,
            column=first.column,
            severity="error" if len(refusals) == len(DIALECTS) else "warning",
            suggestion=quote(hint) if isinstance(hint, str) else None,
            cause="syntax",
        )
    ]


RULE = Rule(
    code="SY001",
    name="does-not-parse",
    severity="error",
    summary="An engine refuses the source; gives line, column and hint.",
    suggestion="repair the syntax at the place that is named",
    check=check,
    triggers="{% for m in messages %}<|{{ m.role }}|>{{ m.content }}",
    repaired="{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}",
    healthy=(
        "{%- for m in messages -%}\n{%- if loop.first and m.role != 'system' -%}<|im_start|>system\n<|im_end|>\n"
        "{%- endif -%}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor -%}"
    ),
    documentation=__doc__,
)
