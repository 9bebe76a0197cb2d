"""Keys of arguments are sorted or put in another order.

What it does: takes the prefix law `key-order`: the same call with its arguments in either order must be written in that
order.

Why it is bad: the model wrote its arguments in one order, the history shows another. The cache is lost at the call, and
a model that is trained on such text learns an order that it cannot know while it writes.

Example: `{% for key, value in arguments | dictsort %}`, `{{ arguments | tojson(sort_keys=true) }}`.

Use instead: `{% for key, value in arguments | items %}`, `{{ arguments | tojson }}`.

References: objects keep their order in Python and in llama.cpp; `dictsort` of Jinja2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.rules.base import Rule
from probes.rules.laws import broken_laws
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.rules.view import Facts

LAWS = {"key-order": "another order of the arguments is not kept, which"}


def check(facts: Facts) -> list[Hit]:
    return broken_laws(facts, LAWS, "warning")


RULE = Rule(
    code="PS105",
    name="keys-sorted",
    severity="warning",
    summary="Keys of arguments are sorted or reordered, so a replay differs from what was generated.",
    suggestion="write keys in the order in which they come",
    check=check,
    triggers=(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
        "<call>{{ c.function.name }}{% for key, value in c.function.arguments | dictsort %} {{ key }}={{ value }}"
        "{% endfor %}</call>{% endfor %}<|end|>\n{% endfor %}"
    ),
    repaired=(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
        "<call>{{ c.function.name }}{% for key, value in c.function.arguments | items %} {{ key }}={{ value }}"
        "{% endfor %}</call>{% endfor %}<|end|>\n{% endfor %}"
    ),
    healthy=(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
        "<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    ),
    documentation=__doc__,
)
