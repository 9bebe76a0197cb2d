"""Tools or results are written, and a call in the history leaves no trace.

What it does: sends a call and its result with content that is empty, null and a text, and arguments as an object and as
JSON text, and looks for the name and the arguments in the prompt.

Why it is bad: the model sees a result that nobody asked for. It calls again, or answers as if the user had said it,
and each further round makes it worse.

Example: `{% for message in messages %}{{ message.content }}{% endfor %}` with a list of tools before it.

Use instead: write `message.tool_calls` in the form in which the model makes them, whatever the content is.

References: the first templates of LFM2, Granite 3.3 and the distilled DeepSeek R1, which were mended later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chats import canaries
from probes.laws.silence import calls_kept
from probes.rules.base import Rule
from probes.rules.by_law import broken_on, hit_of
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.chats.messages import Chat
    from probes.rendering.input_form import PathObserver
    from probes.rules.view import Facts


def asks(on: PathObserver) -> list[Chat]:
    return [canaries.one_call(on.call_form or on.form)]


def check(facts: Facts) -> list[Hit]:
    found = broken_on(facts.view, calls_kept, asks, "TL115")
    if not found:
        return []
    return [hit_of(facts.view, max(found.values(), key=len), severity="error", cause="calls ignored")]


RULE = Rule(
    code="TL115",
    name="calls-ignored",
    severity="error",
    summary="A call in the history leaves no trace, always or beside some content.",
    suggestion="write the calls of a message, whatever its content is",
    check=check,
    triggers=(
        "{% if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}{% for m in m"
        "essages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}<|im_end|>\n{% endfor %}"
    ),
    repaired=(
        "{% if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}{% for m in m"
        "essages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}{% for c in m.tool_calls or [] %"
        "}<call>{{ c.function | tojson }}</call>{% endfor %}<|im_end|>\n{% endfor %}"
    ),
    healthy=("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"),
    documentation=__doc__,
    asks=asks,
)
