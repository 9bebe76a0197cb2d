"""An assistant message with calls and without content fails.

What it does: sends a message with calls whose content is null, and one that has no content at all, on each path.

Why it is bad: `"content": null` beside `tool_calls` is what OpenAI's API returns and what its clients send back. The
first tool call of every agent ends in an error.

Example: `{{ '<|assistant|>' + message.content }}`; `{% if '</think>' in message.content %}`.

Use instead: `{% set content = message.content or '' %}`, or a test that content is a string before it is searched.

References: llama-server sends an empty text in place of null where the template needs one; `apply_chat_template` of
transformers takes null keys out of messages, so that content is undefined there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chats import canaries
from probes.rules.base import Rule
from probes.rules.view import Hit, fates

if TYPE_CHECKING:
    from probes.rules.view import Facts


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    null = view.ask_calls(canaries.one_call, canaries.VALUE, beside="null")
    missing = view.ask_calls(canaries.one_call, canaries.VALUE, beside="missing")
    failed = fates(null, "raised")
    paths = {one.path for one in failed}
    failed += [one for one in fates(missing, "raised") if one.path not in paths]
    if not failed:
        return []
    paths = {one.path for one in failed}
    good = [one for one in fates(null, "written") if one.path not in paths]
    what = "null" if failed[0] in null else "missing"
    message = f"a message with calls whose content is {what} fails: {failed[0].error}"
    return [view.hit(message, failed, good, severity="error", cause="null content beside calls")]


RULE = Rule(
    code="CT102",
    name="null-content-raises",
    severity="error",
    summary="Content null, or no key content, beside tool calls fails.",
    suggestion="take content or '' before it is joined or searched",
    check=check,
    triggers=(
        "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content }}"
        "{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}<|end|>\n{% endfor %}"
    ),
    repaired=(
        "{% for m in messages %}{{ '<|' + m.role + '|>' + (m.content or '') }}"
        "{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}<|end|>\n{% endfor %}"
    ),
    healthy=(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.content is string %}{{ m.content }}{% endif %}"
        "{% for c in m.tool_calls or [] %}<tool_call>\n{{ c.function | tojson }}\n</tool_call>{% endfor %}"
        "<|im_end|>\n{% endfor %}"
    ),
    documentation=__doc__,
)
